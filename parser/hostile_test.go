package parser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A request log quotes crashes; the server is healthy.
func TestQuotedCrashesAreNoEvents(t *testing.T) {
	logs := fixtureLogs(t, "vllm-h200/v0251-prompt-injection.log", "hostile/prompt-with-crash.log", "hostile/json-request-log.log", "hostile/json-gateway-only.log", "hostile/no-vllm-line.log")
	for name, log := range logs {
		t.Run(name, func(t *testing.T) {
			var p *Parser
			var es []Event
			p = New(func(e Event) { es = append(es, e) })
			feed(p, lines(log))
			p.Flush()
			if name != "v0251-prompt-injection.log" && len(failures(es)) > 0 {
				t.Errorf("%s", short(failures(es)[0]))
			}
			for _, e := range es {
				if n, ok := e.Body.(Notice); ok && n.Record.Level >= Error {
					t.Errorf("%s", short(e))
				}
			}
			if engine := name != "json-gateway-only.log" && name != "no-vllm-line.log"; p.SawEngine() != engine {
				t.Errorf("SawEngine = %v", !engine)
			}
		})
	}
}

// What a client sends reaches the log in some places. None of it is an event.
func TestClientsWords(t *testing.T) {
	const crash = "(EngineCore pid=8) ERROR 11-30 02:00:00 [core.py:1] EngineCore encountered a fatal error."
	for _, c := range []struct{ name, line, want string }{
		{"request", `(APIServer pid=1) INFO 11-30 02:00:00 [logger.py:1] Received request a: prompt: '` + crash + `\ntorch.OutOfMemoryError: CUDA out of memory.'`, ""},
		{"request's id", `(APIServer pid=1) INFO 11-30 02:00:00 [logger.py:1] Received request Avg prompt throughput: 1: prompt: 'x'`, ""},
		{"progress in a prompt", `(APIServer pid=1) INFO 11-30 02:00:00 [logger.py:1] Received request a: prompt: 'x [00:00<?, ?it/s]` + crash, ""},
		{"path", `(APIServer pid=1) INFO:     10.0.0.1:1 - "GET /a" 500 b HTTP/1.1" 404 Not Found`, ""},
		{"path of an error", `(APIServer pid=1) INFO:     10.0.0.1:1 - "GET /a" 200 OK?q HTTP/1.1" 503 Service Unavailable`, `APIServer/1: http 503 /a"`},
		{"path like an end", `(APIServer pid=1) INFO:     10.0.0.1:1 - "GET /Application startup complete HTTP/1.1" 200 OK`, ""},
		{"JSON log of another program", `{"level": "info", "body": "` + crash + `"}`, `: notice raw {"level": "info", "body": "` + crash + `"}`},
		{"warning", `(APIServer pid=1) WARNING 11-30 02:00:00 [a.py:1] bad request: 'Traceback (most recent call last):'`, `APIServer/1: notice WARNING bad request: 'Traceback (most recent call last):'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			expect(t, []string{c.line}, want...)
		})
	}
}

func TestStrangeBytes(t *testing.T) {
	const head = "(EngineCore pid=8) ERROR 11-30 02:00:00 [core.py:1] "
	expect(t, []string{"\x00\x00\x00" + head + "x\x00\x00"}, "EngineCore/8: notice ERROR x")
	expect(t, []string{head + "\xff\xfe\x00y"}, "EngineCore/8: notice ERROR \xff\xfe\x00y")
	expect(t, []string{"", "\r", "\x00", " ", "(pid=1)", "[rank0]:", "[rank0]: ", "(pid=1) "})
	for _, s := range []string{"(", "()", "(pid=", "(pid=1", "[", "[rank", "[rank0", "INFO", "INFO:", "ERROR 11-30 02:00:00", "[2025-12-12 12:00:00]"} {
		if n := len(parse(s)); n > 1 {
			t.Errorf("%q: %d events", s, n)
		}
	}
	expect(t, []string{head + "x\r\r"}, "EngineCore/8: notice ERROR x")
}

// A line of any length is kept by its two ends, and read by its beginning.
func TestHugeLines(t *testing.T) {
	const head = "(EngineCore pid=8) ERROR 11-30 02:00:00 [core.py:1] "
	filler := strings.Repeat("1, 2, ", 1<<18)
	es := parse(head + "begin " + filler + " end")
	text := es[0].Body.(Notice).Record.First()
	if len(text) > maxLineText+8 || !strings.HasPrefix(text, "begin ") || !strings.HasSuffix(text, " end") {
		t.Errorf("%d bytes", len(text))
	}
	expect(t, []string{head + "Dumping scheduler output for model execution: SchedulerOutput(scheduled_new_reqs=[" + filler + "], total_num_scheduled_tokens=5, x=1)"},
		"EngineCore/8: dump output sched=5 run=-1 wait=-1 kv=-1 plp=-1 ptok=-1")
}

// kept gives the bytes that a parser holds in open records.
func kept(p *Parser) (records, bytes int) {
	for o := p.set.front; o != nil; o = o.next {
		records++
		bytes += o.text.bytes
	}
	return records, bytes
}

func TestManyProcesses(t *testing.T) {
	n := 0
	p := New(func(Event) { n++ })
	for i := range 10_000 {
		for range 2 {
			p.Line(linesOf(fmt.Sprintf("(Worker pid=%d) ERROR 11-30 02:00:00 [a.py:1] %s", i+1, strings.Repeat("x", 20_000)))[0])
		}
	}
	if r, b := kept(p); r > maxOpen || b > maxOpenBytes+maxLineText || b != p.set.bytes || len(p.set.by) != r || len(p.names) > maxNames {
		t.Errorf("%d records, %d bytes", r, b)
	}
	p.Flush()
	if r, b := kept(p); r+b+p.set.bytes+len(p.set.by) != 0 || n != 20_000 {
		t.Errorf("%d records, %d bytes after Flush, %d events", r, b, n)
	}
}

func TestHugeTraceback(t *testing.T) {
	var es []Event
	p := New(func(e Event) { es = append(es, e) })
	const head = "(EngineCore pid=8) ERROR 11-30 02:00:00 [core.py:1] "
	at := int64(0)
	line := func(text string) {
		p.Line(Line{At: Pos{Offset: at, Line: at + 1}, Data: []byte(head + text + "\r")})
		at++
	}
	line("EngineCore encountered a fatal error.")
	line(tracebackHead)
	for i := range 100_000 {
		line(fmt.Sprintf(`  File "/x/recursion.py", line %d, in f`, i))
		line("    f()")
	}
	if _, b := kept(p); b > maxRecordBytes+maxLineText {
		t.Errorf("%d bytes", b)
	}
	line("RecursionError: maximum recursion depth exceeded")
	p.Flush()
	f := es[0].Body.(Failure)
	last := f.Exceptions[len(f.Exceptions)-1]
	if len(es) != 1 || len(f.Record.Lines) > MaxRecordLines || f.Record.Dropped+len(f.Record.Lines) != 200_003 ||
		last.Class != "RecursionError" || f.Record.First() != "EngineCore encountered a fatal error." {
		t.Errorf("%d events, %d lines, %d dropped, %s", len(es), len(f.Record.Lines), f.Record.Dropped, last.Class)
	}
}

// A record whose lines are few and long is bounded too.
func TestRecordOfLongLines(t *testing.T) {
	var es []Event
	p := New(func(e Event) { es = append(es, e) })
	for i := range 3000 {
		p.Line(Line{At: Pos{Offset: int64(i)}, Data: []byte("(EngineCore pid=8) ERROR 11-30 02:00:00 [core.py:1] " + strings.Repeat("y", maxLineText) + "\r")})
	}
	if _, b := kept(p); b > maxRecordBytes+maxLineText {
		t.Errorf("%d bytes", b)
	}
}

// A record that was quiet for long is over, so that a restart need not read
// from there.
func TestQuietRecordsEnd(t *testing.T) {
	p := New(func(Event) {})
	p.Line(linesOf("(Worker pid=9) WARNING 11-30 02:00:00 [a.py:1] x")[0])
	for range maxQuiet {
		if _, ok := p.OpenFrom(); !ok {
			t.Fatal("ended too early")
		}
		p.Line(Line{Data: []byte(`(APIServer pid=1) INFO:     10.0.0.1:1 - "GET /health HTTP/1.1" 200 OK`)})
	}
	if at, ok := p.OpenFrom(); ok {
		t.Errorf("still open at %v", at)
	}
}

// A line that its log driver split and a dead container never ended does not
// keep the positions of all that follow.
func TestUnfinishedLine(t *testing.T) {
	p := New(func(Event) {})
	p.Line(Line{Data: []byte("2026-11-30T02:00:00.000000000Z stdout P (EngineCore pid=8) ERROR 11-30 02:00:00 [a.py:1] x")})
	for i := range 20_000 {
		p.Line(Line{At: Pos{Offset: int64(i + 1)}, Data: []byte("2026-11-30T02:00:00.000000000Z stderr P piece")})
	}
	if len(p.pieces) > maxPieces {
		t.Errorf("%d positions", len(p.pieces))
	}
	if at, ok := p.OpenFrom(); !ok || at.Offset != 0 {
		t.Errorf("OpenFrom = %v, %v", at, ok)
	}
}

// The events of a log do not depend on what wrapped it.
func TestWrappedAlike(t *testing.T) {
	logs := fixtureLogs(t, "vllm-h200/v0240-dsa-32768-0.92.log", "hostile/docker-json.log", "hostile/cri.log", "hostile/compose.log", "hostile/journald.log")
	crash := func(name string) string {
		for _, e := range failures(run(lines(logs[name]))) {
			if f := e.Body.(Failure); strings.HasPrefix(f.Record.First(), "EngineCore encountered") {
				return shortBody(f)
			}
		}
		return "none"
	}
	want := crash("v0240-dsa-32768-0.92.log")
	for name := range logs {
		if got := crash(name); got != want {
			t.Errorf("%s: %.300s\nwant %.300s", name, got, want)
		}
	}
}

// Nor do they where only a date stands in front of each line, or where a
// collector made an object of it; and what is quoted stays quoted.
func TestStampedAlike(t *testing.T) {
	object := func(before, after string) func(string) string {
		return func(l string) string {
			text, err := json.Marshal(strings.ToValidUTF8(l, "?"))
			if err != nil {
				t.Fatal(err)
			}
			return "{" + before + string(text) + after + "}"
		}
	}
	prefix := func(s string) func(string) string { return func(l string) string { return s + l } }
	wraps := map[string]func(string) string{
		"ts":         prefix("Nov 30 02:27:33 "),
		"ts F T":     prefix("2026-11-30 02:27:33 "),
		"ts bracket": prefix("[2026-11-30 02:27:33] "),
		"ts S":       prefix("[2026-11-30 02:27:33.123456] "),
		"iso":        prefix("2026-11-30T02:27:33+0100 "),
		"lemonade":   prefix("2026-05-08 10:14:02.137 [Error] (vllm) "),
		"fluent-bit": object(`"date":1796005653.123456,"log":`, ""),
		"kubernetes": object(`"@timestamp":"2026-11-30T02:27:33Z","log":`, `,"kubernetes":{"pod_name":"vllm-0"}`),
		"loki":       object(`"labels":{},"timestamp":"2026-11-30T02:27:33Z","line":`, ""),
		"vector":     object(`"message":`, `,"source_type":"file","timestamp":"2026-11-30T02:27:33Z"`),
		"gcloud":     object(`"textPayload":`, `,"insertId":"a","timestamp":"2026-11-30T02:27:33Z"`),
	}
	for name, log := range fixtureLogs(t, "vllm-h200/v0240-tp2-dsa-32768-0.95.log", "vllm-h200/v0251-weights-too-big.log", "hostile/prompt-with-crash.log", "hostile/json-request-log.log") {
		var plain []string
		for _, l := range lines(log) {
			plain = append(plain, string(l.Data))
		}
		want := failuresOf(plain)
		for form, wrap := range wraps {
			t.Run(name+" "+form, func(t *testing.T) {
				in := make([]string, len(plain))
				for i, l := range plain {
					in[i] = wrap(l)
				}
				if d := diff(want, failuresOf(in)); d != "" {
					t.Error(d)
				}
			})
		}
	}
}

// failuresOf gives the failures and what came from errors.
func failuresOf(log []string) []string {
	var out []string
	for _, e := range parse(log...) {
		if n, ok := e.Body.(Notice); !ok || n.Record.Level >= Error {
			out = append(out, short(e))
		}
	}
	return out
}

func TestFraming(t *testing.T) {
	for name, want := range map[string]string{"cri.log": "cri", "docker-json.log": "docker-json", "prompt-with-crash.log": "plain"} {
		p := New(func(Event) {})
		feed(p, lines(fixtureLogs(t, "hostile/"+name)[name]))
		if got := p.Framing(); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func FuzzParser(f *testing.F) {
	for _, log := range fixtureLogs(f, "reports/*.log", "signatures/*.log", "hostile/json*.log") {
		f.Add(log)
	}
	crash := fixtureLogs(f, "vllm-h200/v0251-device-assert.log")["v0251-device-assert.log"]
	f.Add(crash[len(crash)-14_000:])
	f.Add([]byte("[2025-12-12 12:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):\n  File \"/x\", line 1, in f\nValueError: x\n"))
	f.Add([]byte("  + Exception Group Traceback (most recent call last):\n  | ExceptionGroup: x (1 sub-exception)\n  +-+---- 1 ----\n    | ValueError: y\n"))
	f.Add([]byte("a(W pid=1) ERROR 11-30 02:00:00 [a.py:1] x\na(W pid=1) ERROR 11-30 02:00:00 [a.py:1] x\na(W pid=1) ERROR 11-30 02:00:00 [a.py:1] x\n"))
	for _, prefix := range []string{"[2026-11-30 02:27:33] ", "Nov 30 02:27:33 ", "2026-05-08 10:14:02.137 [Info] (vllm) "} {
		f.Add([]byte(strings.Repeat(prefix+"(W pid=1) ERROR 11-30 02:00:00 [a.py:1] x\n", 3) + prefix + "Traceback (most recent call last):\n" + prefix + "ValueError: x\n(W pid=1) INFO 11-30 02:00:00 [a.py:1] nothing\n" + prefix + "x"))
	}
	f.Add([]byte(strings.Repeat(`{"date":1,"log":"(W pid=1) ERROR 11-30 02:00:00 [a.py:1] x"}`+"\n", 3) + `{"date":1,"log":"Traceback (most recent call last):\nValueError: x"}`))
	f.Fuzz(func(t *testing.T, log []byte) {
		if bytes.Count(log, []byte("\n")) > 2000 {
			t.Skip()
		}
		ls := lines(log)
		es := run(ls)
		for _, e := range es {
			checkPositions(t, e, ls)
		}
		if d := diff(showAll(ungated(ls)), showAll(es)); d != "" {
			t.Fatal("gate: " + d)
		}
		checkPeek(t, ls, []int{len(ls) / 3, len(ls) / 2, len(ls) - 1})
	})
}

// splits tells whether a log has lines that a wrapper split: their rest comes
// after lines that began later.
func splits(ls []Line) bool {
	p := New(func(Event) {})
	for _, l := range ls {
		p.Line(l)
		if len(p.pieces) > 0 {
			return true
		}
	}
	return false
}

// checkPositions tells whether what an event points at stands in its order and
// inside the log.
func checkPositions(t failer, e Event, ls []Line) {
	last, n, split := Pos{}, len(ls), splits(ls)
	next := func(at Pos, what string) {
		if at.Offset < 0 || at.Line < 1 || at.Line > int64(n) || at.Before(last) && !split {
			t.Fatalf("%s at %v after %v in %s", what, at, last, show(e))
		}
		last = at
	}
	next(e.At, "event")
	switch b := e.Body.(type) {
	case Notice:
		for _, l := range b.Record.Lines {
			next(l.At, "line")
		}
	case Failure:
		for _, l := range b.Record.Lines {
			next(l.At, "line")
		}
		for _, x := range b.Exceptions {
			last = e.At
			for _, f := range x.Frames {
				next(f.At, "frame")
				if f.Code != "" && f.CodeAt.Before(f.At) && !split {
					t.Fatalf("code at %v before its frame at %v", f.CodeAt, f.At)
				}
			}
			if x.Class != "" && x.At.Before(e.At) && !split {
				t.Fatalf("exception at %v before its record", x.At)
			}
		}
	}
}
