package notify

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/matcher"

	"pgregory.net/rapid"
)

// fileEvents reads the events of a file, "torn" for a line that is no JSON.
func fileEvents(t testing.TB, path string) []string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(raw)) {
		var e event
		if !strings.HasSuffix(line, "\n") || json.Unmarshal([]byte(line), &e) != nil {
			out = append(out, "torn")
			continue
		}
		out = append(out, e.Event+" "+e.Incident.ID)
	}
	return out
}

func mustFile(t testing.TB, path string) *File {
	t.Helper()
	f, err := NewFile("f", path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func fileNotice(event, id string, k int) Notice {
	n := sampleNotice(event)
	n.Incident.ID, n.Incident.Occurrences = id, k
	return n
}

func TestFileEvents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "incidents.jsonl")
	f := mustFile(t, path)
	s := sendAll(t, f, fileNotice(EventOpened, "a", 1), nil)
	s = sendAll(t, f, fileNotice(EventOpened, "a", 1), s)
	s = sendAll(t, f, fileNotice(EventUpdated, "a", 2), s)
	s = sendAll(t, f, fileNotice(EventUpdated, "a", 2), s) // again: nothing new
	sendAll(t, f, fileNotice(EventClosed, "a", 2), s)
	sendAll(t, f, fileNotice(EventFollowup, "b", 1), nil) // never opened here
	want := "opened a,updated a,closed a,opened b,followup b"
	if got := strings.Join(fileEvents(t, path), ","); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
	if info, _ := os.Stat(path); info.Mode().Perm()&0o007 != 0 {
		t.Errorf("mode %v", info.Mode())
	}
}

// A daemon whose state was not saved tells again what it told, later and with
// newer words: the end of a record and what a follow-up says are written once.
func TestFileWritesTheEndOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	followup := func(found string, made ...string) Notice {
		n := fileNotice(EventFollowup, "a", 1)
		n.Incident.Followup = &matcher.Followup{RestartedAt: &found, ChangesMade: made}
		return n
	}
	for k, found := range []string{"2026-11-30T02:40:00Z", "2026-11-30T02:40:10Z"} {
		f := mustFile(t, path)
		closed := fileNotice(EventClosed, "a", k+1)
		closed.Time = closed.Time.Add(time.Duration(k) * time.Minute)
		for _, n := range []Notice{fileNotice(EventOpened, "a", k+1), closed, followup(found)} {
			sendAll(t, f, n, nil)
		}
	}
	// The change is made, taken back and made again.
	for _, made := range [][]string{{"--x"}, {"--x"}, nil, {"--x"}} {
		sendAll(t, mustFile(t, path), followup("2026-11-30T03:00:00Z", made...), nil)
	}
	if got := strings.Join(fileEvents(t, path), ","); got != "opened a,closed a"+strings.Repeat(",followup a", 4) {
		t.Errorf("got %s", got)
	}
}

func TestFileRemembersOverARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	sendAll(t, mustFile(t, path), fileNotice(EventOpened, "a", 1), nil)
	// Killed after the line and before the outbox heard of it: no memory.
	sendAll(t, mustFile(t, path), fileNotice(EventOpened, "a", 1), nil)
	sendAll(t, mustFile(t, path), fileNotice(EventUpdated, "a", 2), nil)
	sendAll(t, mustFile(t, path), fileNotice(EventUpdated, "a", 2), nil)
	if got := strings.Join(fileEvents(t, path), ","); got != "opened a,updated a" {
		t.Errorf("got %s", got)
	}
	// Rotated away: the outbox's memory still knows.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	sendAll(t, mustFile(t, path), fileNotice(EventClosed, "a", 2), State(`{"opened":true}`))
	if got := strings.Join(fileEvents(t, path), ","); got != "closed a" {
		t.Errorf("got %s", got)
	}
}

// TestFileTornAnywhere cuts the file at every byte of its last line, as a crash
// can, and goes on: the readable lines must hold each opened exactly once.
func TestFileTornAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := mustFile(t, path)
	sendAll(t, f, fileNotice(EventOpened, "a", 1), nil)
	first, _ := os.ReadFile(path)
	sendAll(t, f, fileNotice(EventOpened, "b", 1), nil)
	whole, _ := os.ReadFile(path)
	for n := len(first); n <= len(whole); n += 61 {
		rewrite(t, path, string(whole[:n]))
		f := mustFile(t, path)
		sendAll(t, f, fileNotice(EventOpened, "b", 1), nil)
		sendAll(t, f, fileNotice(EventOpened, "c", 1), nil)
		got := strings.ReplaceAll(strings.Join(fileEvents(t, path), ","), "torn,", "")
		if got != "opened a,opened b,opened c" {
			t.Fatalf("cut at %d: %s", n, got)
		}
	}
}

func TestFileHoldsForeignLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	rewrite(t, path, "not json\n{\"event\":\"opened\"}\n[1]\n"+strings.Repeat("x", maxLine+10)+"\n\n{\"event\":\"opened\",\"incident\":{\"id\":\"a\"}}\n")
	f := mustFile(t, path)
	if !f.seen.opened["a"] || len(f.seen.opened) != 1 {
		t.Errorf("%v", f.seen.opened)
	}
}

func TestFileErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := NewFile("f", dir); err == nil {
		t.Error("a directory is accepted")
	}
	f := mustFile(t, filepath.Join(dir, "missing", "f"))
	_, retry, err := f.Send(context.Background(), fileNotice(EventOpened, "a", 1), nil)
	var e *Error
	if !errors.As(err, &e) || e.Reason != Storage || !retry {
		t.Errorf("%v %v", retry, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "missing"), 0o755); err != nil {
		t.Fatal(err)
	}
	sendAll(t, f, fileNotice(EventOpened, "a", 1), nil)
}

func TestFileAnyHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "f")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "f")
		f := mustFile(t, path)
		states := map[string]State{}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			id := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "id")
			n := fileNotice(rapid.SampledFrom([]string{EventOpened, EventUpdated, EventClosed, EventFollowup}).Draw(rt, "event"), id, rapid.IntRange(1, 3).Draw(rt, "k"))
			s := sendAll(t, f, n, states[id])
			if rapid.Bool().Draw(rt, "memory is written") {
				states[id] = s
			}
			if rapid.Bool().Draw(rt, "restart") {
				f = mustFile(t, path)
			}
		}
		opened := map[string]int{}
		for _, e := range fileEvents(t, path) {
			kind, id, _ := strings.Cut(e, " ")
			if kind == EventOpened {
				opened[id]++
			} else if opened[id] == 0 {
				rt.Fatalf("%s before opened", e)
			}
		}
		for id, n := range opened {
			if n != 1 {
				rt.Fatalf("%s opened %d times", id, n)
			}
		}
	})
}
