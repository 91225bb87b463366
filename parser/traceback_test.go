package parser

import (
	"fmt"
	"strings"
	"testing"
)

const (
	errHead = "(Worker_TP0 pid=9) ERROR 11-30 02:00:00 [multiproc_executor.py:1000] "
	rawHead = "(EngineCore pid=8) "
	oomText = "CUDA out of memory. Tried to allocate 8.00 GiB."
)

func TestTracebacks(t *testing.T) {
	const two = tracebackHead + "\n  File \"/x/a.py\", line 1, in outer\n    inner()\n    ^^^^^^^\n  File \"/x/b.py\", line 2, in inner\n    alloc(\n"
	const frames = " @outer{inner()} @inner{alloc(}"
	for _, c := range []struct{ name, text, want string }{
		{"plain", two + "torch.OutOfMemoryError: " + oomText, "torch.OutOfMemoryError|" + oomText + frames},
		{"note", two + "torch.OutOfMemoryError: " + oomText + "\n" + two + "torch.OutOfMemoryError: " + oomText + "\n", "torch.OutOfMemoryError|" + oomText + frames + " x2"},
		{"no message", two + "AssertionError", "AssertionError|" + frames},
		{"cut before the exception", strings.TrimSuffix(two, "\n"), "|" + frames},
		{
			"chain", two + "torch.OutOfMemoryError: " + oomText + "\n\nThe above exception was the direct cause of the following exception:\n\n" + two + "RuntimeError: warming up sampler",
			"torch.OutOfMemoryError|" + oomText + frames + " <- RuntimeError|warming up sampler" + frames,
		},
		{
			"chain while handling", two + "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n" + two + "ValueError: b",
			"KeyError|'a'" + frames + " <- ValueError|b" + frames,
		},
		{
			"chain with a note", two + "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n" + two + "ValueError: b\n" +
				two + "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n" + two + "ValueError: b",
			"KeyError|'a'" + frames + " x2 <- ValueError|b" + frames + " x2",
		},
		{
			"CUDA error", two + "torch.AcceleratorError: CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in https://docs.nvidia.com/x.html for more information.\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n",
			"torch.AcceleratorError|CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in https://docs.nvidia.com/x.html for more information.\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions." + frames,
		},
		{
			"cudaMallocAsync", two + "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 135.29 GiB\nRequested               : 8.00 GiB\nDevice limit            : 139.80 GiB\nFree (according to CUDA): 31.12 MiB\nPyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB",
			"torch.OutOfMemoryError|Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 135.29 GiB\nRequested               : 8.00 GiB\nDevice limit            : 139.80 GiB\nFree (according to CUDA): 31.12 MiB\nPyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB" + frames,
		},
		{"no frames", "RuntimeError: " + oomText, "RuntimeError|" + oomText},
		{"frames without code", "  File \"/x/a.py\", line 1, in outer\n  File \"/x/b.py\", line 2, in inner\nRuntimeError: x", "RuntimeError|x @outer @inner"},
		{"syntax error", tracebackHead + "\n  File \"/x/a.py\", line 1, in outer\n    import b\n  File \"/x/b.py\", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax", "SyntaxError|invalid syntax @outer{import b} @{def f(:}"},
		{"a class with another end", two + "queue.Empty", "queue.Empty|" + frames},
		{"a class with another end and a text", two + "zmq.error.Again: Resource temporarily unavailable", "zmq.error.Again|Resource temporarily unavailable" + frames},
		{"Triton", two + "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 114688, Hardware limit: 101376.", "triton.runtime.errors.OutOfResources|out of resource: shared memory, Required: 114688, Hardware limit: 101376." + frames},
		{
			"Ray", two + "ray.exceptions.RayTaskError(OutOfMemoryError): ray::RayWorkerWrapper.execute_method() (pid=5, ip=10.0.0.1)\n  File \"/x/c.py\", line 3, in remote\ntorch.OutOfMemoryError: " + oomText,
			"torch.OutOfMemoryError|" + oomText + " @remote <- ray.exceptions.RayTaskError(OutOfMemoryError)|ray::RayWorkerWrapper.execute_method() (pid=5, ip=10.0.0.1)" + frames,
		},
		{
			"group", "  + Exception Group " + two[:len(tracebackHead)] + "\n  |   File \"/x/a.py\", line 1, in outer\n  |     inner()\n  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | " + tracebackHead + "\n    |   File \"/x/b.py\", line 2, in inner\n    |     alloc(\n    | ValueError: x\n    +------------------------------------",
			"ValueError|x @inner{alloc(} <- ExceptionGroup|unhandled errors in a TaskGroup (1 sub-exception) @outer{inner()}",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			const first = "WorkerProc hit an exception.\n"
			expect(t, record(errHead, true, first+c.text), "Worker_TP0/9: failure "+c.want)
			expect(t, record(errHead, false, first+c.text), "Worker_TP0/9: failure "+c.want)
			expect(t, prefixed(rawHead, c.text), "EngineCore/8: failure "+c.want)
			expect(t, strings.Split(c.text, "\n"), ": failure "+c.want)
			expect(t, prefixed("[rank3]: ", c.text), "rank3: failure "+c.want)
			if strings.HasPrefix(c.text, tracebackHead) {
				expect(t, prefixed(rawHead, "Process EngineCore:\n"+c.text), "EngineCore/8: failure "+c.want)
			}
			if strings.HasPrefix(c.text, tracebackHead) && !strings.Contains(c.name, "note") {
				expect(t, append([]string{"[2025-12-12 12:00:00 DP1 TP0] Scheduler hit an exception: " + tracebackHead}, strings.Split(c.text, "\n")[1:]...), "Scheduler DP1 TP0: failure "+c.want)
			}
		})
	}
}

// TorchScript quotes a traceback of its own, which is text.
func TestTorchScript(t *testing.T) {
	text := "RuntimeError: The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most recent call last):\n  File \"/x/m.py\", line 3, in forward\n    return y\nRuntimeError: " + oomText
	expect(t, record(errHead, true, trace(1, text)),
		"Worker_TP0/9: failure RuntimeError|"+strings.TrimPrefix(text, "RuntimeError: ")+" @func0{call0(x)}")
}

// A text may quote whatever a client sent.
func TestQuotedTracebackIsText(t *testing.T) {
	quoted := "Traceback (most recent call last):\n  File \"/x/core.py\", line 1, in run\n    step()\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB."
	for _, c := range []struct{ name, text string }{
		{"a line", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB."},
		{"a traceback", quoted},
		{"a frame", quoted[len(tracebackHead)+1:]},
		{"a chain in it", quoted + "\n\nThe above exception was the direct cause of the following exception:\n\n" + quoted},
	} {
		t.Run(c.name, func(t *testing.T) {
			es := parse(record("(APIServer pid=1) ERROR 11-30 02:00:00 [serving.py:1] ", true, "Error in preprocessing prompt inputs\n"+trace(1, "ValueError: prompt says:\n"+c.text))...)
			if len(es) != 1 {
				t.Fatalf("%d events", len(es))
			}
			f := es[0].Body.(Failure)
			if len(f.Exceptions) != 1 || f.Exceptions[0].Class != "ValueError" || !strings.Contains(f.Exceptions[0].Text, "torch.OutOfMemoryError") {
				t.Errorf("%s", short(es[0]))
			}
		})
	}
}

// V0 logs a repr, and the traceback below it.
func TestV0Repr(t *testing.T) {
	const head = "ERROR 10-11 12:00:00 engine.py:157] "
	expect(t, record(head, false, "OutOfMemoryError('"+oomText+" (https://x)')\n"+trace(1, "torch.OutOfMemoryError: "+oomText+" (https://x)")),
		": failure OutOfMemoryError|"+oomText+" (https://x) @func0{call0(x)} x2")
	expect(t, record("ERROR 10-11 12:00:00 client.py:300] ", true, "RuntimeError('Engine process (pid 76) died.')\nNoneType: None"),
		": failure RuntimeError|Engine process (pid 76) died.")
	expect(t, record("ERROR 10-11 12:00:00 client.py:300] ", true, "The engine is gone\nNoneType: None"),
		": notice ERROR The engine is gone/NoneType: None")
	expect(t, prefixed("(EngineCore_0 pid=8) ERROR 03-20 10:00:00 [core.py:330] ", "EngineCore hit an exception: "+trace(2, "RuntimeError: x")),
		"EngineCore_0/8: failure RuntimeError|x @func0{call0(x)} @func1{call1(x)}")
}

// Two records of one place within a second are two.
func TestRecordsOfOneSecond(t *testing.T) {
	for _, cr := range []bool{true, false} {
		a := record(errHead, cr, "WorkerProc hit an exception.\n"+trace(1, "RuntimeError: a"))
		b := record(errHead, cr, "WorkerProc hit an exception.\n"+trace(1, "RuntimeError: b"))
		expect(t, append(a, b...),
			"Worker_TP0/9: failure RuntimeError|a @func0{call0(x)}", "Worker_TP0/9: failure RuntimeError|b @func0{call0(x)}")
	}
	const head = "(APIServer pid=1) ERROR 11-30 02:00:00 [serving.py:1] "
	expect(t, append(record(head, false, "Error executing method 'a'. This might\n"+trace(1, "KeyError: 1")), record(head, false, "Error executing method 'b'. This might\n"+trace(1, "KeyError: 2"))...),
		"APIServer/1: failure KeyError|1 @func0{call0(x)}", "APIServer/1: failure KeyError|2 @func0{call0(x)}")
	expect(t, []string{head + "one thing", head + "another thing"},
		"APIServer/1: notice ERROR one thing", "APIServer/1: notice ERROR another thing")
}

// Tracebacks printed one below the other are records of their own, unless
// chained or copied.
func TestRawTracebacksBelowEachOther(t *testing.T) {
	a, b := trace(1, "RuntimeError: a\nmore of a"), trace(1, "RuntimeError: b")
	want := []string{": failure RuntimeError|a\nmore of a @func0{call0(x)}", ": failure RuntimeError|b @func0{call0(x)}"}
	expect(t, strings.Split(a+"\n"+b, "\n"), want...)
	expect(t, strings.Split(a+"\n"+b+"\n"+a, "\n"), want[0], want[1], want[0])
	expect(t, strings.Split(a+"\n"+a+"\n"+b, "\n"), want[0]+" x2", want[1])
	many := strings.Repeat(a+"\n"+b+"\n", 3000)
	if n := len(failures(run(lines([]byte(many))))); n != 6000 {
		t.Errorf("%d of 6000", n)
	}
}

// Lines of another process stand between a head and its traceback.
func TestProcessHeadAndOthersBetween(t *testing.T) {
	var ls []string
	ls = append(ls, rawHead+"Process EngineCore:")
	ls = append(ls, record("(APIServer pid=1) ERROR 11-30 02:00:00 [async_llm.py:704] ", true, "AsyncLLM output_handler failed.\n"+trace(1, "EngineDeadError: x"))...)
	ls = append(ls, `(APIServer pid=1) INFO:     127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error`)
	ls = append(ls, prefixed(rawHead, trace(1, "RuntimeError: y"))...)
	expect(t, ls, "EngineCore/8: failure RuntimeError|y @func0{call0(x)}",
		"APIServer/1: failure EngineDeadError|x @func0{call0(x)}", "APIServer/1: http 500 /v1/completions")
}

// A signal handler's C stack looks like frames of Python and is no traceback.
func TestCStack(t *testing.T) {
	for _, l := range []string{
		`  File "<unknown>", line 0, in gsignal`,
		`  File "Modules/main.c", line 768, in Py_BytesMain`,
	} {
		expect(t, []string{l}, ": notice raw "+l)
	}
}

// What surely is another writer's is no text of an exception.
func TestForeignLinesBelow(t *testing.T) {
	for _, s := range []string{
		"[rank0]:[W205 16:55:27.345399482 ProcessGroupNCCL.cpp:1565] Warning: destroy_process_group() was not called",
		"/usr/lib/python3.12/multiprocessing/resource_tracker.py:254: UserWarning: leaked",
		"(raylet) A worker died", "*** SIGSEGV received", "terminate called after throwing an instance of 'c10::Error'", "Fatal Python error: Aborted",
	} {
		es := parse("RuntimeError: x", s)
		if len(es) != 2 || shortBody(es[1].Body) != "failure RuntimeError|x" && shortBody(es[0].Body) != "failure RuntimeError|x" {
			t.Errorf("%q: %q", s, shorts(es))
		}
	}
}

// Raw text far below an exception is not its text.
func TestTextFarBelowIsNotTaken(t *testing.T) {
	ls := prefixed(rawHead, trace(1, "RuntimeError: y"))
	for i := range maxTextGap + 1 {
		ls = append(ls, fmt.Sprintf("(APIServer pid=1) INFO:     127.0.0.1:%d - \"GET /health HTTP/1.1\" 200 OK", i))
	}
	ls = append(ls, rawHead+"something else")
	expect(t, ls, "EngineCore/8: failure RuntimeError|y @func0{call0(x)}", "EngineCore/8: notice raw something else")
}

// uvicorn's head stands above a traceback that has none.
func TestASGITraceback(t *testing.T) {
	text := "ERROR:    Exception in ASGI application\n" + trace(1, "Exception: Call to wake_up method failed: x")
	want := "failure Exception|Call to wake_up method failed: x @func0{call0(x)}"
	expect(t, strings.Split(text, "\n"), ": "+want)
	expect(t, prefixed("(APIServer pid=1) ", text), "APIServer/1: "+want)
	es := parse(strings.Split(text, "\n")...)
	if r := es[0].Body.(Failure).Record; r.Level != Error || r.First() != "Exception in ASGI application" {
		t.Errorf("%+v", r)
	}
}

// The JSON formatter of 0.32.0 writes a record with its traceback as one
// object, so two of one second are two.
func TestJSONFormatter(t *testing.T) {
	object := func(text string) string {
		return `{"asctime": "11-02 10:00:00", "levelname": "ERROR", "name": "vllm.v1.engine.core", "processName": "EngineCore", "process": 614, "message": "EngineCore encountered a fatal error.", "vllm_process_name": "EngineCore", "exc_info": "` +
			strings.NewReplacer("\n", "\\n", "\"", "\\\"").Replace(text) + `"}`
	}
	expect(t, []string{object(trace(1, "RuntimeError: a")), object(trace(1, "RuntimeError: b"))},
		"EngineCore/614: failure RuntimeError|a @func0{call0(x)}", "EngineCore/614: failure RuntimeError|b @func0{call0(x)}")
}

// A terminal breaks lines at its right edge; the lines below have no prefix.
func TestHardWrapped(t *testing.T) {
	text := tracebackHead + "\n  File \"/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_model_runner.py\", line 4332, in execute_model\n    return self.model_runner.execute_model(scheduler_output, intermediate_tensors, and_more)\ntorch.OutOfMemoryError: out"
	want := "failure torch.OutOfMemoryError|out @execute_model{return self.model_runner.execute_model(scheduler_output, intermediate_tensors, and_more)}"
	for width := 60; width < 125; width++ {
		expect(t, wrap(text, width), ": "+want)
		expect(t, wrap(strings.Join(prefixed(rawHead, text), "\n"), width), "EngineCore/8: "+want)
		expect(t, wrap(strings.Join(record(errHead, false, text), "\n"), width+50), "Worker_TP0/9: "+want)
	}
	es := run(lines(fixtureLogs(t, "reports/012-*.log")["012-hardwrapped-terminal-oom.log"]))
	if x := es[0].Body.(Failure).Exceptions; len(es) != 1 || !x[0].Wrapped || !strings.HasSuffix(x[0].Text, "ge-with-pytorch-cuda-alloc-conf)") {
		t.Errorf("%+v", x)
	}
}

func TestExceptionLine(t *testing.T) {
	for _, c := range []struct {
		line, class, text string
		ok                bool
	}{
		{"ValueError: x", "ValueError", "x", true},
		{"ValueError:", "ValueError", "", true},
		{"torch.cuda.OutOfMemoryError: a: b", "torch.cuda.OutOfMemoryError", "a: b", true},
		{"KeyboardInterrupt", "KeyboardInterrupt", "", true},
		{"_queue.Empty", "", "", false},
		{"OutOfMemoryError('it\\'s out\\nnow')", "OutOfMemoryError", "it's out\nnow", true},
		{"RayTaskError(ValueError): x", "RayTaskError(ValueError)", "x", true},
		{"multiprocessing.pool.RemoteTraceback: ", "multiprocessing.pool.RemoteTraceback", "", true},
		{"Error in model execution: x", "", "", false},
		{"An Error: x", "", "", false},
		{"ValueError:x", "", "", false},
		{"ValueErrors: x", "", "", false},
		{"https://x/ValueError: x", "", "", false},
		{"ValueError(x): y", "", "", false},
		{"", "", "", false},
	} {
		class, text, ok := exceptionLine(c.line)
		if class != c.class || text != c.text || ok != c.ok {
			t.Errorf("exceptionLine(%q) = %q, %q, %v", c.line, class, text, ok)
		}
	}
}
