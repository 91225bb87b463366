package tailer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// deadline ends a wait that would never end; nothing waits that long.
const deadline = 20 * time.Second

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// nxadm/tail keeps one tracker with one inotify reader for ever.
		goleak.IgnoreAnyFunction("github.com/nxadm/tail/watch.(*InotifyTracker).run"),
		goleak.IgnoreAnyFunction("github.com/fsnotify/fsnotify.(*inotify).readEvents"),
		// Its removal of a watch does not end before the Tail does.
		goleak.IgnoreAnyFunction("github.com/nxadm/tail/watch.(*PollingFileWatcher).ChangeEvents.func1"),
	)
}

// event is one call of a Handler.
type event struct {
	call string // line, tail, rotated, idle, gone
	ref  SourceRef
	next SourceRef
	kind RotationKind
	line Line
	text string
}

// recorder is a Handler that keeps what it gets.
type recorder struct {
	mu     sync.Mutex
	events []event
	onLine func(ref SourceRef, l Line)
}

func (r *recorder) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) Line(ref SourceRef, l Line) {
	text := string(l.Data)
	l.Data = nil
	if r.onLine != nil {
		r.onLine(ref, l)
	}
	r.add(event{call: "line", ref: ref, line: l, text: text})
}

func (r *recorder) Tail(ref SourceRef, l Line) {
	text := string(l.Data)
	l.Data = nil
	r.add(event{call: "tail", ref: ref, line: l, text: text})
}

func (r *recorder) Rotated(old, next SourceRef, kind RotationKind) {
	r.add(event{call: "rotated", ref: old, next: next, kind: kind})
}

func (r *recorder) Idle(ref SourceRef, _ time.Time) { r.add(event{call: "idle", ref: ref}) }
func (r *recorder) Gone(ref SourceRef)              { r.add(event{call: "gone", ref: ref}) }

func (r *recorder) all() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *recorder) texts(call string) []string {
	var texts []string
	for _, e := range r.all() {
		if e.call == call {
			texts = append(texts, e.text)
		}
	}
	return texts
}

func (r *recorder) lines() []string { return r.texts("line") }

// fast are options for tests: every wait is short.
func fast(paths ...string) Options {
	return Options{
		Paths: paths, Tick: 4 * time.Millisecond, IdleTick: 4 * time.Millisecond, Scan: 10 * time.Millisecond,
		Settle: 2 * time.Millisecond, Grace: 30 * time.Millisecond, TailAfter: 20 * time.Millisecond,
		StallAfter: 200 * time.Millisecond, IdleEvery: 10 * time.Millisecond, SaveEvery: time.Hour,
	}
}

// follow starts a Follower; stop ends it and waits.
func follow(t testing.TB, opt Options, h Handler) (f *Follower, stop func()) {
	t.Helper()
	if opt.Warn == nil {
		opt.Warn = func(err error) { t.Logf("warning: %v", err) }
	}
	f, err := NewFollower(opt, h)
	if err != nil {
		t.Fatal(err)
	}
	stop = runFollower(t, f)
	t.Cleanup(stop)
	return f, stop
}

// runFollower runs f; stop ends it and waits.
func runFollower(t testing.TB, f *Follower) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	var once sync.Once
	return func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Logf("run: %v", err)
				}
			case <-time.After(deadline):
				t.Error("the follower does not stop")
			}
		})
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func waitLines(t testing.TB, r *recorder, want ...string) {
	t.Helper()
	ok := func() bool { return slices.Equal(r.lines(), want) }
	for end := time.Now().Add(deadline); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("lines:\n%s\nwant:\n%s", brief(r.lines()), brief(want))
		}
	}
}

// brief shows where two lists may differ, not all of them.
func brief(lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		if i >= 40 {
			fmt.Fprintf(&b, "... %d more\n", len(lines)-i)
			break
		}
		fmt.Fprintf(&b, "%.100q\n", l)
	}
	return b.String()
}

func write(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFollowAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm.log")
	write(t, path, "one\ntw")
	r := &recorder{}
	f, _ := follow(t, fast(path), r)
	waitLines(t, r, "one")
	eventually(t, "the piece is shown", func() bool { return slices.Equal(r.texts("tail"), []string{"tw"}) })
	write(t, path, "o\n\nfour\n")
	waitLines(t, r, "one", "two", "", "four")
	lines := r.all()
	var got []Line
	for _, e := range lines {
		if e.call == "line" {
			got = append(got, e.line)
		}
	}
	for i, want := range []Line{{Offset: 0, Next: 4, Number: 1}, {Offset: 4, Next: 8, Number: 2}, {Offset: 8, Next: 9, Number: 3}, {Offset: 9, Next: 14, Number: 4}} {
		if got[i].Offset != want.Offset || got[i].Next != want.Next || got[i].Number != want.Number || got[i].ReadAt.IsZero() {
			t.Errorf("line %d: %+v, want %+v", i, got[i], want)
		}
	}
	eventually(t, "idle", func() bool { return len(r.texts("idle")) > 0 })
	if s := f.State(); len(s) != 1 || s[0].Status != StatusFollowing || s[0].Offset != 14 || s[0].Path != path || f.Lag() != 0 || f.Beat().IsZero() {
		t.Errorf("state %+v", s)
	}
	c := f.Counters()
	if c.Lines.Load() != 4 || c.Bytes.Load() != 14 {
		t.Errorf("counted %d lines, %d bytes", c.Lines.Load(), c.Bytes.Load())
	}
}

func TestFollowRename(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm.log")
	write(t, path, "one\n")
	r := &recorder{}
	f, _ := follow(t, fast(path), r)
	waitLines(t, r, "one")
	old, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	must(t, os.Rename(path, path+".1"))
	_, _ = old.WriteString("two\nth")
	waitLines(t, r, "one", "two")
	_ = old.Close()
	write(t, path, "ree\nfour\n")
	waitLines(t, r, "one", "two", "three", "four")
	if n := f.Counters().Rotations(RotatedRename); n != 1 {
		t.Errorf("%d renames", n)
	}
}
