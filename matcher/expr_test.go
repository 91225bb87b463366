package matcher

import (
	"math"
	"strings"
	"testing"
)

// table is a Scope over a few values.
type table map[string]Value

func (s table) Lookup(name string) Value { return s[name] }

func TestExpr(t *testing.T) {
	facts := table{
		"tried": Num(8 << 30), "free": Num(6 << 30), "masked": Truth(false), "phase": Text("runtime"),
		"tokens": Num(32768), "flags.enforce_eager": Truth(true), "kv_usage_pct": Num(5.4),
	}
	for _, c := range []struct {
		src  string
		want Value
	}{
		{"tried - free", Num(2 << 30)},
		{"2 * tokens * 64 * 512 * 4", Num(8 << 30)},
		{"tried > free && phase == \"runtime\"", Truth(true)},
		{"!masked", Truth(true)},
		{"min(tried, free) / GiB", Num(6)},
		{"max(tried, free, 1)", Num(8 << 30)},
		{"pow2(20000)", Num(16384)},
		{"pow2(16384)", Num(16384)},
		{"pow2(0.5)", Num(0)},
		{"round2(0.8786)", Num(0.87)},
		{"round2(0.87)", Num(0.87)},
		{"floor(1.9) + ceil(1.1)", Num(3)},
		{"flags.enforce_eager", Truth(true)},
		{"contains(phase, \"run\")", Truth(true)},
		{"known(total)", Truth(false)},
		{"-free", Num(-6 << 30)},
		{"(tried + free) * 0", Num(0)},

		// An absent fact makes the result unknown, never zero and never false.
		{"total - free", Value{}},
		{"total == 0", Value{}},
		{"total != 0", Value{}},
		{"!(total > 1)", Value{}},
		{"flags.nothing > 1", Value{}},
		{"min(tried, total)", Value{}},
		// Unless the rest decides (Kleene).
		{"total > 1 && tried < free", Truth(false)},
		{"tried < free && total > 1", Truth(false)},
		{"total > 1 || tried > free", Truth(true)},
		{"total > 1 || tried < free", Value{}},
		{"total > 1 && tried > free", Value{}},
		{"tried / (free - free)", Value{}},
		{"phase == 1", Value{}},
	} {
		if c.src == "phase == 1" {
			if _, err := Compile(c.src); err == nil {
				t.Errorf("%s compiles: a text is compared with a number", c.src)
			}
			continue
		}
		e, err := Compile(c.src)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		if got := e.Eval(facts); got != c.want {
			t.Errorf("%s = %+v, expected %+v", c.src, got, c.want)
		}
	}
}

func TestExprRefuses(t *testing.T) {
	for src, want := range map[string]string{
		"tried +":            "expected operand",
		"nonsense > 1":       `unknown name "nonsense"`,
		"tried && masked":    "a number stands where a truth is needed",
		"phase + 1":          "a text stands where a number is needed",
		"sqrt(tried)":        `unknown function "sqrt"`,
		"floor(1, 2)":        "floor takes 1 arguments, not 2",
		"tried % 2":          "operator % is not allowed",
		"func() {}":          "is not allowed",
		"tried[0]":           "is not allowed",
		"os.Exit":            `unknown name "os.Exit"`,
		"flags.a.b":          "unknown name",
		"phase == 1":         "a text is compared with a number",
		"\"a\" \"b\"":        "expected",
		"known(tried, free)": "known takes 1 arguments, not 2",
		"tried.x()":          "only named functions may be called",
	} {
		_, err := Compile(src)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", src, err, want)
		}
	}
}

func TestTemplate(t *testing.T) {
	facts := table{"tried": Num(8 << 30), "free": Num(755.12 * (1 << 20)), "tokens": Num(32768), "gpu_memory_utilization": Num(0.9), "kv_usage_pct": Num(5.4), "phase": Text("runtime")}
	for _, c := range []struct{ src, want string }{
		{"asked {tried|GiB} at {tokens|tokens}", "asked 8.00 GiB at 32,768"},
		{"{free|size} free", "755.12 MiB free"},
		{"{kv_usage_pct|pct} in {phase}", "5.4 % in runtime"},
		{"{gpu_memory_utilization|util} of it", "0.90 of it"},
		{"{tried / tokens|KiB} a token", "256 KiB a token"},
		{"a[[ and {total|GiB} more]], b", "a, b"},
		{"a[[ and {tried|GiB} more]], b", "a and 8.00 GiB more, b"},
		{"{tried > free || masked}", "true"},
		{"many   spaces\n and lines", "many spaces and lines"},
	} {
		tpl, err := ParseTemplate(c.src)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		if got, ok := tpl.Render(facts); !ok || got != c.want {
			t.Errorf("%s = %q (%v), expected %q", c.src, got, ok, c.want)
		}
	}
	tpl, err := ParseTemplate("needs {total|GiB}")
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := tpl.Render(facts); ok {
		t.Errorf("an unknown figure was printed: %q", got)
	}
	for src, want := range map[string]string{
		"{tried": "{ without }", "[[a": "[[ without ]]", "{tried|furlongs}": `unknown format "furlongs"`, "{nonsense}": "unknown name",
	} {
		if _, err := ParseTemplate(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", src, err, want)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"tried - free", "a && b || !c", "min(tried, 1)", "flags.x == \"y\"", "1e999", "((((", "\"\\x\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		e, err := Compile(src)
		if err != nil {
			return
		}
		if v := e.Eval(table{}); v.Known() {
			if n, ok := v.Float(); ok && math.IsNaN(n) {
				t.Errorf("%q gives NaN", src)
			}
		}
		e.Names()
	})
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"{tried|GiB}", "a[[b{free}]]c", "{{}}", "[[]]", "{a|", "]]"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, src string) {
		if tpl, err := ParseTemplate(src); err == nil {
			tpl.Render(table{})
			tpl.Names()
		}
	})
}
