package tailer

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.log", "a.log.1", "a.log.2.gz", "a.log-20261129", "b.log", "c.log.gz", "odd[1].log"} {
		write(t, filepath.Join(dir, name), "x\n")
	}
	must(t, os.Mkdir(filepath.Join(dir, "folder.log"), 0o755))
	for _, c := range []struct {
		patterns, want []string
	}{
		{[]string{"a.log"}, []string{"a.log"}},
		{[]string{"missing"}, []string{"missing"}},
		{[]string{"*.log*"}, []string{"a.log", "b.log", "odd[1].log"}},
		{[]string{"a.log*"}, []string{"a.log"}},
		{[]string{"odd[1].log"}, []string{"odd[1].log"}},
		{[]string{"b.log", "[ab].log"}, []string{"a.log", "b.log"}},
		{[]string{"*.none"}, nil},
	} {
		var g globCache
		var patterns []string
		for _, p := range c.patterns {
			patterns = append(patterns, filepath.Join(dir, p))
		}
		for range 2 { // the second time from the cache
			got := slices.Sorted(maps.Keys(g.expand(patterns)))
			for i := range got {
				got[i] = filepath.Base(got[i])
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%v: %s", c.patterns, d)
			}
		}
	}
}

func TestCheckPattern(t *testing.T) {
	for _, p := range []string{"", "[", "a[", `a\`} {
		if checkPattern(p) == nil {
			t.Errorf("%q was taken", p)
		}
	}
	if _, err := NewFollower(Options{Paths: []string{"-"}}, &recorder{}); err == nil {
		t.Error("no standard input, and no error")
	}
	if _, err := NewFollower(Options{}, nil); err == nil {
		t.Error("no handler, and no error")
	}
}

func TestFollowGlob(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.log"), "a1\n")
	r := &recorder{}
	f, _ := follow(t, fast(filepath.Join(dir, "*.log")), r)
	waitLines(t, r, "a1")
	write(t, filepath.Join(dir, "b.log"), "b1\n")
	waitLines(t, r, "a1", "b1")
	if s := f.State(); len(s) != 2 {
		t.Errorf("state %+v", s)
	}
	// For a moment the log has no name; the source goes on.
	must(t, os.Rename(filepath.Join(dir, "a.log"), filepath.Join(dir, "a.log.1")))
	time.Sleep(3 * f.opt.Scan)
	write(t, filepath.Join(dir, "a.log"), "a2\n")
	waitLines(t, r, "a1", "b1", "a2")
	if n := f.Counters().Rotations(RotatedRename); n != 1 {
		t.Errorf("%d renames", n)
	}
}

func TestNamesBetween(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     []string
	}{
		{"/d/0.log", "/d/3.log", []string{"/d/1.log", "/d/2.log"}},
		{"/d/8.log", "/d/11.log", []string{"/d/9.log", "/d/10.log"}},
		{"/d/run-008.log", "/d/run-011.log", []string{"/d/run-009.log", "/d/run-010.log"}},
		{"/d/19.log", "/d/21.log", []string{"/d/20.log"}},
		{"/d/3.log", "/d/0.log", nil},
		{"/d/0.log", "/e/3.log", nil},
		{"/d/0.log", "/d/3.txt", nil},
		{"/d/a.log", "/d/b.log", nil},
		{"/d/0.log", "/d/0.log", nil},
		{"", "/d/0.log", nil},
	} {
		if d := cmp.Diff(c.want, namesBetween(c.from, c.to)); d != "" {
			t.Errorf("%s to %s: %s", c.from, c.to, d)
		}
	}
	if n := len(namesBetween("/d/0.log", "/d/999999999.log")); n != maxBetween {
		t.Errorf("%d names", n)
	}
}

func TestInOrder(t *testing.T) {
	at := func(name string, second int64) *candidate {
		return &candidate{name: name, modified: time.Unix(second, 0)}
	}
	for _, c := range []struct {
		name string
		in   []*candidate
		want []string
	}{
		{"counted down", []*candidate{at("3", 1), at("2", 2), at("1", 3)}, []string{"3", "2", "1"}},
		{"counted up", []*candidate{at("3", 3), at("2", 2), at("1", 1)}, []string{"1", "2", "3"}},
		{"no times", []*candidate{at("3", 1), at("2", 1), at("1", 1)}, []string{"3", "2", "1"}},
		{"counted up, one time alike", []*candidate{at("4", 3), at("3", 2), at("2", 2), at("1", 1)}, []string{"1", "2", "3", "4"}},
	} {
		var got []string
		for _, one := range inOrder(c.in) {
			got = append(got, one.name)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}
