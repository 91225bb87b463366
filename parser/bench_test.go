package parser

import (
	"fmt"
	"strings"
	"testing"
)

func benchmark(b *testing.B, text string) {
	ls := lines([]byte(text))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	p := New(func(Event) {})
	for b.Loop() {
		feed(p, ls)
	}
	p.Flush()
}

// BenchmarkInfo is what a busy server writes: access lines, request logs, and
// statistics every few hundred lines.
func BenchmarkInfo(b *testing.B) {
	var s strings.Builder
	for i := range 20_000 {
		switch {
		case i%500 == 0:
			fmt.Fprintf(&s, "(APIServer pid=1) INFO 11-30 02:%02d:00 [loggers.py:257] Engine 000: Avg prompt throughput: 812.3 tokens/s, Avg generation throughput: 455.1 tokens/s, Running: 8 reqs, Waiting: 0 reqs, GPU KV cache usage: 5.4%%, Prefix cache hit rate: 31.0%%\n", i/500)
		case i%8 == 0:
			fmt.Fprintf(&s, "(APIServer pid=1) INFO 11-30 02:00:00 [logger.py:51] Received request cmpl-%032d: prompt: 'Tell me a story about the sea.', params: SamplingParams(n=1, temperature=0.7)\n", i)
		default:
			fmt.Fprintf(&s, "(APIServer pid=1) INFO:     10.1.%d.%d:16983 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n", i%200, i%250)
		}
	}
	benchmark(b, s.String())
}

// BenchmarkAccess is the gate alone.
func BenchmarkAccess(b *testing.B) {
	benchmark(b, strings.Repeat("(APIServer pid=1) INFO:     10.1.6.81:16983 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n", 10_000))
}

// BenchmarkError is a crash of eight ranks, line by line mixed.
func BenchmarkError(b *testing.B) {
	const frames = 60
	var s strings.Builder
	for second := range 4 {
		var ranks [8][]string
		for r := range ranks {
			ranks[r] = record(fmt.Sprintf("(Worker_TP%d pid=%d) ERROR 11-30 02:00:%02d [multiproc_executor.py:1000] ", r, 700+r, second), true,
				"WorkerProc hit an exception.\n"+trace(frames, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB."))
		}
		for i := range ranks[0] {
			for r := range ranks {
				s.WriteString(ranks[r][i] + "\n")
			}
		}
	}
	benchmark(b, s.String())
}
