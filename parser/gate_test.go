package parser

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// ungated parses without the gate.
func ungated(ls []Line) []Event {
	var out []Event
	p := New(func(e Event) { out = append(out, e) })
	p.ungated = true
	feed(p, ls)
	p.Flush()
	return out
}

func TestGateLosesNothing(t *testing.T) {
	for name, log := range fixtureLogs(t) {
		t.Run(name, func(t *testing.T) {
			if d := diff(showAll(ungated(lines(log))), showAll(run(lines(log)))); d != "" {
				t.Fatal(d)
			}
		})
	}
}

func TestGateLosesNothingOfDrawnLogs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ls := linesOf(genLog(t)...)
		if d := diff(showAll(ungated(ls)), showAll(run(ls))); d != "" {
			t.Fatalf("%s", d)
		}
	})
}

// Most of a log has to be skipped, or the gate is worth nothing.
func TestGateSkips(t *testing.T) {
	for _, c := range []struct {
		line string
		want verdict
	}{
		{`(APIServer pid=1) INFO:     10.0.0.1:16983 - "POST /v1/completions HTTP/1.1" 200 OK`, skipAccess},
		{`INFO:     10.0.0.1:16983 - "POST /v1/completions HTTP/1.1" 200 OK`, skipAccess},
		{`INFO:     10.0.0.1:16983 - "POST /v1/completions HTTP/1.1" 404 Not Found`, skipAccess},
		{`INFO:     10.0.0.1:16983 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error`, pass},
		{`INFO:     10.0.0.1:16983 - "GET /" 500 x HTTP/1.1" 200 OK`, skipAccess},
		{`INFO:     10.0.0.1:16983 - "GET /" 200 x HTTP/1.1" 500 Internal Server Error`, pass},
		{"INFO:     10.0.0.1:16983 - \"GET / HTTP/1.1\" \x1b[91m500 Internal Server Error\x1b[0m", pass},
		{`INFO: 10.0.0.1:16983 - "GET / HTTP/1.1" 200 OK`, pass},
		{`(APIServer pid=1) INFO:     Application startup complete.`, pass},
		{`(APIServer pid=1) INFO 11-30 02:00:00 [launcher.py:46] Route: /health, Methods: GET`, skipRecord},
		{`INFO 11-30 02:00:00 launcher.py:46] Route: /health, Methods: GET`, skipRecord},
		{`(APIServer pid=1) DEBUG 11-30 02:00:00 [v1/engine/core.py:46] a thing`, skipRecord},
		{`(APIServer pid=1) INFO 11-30 02:00:00 [logger.py:46] Received request a: prompt: 'x'`, skipRecord},
		{`(APIServer pid=1) INFO 11-30 02:00:00 [a.py:1] Engine 000: Avg prompt throughput: 0.0 tokens/s`, pass},
		{`(APIServer pid=1) INFO 11-30 02:00:00 [a.py:1] 2 Engines Aggregated: Avg prompt throughput`, pass},
		{`(EngineCore pid=1) INFO 11-30 02:00:00 [a.py:1] HPU KV cache size: 1 tokens`, pass},
		{`(no prefix) INFO 11-30 02:00:00 [a.py:1] Route: /health, Methods: GET`, pass},
		{`(a pid=1) pid=2) INFO 11-30 02:00:00 [a.py:1] Route: /health, Methods: GET`, pass},
		{`(APIServer pid=1) WARNING 11-30 02:00:00 [a.py:1] Route: /health, Methods: GET`, pass},
	} {
		if got := gate([]byte(c.line)); got != c.want {
			t.Errorf("gate(%q) = %d, want %d", c.line, got, c.want)
		}
	}
}

func FuzzGate(f *testing.F) {
	for _, l := range startupLines {
		f.Add("(EngineCore pid=5) INFO 11-30 02:00:00 [a.py:1] " + l.begin + "12.5 GiB")
	}
	for _, s := range []string{
		`(APIServer pid=1) INFO:     10.0.0.1:1 - "GET / HTTP/1.1" 500 Internal Server Error`,
		`(APIServer pid=1) INFO:     10.0.0.1:1 - "GET / HTTP/1.1" 200 OK`,
		`(a pid=1, ip=1.2.3.4) INFO 11-30 02:00:00 [a.py:1] Route: x`,
		"(a pid=1) INFO 11-30 02:00:00 [a.py:1]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.24.0",
		"\x1b[1;36m(a pid=1)\x1b[0;0m INFO 11-30 02:00:00 [a.py:1] Route: x",
		"(a pid=1) INFO 11-30 02:00:00 [a.py:1] R\x1b]0;x\x07oute",
		"DEBUG 11-30 02:00:00 a.py:1] # GPU blocks: 1, # CPU blocks: 2",
		"INFO 11-30 02:00:00 [a.py:1] In v0.19, CUDA graph memory profiling x --gpu-memory-utilization from 0.9000 to 0.95",
		"(a pid=1) xINFO 11-30 02:00:00 [a.py:1] Route: x",
	} {
		f.Add(s)
	}
	const before = "(a pid=1) ERROR 11-30 02:00:00 [a.py:1] first\r\n" +
		"(a pid=1) ERROR 11-30 02:00:00 [a.py:1] Traceback (most recent call last):\r\n" +
		"(b pid=2) RuntimeError: broken at the ri\n"
	const after = "\nght edge\n(a pid=1) ERROR 11-30 02:00:00 [a.py:1] ValueError: x\n(a pid=1) x[0m\n"
	f.Fuzz(func(t *testing.T, line string) {
		line = strings.ReplaceAll(line, "\n", " ")
		ls := lines([]byte(before + line + after))
		if d := diff(showAll(ungated(ls)), showAll(run(ls))); d != "" {
			t.Fatalf("gate(%q) = %d: %s", line, gate([]byte(line)), d)
		}
	})
}
