package tailer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCheckpointFile(t *testing.T) {
	dir := t.TempDir()
	s := NewCheckpointFile(dir)
	if got, err := s.Load(); err != nil || len(got) != 0 {
		t.Fatalf("nothing saved: %v, %v", got, err)
	}
	want := map[string]Checkpoint{
		"/var/log/vllm.log": {
			Path: "/var/log/vllm.log", Boot: "b", Saved: time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC),
			Generations: []Position{{
				Name: "/var/log/vllm.log.1", Device: 1, Inode: 2, Head: "aa", HeadLen: 3, Offset: 4, Line: 5,
				Before: "bb", BeforeLen: 4, Done: true,
			}},
		},
		"journal:vllm": {Path: "journal:vllm", Cursor: "s=1"},
	}
	must(t, s.Save(want))
	got, err := NewCheckpointFile(dir).Load()
	must(t, err)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestCheckpointFileUnusable(t *testing.T) {
	for _, c := range []struct {
		name, content, aside, message string
	}{
		{"corrupt", `{"version":1,"check`, "checkpoints.json.corrupt", "is corrupt, kept as"},
		{"empty", ``, "checkpoints.json.corrupt", "is corrupt, kept as"},
		{"other", `[]`, "checkpoints.json.corrupt", "is corrupt, kept as"},
		{"no version", `{}`, "checkpoints.json.corrupt", "is corrupt, kept as"},
		{"newer", `{"version":7,"checkpoints":"in another form"}`, "checkpoints.json.v7", "written by a newer version (format 7), kept as"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, "checkpoints.json"), []byte(c.content), 0o600))
			s := NewCheckpointFile(dir)
			got, err := s.Load()
			var typed *CheckpointError
			if !errors.As(err, &typed) || len(got) != 0 {
				t.Fatalf("loaded %v, %v", got, err)
			}
			if !strings.Contains(err.Error(), c.message) {
				t.Errorf("message %q", err)
			}
			kept, err := os.ReadFile(typed.Aside)
			if err != nil || string(kept) != c.content || filepath.Base(typed.Aside) != c.aside {
				t.Errorf("kept %q as %s: %v", kept, typed.Aside, err)
			}
			must(t, s.Save(map[string]Checkpoint{"a": {Path: "a", Cursor: "c"}}))
			if again, err := NewCheckpointFile(dir).Load(); err != nil || len(again) != 1 {
				t.Errorf("saved anew: %v, %v", again, err)
			}
		})
	}
}

func TestCheckpointFileBlocked(t *testing.T) {
	// The copy's name would be too long.
	path := filepath.Join(t.TempDir(), strings.Repeat("c", 253))
	must(t, os.WriteFile(path, []byte(`{"version":2}`), 0o600))
	s := &CheckpointFile{path: path}
	_, err := s.Load()
	var typed *CheckpointError
	if !errors.As(err, &typed) || typed.Aside != "" {
		t.Fatalf("error %v", err)
	}
	if err := s.Save(map[string]Checkpoint{}); !errors.Is(err, typed.Err) {
		t.Errorf("saved over it: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != `{"version":2}` {
		t.Errorf("now %q, %v", got, err)
	}
}

// What was put aside before stays.
func TestCheckpointFileKeepsAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "checkpoints.json")
	for _, data := range []string{"one", "two", "two", `{"version":7}`, `{"version":7,"x":1}`} {
		must(t, os.WriteFile(path, []byte(data), 0o600))
		if _, err := NewCheckpointFile(dir).Load(); err == nil {
			t.Fatalf("%s is no error", data)
		}
	}
	must(t, os.Remove(path))
	var kept []string
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		kept = append(kept, e.Name()+" "+string(data))
	}
	want := []string{
		"checkpoints.json.corrupt one", "checkpoints.json.corrupt-1 two",
		`checkpoints.json.v7 {"version":7}`, `checkpoints.json.v7-1 {"version":7,"x":1}`,
	}
	if d := cmp.Diff(want, kept); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestFollowGoesOnWithoutStore: a state directory that vanishes stops nothing.
func TestFollowGoesOnWithoutStore(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "vllm.log")
	write(t, path, "one\n")
	r := &recorder{}
	opt := fast(path)
	opt.Store = NewCheckpointFile(filepath.Join(dir, "missing"))
	f, _ := follow(t, opt, r)
	waitLines(t, r, "one")
	if err := f.Flush(); err == nil || !strings.HasPrefix(err.Error(), "save checkpoints: ") {
		t.Errorf("flush: %v", err)
	}
	write(t, path, "two\n")
	waitLines(t, r, "one", "two")
}

// session follows path until its lines are there, commits all but the last
// uncommitted ones, and is killed.
func session(t *testing.T, store *memStore, path string, uncommitted int, want ...string) {
	t.Helper()
	r := &recorder{}
	opt := fast(path)
	opt.Store = store
	store.dead = false
	f, stop := follow(t, opt, r)
	waitLines(t, r, want...)
	n := 0
	for _, e := range r.all() {
		if e.call == "line" {
			if n++; n <= len(want)-uncommitted {
				f.Commit(e.ref, e.line.Next, e.line.Number+1)
			}
		}
	}
	must(t, f.Flush())
	store.mu.Lock()
	store.dead = true
	store.mu.Unlock()
	stop()
}

func TestResume(t *testing.T) {
	type step = func(t *testing.T, path string)
	rename := func(t *testing.T, path string) {
		if _, err := os.Stat(path + ".1"); err == nil {
			must(t, os.Rename(path+".1", path+".2"))
		}
		must(t, os.Rename(path, path+".1"))
	}
	for _, c := range []struct {
		name   string
		while  step
		expect []string
	}{
		{"nothing happened", func(*testing.T, string) {}, []string{"two"}},
		{"more was written", func(t *testing.T, p string) { write(t, p, "three\n") }, []string{"two", "three"}},
		{"renamed", func(t *testing.T, p string) { rename(t, p); write(t, p, "three\n") }, []string{"two", "three"}},
		{"renamed, nothing new yet", func(t *testing.T, p string) { rename(t, p) }, []string{"two"}},
		{"renamed twice", func(t *testing.T, p string) {
			write(t, p, "th")
			rename(t, p)
			write(t, p, "ree\nfour\n")
			rename(t, p)
			write(t, p, "five\n")
		}, []string{"two", "three", "four", "five"}},
		{"renamed twice and compressed", func(t *testing.T, p string) {
			rename(t, p)
			write(t, p, "three\n")
			rename(t, p)
			must(t, compressFile(p+".2", p+".2.gz"))
			must(t, compressFile(p+".1", p+".1.gz"))
			write(t, p, "four\n")
		}, []string{"two", "three", "four"}},
		{"copied and truncated", func(t *testing.T, p string) {
			write(t, p, "three\n")
			text, err := os.ReadFile(p)
			must(t, err)
			must(t, os.WriteFile(p+".1", text, 0o644))
			must(t, os.Truncate(p, 0))
			write(t, p, "four, longer than all before it\n")
		}, []string{"two", "three", "four, longer than all before it"}},
		{"removed", func(t *testing.T, p string) {
			must(t, os.Remove(p))
			write(t, p, "three\n")
		}, []string{"two", "three"}},
		{"removed, and the rest with it", func(t *testing.T, p string) {
			write(t, p, "unseen\n")
			must(t, os.Remove(p))
			write(t, p, "three\n")
		}, []string{"two", "three"}},
		{"a stranger's file", func(t *testing.T, p string) {
			write(t, p+".1", "older\n")
			must(t, os.Chtimes(p+".1", time.Unix(1, 0), time.Unix(1, 0)))
			write(t, p, "three\n")
		}, []string{"two", "three"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "vllm.log")
			write(t, path, "one\ntwo\n")
			store := &memStore{}
			session(t, store, path, 1, "one", "two")
			c.while(t, path)
			session(t, store, path, 0, c.expect...)
			write(t, path, "last\n")
			session(t, store, path, 0, "last")
		})
	}
}

// TestCommit: what a restart reads again, over a rotation within a line.
func TestCommit(t *testing.T) {
	for from, expect := range [][]string{
		{"one", "two", "three", "four"}, {"two", "three", "four"}, {"three", "four"}, {"four"},
	} {
		path := filepath.Join(t.TempDir(), "vllm.log")
		write(t, path, "one\ntwo\nthr")
		store := &memStore{}
		r := &recorder{}
		opt := fast(path)
		opt.Store = store
		f, stop := follow(t, opt, r)
		waitLines(t, r, "one", "two")
		must(t, os.Rename(path, path+".1"))
		write(t, path, "ee\nfour\n")
		waitLines(t, r, "one", "two", "three", "four")
		var lines []event
		for _, e := range r.all() {
			if e.call == "line" {
				lines = append(lines, e)
			}
		}
		last := lines[len(lines)-1]
		f.Commit(last.ref, last.line.Next, last.line.Number+1)
		f.Commit(SourceRef{Path: path, Gen: 999}, 0, 0) // means nothing
		back := lines[from]
		f.Commit(back.ref, back.line.Offset, back.line.Number)
		must(t, f.Flush())
		stop()
		session(t, store, path, 0, expect...)
	}
}

// TestStopInACompressedGeneration: what is not read yet is not done.
func TestStopInACompressedGeneration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm.log")
	write(t, path, "one\n")
	store := &memStore{}
	session(t, store, path, 0, "one")
	var want []string
	for i := range 100_000 {
		want = append(want, fmt.Sprintf("line %d", i))
	}
	write(t, path, strings.Join(want, "\n")+"\n")
	must(t, compressFile(path, path+".1.gz"))
	write(t, path, "last\n")
	want = append(want, "last")

	store.dead = false
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := &recorder{}
	opt := fast(path)
	opt.Store = store
	f, err := NewFollower(opt, r)
	must(t, err)
	n := 0
	r.onLine = func(ref SourceRef, l Line) {
		f.Commit(ref, l.Next, l.Number+1)
		if n++; n == 10 {
			cancel()
		}
	}
	must(t, f.Run(ctx))
	got := r.lines()
	session(t, store, path, 0, want[len(got):]...)
	if len(got) == len(want) || !slices.Equal(got, want[:len(got)]) {
		t.Errorf("%d lines before the stop", len(got))
	}
}
