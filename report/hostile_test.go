package report_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"diagnose/matcher"
	"diagnose/report"
)

// hostileText is what a prompt may bring into a log.
const hostileText = "\x1b]0;owned\x07\x1b[2J\u202egpj.exe\u2066 ``` ````\n~~~ <script>alert(1)</script> </pre> &amp; **b** [x](javascript:1) @everyone |a|b| \x00\x9b31m \xff\xfe $HOME `id` '; rm -rf ~ #1\r\n# h\u2028\u200b\U000e0041"

// hostileDocument has s in every string that a log or a file name can reach.
func hostileDocument(s string) matcher.Document {
	return matcher.Document{
		Schema: s,
		Tool:   matcher.Tool{Version: s, Catalog: s},
		Inputs: []matcher.Input{{Name: "/tmp/" + s, Framing: s, Skipped: []matcher.Skipped{{Why: s}}}},
		Incidents: []matcher.Incident{{
			ID: s, Host: &s, Unit: &s, Pod: &s, Container: &s, RecurrenceOf: &s,
			Time:         matcher.Time{First: &s, Last: &s, Basis: s},
			Engine:       matcher.Engine{Name: s, Version: &s, Model: &s, Flags: map[string]matcher.Flag{s: {Value: s}}},
			Phase:        s,
			Ranks:        []matcher.Rank{{Process: s, PID: ptr(1), GPU: ptr(0)}},
			Verdict:      matcher.Verdict{Family: s, Class: s, Mechanism: &s, Confidence: s, Summary: s},
			Root:         matcher.Root{Kind: s, Text: s, Frame: &s, At: at(3)},
			OOM:          []matcher.OOM{{Process: s, TriedBytes: sizeOf(8), At: at(3)}, {Process: s, At: at(4)}},
			Budget:       []matcher.Budget{{Process: s, TotalBytes: part(1, matcher.Grade(s), 3)}},
			Evidence:     []matcher.Evidence{{Grade: matcher.Grade(s), Statement: s, Formula: &s, At: lines(1)}},
			RuledOut:     []matcher.RuledOut{{Class: s, Because: s, At: lines(1)}},
			Contributing: []matcher.Contributing{{Class: s, Statement: s, At: lines(1)}},
			Consequences: []matcher.Consequence{{Kind: s, What: s, Count: 2, At: at(1)}},
			Remedies: []matcher.Remedy{{
				Title: s, Set: map[string]string{"--x": s, "env:" + s: s, s: s}, Unset: []string{s}, UpgradeTo: &s,
				Why: s, Expect: s, Costs: s, Grade: s, Refs: []string{s},
			}},
			DoNot:     []matcher.DoNot{{Change: s, Because: s}},
			Restarted: &matcher.Restarted{At: at(9), ChangesMade: []string{s}, ChangesMissing: []string{s}},
			Followup:  &matcher.Followup{RestartedAt: &s, ChangesMade: []string{s}, HeldSince: &s, Withdrawn: []string{s}, BudgetNow: []matcher.Budget{{Process: s}}},
			Verify:    []string{s}, Missing: []string{s}, References: []string{s},
		}},
	}
}

var hostileCases = map[string]string{
	"ansi":        "\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07",
	"c1":          "\u009b31m \u0085 \u0090",
	"rlo":         "abc\u202egpj.\u202c \u2066x\u2069 \u200f \u061c",
	"backticks":   "``` `` ````` `",
	"fence":       "\n```\n# heading\n~~~\n",
	"script":      "<script>alert(1)</script><img src=x onerror=alert(1)>",
	"entities":    "&lt;b&gt; &#60;",
	"nul":         "a\x00b",
	"invalid":     "\xff\xc3\x28\xed\xa0\x80",
	"mention":     "@everyone #1 <!channel>",
	"table":       "a|b\n|---|",
	"zalgo":       "z" + strings.Repeat("\u0301", 500),
	"wide":        strings.Repeat("漢字", 300),
	"long":        strings.Repeat("x", 1<<20),
	"long digits": strings.Repeat("1", 1<<20),
	"long words":  strings.Repeat("8.00 GiB, ", 1<<14),
	"mixed":       hostileText,
	"empty":       "",
	"blank":       " \t\n ",
}

func TestHostileText(t *testing.T) {
	for name, s := range hostileCases {
		t.Run(name, func(t *testing.T) {
			d := hostileDocument(s)
			for _, width := range []int{40, 80} {
				got := render(t, text(report.Options{Width: width}), d)
				safeOutput(t, got)
				if len(s) > 1<<16 && len(got) > 1<<18 {
					t.Errorf("a line of %d bytes makes a text of %d", len(s), len(got))
				}
			}
			md := render(t, markdown, d)
			safeOutput(t, md)
			fenced(t, md)
			page := render(t, html, d)
			safeOutput(t, page)
			for _, tag := range []string{"<script", "<img", "onerror=\""} {
				if strings.Contains(page, tag) {
					t.Errorf("the page has %q", tag)
				}
			}
			if len(s) < 1<<16 {
				render(t, report.JSON, d)
			}
		})
	}
}

// safeOutput: nothing but printing characters and line feeds.
func safeOutput(t testing.TB, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Error("not UTF-8")
	}
	for _, r := range s {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%U in the output", r)
			return
		}
	}
}

// fenced walks the markdown as CommonMark reads fences: outside of them there
// is no HTML but ours, and each one is closed.
func fenced(t testing.TB, md string) {
	t.Helper()
	fence := ""
	for line := range strings.Lines(md) {
		line = strings.TrimRight(line, "\n")
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence != "":
			if len(ticks) >= len(fence) && strings.TrimSpace(line) == ticks {
				fence = ""
			}
			continue
		case len(ticks) >= 3 && !strings.Contains(line[len(ticks):], "`"):
			fence = ticks
			continue
		}
		if strings.HasPrefix(line, "~~~") {
			t.Errorf("a fence of tildes: %q", line)
		}
		for _, bad := range []string{"<script", "<img", "@everyone", "<!channel"} {
			if strings.Contains(withoutCode(line), bad) {
				t.Errorf("%q outside of code: %q", bad, line)
			}
		}
	}
	if fence != "" {
		t.Error("a fence is open at the end")
	}
}

// withoutCode takes the code spans out of a line: a run of backticks that is
// not escaped, up to the next run of the same length.
func withoutCode(line string) string {
	var b strings.Builder
	for i := 0; i < len(line); {
		if line[i] == '\\' && i+1 < len(line) {
			b.WriteString(line[i : i+2])
			i += 2
			continue
		}
		if line[i] != '`' {
			b.WriteByte(line[i])
			i++
			continue
		}
		run := 1
		for i+run < len(line) && line[i+run] == '`' {
			run++
		}
		end := -1
		for j := i + run; j < len(line); {
			n := 0
			for j+n < len(line) && line[j+n] == '`' {
				n++
			}
			if n == run {
				end = j + n
				break
			}
			j += max(n, 1)
		}
		if end < 0 {
			b.WriteString(line[i : i+run])
			i += run
			continue
		}
		i = end
	}
	return b.String()
}

func TestSafeText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain text, 8.00 GiB", "plain text, 8.00 GiB"},
		{"\x1b[31mred", "␛[31mred"},
		{"a\x00b\x7f", "a␀b␡"},
		{"one\r\ntwo\tthree", "one␍␊two three"},
		{"\u202egpj", "<U+202E>gpj"},
		{"\u009b1m", "<U+009B>1m"},
		{"z\u200bero\ufeff", "z<U+200B>ero<U+FEFF>"},
		{"\xff\xfe", "<0xFF><0xFE>"},
		{"\u2028", "<U+2028>"},
		{"日本 é …", "日本 é …"},
		{"\u00a0", "<U+00A0>"},
		{"a\u0301\u0301\u0301\u0301", "a\u0301\u0301\u0301<U+0301>"},
		{"\U000e0041", "<U+E0041>"},
	} {
		if got := report.SafeText(c.in); got != c.want {
			t.Errorf("SafeText(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func FuzzSafeText(f *testing.F) {
	for _, s := range hostileCases {
		if len(s) < 4096 {
			f.Add(s)
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := report.SafeText(s)
		safeOutput(t, got)
		if strings.ContainsRune(got, '\n') {
			t.Error("a line break")
		}
		if again := report.SafeText(got); again != got {
			t.Errorf("not stable: %q, then %q", got, again)
		}
	})
}

// TestAnyStringAnyWidth renders documents of random bytes in every form.
func TestAnyStringAnyWidth(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := string(rapid.SliceOfN(rapid.OneOf(
			rapid.Byte(),
			rapid.SampledFrom([]byte("` \n<>|\\_*[]-/.0123456789")),
		), 0, 400).Draw(r, "bytes"))
		d := hostileDocument(s)
		width := rapid.IntRange(0, 200).Draw(r, "width")
		safeOutput(t, render(t, text(report.Options{Width: width, Verbose: width%2 == 0}), d))
		md := render(t, markdown, d)
		safeOutput(t, md)
		fenced(t, md)
		safeOutput(t, render(t, html, d))
	})
}
