package parser

import "testing"

// The forms of a process prefix; the innermost names the writer.
func TestPrefixes(t *testing.T) {
	const msg = "ERROR 11-02 10:00:00 [a.py:1] x"
	for _, c := range []struct{ name, line, want string }{
		{"API server", "(APIServer pid=1) " + msg, "APIServer/1: notice ERROR x"},
		{"several API servers", "(ApiServer_0 pid=77) " + msg, "ApiServer_0/77: notice ERROR x"},
		{"DP supervisor", "(DPSupervisor pid=1) " + msg, "DPSupervisor/1: notice ERROR x"},
		{"its child", "(APIServer_DP3 pid=9) " + msg, "APIServer_DP3/9: notice ERROR x"},
		{"worker 0.6", "(VllmWorkerProcess pid=9) " + msg, "VllmWorkerProcess/9: notice ERROR x"},
		{"worker 0.7", "(VllmWorker rank=3 pid=9) " + msg, "VllmWorker rank=3/9: notice ERROR x"},
		{"worker 0.10.1", "(VllmWorker PP0_TP1 pid=9) " + msg, "VllmWorker PP0_TP1/9: notice ERROR x"},
		{"worker", "(Worker_DP0_PP1_TP2_DCP0_EP3 pid=9) " + msg, "Worker_DP0_PP1_TP2_DCP0_EP3/9: notice ERROR x"},
		{"no name", "(pid=9) " + msg, "/9: notice ERROR x"},
		{"raylet", "(raylet) A worker died or was killed", "raylet: notice raw A worker died or was killed"},
		{"autoscaler", "(autoscaler +5s) Warning: no node", "autoscaler +5s: notice raw Warning: no node"},
		{"coloured", "\x1b[1;36m(EngineCore_DP0 pid=9)\x1b[0;0m " + msg, "EngineCore_DP0/9: notice ERROR x"},
		{"colour lost its ESC", "[36m(RayWorkerWrapper pid=858)[0m " + msg, "RayWorkerWrapper/858: notice ERROR x"},
		{"stacked by fork", "(EngineCore_DP0 pid=100) (Worker_TP0 pid=200) " + msg, "Worker_TP0/200: notice ERROR x"},
		{"stacked 0.17", "(Worker pid=487) (Worker_TP0 pid=487) " + msg, "Worker_TP0/487: notice ERROR x"},
		{"stacked by Ray", "(EngineCore_DP0 pid=44606) (RayWorkerWrapper pid=13269, ip=192.168.23.9) " + msg, "RayWorkerWrapper/13269: notice ERROR x"},
		{"Ray, IPv6", "(RayWorkerProc pid=13269, ip=fd00::1) " + msg, "RayWorkerProc/13269: notice ERROR x"},
		{"Ray Data", "(MapWorker(MapBatches(vLLMEngineActor)) pid=1202, ip=10.53.120.118) (EngineCore_DP0 pid=32080) " + msg, "EngineCore_DP0/32080: notice ERROR x"},
		{"Ray's count", "(RayWorkerWrapper pid=858) " + msg + " [repeated 15x across cluster]", "RayWorkerWrapper/858: notice ERROR x [repeated 15x across cluster]"},
		{"no prefix, old form", "ERROR 11-02 10:00:00 a.py:1] x", ": notice ERROR x"},
		{"place without a line", "ERROR 11-02 10:00:00 [vllm.engine] x", ": notice ERROR x"},
		{"critical", "CRITICAL 11-02 10:00:00 [a.py:1] x", ": notice CRITICAL x"},
		{"early name", "(MainProcess pid=1) " + msg, "MainProcess/1: notice ERROR x"},
		{"parentheses in a sentence", "(see above) and pid=1) " + msg, ": notice raw (see above) and pid=1) " + msg},
		{"no number", "(Worker pid=x) " + msg, ": notice raw (Worker pid=x) " + msg},
		{"unclosed", "(Worker pid=1 " + msg, ": notice raw (Worker pid=1 " + msg},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, []string{c.line}, c.want) })
	}
}

// Two processes wrote at the same time: the rest of the outer one's line comes
// without a prefix on the next.
func TestTwoProcessesOnALine(t *testing.T) {
	expect(t, []string{
		"(Worker_TP1 pid=11) (Worker_TP0 pid=10) ERROR 11-02 10:00:00 [a.py:1] of 0",
		"ERROR 11-02 10:00:00 [a.py:1] of 1",
		"ERROR 11-02 10:00:00 [a.py:1] of nobody",
	}, "Worker_TP0/10: notice ERROR of 0", "Worker_TP1/11: notice ERROR of 1", ": notice ERROR of nobody")
	expect(t, []string{
		"(EngineCore_DP0 pid=44606) (RayWorkerWrapper pid=13269, ip=192.168.23.9) ERROR 11-02 10:00:00 [a.py:1] ray",
		"ERROR 11-02 10:00:00 [a.py:1] of nobody",
	}, "RayWorkerWrapper/13269: notice ERROR ray", ": notice ERROR of nobody")
}

// A worker changes its name while it starts; its pid tells that it is one.
func TestRecordOverAChangeOfName(t *testing.T) {
	ls := record("(Worker pid=9) ERROR 11-02 10:00:00 [a.py:1] ", true, "x\n"+trace(1, "ValueError: y"))
	for i := 2; i < len(ls); i++ {
		ls[i] = "(Worker_TP0" + ls[i][len("(Worker"):]
	}
	expect(t, ls, "Worker/9: failure ValueError|y @func0{call0(x)}")
}

func TestGluedToProgress(t *testing.T) {
	const rec = "(Worker_TP0 pid=231) ERROR 10-15 21:03:27 [multiproc_executor.py:623] WorkerProc failed to start."
	const want = "Worker_TP0/231: notice ERROR WorkerProc failed to start."
	for _, c := range []struct{ name, line, want string }{
		{"shards", "Loading safetensors checkpoint shards: 0% 0/7 [00:00<?, ?it/s]" + rec, want},
		{"after the carriage return", "\rCapturing CUDA graphs (mixed prefill-decode, PIECEWISE):  50%|█████     | 1/2 [00:01<00:01,  1.20s/it]\r" + rec, want},
		{"prompts", "Processed prompts: 50%|█████     | 1/2 [00:01<00:01,  1.20s/it, est. speed input: 3.1 toks/s, output: 4.2 toks/s]" + rec, want},
		{"no prefix", "  0%|          | 0/7 [00:00<?, ?it/s]ERROR 10-15 21:03:27 [a.py:1] x", ": notice ERROR x"},
		{"the bar of a process", "(EngineCore pid=8) \rLoading: 0% 0/7 [00:00<?, ?it/s]\rLoading: 50% 3/7 [00:01<00:01, 3it/s]", "EngineCore/8: notice raw Loading: 50% 3/7 [00:01<00:01, 3it/s]"},
		{"no meter", "Loading [it/s]" + rec, ": notice raw Loading [it/s]" + rec},
		{"quoted in a message", "(APIServer pid=1) WARNING 11-02 10:00:00 [a.py:1] x [00:00<?, ?it/s]" + rec, "APIServer/1: notice WARNING x [00:00<?, ?it/s]" + rec},
		{"quoted behind a carriage return", "(APIServer pid=1) WARNING 11-02 10:00:00 [a.py:1] x\r" + rec, "APIServer/1: notice WARNING x\r" + rec},
		{"quoted in an exception", "(APIServer pid=1) ValueError: x [00:00<?, ?it/s]" + rec, "APIServer/1: failure ValueError|x [00:00<?, ?it/s]" + rec},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, []string{c.line}, c.want) })
	}
}

// VLLM_LOGGING_PREFIX: free text in front of the level, or from 0.31.0 of the
// process prefix.
func TestLoggingPrefix(t *testing.T) {
	const head = "ERROR 11-02 10:00:00 [a.py:1] "
	old, now := "(Worker pid=1) node7> "+head, "node7> (Worker pid=1) "+head
	for _, c := range []struct{ name, line string }{{"up to 0.30", old}, {"from 0.31", now}} {
		t.Run(c.name, func(t *testing.T) {
			es := shorts(parse(c.line+"one", c.line+"two", c.line+"three", c.line+"four"))
			if d := diff([]string{"Worker/1: notice ERROR three", "Worker/1: notice ERROR four"}, es[2:]); d != "" {
				t.Error(d)
			}
		})
	}
	raw := func(text string) string {
		if text[0] == '(' {
			return "Worker/1: notice raw " + text[len("(Worker pid=1) "):]
		}
		return ": notice raw " + text
	}
	// never because of a single line
	expect(t, []string{now + "a"}, raw(now+"a"))
	expect(t, []string{now + "a", now + "b"}, raw(now+"a"), raw(now+"b"))
	// nor where plain heads stand between
	plain := "(Worker pid=1) INFO 11-02 10:00:00 [a.py:1] Route: x"
	expect(t, []string{now + "a", plain, now + "b", plain, now + "c"}, raw(now+"a"), raw(now+"b"), raw(now+"c"))
	// nor in the text of an exception
	expect(t, []string{"ValueError: quotes", "q " + head + "a", "q " + head + "b", "q " + head + "c"},
		": failure ValueError|quotes\nq "+head+"a\nq "+head+"b\nq "+head+"c")
	// nor if the texts differ
	expect(t, []string{"a" + now, "b" + now, "c" + now}, raw("a"+now), raw("b"+now), raw("c"+now))
}

// A collector that framing does not know: its clock differs from line to line,
// and it stands in front of what has no head too.
func TestUnknownCollector(t *testing.T) {
	const proc, head = "(EngineCore pid=9) ", "ERROR 11-02 10:00:00 [core.py:1] "
	line := func(clock, text string) string { return "2026-11-02 10:00:0" + clock + " node-3 >> " + text }
	es := shorts(parse(
		line("0.123", proc+head+"EngineCore encountered a fatal error."),
		line("0.2", proc+head+"Traceback (most recent call last):"),
		line("1.41", proc+head+`  File "a.py", line 1, in f`),
		line("1.5", proc+head+"    g(x)"),
		line("1.6", proc+head+"ValueError: x"),
		line("2.71", proc+"Process EngineCore:"),
		line("2.8", "Traceback (most recent call last):"),
	))
	want := []string{"EngineCore/9: failure ValueError|x @f{g(x)}", "EngineCore/9: notice raw Process EngineCore:"}
	if d := diff(want, es[2:]); d != "" {
		t.Error(d, es)
	}
	// a clock alone proves nothing, nor does another text
	plain := "2026-11-02 10:00:00 node-3 >> nothing of an engine"
	expect(t, []string{plain, plain, plain, plain}, ": notice raw "+plain, ": notice raw "+plain, ": notice raw "+plain, ": notice raw "+plain)
}

// vLLM-Omni's stages are known by the first line.
func TestStageOfOmni(t *testing.T) {
	const head = "ERROR 11-02 10:00:00 [a.py:1] "
	expect(t, []string{"(Worker pid=1) [Stage-0] " + head + "one"}, "Worker/1: notice ERROR one")
	expect(t, []string{"[Stage-12] (Worker pid=1) " + head + "one"}, "Worker/1: notice ERROR one")
	expect(t, []string{"[Stage-x] (Worker pid=1) " + head + "one"}, ": notice raw [Stage-x] (Worker pid=1) "+head+"one")
}

// The head of a logging configuration of one's own.
func TestPythonHead(t *testing.T) {
	const at, core = "2026-11-02 10:00:00,315 - ", "vllm.v1.engine.core - ERROR - "
	expect(t, []string{at + core + "x"}, ": notice ERROR x")
	expect(t, []string{at + core}, ": notice ERROR ")
	expect(t, []string{"(EngineCore pid=9) " + at + core + "x"}, "EngineCore/9: notice ERROR x")
	expect(t, []string{
		at + core + "EngineCore encountered a fatal error.",
		"Traceback (most recent call last):",
		`  File "a.py", line 1, in f`,
		"ValueError: y",
		at + "vllm.v1.engine.async_llm - ERROR - AsyncLLM output_handler failed.",
	}, ": failure ValueError|y @f", ": notice ERROR AsyncLLM output_handler failed.")
	for _, l := range []string{
		at + "uvicorn.error - ERROR - x",
		at + "vllm.v1.engine.core - LOUD - x",
		at + "vllm.v1.engine.core says - ERROR - x",
		"2026-11-02 10:00:00 - " + core + "x",
		"2026-11-02 10:00:00,315 - vllm.",
	} {
		expect(t, []string{l}, ": notice raw "+l)
	}
}
