package tailer

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// memStore is a Store in memory that can be cut off, as by a kill.
type memStore struct {
	mu     sync.Mutex
	saved  map[string]Checkpoint
	lines  int // how many lines the saved state covers
	staged int
	dead   bool
}

func (m *memStore) Load() (map[string]Checkpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.saved, nil
}

func (m *memStore) Save(c map[string]Checkpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dead {
		m.saved, m.lines = c, m.staged
	}
	return nil
}

func (m *memStore) stage(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.staged = n
}

func (m *memStore) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.saved) == 0
}

// world is a writer of a log, its rotator, and a daemon that is killed.
type world struct {
	t      *rapid.T
	dir    string
	path   string
	mode   string
	out    *os.File
	stream []byte // all that was written
	next   int    // number of the next line to make up
	queue  []byte // made up, not yet written
	rot    int
	held   []*os.File

	store *memStore
	rec   *recorder
	f     *Follower
	stop  func()
	lag   int // how far commits lag behind, in lines
	own   bool
	tick  time.Duration
	runs  RunFinder
}

func (w *world) start(tb testing.TB) {
	w.store.mu.Lock()
	w.store.dead = false
	w.store.staged = w.store.lines
	kept := w.store.lines
	w.store.mu.Unlock()
	w.rec.mu.Lock()
	w.rec.events = slices.DeleteFunc(w.rec.events, func(e event) bool { return e.call != "line" })[:kept]
	w.rec.mu.Unlock()
	type place struct {
		ref SourceRef
		l   Line
	}
	var places []place
	n := 0
	w.rec.onLine = func(ref SourceRef, l Line) {
		places = append(places, place{ref, l})
		n++
		if n <= w.lag {
			return
		}
		w.f.saving.Lock() // a commit and what it covers are one thing
		if w.lag == 0 {
			w.f.Commit(ref, l.Next, l.Number+1)
			w.store.stage(kept + n)
		} else {
			p := places[n-1-w.lag]
			w.f.Commit(p.ref, p.l.Offset, p.l.Number)
			w.store.stage(kept + n - 1 - w.lag)
		}
		w.f.saving.Unlock()
		if n%3 == 0 {
			if err := w.f.Flush(); err != nil {
				tb.Error(err)
			}
		}
	}
	opt := fast(w.path)
	opt.Store, opt.OwnReader, opt.Tick, opt.Runs = w.store, w.own, w.tick, w.runs
	opt.Grace = 200 * time.Millisecond
	f, err := NewFollower(opt, w.rec)
	if err != nil {
		tb.Fatal(err)
	}
	w.f = f
	w.stop = runFollower(tb, f)
}

func (w *world) kill() {
	// The process goes on, and its inotify with it: a renamed file must not
	// vanish before its watch, as it cannot while a daemon lives (endTail).
	for _, e := range w.mustList() {
		if f, err := os.Open(filepath.Join(w.dir, e.Name())); err == nil {
			w.held = append(w.held, f)
		}
	}
	w.store.mu.Lock()
	w.store.dead = true
	w.store.mu.Unlock()
	w.stop()
}

func (w *world) mustList() []os.DirEntry {
	entries, err := os.ReadDir(w.dir)
	w.ok(err)
	return entries
}

func (w *world) fill(n int) {
	for len(w.queue) < n {
		w.queue = append(w.queue, filler(w.next)+"\n"...)
		w.next++
	}
}

// filler is a line of which no part is like another.
func filler(n int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(n)))
	return hex.EncodeToString(sum[:])[:7+n*11%50]
}

func (w *world) write(n int) {
	w.fill(n)
	w.put(w.queue[:n])
	w.queue = w.queue[n:]
}

func (w *world) put(b []byte) {
	if _, err := w.out.Write(b); err != nil {
		w.t.Fatal(err)
	}
	w.stream = append(w.stream, b...)
}

// endLine ends the line that is being written.
func (w *world) endLine() {
	i := bytes.IndexByte(w.queue, '\n')
	if len(w.stream) == 0 || w.stream[len(w.stream)-1] == '\n' {
		return
	}
	if i < 0 {
		w.t.Fatal("no end of line queued")
	}
	w.put(w.queue[:i+1])
	w.queue = w.queue[i+1:]
}

func (w *world) open(path string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		w.t.Fatal(err)
	}
	w.out = f
}

func (w *world) ok(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

// shift makes room for path.1 as logrotate does.
func (w *world) shift() {
	for i := w.rot; i >= 1; i-- {
		for _, ext := range []string{"", ".gz"} {
			old := fmt.Sprintf("%s.%d%s", w.path, i, ext)
			if exists(old) {
				w.ok(os.Rename(old, fmt.Sprintf("%s.%d%s", w.path, i+1, ext)))
			}
		}
	}
	w.rot++
}

func compressFile(from, to string) error {
	in, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(in)
	_ = z.Close()
	if err := os.WriteFile(to, b.Bytes(), 0o644); err != nil {
		return err
	}
	if info, err := os.Stat(from); err == nil {
		_ = os.Chtimes(to, info.ModTime(), info.ModTime())
	}
	return os.Remove(from)
}

func (w *world) rotate(late int) {
	old := w.out
	switch w.mode {
	case "rename", "compress":
		w.shift()
		w.ok(os.Rename(w.path, w.path+".1"))
		if late > 0 {
			w.write(late) // the writer has not noticed
		}
		w.open(w.path)
		_ = old.Close()
		if w.mode == "compress" {
			w.ok(compressFile(w.path+".1", w.path+".1.gz"))
		}
	case "count up":
		w.rot++
		time.Sleep(12 * time.Millisecond) // file times tell the order, and have that grain
		w.ok(os.Rename(w.path, fmt.Sprintf("%s.%d", w.path, w.rot)))
		w.open(w.path)
		_ = old.Close()
	case "copytruncate":
		w.shift()
		in, err := os.ReadFile(w.path)
		w.ok(err)
		w.ok(os.WriteFile(w.path+".1", in, 0o644))
		w.ok(os.Truncate(w.path, 0))
	case "delete":
		w.arrived() // a file that was removed before it was seen is gone
		info, err := old.Stat()
		w.ok(err)
		seen := func() bool {
			state := w.f.State()
			return len(state) > 0 && state[0].Ref.Inode == idOf(info).inode
		}
		for end := time.Now().Add(deadline); !seen(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				w.t.Fatalf("the file is not followed: %+v", w.f.State())
			}
		}
		w.ok(w.f.Flush())
		w.ok(os.Remove(w.path))
		w.open(w.path)
		_ = old.Close()
	case "symlink":
		w.rot++
		real := filepath.Join(w.dir, fmt.Sprintf("%d.log", w.rot))
		w.open(real)
		w.ok(os.Symlink(real, w.path+".new"))
		w.ok(os.Rename(w.path+".new", w.path))
		_ = old.Close()
	}
}

func (w *world) expected() []string {
	lines := strings.Split(string(w.stream), "\n")
	return lines[:len(lines)-1]
}

// settle waits until all that was written is there.
func (w *world) settle() {
	w.endLine()
	w.arrived()
}

// arrived waits until all complete lines are there.
func (w *world) arrived() {
	want := w.expected()
	for end := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		got := w.rec.lines()
		if slices.Equal(got, want) {
			return
		}
		if time.Now().After(end) || len(got) > len(want) {
			w.t.Fatalf("%s: %d lines, want %d; %s\nstate %+v\n%s", w.mode, len(got), len(want), firstDifference(got, want), w.f.State(), w.list())
		}
	}
}

func firstDifference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		g, e := "(none)", "(none)"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			e = want[i]
		}
		if g != e {
			return fmt.Sprintf("line %d is %.60q, want %.60q", i, g, e)
		}
	}
	return "equal"
}

func (w *world) list() string {
	var b strings.Builder
	entries, _ := os.ReadDir(w.dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			fmt.Fprintf(&b, "%s %d %s\n", e.Name(), info.Size(), info.ModTime().Format("05.000000"))
		}
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for _, c := range w.store.saved {
		fmt.Fprintf(&b, "%+v\n", c)
	}
	w.rec.mu.Lock()
	defer w.rec.mu.Unlock()
	for i, e := range w.rec.events {
		if e.call == "rotated" {
			fmt.Fprintf(&b, "event %d %s %d(%s) -> %d(%s)\n", i, e.kind, e.ref.Gen, e.ref.Name, e.next.Gen, e.next.Name)
		}
	}
	return b.String()
}

// TestAnyRotationAtAnyByte: whatever is written, rotated and killed when, each
// line arrives once, in order.
func TestAnyRotationAtAnyByte(t *testing.T) {
	for _, mode := range []string{"rename", "compress", "count up", "copytruncate", "delete", "symlink"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { anyRotation(t, rt, mode) })
		})
	}
}

func anyRotation(t *testing.T, rt *rapid.T, mode string) {
	dir, err := os.MkdirTemp("", "rotation")
	if err != nil {
		rt.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	w := &world{
		t: rt, dir: dir, path: filepath.Join(dir, "vllm.log"), mode: mode,
		store: &memStore{}, rec: &recorder{},
		lag:  rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(rt, "lag"),
		own:  rapid.Bool().Draw(rt, "own"),
		tick: 3 * time.Millisecond,
	}
	if mode == "symlink" {
		real := filepath.Join(dir, "0.log")
		w.open(real)
		w.ok(os.Symlink(real, w.path))
	} else {
		w.open(w.path)
	}
	defer func() { _ = w.out.Close() }()
	older := slices.Contains([]string{"rename", "compress", "count up", "copytruncate"}, mode)
	if older { // generations that are known by their names are read at a first start
		w.runs = startWords{}
		w.put([]byte("START\n"))
		for range rapid.IntRange(0, 4).Draw(rt, "before the start") {
			w.write(rapid.IntRange(4, 300).Draw(rt, "bytes"))
			if rapid.Bool().Draw(rt, "and rotate") {
				w.rotate(0)
			}
		}
	}
	w.start(t)
	defer func() {
		w.kill()
		for _, f := range w.held {
			_ = f.Close()
		}
	}()
	// Before the first checkpoint there is nothing else to go on from.
	for !older && w.store.empty() {
		time.Sleep(time.Millisecond)
		w.ok(w.f.Flush())
	}
	for range rapid.IntRange(3, 14).Draw(rt, "steps") {
		switch rapid.SampledFrom([]string{"write", "write", "write", "rotate", "rotate", "wait", "kill"}).Draw(rt, "step") {
		case "write":
			w.write(rapid.IntRange(4, 300).Draw(rt, "bytes"))
		case "rotate":
			w.rotate(rapid.SampledFrom([]int{0, 0, 40}).Draw(rt, "late"))
		case "wait":
			time.Sleep(time.Duration(rapid.IntRange(1, 12).Draw(rt, "ms")) * time.Millisecond)
		case "kill":
			w.kill()
			for range rapid.IntRange(0, 4).Draw(rt, "while down") {
				w.write(rapid.IntRange(4, 200).Draw(rt, "bytes"))
				if mode != "delete" && rapid.Bool().Draw(rt, "and rotate") {
					w.rotate(0)
				}
			}
			w.start(t)
		}
	}
	w.settle()
}
