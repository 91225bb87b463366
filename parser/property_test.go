package parser

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Looking at what is open changes nothing of what comes in the end, and what
// was shown is a beginning of what comes.
func TestPeekChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkPeek(t, linesOf(genLog(t)...), rapid.SliceOf(rapid.IntRange(0, 60)).Draw(t, "peeks"))
	})
}

func TestPeekOnFixtures(t *testing.T) {
	for name, log := range fixtureLogs(t, "vllm-h200/*.log", "reports/*.log", "signatures/*.log") {
		t.Run(name, func(t *testing.T) {
			ls := lines(log)
			var peeks []int
			for i := 0; i < len(ls); i += 7 {
				peeks = append(peeks, i)
			}
			checkPeek(t, ls, peeks)
		})
	}
}

// All of it holds for lines that no program writes.
func TestStrangeLogs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ls := linesOf(genStrange(t)...)
		es := run(ls)
		for _, e := range es {
			checkPositions(t, e, ls)
		}
		if d := diff(showAll(ungated(ls)), showAll(es)); d != "" {
			t.Fatalf("gate: %s", d)
		}
		checkPeek(t, ls, rapid.SliceOfN(rapid.IntRange(0, len(ls)-1), 1, 4).Draw(t, "peeks"))
		p := New(func(Event) {})
		feed(p, ls)
		if len(p.free.known) == 0 { // a new parser has to learn it anew
			checkRestart(t, ls, rapid.IntRange(0, len(ls)).Draw(t, "cut"))
		}
	})
}

type failer interface{ Fatalf(string, ...any) }

func checkPeek(t failer, ls []Line, peeks []int) {
	want := showAll(run(ls))
	var got, shown []Event
	peeking := false
	p := New(func(e Event) {
		if peeking {
			shown = append(shown, e)
		} else {
			got = append(got, e)
		}
	})
	for i, l := range ls {
		p.Line(l)
		if slices.Contains(peeks, i) {
			peeking = true
			p.Peek()
			peeking = false
		}
	}
	p.Flush()
	if d := diff(want, showAll(got)); d != "" {
		t.Fatalf("%s", d)
	}
	final := map[Pos]bool{}
	for _, e := range got {
		final[e.At] = true
	}
	for _, e := range shown {
		if !final[e.At] {
			t.Fatalf("shown, but never came: %s", show(e))
		}
	}
}

// A new parser that starts at OpenFrom gives the events of all records that
// begin there or later.
func TestOpenFromLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ls := linesOf(genLog(t)...)
		checkRestart(t, ls, rapid.IntRange(0, len(ls)).Draw(t, "cut"))
	})
}

// Logs in which records overlap in ways that a restart has to know of.
func TestOpenFromEverywhere(t *testing.T) {
	const (
		one  = "(Worker_TP0 pid=1) ERROR 11-30 02:00:00 [a.py:1] "
		two  = "(Worker_TP1 pid=2) WARNING 11-30 02:00:00 [a.py:1] "
		cri  = "2026-11-30T02:00:00.000000000Z stdout "
		sgl  = "[2025-12-12 12:00:00 TP0] Scheduler hit an exception: " + tracebackHead
		cuda = "CUDA kernel errors might be asynchronously reported."
	)
	for name, log := range map[string][]string{
		"a record around another":      {one + "a\r", two + "b", one + "c", two + "d", one + "e"},
		"a chain of them":              {one + "a\r", two + "b", one + "c", one + "d\r", two + " e", one + "f", two + " g"},
		"a piece inside a record":      {tracebackHead, cri + "P one ", "ValueError: x", "ValueError: y", cuda, two + "b", cri + "F piece", two + "c"},
		"a record inside a piece":      {cri + "P (EngineCore pid=3) INFO 11-30 02:00:00 [a.py:1] Using max mo", two + "b", cri + "F del len 5", two + " c", cri + "F next"},
		"tracebacks below each other":  {tracebackHead, "ValueError: x", tracebackHead, "ValueError: y", two + "b", tracebackHead, two + " c", "ValueError: z"},
		"a traceback below SGLang's":   {sgl, "ValueError: x", tracebackHead, "ValueError: y", sgl, "ValueError: z", cuda, tracebackHead, "ValueError: z"},
		"two processes on a line":      {two + "a", "(Worker_TP1 pid=2) (Worker_TP0 pid=1) INFO 11-30 02:00:00 [a.py:2] b", "WARNING 11-30 02:00:00 [a.py:3] c", two + "d"},
		"a head and its bare body":     {"ERROR 11-30 02:00:00 [a.py:1] x", tracebackHead, two + "b", "ValueError: y", cuda, two + "c"},
		"a text broken by a terminal":  {"(Worker_TP0 pid=1) ValueError: a very lo", "ng text", two + "b", "no more of it"},
		"a record in several objects":  {`{"log":"` + one + `a\r\n","stream":"stdout","time":"2026-11-30T02:00:00Z"}`, two + "b", `{"log":"` + one + `c\n","stream":"stdout","time":"2026-11-30T02:00:00Z"}`},
		"a process head without trace": {"(EngineCore pid=3) Process EngineCore:", two + "a", "(EngineCore pid=3) " + tracebackHead, two + "b", "(EngineCore pid=3) ValueError: x"},
	} {
		t.Run(name, func(t *testing.T) {
			ls := linesOf(log...)
			for cut := range len(ls) + 1 {
				checkRestart(t, ls, cut)
			}
		})
	}
}

func TestOpenFromOnFixtures(t *testing.T) {
	for name, log := range fixtureLogs(t, "vllm-h200/*.log", "hostile/*.log", "signatures/*.log", "reports/*.log") {
		t.Run(name, func(t *testing.T) {
			ls := lines(log)
			for cut := 0; cut <= len(ls); cut += 1 + len(ls)/40 {
				checkRestart(t, ls, cut)
			}
		})
	}
}

func checkRestart(t failer, ls []Line, cut int) {
	p := New(func(Event) {})
	feed(p, ls[:cut])
	if from, ok := p.OpenFrom(); ok {
		cut = slices.IndexFunc(ls, func(l Line) bool { return l.At == from })
	}
	if cut < 0 {
		t.Fatalf("no line begins there")
	}
	var want []Event
	for _, e := range run(ls) {
		if cut < len(ls) && !e.At.Before(ls[cut].At) {
			want = append(want, e)
		}
	}
	if d := diff(sorted(want), sorted(run(ls[cut:]))); d != "" {
		t.Fatalf("restart at line %d: %s", cut+1, d)
	}
}

// Records of several processes are the same whether their lines are mixed or
// not.
func TestMixingChangesNoRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records [][]string
		n := 0
		for pid := range rapid.IntRange(1, 5).Draw(t, "processes") {
			var all []string
			for range rapid.IntRange(1, 3).Draw(t, "records") {
				all = append(all, genRecord(t, 1000+pid, n)...)
				n++
			}
			records = append(records, all)
		}
		var sequence []string
		for _, r := range records {
			sequence = append(sequence, r...)
		}
		want, got := shorts(parse(sequence...)), shorts(parse(mix(t, records)...))
		slices.Sort(want)
		slices.Sort(got)
		if d := diff(want, got); d != "" {
			t.Fatalf("%s", d)
		}
	})
}

// A collector may strip "\r": the records are the same.
func TestStrippedCarriageReturns(t *testing.T) {
	for name, log := range fixtureLogs(t, "vllm-h200/*.log", "seed/*.log", "hostile/*.log") {
		t.Run(name, func(t *testing.T) {
			want := run(lines(log))
			ls := lines(log)
			for i := range ls {
				ls[i].Data = bytes.ReplaceAll(ls[i].Data, []byte("\r"), nil)
				ls[i].Data = bytes.ReplaceAll(ls[i].Data, []byte(`\r\n"`), []byte(`\n"`)) // docker's json-file
			}
			if d := diff(sorted(failures(want)), sorted(failures(run(ls)))); d != "" {
				t.Fatal(d)
			}
		})
	}
}
