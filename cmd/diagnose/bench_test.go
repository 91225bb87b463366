package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/parser"
	"diagnose/tailer"
)

// benchmarkSize is the size of the logs of the benchmarks; bench/bench.sh
// measures the whole command on larger ones.
const benchmarkSize = 32 << 20

// BenchmarkParserInfo reads a healthy server's hours: access lines and
// statistics, all at level INFO.
func BenchmarkParserInfo(b *testing.B) {
	var log bytes.Buffer
	log.Write(readFixture(b, "vllm-h200/v0240-clean-stop.log"))
	for i := 0; log.Len() < benchmarkSize; i++ {
		if i%40 == 0 {
			fmt.Fprintf(&log, "(APIServer pid=1) INFO 11-30 %02d:%02d:%02d [loggers.py:273] Engine 000: Avg prompt throughput: %d.0 tokens/s, Avg generation throughput: 464.8 tokens/s, Running: %d reqs, Waiting: 0 reqs, GPU KV cache usage: %d.%d%%, Prefix cache hit rate: 63.7%%\n",
				i/3600%24, i/60%60, i%60, i%9000, i%9, i%6, i%10)
			continue
		}
		fmt.Fprintf(&log, "(APIServer pid=1) INFO:     192.0.2.%d:%d - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n", i%200, 32768+i%28000)
	}
	benchmarkParser(b, log.Bytes())
}

// BenchmarkParserError is the worst case: every line stands in a traceback at
// level ERROR.
func BenchmarkParserError(b *testing.B) {
	crash := readFixture(b, "vllm-h200/v0240-tp2-dsa-32768-0.95.log")
	var record []byte
	for line := range bytes.Lines(crash) {
		if bytes.HasPrefix(line, []byte("(Worker_TP1 pid=")) && bytes.Contains(line, []byte(" ERROR ")) {
			record = append(record, line...)
		}
	}
	benchmarkParser(b, append(readFixture(b, "vllm-h200/v0240-clean-stop.log"), bytes.Repeat(record, benchmarkSize/len(record)+1)...))
}

// benchmarkParser measures reading and parsing, without the matcher.
func benchmarkParser(b *testing.B, log []byte) {
	file := filepath.Join(b.TempDir(), "vllm.log")
	if err := os.WriteFile(file, log, 0o644); err != nil {
		b.Fatal(err)
	}
	var lines int64
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		src, err := tailer.Open(file, nil)
		if err != nil {
			b.Fatal(err)
		}
		p := parser.New(func(parser.Event) {})
		_, lines, err = tailer.Read(context.Background(), src, tailer.ReadOptions{StartLine: 1, Final: true}, func(l tailer.Line) error {
			p.Line(parser.Line{At: parser.Pos{Line: l.Number, Offset: l.Offset}, Data: l.Data, Cut: l.Cut})
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		p.Flush()
		if err := src.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}

// BenchmarkPostmortem is the whole command on the log of a real crash: what a
// person waits for.
func BenchmarkPostmortem(b *testing.B) {
	log := filepath.Join(fixtures, "vllm-h200", "v0240-dsa-32768-0.92.log")
	for b.Loop() {
		var out strings.Builder
		if got := execute(b.Context(), []string{log}, nil, &out, &out); got != exitFailure {
			b.Fatalf("status %d: %s", got, out.String())
		}
	}
}

func readFixture(b *testing.B, name string) []byte {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(fixtures, name))
	if err != nil {
		b.Fatal(err)
	}
	return data
}
