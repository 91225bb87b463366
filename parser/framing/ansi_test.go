package framing

import (
	"bytes"
	"testing"
)

func TestStripANSI(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"none", "(Worker pid=1) INFO 11-02 [x.py:1] a [b] #c", "(Worker pid=1) INFO 11-02 [x.py:1] a [b] #c"},
		{"empty", "", ""},
		{"prefix", "\x1b[1;36m(Worker pid=1)\x1b[0;0m INFO", "(Worker pid=1) INFO"},
		{"record", "\x1b[31mERROR\x1b[0m \x1b[90m09-17 22:26:58\x1b[0m \x1b[90m[core.py:1233]\x1b[0m msg", "ERROR 09-17 22:26:58 [core.py:1233] msg"},
		{"cursor", "\x1b[2K\x1b[1Ga\x1b[?25l", "a"},
		{"intermediate", "a\x1b[1 qb", "ab"},
		{"osc_bel", "a\x1b]0;title\x07b", "ab"},
		{"osc_st", "a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"},
		{"osc_open", "a\x1b]rest of the line", "arest of the line"},
		{"osc_then_csi", "a\x1b]x\x1b[31mb", "ab"},
		{"charset", "a\x1b(B\x1b[mb", "ab"},
		{"lone_esc", "a\x1b", "a\x1b"},
		{"esc_letter", "a\x1bcb", "a\x1bcb"},
		{"csi_open", "a\x1b[31", "a"},
		{"csi_bad", "a\x1b[3\nb", "a\nb"},
		{"octal", "#033[1;36m(APIServer pid=1)#033[0;0m x #033 y", "(APIServer pid=1) x #033 y"},
		{"lost_ray", "[36m(RayWorkerWrapper pid=858)[0m x [32m [repeated 15x across cluster][0m", "(RayWorkerWrapper pid=858) x  [repeated 15x across cluster]"},
		{"lost_record", "[31mERROR[0m [90m09-17 22:26:58[0m [90m[core.py:1233][0m msg", "ERROR 09-17 22:26:58 [core.py:1233] msg"},
		{"lost_both", "[0;36m(Worker pid=1)[0;0m [32mINFO[0m x", "(Worker pid=1) INFO x"},
		{"promql", "rate(vllm:x[5m]) and (y)[5m] or ERROR[5m]", "rate(vllm:x[5m]) and (y)[5m] or ERROR[5m]"},
		{"array", "shape[0m] (x)[0m", "shape[0m] (x)[0m"},
		{"message", "the text [36mhere[0m stays", "the text [36mhere[0m stays"},
		{"bytes", "\xff\x1b[0m\xfe\x9b1m", "\xff\xfe\x9b1m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := StripANSI([]byte("dst:"), []byte(tt.in)); string(got) != "dst:"+tt.want {
				t.Errorf("got %q, want %q", got, "dst:"+tt.want)
			}
			src := []byte(tt.in)
			if got := StripANSI(src[:0], src); string(got) != tt.want {
				t.Errorf("in place %q, want %q", got, tt.want)
			}
			if tt.in != tt.want && !HasANSI([]byte(tt.in)) {
				t.Error("HasANSI = false")
			}
		})
	}
}

func TestStripANSIAllocatesNothing(t *testing.T) {
	for _, in := range []string{engineLine, "\x1b[31mERROR\x1b[0m x", "rate(x[5m])"} {
		src, dst := []byte(in), make([]byte, 0, 200)
		if n := testing.AllocsPerRun(100, func() { dst = StripANSI(dst[:0], src) }); n != 0 {
			t.Errorf("%q: %v allocations", in, n)
		}
	}
	if bytes.Contains([]byte(engineLine), []byte{esc}) || HasANSI([]byte(engineLine)) {
		t.Error("a plain line is said to have colour")
	}
}
