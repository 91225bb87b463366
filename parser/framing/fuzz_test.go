package framing

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// FuzzDecode feeds arbitrary lines, twice over with one decoder, and holds the
// promises that do not depend on the form.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		engineLine,
		dockerLine("a", "stdout") + "\n" + dockerLine("b\n", "stdout"),
		cri("stdout", "P", "a") + "\n" + cri("stdout", "F", "b"),
		"vllm-1  | 2026-09-17T22:26:58Z " + engineLine,
		"Aug 19 18:34:30 gpu7 vllm[8707]: x\n[pod/a/b] x\n[12345.678901] NVRM: Xid",
		`{"MESSAGE":[27,91],"_PID":"7","__REALTIME_TIMESTAMP":"1789684018123456"}`,
		`(W pid=1) {"asctime":"09-17 22:26:58","levelname":"ERROR","message":"a\nb","exc_info":"\ud83d\u0000"}`,
		"\x1b[32mllm-1\x1b[0m \x1b[32mvllm\x1b[0m (APIServer pid=1) INFO",
		"Wed 2026-08-19 18:34:30 UTC gpu7 vllm[8707]: x\n<6>[    0.000000] x\n2026-03-09 12:00:00+0800 (APIServer pid=1) INFO",
		"[VllmSidecar x]: 2024-11-13T03:15:08.672Z 1 stdout: x\n[resource.labels.podName: v] x",
		strings.Repeat("[2026-11-30 02:27:33] "+engineLine+"\n", 3) + "[2026-11-30 02:27:33]   raw\n[2026-11-30 02:27:33 TP0] Decode batch",
		strings.Repeat("Nov 30 02:27:33.123456 "+engineLine+"\n", 3) + "Nov 30 02:27:33.123456\nNov 30 02:27:33 gpu7 vllm[1]: x",
		strings.Repeat("2026-11-30T02:27:33 "+engineLine+"\n", 3) + "2026-11-30T02:27:33 raw",
		"2026-05-08 10:14:02.137 [Error] (vllm) x\n2026-05-08 10:14:02.137 [Info] (Server) x",
		strings.Repeat(`{"date":1796005653.123456,"log":"`+engineLine+`"}`+"\n", 3) + `{"date":1,"log":"raw\nb"}`,
		`{"line":"x","timestamp":"2026-11-30T02:27:33Z","labels":{"pod":"a-1"}}`,
		`{"message":"x","@timestamp":"2026-11-30T02:27:33Z","_p":"P","kubernetes":{"pod_name":"a-1","labels":{"pod":"b"}}}`,
		`{"textPayload":"x\n","resource":{"labels":{"pod_name":"a-1"}},"timestamp":"2026-11-30T02:27:33Z"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := NewDecoder(256)
		var inner, given int
		check := func(ins []Inner, at uint64) {
			for _, in := range ins {
				if in.At > at || in.Joined < 1 || in.Cut < 0 {
					t.Fatalf("odd line %+v at %d", in, at)
				}
				if bytes.IndexByte(in.Text, '\n') >= 0 {
					t.Fatalf("line end in %q", in.Text)
				}
				if in.Meta.Time != "" {
					// Only the day may be wrong.
					s := in.Meta.Time[:8] + "01" + in.Meta.Time[10:]
					if i := strings.Index(s, ":60"); i == 16 {
						s = s[:17] + "59" + s[19:]
					}
					if _, err := time.Parse(time.RFC3339Nano, s); err != nil {
						t.Fatalf("time %q: %v", in.Meta.Time, err)
					}
				}
				inner += len(in.Text)
			}
		}
		at := uint64(0)
		for range 2 {
			for _, l := range bytes.Split(data, []byte(newline)) {
				at++
				given += len(l)
				before := string(l)
				check(d.Decode(l, at), at)
				if string(l) != before {
					t.Fatal("the line was changed")
				}
			}
		}
		check(d.Flush(), at)
		if _, held := d.Held(); held {
			t.Fatal("held after Flush")
		}
		// A record repeats its head on each line; nothing else grows, but for
		// an escape of a lone surrogate, which is longer than its rune.
		if inner > given*1000 {
			t.Fatalf("%d bytes out of %d", inner, given)
		}
		_ = d.Kind()
	})
}

func FuzzStripANSI(f *testing.F) {
	for _, s := range []string{
		engineLine, "\x1b[1;36m(W pid=1)\x1b[0;0m INFO", "[36m(W pid=1)[0m x", "#033[0m", "\x1b]0;t\x07", "\x1b]8;;\x1b\\",
		"[31mERROR[0m [90m09-17 22:26:58[0m [90m[core.py:1233][0m msg", "\x1b[\x1b[0m31m", "[0m[0m[0m",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		out := StripANSI(nil, src)
		if len(out) > len(src) {
			t.Fatalf("%d bytes out of %d", len(out), len(src))
		}
		if !HasANSI(src) && !bytes.Equal(out, src) {
			t.Fatalf("no colour, but %q became %q", src, out)
		}
		if again := StripANSI([]byte("ERROR"), src); !bytes.Equal(again[5:], out) {
			t.Fatalf("what is in dst counts: %q, %q", again[5:], out)
		}
		in := bytes.Clone(src)
		if got := StripANSI(in[:0], in); !bytes.Equal(got, out) {
			t.Fatalf("in place %q, else %q", got, out)
		}
	})
}
