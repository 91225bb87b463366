package report_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"diagnose/matcher"
	"diagnose/report"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type form func(io.Writer, matcher.Document) error

func text(o report.Options) form {
	return func(w io.Writer, d matcher.Document) error { return report.Text(w, d, o) }
}

func markdown(w io.Writer, d matcher.Document) error {
	return report.Markdown(w, d, report.Options{Titles: titles})
}

func html(w io.Writer, d matcher.Document) error {
	return report.HTML(w, d, report.Options{Titles: titles})
}

var titles = map[string]string{"flashmla-sparse-mixed-batch": "FlashMLA sparse decode, FP8 mixed batch"}

func render(t testing.TB, f form, d matcher.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := f(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		doc  matcher.Document
		form form
	}{
		{"seed-80.txt", seedDocument(), text(report.Options{Width: 80, Titles: titles})},
		{"seed-120.txt", seedDocument(), text(report.Options{Width: 120, Titles: titles})},
		{"seed-verbose.txt", seedDocument(), text(report.Options{Width: 80, Verbose: true})},
		{"seed-color.txt", seedDocument(), text(report.Options{Width: 80, Color: true, Titles: titles})},
		{"seed.md", seedDocument(), markdown},
		{"seed.html", seedDocument(), html},
		{"seed.json", seedDocument(), report.JSON},
		{"unknown-80.txt", unknownDocument(), text(report.Options{})},
		{"unknown.md", unknownDocument(), markdown},
		{"several-80.txt", severalDocument(), text(report.Options{Titles: titles})},
		{"several.md", severalDocument(), markdown},
		{"several.html", severalDocument(), html},
		{"several.json", severalDocument(), report.JSON},
		{"quiet-80.txt", quietDocument(), text(report.Options{})},
		{"quiet.json", quietDocument(), report.JSON},
		{"hostile-80.txt", hostileDocument(hostileText), text(report.Options{})},
		{"hostile.md", hostileDocument(hostileText), markdown},
		{"hostile.html", hostileDocument(hostileText), html},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := render(t, c.form, c.doc)
			path := filepath.Join("testdata", c.name)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s differs (-want +got):\n%s", path, diff)
			}
		})
	}
}

// TestFirstScreen holds the promise of the package: the first screen says what
// died, why, what to do first and what not to do.
func TestFirstScreen(t *testing.T) {
	wants := []string{
		"error: GPU out of memory, workspace-driven",
		"FlashMLA sparse decode, FP8 mixed batch",
		"--> vllm.log:812", "Tried to allocate 8.00 GiB", "6.40 GiB is free", "sparse_decode_fwd",
		"8 ranks, one incident", "confidence high", "vLLM 0.24.0",
		"not KV pressure",
		"--max-num-batched-tokens 16384 --kv-cache-memory-bytes 30172145254", "28.10 GiB", "[computed]",
		"raise --gpu-memory-utilization alone", "expandable_segments", "upgrade to the newest",
	}
	wordy := seedDocument()
	wordy.Incidents[0].Remedies[0].Why += strings.Repeat(" And this is so for a reason that takes some words.", 3)
	for n := range wordy.Incidents[0].DoNot {
		wordy.Incidents[0].DoNot[n].Because += strings.Repeat(" There is more to say about it.", 4)
	}
	for name, c := range map[string]struct {
		doc   matcher.Document
		lines int
	}{
		"terse": {seedDocument(), 31},
		"wordy": {wordy, 33},
	} {
		got := render(t, text(report.Options{Width: 80, Titles: titles}), c.doc)
		screen := strings.Join(strings.SplitN(got, "\n", c.lines+1)[:c.lines], "\n")
		for _, want := range wants {
			if !strings.Contains(strings.Join(strings.Fields(screen), " "), want) {
				t.Errorf("%s: the first %d lines lack %q:\n%s", name, c.lines, want, screen)
			}
		}
	}
	got := render(t, text(report.Options{Width: 80, Titles: titles}), wordy)
	if !strings.Contains(got, "\nwhy not\n  x raise --gpu-memory-utilization alone: it goes") {
		t.Errorf("reasons that do not fit the first screen are lost:\n%s", got)
	}
}

// TestPlainWithoutColor: without colour no escape byte is written, with it the
// text is the same.
func TestPlainWithoutColor(t *testing.T) {
	for _, d := range []matcher.Document{seedDocument(), severalDocument(), unknownDocument(), hostileDocument(hostileText)} {
		plain := render(t, text(report.Options{}), d)
		if strings.ContainsRune(plain, 0x1b) {
			t.Error("an escape byte without colour")
		}
		if got := stripSGR(render(t, text(report.Options{Color: true}), d)); got != plain {
			t.Errorf("colour changes the text:\n%s", cmp.Diff(plain, got))
		}
		if !utf8.ValidString(plain) {
			t.Error("not UTF-8")
		}
	}
}

func stripSGR(s string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		_, s, _ = strings.Cut(rest, "m")
	}
}

func TestPositionsByOffset(t *testing.T) {
	got := render(t, text(report.Options{}), unknownDocument())
	for _, want := range []string{"--> vllm.log@10737412345", "[established; vllm.log@10737412345]"} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	if strings.Index(got, "what is missing") > strings.Index(got, "do not") {
		t.Error("an unknown cause must say early what is missing")
	}
}

func TestCapsSayHowMany(t *testing.T) {
	d := seedDocument()
	for range 20 {
		i := &d.Incidents[0]
		i.Evidence = append(i.Evidence, i.Evidence[0])
		i.DoNot = append(i.DoNot, i.DoNot[0])
		i.Remedies = append(i.Remedies, i.Remedies[6])
		i.OOM = append(i.OOM, i.OOM[1])
		i.Consequences = append(i.Consequences, i.Consequences[0])
		i.Verify = append(i.Verify, "again")
	}
	got := render(t, text(report.Options{}), d)
	// Steps, do-nots, evidence, ranks, consequences and verify, in this order.
	for _, want := range []string{"… and 13 more", "… and 15 more", "… and 6 more", "… and 19 more", "… and 11 more"} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	if got := render(t, text(report.Options{Verbose: true}), d); strings.Contains(got, "more, all in") {
		t.Error("a verbose report is capped")
	}
}

// TestDocumentUntouched: rendering and completing share no memory with the
// document in a way that changes it.
func TestDocumentUntouched(t *testing.T) {
	d, want := severalDocument(), severalDocument()
	for _, f := range []form{text(report.Options{}), markdown, html, report.JSON} {
		render(t, f, d)
	}
	if !reflect.DeepEqual(want, d) {
		t.Error("the document was changed")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteError(t *testing.T) {
	for name, f := range map[string]form{"text": text(report.Options{}), "markdown": markdown, "html": html, "json": report.JSON} {
		if err := f(brokenWriter{}, seedDocument()); err == nil || !strings.Contains(err.Error(), "write ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
