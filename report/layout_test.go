package report_test

import (
	"io"
	"strings"
	"testing"
	"unicode"

	"diagnose/matcher"
	"diagnose/report"
)

// TestWidth: from 40 to 200 columns no line is wider than asked, except one
// that holds a single piece to copy: a flag with its value, or a path.
func TestWidth(t *testing.T) {
	docs := map[string]matcher.Document{
		"seed": seedDocument(), "unknown": unknownDocument(), "several": severalDocument(), "quiet": quietDocument(),
		"wide": withoutRemedies(hostileDocument(strings.Repeat("漢字 かな ", 200))), "hostile": withoutRemedies(hostileDocument(hostileText)),
		"long": withoutRemedies(hostileDocument(strings.Repeat("x", 5000))),
	}
	for name, d := range docs {
		step := 1
		if name != "seed" {
			step = 11
		}
		for width := 40; width <= 200; width += step {
			got := render(t, text(report.Options{Width: width, Titles: titles, Verbose: width%2 == 1}), d)
			for line := range strings.Lines(got) {
				line = strings.TrimRight(line, "\n")
				if cells(line) > width && !onePiece(line) {
					t.Fatalf("%s at %d: %d columns: %q", name, width, cells(line), line)
				}
				if strings.TrimRight(line, " ") != line {
					t.Fatalf("%s at %d: trailing space: %q", name, width, line)
				}
			}
		}
	}
}

// withoutRemedies drops the commands, which may be of any width.
func withoutRemedies(d matcher.Document) matcher.Document {
	d.Incidents[0].Remedies = nil
	return d
}

// cells is an independent count of columns: CJK and the like are two.
func cells(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			n += 2
		default:
			n++
		}
	}
	return n
}

func onePiece(line string) bool {
	f := strings.Fields(strings.TrimSuffix(line, ` \`))
	return len(f) == 1 && (strings.HasPrefix(f[0], "-") || strings.ContainsAny(f[0], "/=")) ||
		len(f) == 2 && strings.HasPrefix(f[0], "-")
}

// TestNumbersWhole: at no width is a figure of the quoted line cut or parted
// from its unit.
func TestNumbersWhole(t *testing.T) {
	d := seedDocument()
	long := strings.Repeat("padding ", 400) + "of which 139.80 GiB " + strings.Repeat("x", 300) + " 12345678.90 GiB is free"
	d.Incidents[0].Evidence[0].Statement = long
	d.Incidents[0].Root.Text = long
	for width := 40; width <= 200; width++ {
		for _, verbose := range []bool{false, true} {
			got := render(t, text(report.Options{Width: width, Verbose: verbose}), d)
			for line := range strings.Lines(got) {
				line = strings.TrimRight(line, "\n")
				f := strings.Fields(line)
				if len(f) == 0 {
					continue
				}
				if last := f[len(f)-1]; last == "12345678.90" || last == "139.80" && strings.Contains(line, "which") {
					t.Fatalf("at %d a number stands without its unit: %q", width, line)
				}
				for _, w := range f {
					if strings.HasPrefix(w, "1234567") && w != "12345678.90" {
						t.Fatalf("at %d a number is cut: %q", width, line)
					}
				}
			}
		}
	}
}

func TestSizeText(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		want  string
	}{
		{0, "0 B"},
		{512, "512 B"},
		{1023, "1023 B"},
		{1024, "1.00 KiB"},
		{147712, "144.25 KiB"},
		{410368, "400.75 KiB"},
		{791800709, "755.12 MiB"},
		// The unit is carried where the decimals round up to 1024.
		{1024*1024 - 6, "1023.99 KiB"},
		{1024*1024 - 5, "1.00 MiB"},
		{1<<20 - 1, "1.00 MiB"},
		{1 << 20, "1.00 MiB"},
		{-1 << 20, "-1.00 MiB"},
		{1<<30 - 5243, "1023.99 MiB"},
		{1<<30 - 5242, "1.00 GiB"},
		{-(1<<30 - 1), "-1.00 GiB"},
		{1<<30 - 1, "1.00 GiB"},
		{1 << 30, "1.00 GiB"},
		{6871947674, "6.40 GiB"},
		{8 << 30, "8.00 GiB"},
		{150109106995, "139.80 GiB"},
		{3 << 40, "3072.00 GiB"},
		{-6871947674, "-6.40 GiB"},
		{-1 << 63, "-8589934592.00 GiB"},
	} {
		if got := report.SizeText(c.bytes); got != c.want {
			t.Errorf("SizeText(%d) = %q, want %q", c.bytes, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		inputs, given []string
		want          string
	}{
		{[]string{"/var/log/vllm.log"}, nil, "vllm.log"},
		{[]string{"-"}, nil, "stdin"},
		{[]string{"a/vllm.log", "b/vllm.log"}, nil, "a/vllm.log b/vllm.log"},
		{[]string{"/x/a/l/vllm.log", "/x/b/l/vllm.log", "/x/b/other"}, nil, "a/l/vllm.log b/l/vllm.log other"},
		{[]string{"vllm.log", "/b/vllm.log"}, nil, "vllm.log b/vllm.log"},
		{[]string{"/vllm.log", "/vllm.log"}, nil, "/vllm.log /vllm.log"},
		{[]string{"/a/x", "/b/y"}, []string{"left"}, "left y"},
		{[]string{"/a/\x1b[2J"}, nil, "␛[2J"},
		{[]string{""}, nil, "."},
	} {
		var d matcher.Document
		for _, n := range c.inputs {
			d.Inputs = append(d.Inputs, matcher.Input{Name: n})
		}
		if got := strings.Join(report.NamesOf(d, c.given), " "); got != c.want {
			t.Errorf("NamesOf(%q, %q) = %q, want %q", c.inputs, c.given, got, c.want)
		}
	}
}

func TestRefs(t *testing.T) {
	names := report.Names{"vllm.log", "kern.log"}
	other := matcher.At{Source: 1, Line: ptr(int64(7))}
	for _, c := range []struct {
		at    []matcher.At
		limit int
		want  string
	}{
		{nil, 4, ""},
		{lines(41), 4, "vllm.log:41"},
		{lines(41, 97), 4, "vllm.log:41, :97"},
		{append(lines(41), other), 4, "vllm.log:41, kern.log:7"},
		{lines(1, 2, 3, 4, 5), 4, "vllm.log:1, :2, :3, :4, :5"},
		{lines(1, 2, 3, 4, 5, 6), 4, "vllm.log:1, :2, :3, :4 and 2 more"},
		{lines(1, 2, 3, 4, 5, 6), -1, "vllm.log:1, :2, :3, :4, :5, :6"},
		{[]matcher.At{{Offset: ptr(int64(90112))}, {Offset: ptr(int64(7))}}, 4, "vllm.log@90112, @7"},
		{[]matcher.At{{}, {}}, 4, "vllm.log, vllm.log"},
		{[]matcher.At{{Source: 9, Line: ptr(int64(1))}, {Source: -1}}, 4, "input 9:1, input -1"},
	} {
		if got := names.Refs(c.at, c.limit); got != c.want {
			t.Errorf("Refs(%v, %d) = %q, want %q", c.at, c.limit, got, c.want)
		}
	}
	if got := names.Ref(nil); got != "" {
		t.Errorf("Ref(nil) = %q", got)
	}
}

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		set  map[string]string
		want string
	}{
		{nil, ""},
		{map[string]string{"--kv-cache-memory-bytes": "30172145254", "--max-num-batched-tokens": "16384"}, "--max-num-batched-tokens 16384|--kv-cache-memory-bytes 30172145254"},
		{map[string]string{"--enforce-eager": "", "env:NCCL_DEBUG": "INFO"}, "NCCL_DEBUG=INFO|--enforce-eager"},
		{map[string]string{"--attention-config": `{"a": 1}`}, `--attention-config '{"a": 1}'`},
		{map[string]string{"--x": "it's; rm -rf /"}, `--x 'it'\''s; rm -rf /'`},
		{map[string]string{"--x": "a\nb"}, "--x 'a␊b'"},
		{map[string]string{"env:A B": "$(id)"}, "'A B'='$(id)'"},
	} {
		if got := strings.Join(report.Command(matcher.Remedy{Set: c.set}), "|"); got != c.want {
			t.Errorf("Command(%v) = %q, want %q", c.set, got, c.want)
		}
	}
}

func TestHeadline(t *testing.T) {
	mech := ptr("flashmla-sparse-mixed-batch")
	for _, c := range []struct {
		family, class, kind string
		mechanism           *string
		title, want         string
	}{
		{"workspace_driven", "workspace", "oom", mech, "FlashMLA", "GPU out of memory, workspace-driven: FlashMLA"},
		{"workspace_driven", "workspace", "masked_oom", mech, "", "GPU out of memory (masked), workspace-driven: flashmla-sparse-mixed-batch"},
		{"workspace_driven", "sampler_logits", "oom", nil, "", "GPU out of memory, workspace-driven: logits and sampler"},
		{"kv_pressure", "kv_pressure", "exception", nil, "", "KV cache pressure"},
		{"capacity", "weights", "oom", nil, "", "GPU out of memory, it does not fit: weights of the model"},
		{"capacity", "profiling", "startup_refused", nil, "", "start refused, it does not fit the GPU: memory profiling at start"},
		{"other_oom", "other_process", "oom", nil, "", "GPU out of memory: another process on the GPU"},
		{"other_oom", "other_process", "startup_refused", nil, "", "start refused, too little free GPU memory: another process on the GPU"},
		{"kv_pressure", "kv_pressure", "startup_refused", nil, "", "start refused, too little KV cache: KV cache pressure"},
		{"host", "host_memory", "signal", nil, "", "host out of memory: host memory"},
		{"not_oom", "illegal_access", "kernel_fault", nil, "", "the server died, not of memory: illegal memory access in a kernel"},
		{"not_oom", "config", "startup_refused", nil, "", "start refused, not for memory: configuration"},
		{"unknown", "unknown", "process_died", nil, "", "the server died, cause unknown"},
		{"unknown", "unknown", "startup_refused", nil, "", "start refused, cause unknown"},
		{"", "", "", nil, "", "the server died, cause unknown: unknown cause"},
	} {
		i := matcher.Incident{Verdict: matcher.Verdict{Family: c.family, Class: c.class, Mechanism: c.mechanism}, Root: matcher.Root{Kind: c.kind}}
		if got := report.Headline(i, c.title); got != c.want {
			t.Errorf("Headline(%s/%s/%s) = %q, want %q", c.family, c.class, c.kind, got, c.want)
		}
	}
}

// TestEarlierFailed: each form for a reader counts the runs that were left out.
func TestEarlierFailed(t *testing.T) {
	for _, c := range []struct {
		inputs, earlier int
		want            string
	}{
		{1, 0, ""},
		{1, 1, "1 earlier failed run in this log: --all tells it"},
		{1, 2, "2 earlier failed runs in this log: --all tells them"},
		{2, 1200, "1,200 earlier failed runs in these logs: --all tells them"},
	} {
		d := matcher.Document{Inputs: make([]matcher.Input, c.inputs)}
		for name, write := range map[string]func(io.Writer, matcher.Document, report.Options) error{
			"text": report.Text, "markdown": report.Markdown, "html": report.HTML,
		} {
			var b strings.Builder
			if err := write(&b, d, report.Options{EarlierFailed: c.earlier}); err != nil {
				t.Fatal(err)
			}
			if got := b.String(); c.want == "" && strings.Contains(got, "earlier failed") || !strings.Contains(got, c.want) {
				t.Errorf("%s, %d inputs, %d runs: no %q in\n%s", name, c.inputs, c.earlier, c.want, got)
			}
		}
	}
}
