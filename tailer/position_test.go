package tailer

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func lits(ss ...string) (out [][]byte) {
	for _, s := range ss {
		out = append(out, []byte(s))
	}
	return out
}

// naiveLast is what LastLineContaining must give.
func naiveLast(input []byte, limit int64, literals [][]byte) (int64, bool) {
	from, found := int64(0), int64(-1)
	for _, line := range bytes.SplitAfter(input, []byte("\n")) {
		if limit <= 0 || from >= int64(len(input))-limit {
			for _, l := range literals {
				if len(l) > 0 && bytes.Contains(bytes.TrimSuffix(line, []byte("\n")), l) {
					found = from
				}
			}
		}
		from += int64(len(line))
	}
	return max(found, 0), found >= 0
}

func TestLastLineContaining(t *testing.T) {
	const log = "start A\nB\nstart C\nD and start\nE"
	tests := []struct {
		name, input string
		limit       int64
		literals    [][]byte
		want        int64
		ok          bool
	}{
		{"the last of several", log, 0, lits("start"), 18, true},
		{"the first line", log, 0, lits("A"), 0, true},
		{"the last line, without its end", log, 0, lits("E"), 30, true},
		{"any literal", log, 0, lits("A", "start C", "B"), 10, true},
		{"none", log, 0, lits("Z"), 0, false},
		{"no literals", log, 0, nil, 0, false},
		{"literals that no line holds", log, 0, lits("", "A\nB"), 0, false},
		{"empty file", "", 0, lits("A"), 0, false},
		{"just within the limit", log, 13, lits("start"), 18, true},
		{"line begins before the limit", log, 12, lits("start"), 0, false},
		{"before the limit", log, 4, lits("start"), 0, false},
		{"limit beyond the file", log, 1 << 40, lits("A"), 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok, err := LastLineContaining(strings.NewReader(tt.input), int64(len(tt.input)), tt.limit, tt.literals)
			if got != tt.want || ok != tt.ok || err != nil {
				t.Errorf("got %d, %v, %v; want %d, %v", got, ok, err, tt.want, tt.ok)
			}
		})
	}
}

// Over several real chunks: the literal lies across a border, its line begins
// two chunks earlier.
func TestLastLineContainingFar(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("banner\n")
	want := int64(b.Len())
	b.Write(bytes.Repeat([]byte{'x'}, 5*backChunk/2))
	b.WriteString("the literal\n")
	b.Write(bytes.Repeat([]byte("y\n"), (3*backChunk-6)/2)) // 6 bytes short of a border
	got, ok, err := LastLineContaining(bytes.NewReader(b.Bytes()), int64(b.Len()), 0, lits("the literal"))
	if got != want || !ok || err != nil {
		t.Errorf("got %d, %v, %v; want %d", got, ok, err, want)
	}
}

func TestLastLineContainingShrunk(t *testing.T) {
	_, ok, err := LastLineContaining(strings.NewReader("short"), 100, 0, lits("s"))
	if ok || !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "read 100 bytes at 0: unexpected EOF" {
		t.Errorf("got %v, %v", ok, err)
	}
}

func checkLast(t rapid.TB, input []byte, chunk int, limit int64, literals [][]byte) {
	t.Helper()
	size := int64(len(input))
	b := backward{f: bytes.NewReader(input), chunk: chunk}
	if limit > 0 {
		b.limit = max(0, size-limit)
	}
	got, ok, err := b.find(size, literals)
	want, wantOK := naiveLast(input, limit, literals)
	if got != want || ok != wantOK || err != nil {
		t.Fatalf("got %d, %v, %v; want %d, %v", got, ok, err, want, wantOK)
	}
}

func TestLastLineContainingChunking(t *testing.T) {
	text := rapid.SliceOfN(rapid.SampledFrom([]byte("aab\n")), 0, 120)
	rapid.Check(t, func(t *rapid.T) {
		checkLast(t, text.Draw(t, "input"),
			rapid.IntRange(1, 40).Draw(t, "chunk"),
			rapid.Int64Range(0, 130).Draw(t, "limit"),
			rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]byte("aab\n")), 0, 9), 0, 4).Draw(t, "literals"))
	})
}

func FuzzLastLineContaining(f *testing.F) {
	f.Add([]byte("start\nrest start\nend"), uint8(3), uint8(0), []byte("start"), []byte("x"))
	f.Add([]byte("\n\nabc\n"), uint8(1), uint8(5), []byte("bc"), []byte("c"))
	f.Fuzz(func(t *testing.T, input []byte, chunk, limit uint8, a, b []byte) {
		checkLast(t, input, 1+int(chunk), int64(limit), [][]byte{a, b})
	})
}

func BenchmarkLastLineContaining(b *testing.B) {
	line := "(EngineCore_DP0 pid=615) INFO 11-30 14:03:11 [loggers.py:259] Engine 000: Avg prompt throughput: 812.4 tokens/s\n"
	input := append([]byte("vLLM API server version 0.24.0\n"), bytes.Repeat([]byte(line), (64<<20)/len(line))...)
	literals := lits("vLLM API server version", "OutOfMemoryError", "EngineDeadError")
	b.SetBytes(int64(len(input)))
	for b.Loop() {
		at, ok, err := LastLineContaining(bytes.NewReader(input), int64(len(input)), 0, literals)
		if at != 0 || !ok || err != nil {
			b.Fatal(at, ok, err)
		}
	}
}
