package tailer

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// startWords is a RunFinder for runs that start with the word START.
type startWords struct{}

func (startWords) Back(f io.ReaderAt, end, limit int64) (starts []int64, err error) {
	for at := end; len(starts) < 2; {
		found, ok, err := LastLineContaining(f, at, max(1, at-max(0, end-limit)), [][]byte{[]byte("START")})
		if err != nil || !ok {
			return starts, err
		}
		at = found
		starts = append([]int64{at}, starts...)
	}
	return starts, nil
}

func (startWords) Forward(ctx context.Context, text io.Reader) (starts []Place, size int64, err error) {
	size, _, err = Read(ctx, text, ReadOptions{StartLine: 1, Final: true}, func(l Line) error {
		if strings.Contains(string(l.Data), "START") {
			starts = append(starts[max(0, len(starts)-1):], Place{l.Offset, l.Number})
		}
		return nil
	})
	return starts, size, err
}

// Each word is a line, and W one of 10 kB.
func TestBeginInALogThatWasNeverFollowed(t *testing.T) {
	wide := strings.Repeat("w", 9999)
	text := func(words string) string {
		var b strings.Builder
		for _, w := range strings.Fields(words) {
			if w == "W" {
				w = wide
			}
			b.WriteString(w + "\n")
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		older []string // oldest first; all but the last one are compressed
		live  string
		back  int64
		want  string // with the numbers that are known; "|" ends an excerpt
	}{
		"one file":                    {nil, "START1 a", 1 << 20, "1:START1 2:a"},
		"the run before the last":     {nil, "W START1 W START2 W START3 a", 1 << 20, "START2 W START3 a"},
		"a front that is short":       {nil, "x START1 a", 1 << 20, "1:x 2:START1 3:a"},
		"no run":                      {nil, "a b", 1 << 20, "1:a 2:b"},
		"started before the rotation": {[]string{"W START1 a"}, "b", 1 << 20, "2:START1 3:a 1:b"},
		"two rotations ago":           {[]string{"W START1 a", "b"}, "c", 1 << 20, "2:START1 3:a 1:b 1:c"},
		"the run before in another":   {[]string{"W START1 a crash"}, "START2 b", 1 << 20, "2:START1 3:a 4:crash 1:START2 2:b"},
		"both in another":             {[]string{"W START1 a crash START2 b"}, "c", 1 << 20, "2:START1 3:a 4:crash 5:START2 6:b 1:c"},
		"three generations":           {[]string{"W START0", "START1 x", "START2 y"}, "z", 1 << 20, "1:START1 2:x 1:START2 2:y 1:z"},
		"older runs are left":         {[]string{"START1 a"}, "START2 b START3 c", 1 << 20, "1:START2 2:b 3:START3 4:c"},
		"nobody started":              {[]string{"a", "b"}, "c", 1 << 20, "1:a 1:b 1:c"},
		"what does not fit is left":   {[]string{"START1 W W"}, "W START2 b", 20000, "START2 b"},
		"far back in the same file":   {nil, "W START1 a W W b", 15000, "START1 a W | W b"},
		"far back in another file":    {[]string{"W START1 a"}, "W W b", 15000, "2:START1 3:a | W b"},
		"far back, two files ago":     {[]string{"x START1 a", "W W"}, "W b", 15000, "2:START1 3:a | 1:W 2:b"},
		"its end is read":             {[]string{"START1 a W W W", "b"}, "c", 15000, "1:START1 2:a 3:W 4:W 5:W | 1:b 1:c"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "vllm.log")
			for i, words := range c.older {
				n := len(c.older) - i
				one := fmt.Sprintf("%s.%d", path, n)
				write(t, one, text(words))
				then := time.Now().Add(-time.Duration(n) * time.Hour)
				if n > 1 {
					must(t, compressFile(one, one+".gz"))
					one += ".gz"
				}
				must(t, os.Chtimes(one, then, then))
			}
			write(t, path, text(c.live))
			r := &recorder{}
			opt := fast(path)
			opt.Runs, opt.Back = startWords{}, c.back
			store := &memStore{}
			opt.Store = store
			f, stop := follow(t, opt, r)
			write(t, path, "end\n")
			last := func() string {
				if l := r.lines(); len(l) > 0 {
					return l[len(l)-1]
				}
				return ""
			}
			eventually(t, "the end", func() bool { return last() == "end" })
			got, excerpted := "", false
			for _, e := range r.all() {
				if e.call != "line" {
					continue
				}
				if excerpted && !e.ref.Excerpt {
					got += "| "
				}
				excerpted = e.ref.Excerpt
				if e.line.Number > 0 {
					got += fmt.Sprintf("%d:", e.line.Number)
				}
				got += strings.ReplaceAll(e.text, wide, "W") + " "
				f.Commit(e.ref, e.line.Next, 0)
			}
			got = got[:strings.LastIndex(strings.TrimSuffix(got, " "), " ")]
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}

			// What was read is not read again.
			stop()
			write(t, path, "more\n")
			r = &recorder{}
			_, _ = follow(t, opt, r)
			waitLines(t, r, "more")
		})
	}
}

// A log that is born while we look is read from its first byte, and nothing
// that stands beside it.
func TestBeginInALogThatIsNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "late.log")
	write(t, path+".1", "START1\n")
	r := &recorder{}
	opt := fast(path)
	opt.Runs = startWords{}
	f, _ := follow(t, opt, r)
	eventually(t, "waiting", func() bool { s := f.State(); return len(s) == 1 && s[0].Status == StatusWaiting })
	time.Sleep(2*opt.Tick + opt.Grace)
	write(t, path, "one\n")
	waitLines(t, r, "one")
}

// A damaged generation gives what can be read, and the log is followed.
func TestBeginBesideADamagedGeneration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm.log")
	write(t, path+".1", "START1\na\n")
	must(t, compressFile(path+".1", path+".1.gz"))
	info, err := os.Stat(path + ".1.gz")
	must(t, err)
	must(t, os.Truncate(path+".1.gz", info.Size()-4))
	write(t, path, "b\n")
	r := &recorder{}
	opt := fast(path)
	opt.Runs = startWords{}
	_, _ = follow(t, opt, r)
	eventually(t, "the end", func() bool { l := r.lines(); return len(l) > 0 && l[len(l)-1] == "b" })
}
