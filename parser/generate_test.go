package parser

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// trace writes a traceback of some frames.
func trace(frames int, exception string) string {
	var b strings.Builder
	b.WriteString(tracebackHead)
	for i := range frames {
		fmt.Fprintf(&b, "\n  File \"/usr/lib/vllm/f%d.py\", line %d, in func%d\n    call%d(x)\n    ^^^^^", i, i, i, i)
	}
	return b.String() + "\n" + exception
}

var exceptionTexts = []string{
	"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB.",
	"AssertionError",
	"RuntimeError: CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in https://docs.nvidia.com/ for more information.\nCUDA kernel errors might be asynchronously reported.",
	"RuntimeError: cancelled",
	"queue.Empty",
	"KeyError: 'cmpl-1'",
	"torch.AcceleratorError: CUDA error: device-side assert triggered\n\nCompile with `TORCH_USE_CUDA_DSA`",
}

func genText(t *rapid.T) string {
	x := rapid.SampledFrom(exceptionTexts).Draw(t, "exception")
	text := trace(rapid.IntRange(0, 4).Draw(t, "frames"), x)
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 1:
		text += "\n" + text // add_note
	case 2:
		text += "\n\nDuring handling of the above exception, another exception occurred:\n\n" + trace(1, "ValueError: second")
	}
	return text
}

// genRecord draws what one process writes in one go. Lines of a process that
// share a head's time differ in their file, as calls of two places do.
func genRecord(t *rapid.T, pid, n int) []string {
	prefix := fmt.Sprintf("(Worker_TP%d pid=%d) ", pid%8, pid)
	head := fmt.Sprintf("11-30 02:%02d:%02d [core.py:%d] ", n/60%60, n%60, 100+n)
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0:
		return []string{prefix + "INFO " + head + "Available KV cache memory: 12.5 GiB"}
	case 1:
		return []string{prefix + "WARNING " + head + "a warning"}
	case 2:
		return record(prefix+"ERROR "+head, false, "WorkerProc hit an exception.\n"+genText(t))
	case 3:
		return prefixed(prefix, "Process EngineCore:\n"+genText(t))
	case 4:
		return prefixed(prefix, genText(t))
	case 5:
		return []string{prefix + "INFO:     10.0.0.1:1 - \"POST /v1/completions HTTP/1.1\" 500 Internal Server Error"}
	case 6:
		return []string{prefix + "INFO " + head + "Route: /health, Methods: GET"}
	}
	return record(prefix+"ERROR "+head, true, "EngineCore encountered a fatal error.\n"+genText(t))
}

// genLoose draws lines that carry no prefix.
func genLoose(t *rapid.T, n int) []string {
	switch rapid.IntRange(0, 8).Draw(t, "loose") {
	case 0:
		return prefixed("[rank0]: ", genText(t))
	case 1:
		return strings.Split(genText(t), "\n")
	case 2:
		return append([]string{fmt.Sprintf("[2025-12-12 12:00:%02d TP0] Scheduler hit an exception: Traceback (most recent call last):", n%60)},
			strings.Split(genText(t), "\n")[1:]...)
	case 3:
		return []string{"(Worker_TP1 pid=1001) (Worker_TP0 pid=1000) INFO 11-30 02:00:00 [a.py:1] one", "ERROR 11-30 02:00:00 [a.py:2] the other"}
	case 4:
		return []string{"/pytorch/aten/src/ATen/native/cuda/IndexKernelUtils.cu:16: Assertion `ind >=0` failed."}
	case 5:
		return wrap("  File \"/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_model_runner.py\", line 4332, in execute_model\n"+
			"    return self.model_runner.execute_model(scheduler_output, intermediate_tensors)\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB.", 60)
	case 6:
		return append([]string{"ERROR:    Exception in ASGI application"}, strings.Split(genText(t), "\n")...)
	case 7:
		return append(record("ERROR 11-30 02:00:00 engine.py:157] ", false, "OutOfMemoryError('CUDA out of memory.')"), strings.Split(genText(t), "\n")...)
	}
	return []string{"INFO:     10.0.0.1:1 - \"GET /health HTTP/1.1\" 200 OK"}
}

// wrap breaks lines at a width, as a terminal does.
func wrap(text string, width int) []string {
	var out []string
	for _, l := range strings.Split(text, "\n") {
		for len(l) > width {
			out, l = append(out, l[:width]), l[width:]
		}
		out = append(out, l)
	}
	return out
}

// mix merges records line by line in a drawn order.
func mix(t *rapid.T, records [][]string) []string {
	var out []string
	var open [][]string
	for len(records) > 0 || len(open) > 0 {
		if len(records) > 0 && (len(open) == 0 || len(open) < 4 && rapid.IntRange(0, 3).Draw(t, "next") == 0) {
			open, records = append(open, records[0]), records[1:]
			continue
		}
		i := rapid.IntRange(0, len(open)-1).Draw(t, "of")
		n := rapid.IntRange(1, min(3, len(open[i]))).Draw(t, "lines")
		out = append(out, open[i][:n]...)
		if open[i] = open[i][n:]; len(open[i]) == 0 {
			open = append(open[:i], open[i+1:]...)
		}
	}
	return out
}

// genLog draws a whole log of several processes.
func genLog(t *rapid.T) []string {
	var records [][]string
	for n := range rapid.IntRange(1, 10).Draw(t, "records") {
		if rapid.IntRange(0, 2).Draw(t, "who") == 0 {
			records = append(records, genLoose(t, n))
			continue
		}
		records = append(records, genRecord(t, 1000+rapid.IntRange(0, 3).Draw(t, "pid"), n))
	}
	return mix(t, records)
}

// tokens are what lines of strange logs are made of.
var tokens = []string{
	"(Worker pid=1) ", "(Worker_TP0 pid=1) ", "(Worker_TP1 pid=2) ", "(EngineCore_DP0 pid=3) ", "(RayWorkerWrapper pid=4, ip=10.0.0.1) ", "(raylet) ", "[rank0]: ", "[rank1]: ",
	"INFO 11-30 02:00:00 [a.py:1] ", "ERROR 11-30 02:00:00 [a.py:1] ", "ERROR 11-30 02:00:00 [b.py:2] ", "WARNING 11-30 02:00:00 a.py:1] ", "ERROR:    ", "INFO:     ",
	"[2025-12-12 12:00:00 TP0] ", "[2025-12-12 12:00:00] ", tracebackHead, "The above exception was the direct cause of the following exception:",
	"  File \"/x/a.py\", line 1, in f", "  File \"/x/a.py\", li", "ne 1, in f", "    code()", "    ^^^^^", "ValueError: x", "ValueError: x y", "AssertionError", "queue.Empty",
	"ray.exceptions.RayTaskError(ValueError): x", "OutOfMemoryError('x')", "Process EngineCore:", "  + Exception Group " + tracebackHead, "  | ", "    +---- 1 ----",
	"text", "node7> ", "\r", "\x1b[36m", "[0m", "Loading: 0% 0/7 [00:00<?, ?it/s]", "GPU KV cache size: 1 tokens", "vLLM server version 0.24.0", "Scheduler hit an exception: ",
	"10.0.0.1:1 - \"GET / HTTP/1.1\" 500 Internal Server Error", "", " ", "\x00", "2026-11-30T02:00:00.000000000Z stdout P ", "2026-11-30T02:00:00.000000000Z stdout F ",
	`{"log":"ERROR 11-30 02:00:00 [a.py:1] x\r\n","stream":"stdout","time":"2026-11-30T02:00:00Z"}`,
}

// genStrange draws a log of such lines.
func genStrange(t *rapid.T) []string {
	line := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(tokens), 1, 4).Draw(t, "tokens"), "")
	})
	some := rapid.SliceOfN(line, 1, 6).Draw(t, "some")
	return rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(some), line), 1, 30).Draw(t, "lines")
}
