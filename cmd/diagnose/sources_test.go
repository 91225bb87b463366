package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"diagnose/tailer"

	"github.com/google/go-cmp/cmp"
)

// A log that cannot be read is told once, again when it can, and once more if
// it happens again; what is not there yet is told once for ever, and so is that it
// came.
func TestSourceLog(t *testing.T) {
	var b bytes.Buffer
	l := &sourceLog{log: slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))}
	empty := filepath.Join(t.TempDir(), "*.log")
	denied := tailer.SourceState{Path: "/a.log", Status: tailer.StatusDenied, Err: &fs.PathError{Op: "open", Path: "/a.log", Err: syscall.EACCES}}
	between := tailer.SourceState{Path: "/a.log", Status: tailer.StatusDenied}
	good := tailer.SourceState{Path: "/a.log", Status: tailer.StatusFollowing}
	later := tailer.SourceState{Path: "/later.log", Status: tailer.StatusWaiting}
	come := tailer.SourceState{Path: "/later.log", Status: tailer.StatusReading}
	match := tailer.SourceState{Path: strings.Replace(empty, "*", "a", 1), Status: tailer.StatusFollowing}
	more := tailer.SourceState{Path: strings.Replace(empty, "*", "b", 1), Status: tailer.StatusFollowing}
	twice := tailer.SourceState{Path: "/link.log", Status: tailer.StatusDuplicate}

	const refused = `level=WARN msg="log cannot be read" path=/a.log error="permission denied"` + "\n"
	const repaired = `level=INFO msg="log can be read now" path=/a.log` + "\n"
	const status = "following 0 sources, 2 waited for, 1 not readable (/a.log: permission denied)"
	for i, c := range []struct {
		state        []tailer.SourceState
		status, said string
	}{
		{[]tailer.SourceState{denied, later, twice}, status, refused +
			`level=INFO msg="waiting for what is not there yet" path=/later.log` + "\n" +
			`level=INFO msg="waiting for what is not there yet" path=` + empty + "\n"},
		{[]tailer.SourceState{between, later}, status, ""},
		{[]tailer.SourceState{good, later}, "following 1 sources, 2 waited for", repaired},
		{[]tailer.SourceState{good, later}, "following 1 sources, 2 waited for", ""},
		{[]tailer.SourceState{denied, later}, status, refused},
		{[]tailer.SourceState{come, match}, "following 2 sources, 0 waited for", `level=INFO msg="log found" path=/later.log` + "\n" +
			`level=INFO msg="log found" path=` + match.Path + " pattern=" + empty + "\n"},
		{[]tailer.SourceState{later, match, more}, "following 2 sources, 1 waited for", ""},
		{[]tailer.SourceState{come, match, more}, "following 3 sources, 0 waited for", ""},
	} {
		b.Reset()
		if got := l.look(c.state, []string{"/a.log", empty}).String(); got != c.status {
			t.Errorf("%d: %q, expected %q", i, got, c.status)
		}
		if diff := cmp.Diff(c.said, b.String()); diff != "" {
			t.Errorf("%d (-expected +said):\n%s", i, diff)
		}
	}
}

// A pattern in a folder that may not be searched is no pattern that waits.
func TestDeniedFolder(t *testing.T) {
	dir := public(t)
	for _, sub := range []string{"open/shut", "pods/a", "pods/b"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, sub := range []string{"open/shut", "pods/b"} {
		if err := os.Chmod(filepath.Join(dir, sub), 0); err != nil {
			t.Fatal(err)
		}
	}
	asNobody(t, func() {
		for pattern, want := range map[string]string{
			"open/*.log":         "",
			"none/*.log":         "",
			"open/shut/*.log":    "open " + dir + "/open/shut: permission denied",
			"open/shut/x/*.log":  "lstat " + dir + "/open/shut/x: permission denied",
			"pods/*/vllm/*.log":  "lstat " + dir + "/pods/b/vllm: permission denied",
			"pods/[a]/vllm/*log": "",
		} {
			got := ""
			if err := deniedFolder(filepath.Join(dir, pattern)); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s: %q, expected %q", pattern, got, want)
			}
		}
	})
}

// STATUS says that a reload was refused until one is taken.
func TestStatusOfARefusedReload(t *testing.T) {
	dir := t.TempDir()
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "notify"))
	// await gives the next STATUS with a text in it.
	await := func(with string) string {
		t.Helper()
		if err := manager.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 64<<10)
		for {
			n, err := manager.Read(buf)
			if err != nil {
				t.Fatalf("%q does not come: %v", with, err)
			}
			_, status, _ := strings.Cut(string(buf[:n]), "STATUS=")
			if status, _, _ = strings.Cut(status, "\n"); strings.Contains(status, with) {
				return status
			}
		}
	}
	config := filepath.Join(dir, "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good := "paths: [" + dir + "/*.log]\nstate_dir: " + dir + "/state\n"
	write(good)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan int, 1)
	go func() {
		done <- execute(ctx, []string{"watch", "--config", config}, strings.NewReader(""), io.Discard, io.Discard)
	}()
	await("following 0 sources, 1 waited for")
	reload := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	write("paths: 7\ncolour: blue\n" + good[strings.Index(good, "state_dir"):])
	reload()
	// It stays while nothing better comes.
	for range 2 {
		status := await("configuration refused at ")
		if !strings.Contains(status, `, the old one is used: `+config+`:1: paths: wrong type: "7" is not a list (and 1 more in the log); following 0 sources, 1 waited for`) {
			t.Errorf("STATUS=%s", status)
		}
	}
	// What makes no sense is refused like what cannot be read.
	write(good + "jsonl: " + dir + "/out.log\n")
	reload()
	await(config + ":3: jsonl: ")
	write(good)
	reload()
	if status := await("following"); strings.Contains(status, "refused") {
		t.Errorf("STATUS=%s", status)
	}
	cancel()
	if status := <-done; status != 0 {
		t.Errorf("exit status %d", status)
	}
}
