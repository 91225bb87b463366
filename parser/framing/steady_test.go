package framing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stamped are prefixes that only a date is: believed in front of a head, and
// once steady in front of anything.
var stamped = map[string]string{
	"ts":             "Nov 30 02:27:33 ",
	"ts_day":         "Nov  3 02:27:33 ",
	"ts_fraction":    "Nov 30 02:27:33.123456 ",
	"ts_F_T":         "2026-11-30 02:27:33 ",
	"ts_F_S":         "2026-11-30 02:27:33.123456 ",
	"comma":          "2026-11-30 02:27:33,123 ",
	"ts_FT":          "2026-11-30T02:27:33 ",
	"ts_zone":        "2026-11-30 02:27:33+0100 ",
	"bracket":        "[2026-11-30 02:27:33] ",
	"bracket_S":      "[2026-11-30 02:27:33.123456] ",
	"bracket_T":      "[2026-11-30T02:27:33] ",
	"bracket_month":  "[Nov 30 02:27:33] ",
	"nested_cri":     "2026-11-30T01:27:33Z stderr F [2026-11-30 02:27:33] ",
	"nested_compose": "vllm-1  | 2026-11-30 02:27:33 ",
}

// A raw line keeps its prefix until the form is steady, then the indentation
// alone stays.
func TestSteadyStamp(t *testing.T) {
	raw := []string{
		"Traceback (most recent call last):", fileLine, "    x = f(a)", "",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.38 GiB.", "RuntimeError raised: x",
		"INFO:     Started server process [1]", "INFO 11-02 14:03:11 [loggers.py:1] old head",
		"(raylet) A worker died", "[rank0]: ValueError: x", "\r", "  \x1b[31mred\x1b[0m\r", "[2026-11-30 02:27:33] quoted",
	}
	for name, prefix := range stamped {
		t.Run(name, func(t *testing.T) {
			var in, want []string
			add := func(l, w string) { in, want = append(in, prefix+l), append(want, w) }
			for range steadyHeads {
				add(engineLine, engineLine)
			}
			for _, l := range raw {
				add(l, l)
			}
			in, want = append(in, strings.TrimSuffix(prefix, " ")), append(want, "")
			add(engineLine, engineLine)
			add(fileLine, fileLine)
			if diff := cmp.Diff(want, texts(decode(in...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotSteady(t *testing.T) {
	const stamp, stamp2 = "[2026-11-30 02:27:33] ", "2026-11-30 02:27:34 "
	const raw = "torch.OutOfMemoryError: CUDA out of memory."
	head := stamp + engineLine
	for _, tt := range []struct {
		name string
		in   []string
		kept int // how many of the last lines stay as they are
	}{
		{"no head", []string{stamp + raw, stamp + raw, stamp + raw, stamp + raw}, 4},
		{"two heads", []string{head, head, stamp + raw}, 1},
		{"another form", []string{head, head, head, stamp2 + raw, stamp + raw}, 2},
		{"another fraction", []string{head, head, head, "[2026-11-30 02:27:33.123] " + raw}, 1},
		{"plain between", []string{head, head, head, engineLine, stamp + raw}, 2},
		{"plain raw between", []string{head, head, head, raw, stamp + raw}, 2},
		{"journald between", []string{head, head, head, "Aug 19 18:34:30 gpu7 vllm[8707]: " + engineLine, stamp + raw}, 1},
		{"not in a row", []string{head, head, engineLine, head, head, stamp + raw}, 1},
		{"sglang", []string{head, head, head, "[2025-12-12 12:00:00 TP0] Decode batch, #running-req: 6", stamp + raw}, 2},
		{"sglang no rank", []string{head, head, head, stamp + "Decode batch, #running-req: 6", stamp + raw}, 2},
		{"no space", []string{head, head, head, "[2026-11-30 02:27:33]" + raw}, 1},
		{"no date", []string{head, head, head, "[2026-11-31 25:27:33] " + raw}, 1},
		{"lemonade's own", []string{"2026-05-08 10:14:02.137 [Info] (Server) " + raw, "2026-05-08 10:14:02.137 [info] (vllm) " + raw, "2026-05-08 10:14:02.137 [] (vllm) " + raw, "2026-05-08 10:14:02.137 [Info] (vllm)" + raw}, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := texts(decode(tt.in...))
			from := len(tt.in) - tt.kept
			if diff := cmp.Diff(tt.in[from:], got[from:], cmp.Transformer("inner", func(s string) string {
				return strings.TrimPrefix(s, "Aug 19 18:34:30 gpu7 vllm[8707]: ")
			})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Blank lines are nobody's, and one form inside another is taken off once.
func TestSteadyBlank(t *testing.T) {
	const stamp = "2026-11-30 02:27:33 "
	got := texts(decode(stamp+engineLine, "", stamp+engineLine, "\r", stamp+engineLine, "", stamp+stamp+"raw"))
	if got[6] != stamp+"raw" {
		t.Errorf("%q", got)
	}
}

// A line that the caller passed by counts as one without the form.
func TestPassed(t *testing.T) {
	const stamp = "2026-11-30 02:27:33 "
	d := NewDecoder(0)
	for range steadyHeads {
		d.Decode([]byte(stamp+engineLine), 1)
	}
	f := d.Fork()
	d.Passed()
	if got := texts(d.Decode([]byte(stamp+"raw"), 1)); got[0] != stamp+"raw" {
		t.Errorf("after Passed: %q", got)
	}
	if got := texts(f.Decode([]byte(stamp+"raw"), 1)); got[0] != "raw" {
		t.Errorf("forked before: %q", got)
	}
}
