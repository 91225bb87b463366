package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"diagnose/matcher"
	"diagnose/notify"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

// heard is a buffer that several goroutines write to.
type heard struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.String()
}

// watched runs the daemon in this process until it has said something.
func watched(t *testing.T, until string, args ...string) (status int, said string) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var log heard
	done := make(chan int, 1)
	go func() {
		done <- execute(ctx, append([]string{"watch"}, args...), strings.NewReader(""), io.Discard, &log)
	}()
	for end := time.Now().Add(patience); !strings.Contains(log.String(), until); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q was not said:\n%s", until, log.String())
		}
	}
	cancel()
	select {
	case status = <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("not stopped within 10 s:\n%s", log.String())
	}
	// fsnotify and the tracker of nxadm/tail live as long as the process.
	goleak.VerifyNone(t, before,
		goleak.IgnoreAnyFunction("github.com/nxadm/tail/watch.(*InotifyTracker).run"),
		goleak.IgnoreAnyFunction("github.com/fsnotify/fsnotify.(*inotify).readEvents"))
	return status, log.String()
}

func TestWatchStopsAndLeaksNothing(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "vllm.log")
	data, err := os.ReadFile(filepath.Join(fixtures, "vllm-h200", "v0240-dsa-32768-0.92.log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, data, 0o600); err != nil {
		t.Fatal(err)
	}
	status, said := watched(t, "event=opened", "--state-dir", filepath.Join(dir, "state"), "--listen", "127.0.0.1:0", log, filepath.Join(dir, "later", "*.log"))
	if status != 0 || !strings.Contains(said, "msg=stopped") {
		t.Errorf("status %d:\n%s", status, said)
	}
}

// What build has opened when a later part fails is closed again.
func TestWatchThatCannotStartLeaksNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for range 2 { // the second would not get the lock of the first
		r := call(t, "", "watch", "--state-dir", dir, "--listen", taken.Addr().String(), filepath.Join(dir, "a.log"))
		if r.status != exitUsage || strings.Contains(r.errors, "another diagnose watch") {
			t.Errorf("status %d: %s", r.status, r.errors)
		}
	}
}

// A state directory on a full disk does not keep logs from being followed, and
// the incident goes to the log and to the file of JSON lines.
func TestWatchOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir()) // what other daemons of this host leave is theirs
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", state, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("needs to mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(state, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	full, err := os.Create(filepath.Join(state, "full"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = full.Write(make([]byte, 1<<20))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := full.Close(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "vllm.log")
	data, err := os.ReadFile(filepath.Join(fixtures, "vllm-h200", "v0240-dsa-32768-0.92.log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, data, 0o600); err != nil {
		t.Fatal(err)
	}
	jsonl := filepath.Join(dir, "out.jsonl")
	_, said := watched(t, "event=opened", "--state-dir", state, "--jsonl", jsonl, log)
	for _, want := range []string{"no space left on device", "notices that wait are lost with a restart"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said:\n%s", want, said)
		}
	}
	if n := strings.Count(said, "no space left on device"); n > 12 {
		t.Errorf("it is said %d times", n)
	}
	if out, err := os.ReadFile(jsonl); err != nil || !bytes.Contains(out, []byte(`"event":"opened"`)) {
		t.Errorf("%s, %v", out, err)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "diagnose-*", "outbox.db")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// On a read-only disk, with a state directory or without, the log is followed.
func TestWatchReadOnly(t *testing.T) {
	dir := t.TempDir()
	disk := filepath.Join(dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("needs to mount a read-only disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	for _, state := range []string{disk, filepath.Join(disk, "state")} {
		_, said := watched(t, "msg=following", "--state-dir", state, filepath.Join(dir, "vllm.log"))
		for _, want := range []string{"incidents cannot be recorded now", "read-only file system", "notices that wait are lost with a restart"} {
			if !strings.Contains(said, want) {
				t.Errorf("%q is not said:\n%s", want, said)
			}
		}
	}
}

// What may pass does not keep logs from being followed; what cannot does.
func TestStateRefuses(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENOSPC: true, syscall.EROFS: true, syscall.EACCES: true, syscall.EPERM: true, syscall.ENOENT: true,
		syscall.ENOTDIR: false, errors.New("another diagnose watch uses it"): false,
	} {
		if got := stateRefuses(&os.PathError{Op: "mkdir", Path: "state", Err: err}); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}

// damaged is a queue of notices with a page overwritten.
func TestWatchWithADamagedQueue(t *testing.T) {
	for at := int64(0); at < 8*4096; at += 4096 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			dir := t.TempDir()
			state := filepath.Join(dir, "state")
			log := filepath.Join(dir, "vllm.log")
			if status, said := watched(t, "msg=following", "--state-dir", state, log); status != 0 {
				t.Fatal(said)
			}
			f, err := os.OpenFile(filepath.Join(state, "outbox.db"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, 4096), at)
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			if status, said := watched(t, "msg=following", "--state-dir", state, log); status != 0 {
				t.Errorf("status %d:\n%s", status, said)
			}
		})
	}
}

// fakeSink is a sink that fails while it is told to.
type fakeSink struct {
	name string
	fail error
	got  []string
}

func (p *fakeSink) Name() string { return p.name }

func (p *fakeSink) Send(_ context.Context, n notify.Notice, s notify.State) (notify.State, bool, error) {
	if p.fail != nil {
		return s, true, p.fail
	}
	p.got = append(p.got, n.Event)
	return s, false, nil
}

// A notice that one part refuses is not given twice to the others, and the
// others get what comes after it.
func TestFanoutAsksAgainOnlyWhoRefused(t *testing.T) {
	log, file := &fakeSink{name: "log"}, &fakeSink{name: "jsonl", fail: errors.New("disk full")}
	var queued []string
	queueFails := errors.New("queue full")
	f := &fanout{parts: []notify.Notifier{log, file}, outbox: func(n notify.Notice) error {
		if queueFails != nil {
			return queueFails
		}
		queued = append(queued, n.Event)
		return nil
	}}
	list := []notify.Notice{
		{Event: notify.EventOpened, Incident: matcher.Incident{ID: "1"}, Time: time.Unix(1, 0)},
		{Event: notify.EventFollowup, Incident: matcher.Incident{ID: "1"}, Time: time.Unix(2, 0)},
	}
	wantErrors := func(list []notify.Notice, want ...string) {
		t.Helper()
		for i, err := range f.publish(list) {
			if got := strings.ReplaceAll(fmt.Sprint(err), "\n", "; "); got != want[i] {
				t.Errorf("notice %d: %s, expected %s", i, got, want[i])
			}
		}
	}
	wantErrors(list[:1], "disk full; queue full")
	for range 3 {
		wantErrors(list, "disk full; queue full", "waits for the notice before it; waits for the notice before it")
	}
	if diff := cmp.Diff([]string{notify.EventOpened, notify.EventFollowup}, log.got); diff != "" {
		t.Errorf("the log waits for the others: %s", diff)
	}
	file.fail = nil
	wantErrors(list, "queue full", "waits for the notice before it")
	queueFails = nil
	wantErrors(list, "<nil>", "<nil>")
	for name, got := range map[string][]string{"log": log.got, "jsonl": file.got, "queue": queued} {
		if diff := cmp.Diff([]string{notify.EventOpened, notify.EventFollowup}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if len(f.have) != 0 {
		t.Errorf("remembered: %v", f.have)
	}
}

// The end of a crash's record is no news for people; the server's return is, and
// goes out as what it is: a receiver switches on the word.
func TestFanoutEvents(t *testing.T) {
	since := "2026-11-30T00:00:00Z"
	for _, c := range []struct {
		event  string
		follow *matcher.Followup
		want   string
	}{
		{notify.EventOpened, nil, notify.EventOpened},
		{notify.EventUpdated, nil, notify.EventUpdated},
		{notify.EventClosed, nil, ""},
		{notify.EventFollowup, &matcher.Followup{RestartedAt: &since}, notify.EventFollowup},
		{notify.EventFollowup, &matcher.Followup{HeldSince: &since}, notify.EventFollowup},
		{notify.EventFollowup, &matcher.Followup{Withdrawn: []string{"x"}}, notify.EventFollowup},
	} {
		got := ""
		f := &fanout{outbox: func(n notify.Notice) error { got = n.Event; return nil }}
		n := notify.Notice{Event: c.event, Incident: matcher.Incident{ID: "1", Followup: c.follow}}
		if err := errors.Join(f.publish([]notify.Notice{n})...); err != nil {
			t.Error(err)
		}
		if got != c.want {
			t.Errorf("%s %+v: queued as %q, expected %q", c.event, c.follow, got, c.want)
		}
	}
}

func TestSeldom(t *testing.T) {
	var b bytes.Buffer
	say := seldom(slog.New(slog.NewTextHandler(&b, nil)).Error, "x")
	for range 1000 {
		say(errors.New("the disk is full"))
		say(errors.New("the disk is slow"))
	}
	if n := strings.Count(b.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, b.String())
	}
}

func TestRunFinder(t *testing.T) {
	run := func(n int) string {
		return fmt.Sprintf("(APIServer pid=%d) INFO 11-30 02:27:10 [api_utils.py:339]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.24.0\n(APIServer pid=%d) INFO x non-default args: {'port': 1}\n", n, n)
	}
	filler := strings.Repeat("(APIServer pid=1) INFO x y\n", 400) // more than a banner's distance
	bare := "INFO x args: Namespace(port=1)\n"
	for name, c := range map[string]struct {
		log  string
		want []int64
	}{
		"no start":         {filler, nil},
		"one start":        {filler + run(1) + filler, []int64{10800}},
		"two starts":       {filler + run(1) + filler + run(2), []int64{10800, int64(2*len(filler) + len(run(1)))}},
		"three starts":     {run(1) + filler + run(2) + filler + run(3) + filler, []int64{int64(len(filler) + len(run(1))), int64(2*len(filler) + 2*len(run(1)))}},
		"without a banner": {filler + bare + filler + bare, []int64{10800, int64(2*len(filler) + len(bare))}},
		"banner far above": {strings.SplitAfter(run(1), "\n")[0] + filler + bare, []int64{int64(len(strings.SplitAfter(run(1), "\n")[0]) + len(filler))}},
		"empty":            {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			back, err := runFinder{}.Back(strings.NewReader(c.log), int64(len(c.log)), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, back); diff != "" {
				t.Errorf("from the end (-want +got):\n%s", diff)
			}
			places, size, err := runFinder{}.Forward(t.Context(), strings.NewReader(c.log))
			if err != nil || size != int64(len(c.log)) {
				t.Fatal(size, err)
			}
			var forward []int64
			for _, p := range places {
				forward = append(forward, p.Offset)
				if n := strings.Count(c.log[:p.Offset], "\n"); p.Line != int64(n)+1 {
					t.Errorf("line %d at %d, expected %d", p.Line, p.Offset, n+1)
				}
			}
			if diff := cmp.Diff(c.want, forward); diff != "" {
				t.Errorf("from the front (-want +got):\n%s", diff)
			}
		})
	}
	if got, err := (runFinder{}).Back(strings.NewReader(run(1)+filler+run(2)), int64(len(run(1)+filler+run(2))), 1000); err != nil || len(got) != 1 {
		t.Errorf("within 1000 bytes: %v, %v", got, err)
	}
}

// The page of the daemon names every metric, and no other.
func TestDocsNameEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../../docs/watch.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| metric, with `diagnose_` in front | |")
	table, _, end := strings.Cut(table, "\n\n")
	if !ok || !end {
		t.Fatal("no table of metrics")
	}
	var want, got []string
	all := make(chan *prometheus.Desc, 100)
	(&collector{}).Describe(all)
	close(all)
	form := regexp.MustCompile(`fqName: "diagnose_([a-z_]+)"`)
	for d := range all {
		want = append(want, form.FindStringSubmatch(d.String())[1])
	}
	for _, m := range regexp.MustCompile("(?m)`([a-z_]+)(?:\\{[a-z,]+\\})?`").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-program +page):\n%s", diff)
	}
}
