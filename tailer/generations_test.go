package tailer

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestGroup(t *testing.T) {
	tests := []struct {
		name, paths string
		want        []string // one group each, names by spaces
	}{
		{"none", "", nil},
		{"numbered", "x x.1 x.2.gz x.10.gz x.3.zst", []string{"x.10.gz x.3.zst x.2.gz x.1 x"}},
		{"numbered, without the newest", "v.log.2 v.log.3", []string{"v.log.3 v.log.2"}},
		{"dated", "x x-20261130 x-20261129.gz x-20251231.gz", []string{"x-20251231.gz x-20261129.gz x-20261130 x"}},
		{"dated with seconds", "x-20261130-1764460900 x-20261130-1764460800 x-20261130", []string{"x-20261130 x-20261130-1764460800 x-20261130-1764460900"}},
		{"hourly", "x x-2026113014 x-2026113009.gz", []string{"x-2026113009.gz x-2026113014 x"}},
		{"kubelet", "0.log 0.log.20261130-140311 0.log.20261129-140311.gz", []string{"0.log.20261129-140311.gz 0.log.20261130-140311 0.log"}},
		{"numbered, then dated", "x x-20261130 x.1", []string{"x.1 x-20261130 x"}},
		{"dated name that is rotated by number", "run-20261130.1 run-20261130 run-20261129", []string{"run-20261130.1 run-20261130", "run-20261129"}},
		{"several logs, in the order given", "b a.1 b.1 a", []string{"b.1 b", "a.1 a"}},
		{"directories are apart", "p/x q/x.1 p/x.1", []string{"p/x.1 p/x", "q/x.1"}},
		{"spelled as given, taken once", "./x x.1 x ./x.1", []string{"x.1 ./x"}},
		{"both forms: the compressed one first", "x.1 x.1.gz x", []string{"x.1.gz x.1 x"}},
		{"standard input", "- x", []string{"-", "x"}},

		{"ports", "v.8000 v.8001", []string{"v.8000", "v.8001"}},
		{"versions", "vllm-0.24.0 vllm-0.24.1", []string{"vllm-0.24.0", "vllm-0.24.1"}},
		{"addresses", "10.0.0.1 10.0.0.2", []string{"10.0.0.1", "10.0.0.2"}},
		{"a name ending in a number, rotated", "v-8000 v-8000.1", []string{"v-8000.1 v-8000"}},
		{"parallel processes", "worker.0 worker.1 worker.2", []string{"worker.0", "worker.1", "worker.2"}},
		{"generations from 0", "x x.0 x.1", []string{"x.1 x.0 x"}},
		{"no date", "x x-20261345 x-12345678 x-2026", []string{"x", "x-20261345", "x-12345678", "x-2026"}},
		{"number with leading zeros", "x x.01", []string{"x", "x.01"}},
		{"compressed only", "x x.gz", []string{"x", "x.gz"}},
		{"other ends", "x.log x.log.bak x.log.1~", []string{"x.log", "x.log.bak", "x.log.1~"}},
		{"only a suffix", ".1 -20261130", []string{".1", "-20261130"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, g := range Group(strings.Fields(tt.paths)) {
				got = append(got, strings.Join(g, " "))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every path comes out once, and the order given does not change a group.
func TestGroupKeepsAll(t *testing.T) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(strings.Fields(
		"x x.0 x.1 x.1.gz x.2 x-20261130 x-20261130.1 x-20261130-1764460800 x.1.1 y.1 y.2 -")), 0, 12, rapid.ID)
	rapid.Check(t, func(t *rapid.T) {
		in := names.Draw(t, "names")
		groups := Group(in)
		out := slices.Concat(groups...)
		slices.Sort(out)
		want := slices.Sorted(slices.Values(in))
		if !slices.Equal(out, want) {
			t.Fatalf("got %q of %q", out, want)
		}
		again := Group(rapid.Permutation(in).Draw(t, "shuffled"))
		for _, g := range groups {
			if !slices.ContainsFunc(again, func(h []string) bool { return slices.Equal(g, h) }) {
				t.Fatalf("%q is a group in one order only: %q", g, again)
			}
		}
	})
}

func TestSiblings(t *testing.T) {
	dir := t.TempDir()
	for _, name := range strings.Fields("v.log v.log.1 v.log.2.gz v.log.3.gz v.log.3 v.log.bak w.log w.log.1 vllm.8000 vllm.8001") {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Neither a directory nor a link is a generation.
	if err := os.Mkdir(filepath.Join(dir, "v.log.4"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("w.log", filepath.Join(dir, "v.log.5")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"v.log":      "v.log.3 v.log.2.gz v.log.1",
		"v.log.1":    "v.log.3 v.log.2.gz",
		"v.log.2.gz": "v.log.3",
		"v.log.3":    "",
		"w.log":      "w.log.1",
		"vllm.8001":  "",
		"gone.log":   "",
	} {
		t.Run(path, func(t *testing.T) {
			got, err := Siblings(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], dir+string(filepath.Separator))
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("got %q, want %q", s, want)
			}
		})
	}
	t.Run("relative", func(t *testing.T) {
		t.Chdir(dir)
		got, err := Siblings("w.log")
		if diff := cmp.Diff([]string{"w.log.1"}, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
	})
	t.Run("no directory", func(t *testing.T) {
		if _, err := Siblings(filepath.Join(dir, "none", "x")); !os.IsNotExist(err) {
			t.Errorf("got %v", err)
		}
	})
}

// The kubelet gives a compressed file the time of the compression, which can be
// later than the last writing of the next generation.
func TestDatedGenerationsInOrder(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	for name, c := range map[string]struct {
		files map[string]int // name and time
		want  []string
	}{
		"compressed late": {
			map[string]int{"0.log.20261130-010000.gz": 30, "0.log.20261130-020000.gz": 31, "0.log.20261130-030000": 29, "0.log": 40},
			[]string{"0.log.20261130-010000.gz", "0.log.20261130-020000.gz", "0.log.20261130-030000", "0.log"},
		},
		"two runs": {
			map[string]int{"0.log.20261130-010000.gz": 30, "0.log.20261130-020000": 20, "0.log": 21, "1.log": 25},
			[]string{"0.log.20261130-010000.gz", "0.log.20261130-020000", "0.log", "1.log"},
		},
		"numbers tell nothing": {
			map[string]int{"x.1": 10, "x.2": 20, "x.3": 30},
			[]string{"x.1", "x.2", "x.3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*candidate
			for _, n := range slices.Sorted(maps.Keys(c.files)) {
				all = append(all, &candidate{name: n, modified: at(c.files[n])})
			}
			var got []string
			for _, c := range inOrder(all) {
				got = append(got, c.name)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
