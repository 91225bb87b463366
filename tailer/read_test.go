package tailer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// collected is a Line whose data may be kept.
type collected struct {
	Data         string
	Offset, Next int64
	Number, Cut  int64
	Unterminated bool
}

func collectInto(lines *[]collected) func(Line) error {
	return func(l Line) error {
		*lines = append(*lines, collected{string(l.Data), l.Offset, l.Next, l.Number, l.Cut, l.Unterminated})
		return nil
	}
}

// naive is what Read must give, the whole input at hand.
func naive(input string, opt ReadOptions) (lines []collected, next, number int64) {
	next, number = opt.Start, opt.StartLine
	maxLine := opt.MaxLine
	if maxLine <= 0 {
		maxLine = defaultMaxLine
	}
	for input != "" {
		data, rest, whole := strings.Cut(input, "\n")
		if !whole && !opt.Final {
			break
		}
		l := collected{Data: data, Offset: next, Number: number, Unterminated: !whole}
		l.Next = next + int64(len(input)-len(rest))
		if excess := len(data) - maxLine; excess > 0 {
			head := maxLine / 4
			l.Data, l.Cut = data[:head]+data[head+excess:], int64(excess)
		}
		lines = append(lines, l)
		next, input = l.Next, rest
		if whole && number > 0 {
			number++
		}
	}
	return lines, next, number
}

func TestRead(t *testing.T) {
	long := strings.Repeat("0123456789", 3) // with MaxLine 8: 2 of the head, 6 of the tail
	tests := []struct {
		name, input string
		opt         ReadOptions
		want        []collected
		next, line  int64
	}{
		{"empty", "", ReadOptions{StartLine: 1, Final: true}, nil, 0, 1},
		{"one", "a\n", ReadOptions{StartLine: 1}, []collected{{"a", 0, 2, 1, 0, false}}, 2, 2},
		{"empty lines", "\n\n", ReadOptions{StartLine: 1}, []collected{{"", 0, 1, 1, 0, false}, {"", 1, 2, 2, 0, false}}, 2, 3},
		{"held back", "a\nb", ReadOptions{StartLine: 1}, []collected{{"a", 0, 2, 1, 0, false}}, 2, 2},
		{"final", "a\nb", ReadOptions{StartLine: 1, Final: true}, []collected{{"a", 0, 2, 1, 0, false}, {"b", 2, 3, 2, 0, true}}, 3, 2},
		{"number unknown", "a\nb\n", ReadOptions{Start: 70}, []collected{{"a", 70, 72, 0, 0, false}, {"b", 72, 74, 0, 0, false}}, 74, 0},
		{"resumed", "b\n", ReadOptions{Start: 2, StartLine: 2}, []collected{{"b", 2, 4, 2, 0, false}}, 4, 3},
		{"bytes as written", "a\x00\xff\r\n\r\r\n", ReadOptions{StartLine: 1}, []collected{{"a\x00\xff\r", 0, 5, 1, 0, false}, {"\r\r", 5, 8, 2, 0, false}}, 8, 3},
		{"at the limit", "01234567\n", ReadOptions{MaxLine: 8}, []collected{{"01234567", 0, 9, 0, 0, false}}, 9, 0},
		{"over the limit", "012345678\nx\n", ReadOptions{MaxLine: 8}, []collected{{"01345678", 0, 10, 0, 1, false}, {"x", 10, 12, 0, 0, false}}, 12, 0},
		{"far over the limit", long + "\nx\n", ReadOptions{MaxLine: 8}, []collected{{"01456789", 0, 31, 0, 22, false}, {"x", 31, 33, 0, 0, false}}, 33, 0},
		{"cut and final", long, ReadOptions{MaxLine: 8, Final: true}, []collected{{"01456789", 0, 30, 0, 22, true}}, 30, 0},
		{"cut and held back", "x\n" + long, ReadOptions{MaxLine: 8}, []collected{{"x", 0, 2, 0, 0, false}}, 2, 0},
		{"limit of one", "abc\n", ReadOptions{MaxLine: 1}, []collected{{"c", 0, 4, 0, 2, false}}, 4, 0},
	}
	for _, tt := range tests {
		for _, chunk := range []int{1, 2, 3, 7, chunkSize} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, chunk), func(t *testing.T) {
				var got []collected
				s := newSplitter(tt.opt, chunk)
				if err := s.run(t.Context(), strings.NewReader(tt.input), collectInto(&got)); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				if s.offset != tt.next || s.number != tt.line {
					t.Errorf("resume at byte %d line %d, want %d, %d", s.offset, s.number, tt.next, tt.line)
				}
			})
		}
	}
}

// pieces yields data in pieces of the given sizes, over and over.
type pieces struct {
	data  []byte
	sizes []int
	i     int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := min(p.sizes[p.i%len(p.sizes)], len(b), len(p.data))
	p.i++
	copy(b, p.data[:n])
	p.data = p.data[n:]
	return n, nil
}

func genInput() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "lines") {
			b.WriteString(rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00\r\né")), 0, 60, -1).Draw(t, "text"))
			b.WriteString(rapid.SampledFrom([]string{"\n", "\r\n", ""}).Draw(t, "end"))
		}
		return b.String()
	})
}

func TestReadChunking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		input := genInput().Draw(t, "input")
		opt := ReadOptions{
			Start:     rapid.Int64Range(0, 1<<40).Draw(t, "start"),
			StartLine: rapid.Int64Range(0, 3).Draw(t, "line"),
			MaxLine:   rapid.IntRange(0, 70).Draw(t, "max"),
			Final:     rapid.Bool().Draw(t, "final"),
		}
		r := &pieces{data: []byte(input), sizes: rapid.SliceOfN(rapid.IntRange(1, 50), 1, 5).Draw(t, "sizes")}
		s := newSplitter(opt, rapid.IntRange(1, 64).Draw(t, "chunk"))
		var got []collected
		if err := s.run(context.Background(), r, collectInto(&got)); err != nil {
			t.Fatal(err)
		}
		want, next, number := naive(input, opt)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		if s.offset != next || s.number != number {
			t.Fatalf("resume at byte %d line %d, want %d, %d", s.offset, s.number, next, number)
		}
		if len(s.buf) > s.maxLine+s.chunk {
			t.Fatalf("buffer of %d bytes, limit %d + chunk %d", len(s.buf), s.maxLine, s.chunk)
		}
	})
}

// What is written while a log is read piecemeal comes out whole: nothing twice,
// nothing lost.
func TestReadResume(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		input := genInput().Draw(t, "input")
		var got strings.Builder
		next, line := int64(0), int64(1)
		read := func(upTo int, final bool) {
			var err error
			next, line, err = Read(context.Background(), strings.NewReader(input[next:upTo]),
				ReadOptions{Start: next, StartLine: line, Final: final}, func(l Line) error {
					got.Write(l.Data)
					if !l.Unterminated {
						got.WriteByte('\n')
					}
					return nil
				})
			if err != nil {
				t.Fatal(err)
			}
		}
		for at := 0; at < len(input); {
			at = rapid.IntRange(max(at, int(next)), len(input)).Draw(t, "written")
			read(at, false)
			at++
		}
		read(len(input), true)
		if got.String() != input {
			t.Fatalf("got %q, want %q", got.String(), input)
		}
		if next != int64(len(input)) || line != int64(1+strings.Count(input, "\n")) {
			t.Fatalf("resume at byte %d line %d of %q", next, line, input)
		}
	})
}

func TestReadGrowingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grow.log")
	w, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	src, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var got []collected
	next, line := int64(0), int64(1)
	for _, text := range []string{"a\n", "", "bb\n", "ccc\n"} {
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		next, line, err = Read(t.Context(), src, ReadOptions{Start: next, StartLine: line}, collectInto(&got))
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []collected{{"a", 0, 2, 1, 0, false}, {"bb", 2, 5, 2, 0, false}, {"ccc", 5, 9, 3, 0, false}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	t.Run("of the callback", func(t *testing.T) {
		n := 0
		next, line, err := Read(t.Context(), strings.NewReader("a\nb\nc\n"), ReadOptions{StartLine: 1}, func(Line) error {
			if n++; n == 2 {
				return broken
			}
			return nil
		})
		if !errors.Is(err, broken) || next != 2 || line != 2 {
			t.Errorf("got %d, %d, %v: the refused line must come again", next, line, err)
		}
	})
	t.Run("of the callback at the last piece", func(t *testing.T) {
		next, line, err := Read(t.Context(), strings.NewReader("a"), ReadOptions{StartLine: 1, Final: true}, func(Line) error { return broken })
		if !errors.Is(err, broken) || next != 0 || line != 1 {
			t.Errorf("got %d, %d, %v", next, line, err)
		}
	})
	t.Run("of the reader, after what it gave", func(t *testing.T) {
		var got []collected
		r := io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken))
		next, _, err := Read(t.Context(), r, ReadOptions{Final: true}, collectInto(&got))
		if !errors.Is(err, broken) || next != 3 || len(got) != 2 || !got[1].Unterminated {
			t.Errorf("got %v, %d, %v", got, next, err)
		}
	})
	t.Run("together with the last bytes", func(t *testing.T) {
		var got []collected
		next, _, err := Read(t.Context(), iotest.DataErrReader(strings.NewReader("a\nb\n")), ReadOptions{}, collectInto(&got))
		if err != nil || next != 4 || len(got) != 2 {
			t.Errorf("got %v, %d, %v", got, next, err)
		}
	})
	t.Run("a wrapped end is no end", func(t *testing.T) {
		_, _, err := Read(t.Context(), iotest.ErrReader(fmt.Errorf("decoder: %w", io.EOF)), ReadOptions{}, collectInto(new([]collected)))
		if err == nil {
			t.Error("no error")
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := strings.NewReader(strings.Repeat("line\n", chunkSize))
		next, _, err := Read(ctx, r, ReadOptions{Final: true}, func(Line) error { cancel(); return nil })
		if !errors.Is(err, context.Canceled) || next == 0 || r.Len() == 0 {
			t.Errorf("got %d, %v with %d bytes left", next, err, r.Len())
		}
	})
	t.Run("no progress", func(t *testing.T) {
		if _, _, err := Read(t.Context(), stuck(0), ReadOptions{}, nil); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("slow progress", func(t *testing.T) {
		var got []collected
		r := &pieces{data: bytes.Repeat([]byte("x\n"), 2*maxEmptyReads), sizes: []int{0, 1}}
		if _, _, err := Read(t.Context(), r, ReadOptions{}, collectInto(&got)); err != nil || len(got) != 2*maxEmptyReads {
			t.Errorf("got %d lines, %v", len(got), err)
		}
	})
	t.Run("a lying reader", func(t *testing.T) {
		if _, _, err := Read(t.Context(), stuck(chunkSize+1), ReadOptions{}, nil); err == nil {
			t.Error("no error")
		}
	})
}

// stuck always claims n bytes and writes none.
type stuck int

func (s stuck) Read([]byte) (int, error) { return int(s), nil }

// A line must not be reached by an append to the one before it.
func TestReadAppend(t *testing.T) {
	var got []string
	_, _, err := Read(t.Context(), strings.NewReader("a\nb\n"), ReadOptions{}, func(l Line) error {
		got = append(got, string(append(l.Data, "XXX"...)))
		return nil
	})
	if diff := cmp.Diff([]string{"aXXX", "bXXX"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// endless yields n times the same byte.
type endless struct {
	n int64
	b byte
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), e.n)]
	for i := copy(p, []byte{e.b}); i < len(p); i *= 2 {
		copy(p[i:], p[:i])
	}
	e.n -= int64(len(p))
	return len(p), nil
}

func TestReadHugeLine(t *testing.T) {
	const size = 100 << 20
	r := io.MultiReader(strings.NewReader("head "), &endless{n: size, b: 'x'}, strings.NewReader(" tail\nnext\n"))
	runtime.GC() // what earlier tests left
	var heap uint64
	var got []collected
	_, _, err := Read(t.Context(), r, ReadOptions{StartLine: 1}, func(l Line) error {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap = max(heap, m.HeapAlloc)
		return collectInto(&got)(l)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[1].Data != "next" || got[1].Number != 2 {
		t.Fatalf("got %d lines", len(got))
	}
	l := got[0]
	if len(l.Data) != defaultMaxLine || l.Cut != size+10-defaultMaxLine || l.Next != size+11 {
		t.Errorf("kept %d, cut %d, next %d", len(l.Data), l.Cut, l.Next)
	}
	if !strings.HasPrefix(l.Data, "head xx") || !strings.HasSuffix(l.Data, "xx tail") {
		t.Error("head or tail is missing")
	}
	if heap > 16<<20 {
		t.Errorf("%d bytes on the heap", heap)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("a\nb\r\n\x00\n\nlast"), uint8(4), uint8(3), true)
	f.Add([]byte(strings.Repeat("long ", 40)), uint8(9), uint8(16), false)
	f.Fuzz(func(t *testing.T, input []byte, maxLine, chunk uint8, final bool) {
		opt := ReadOptions{StartLine: 1, MaxLine: int(maxLine), Final: final}
		s := newSplitter(opt, 1+int(chunk))
		var got []collected
		if err := s.run(t.Context(), bytes.NewReader(input), collectInto(&got)); err != nil {
			t.Fatal(err)
		}
		want, next, _ := naive(string(input), opt)
		if diff := cmp.Diff(want, got); diff != "" || next != s.offset {
			t.Fatalf("resume at %d, want %d\n%s", s.offset, next, diff)
		}
		if maxLine > 0 || !final {
			return
		}
		// Uncut, the lines are those of bytes.Split.
		split := bytes.Split(input, []byte("\n"))
		if last := len(split) - 1; len(split[last]) == 0 {
			split = split[:last]
		}
		if len(split) != len(got) {
			t.Fatalf("%d lines, want %d", len(got), len(split))
		}
		for i, l := range split {
			if string(l) != got[i].Data {
				t.Fatalf("line %d is %q, want %q", i, got[i].Data, l)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	line := "(EngineCore_DP0 pid=615) INFO 11-30 14:03:11 [loggers.py:259] Engine 000: Avg prompt throughput: 812.4 tokens/s, GPU KV cache usage: 5.4%\n"
	for _, bm := range []struct {
		name  string
		input []byte
	}{
		{"log", bytes.Repeat([]byte(line), (32<<20)/len(line))},
		{"huge line", bytes.Repeat([]byte{'x'}, 32<<20)},
		{"empty lines", bytes.Repeat([]byte{'\n'}, 4<<20)},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.SetBytes(int64(len(bm.input)))
			b.ReportAllocs()
			for b.Loop() {
				_, _, err := Read(b.Context(), bytes.NewReader(bm.input), ReadOptions{Final: true}, func(Line) error { return nil })
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
