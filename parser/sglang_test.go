package parser

import (
	"strings"
	"testing"
)

func TestSGLang(t *testing.T) {
	const stamp = "[2025-12-12 12:00:00 "
	for _, c := range []struct {
		name string
		text []string
		want []string
	}{
		{
			"decode",
			[]string{stamp + "TP0] Decode batch, #running-req: 6, #token: 1920, token usage: 0.94, cuda graph: True, gen throughput (token/s): 446.45, #queue-req: 5,"},
			[]string{`Scheduler TP0: stats "sglang" run=6 wait=5 pre=-1 kv=94`},
		},
		{
			"prefill, no rank",
			[]string{"[2025-12-12 12:00:00] Prefill batch, #new-seq: 1, #new-token: 8192, token usage: 0.01, #running-req: 0, #queue-req: 0,"},
			[]string{`Scheduler: stats "sglang" run=0 wait=0 pre=-1 kv=1`},
		},
		{
			"a message",
			[]string{stamp + "DP0 TP1] KV cache pool is full. Retract requests."},
			[]string{"Scheduler DP0 TP1: notice WARNING KV cache pool is full. Retract requests."},
		},
		{
			"quoted",
			[]string{stamp + "TP0] Receive: obj=GenerateReqInput(text='exception: Traceback (most recent call last):\\n')"},
			[]string{"Scheduler TP0: notice WARNING Receive: obj=GenerateReqInput(text='exception: Traceback (most recent call last):\\n')"},
		},
		{"lines of another rank between", []string{
			stamp + "TP0] Scheduler hit an exception: Traceback (most recent call last):",
			`  File "/x/scheduler.py", line 1, in run`,
			stamp + "TP1] Decode batch, #running-req: 1, token usage: 0.50, #queue-req: 0,",
			"    step()",
			`INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK`,
			"RuntimeError: Prefill out of memory. Try to lower your batch size.",
			"Try to allocate 2048 tokens.",
		}, []string{
			"Scheduler TP0: failure RuntimeError|Prefill out of memory. Try to lower your batch size.\nTry to allocate 2048 tokens. @run{step()}",
			`Scheduler TP1: stats "sglang" run=1 wait=0 pre=-1 kv=50`,
		}},
		{
			"another traceback below", append(
				append([]string{stamp + "TP0] Scheduler hit an exception: Traceback (most recent call last):"}, strings.Split(trace(1, "RuntimeError: a"), "\n")[1:]...),
				strings.Split(trace(1, "RuntimeError: b"), "\n")...),
			[]string{"Scheduler TP0: failure RuntimeError|a @func0{call0(x)}", ": failure RuntimeError|b @func0{call0(x)}"},
		},
		{
			"ranks after each other", append(
				append([]string{stamp + "TP0] Scheduler hit an exception: Traceback (most recent call last):"}, strings.Split(trace(1, "RuntimeError: a"), "\n")[1:]...),
				append([]string{stamp + "TP1] Scheduler hit an exception: Traceback (most recent call last):"}, strings.Split(trace(1, "RuntimeError: b"), "\n")[1:]...)...),
			[]string{"Scheduler TP0: failure RuntimeError|a @func0{call0(x)}", "Scheduler TP1: failure RuntimeError|b @func0{call0(x)}"},
		},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, c.text, c.want...) })
	}
}

func TestSGLangFixture(t *testing.T) {
	n := 0
	for _, e := range run(lines(fixtureLogs(t, "reports/046-*.log")["046-sglang-retract-alloc-fail.log"])) {
		if s, ok := e.Body.(Stats); ok && s.KVUsagePct == 94 && e.Proc.Name == "Scheduler TP0" {
			n++
		}
	}
	if n != 5 {
		t.Errorf("%d of 5 batches", n)
	}
}
