package matcher

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestShippedCatalog loads everything that ships and proves every sample.
func TestShippedCatalog(t *testing.T) {
	cat := embedded(t)
	if len(cat.Entries) < 80 {
		t.Errorf("%d entries", len(cat.Entries))
	}
	if _, err := cat.TestSamples(); err != nil {
		t.Error(err)
	}
	for _, e := range cat.Entries {
		if text := ExplainText(cat, e); !strings.Contains(text, e.ID) || strings.Contains(text, "%!") {
			t.Errorf("%s: bad explanation", e.ID)
		}
	}
}

const goodEntry = `id: my-scratch
class: workspace
title: scratch of my kernel
match:
  signatures:
    - frames_any: [my_kernel]
      oom: any
      confidence: 0.9
summary: It asked for {tried|GiB}.
explain: It happens.
remedies:
  - {title: lower it, set: {--max-num-batched-tokens: tokens_fit_pinned}, grade: computed}
samples:
  - text: |
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] EngineCore encountered a fatal error.
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] Traceback (most recent call last):
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1]   File "a.py", line 1, in my_kernel
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.
  - {not: true, why: another error, text: "ValueError: no"}
`

func TestCatalogErrorsNameFileAndLine(t *testing.T) {
	for _, c := range []struct{ name, file, from, to, want string }{
		{"an unknown key", "my-scratch.yaml", "title:", "titel: x\ntitle:", "my-scratch.yaml:3: unknown key \"titel\"; did you mean title?"},
		{"a wrong type", "my-scratch.yaml", "confidence: 0.9", "confidence: much", "my-scratch.yaml:8: \"much\" is not a number"},
		{"a bad expression", "my-scratch.yaml", "tokens_fit_pinned", "tokens_fit_pined", "my-scratch.yaml:12: expression \"tokens_fit_pined\": unknown name"},
		{"a bad template", "my-scratch.yaml", "{tried|GiB}", "{tried|GB}", "my-scratch.yaml:9: template: unknown format"},
		{"a class that is none", "my-scratch.yaml", "class: workspace", "class: workplace", `my-scratch.yaml:2: class "workplace" is not one of the classes`},
		{"an id that is not the file's", "other.yaml", "", "", `other.yaml:1: id "my-scratch" does not name the file`},
		{"no near miss", "my-scratch.yaml", "not: true, why: another error, ", "", "a near miss that does not are needed"},
		{"not YAML", "my-scratch.yaml", "match:", "match: [", "my-scratch.yaml:"},
		{"an impossible confidence", "my-scratch.yaml", "confidence: 0.9", "confidence: 9", "confidence 9 is not in (0, 1]"},
		{"a shared step that is none", "my-scratch.yaml", "{title: lower it, set: {--max-num-batched-tokens: tokens_fit_pinned}, grade: computed}", "{use: magic}", `remedy "magic" is not in shared.yaml`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := goodEntry
			if c.from != "" {
				text = strings.Replace(goodEntry, c.from, c.to, 1)
			}
			_, err := LoadCatalog(fstest.MapFS{c.file: {Data: []byte(text)}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nexpected %q", err, c.want)
			}
		})
	}
}

// A bad overlay is refused with its line, and what is sound is used.
func TestOverlays(t *testing.T) {
	base := fstest.MapFS{"my-scratch.yaml": {Data: []byte(goodEntry)}}
	over := fstest.MapFS{
		"my-scratch.yaml": {Data: []byte(strings.Replace(goodEntry, "title: scratch of my kernel", "title: the site's own words", 1))},
		"broken-one.yaml": {Data: []byte("id: broken-one\nnonsense: 1\n")},
	}
	cat, err := LoadCatalog(base, over)
	if err == nil || !strings.Contains(err.Error(), "broken-one.yaml:2: unknown key \"nonsense\"") {
		t.Errorf("error %v", err)
	}
	if len(cat.Entries) != 1 || cat.Entries[0].Title != "the site's own words" {
		t.Errorf("the later entry does not win: %+v", cat.Entries)
	}
	if len(cat.Clashes) != 1 || cat.Clashes[0] != "my-scratch" {
		t.Errorf("clashes %v", cat.Clashes)
	}
	if cat.Overlaid() != 1 {
		t.Errorf("%d entries of the overlay", cat.Overlaid())
	}
}

// A scaffold is refused while its placeholders stand, each with its line, and
// passes with nothing else replaced, so that an author begins close to green.
func TestScaffold(t *testing.T) {
	load := func(text string) (*Catalog, error) {
		return LoadCatalog(fstest.MapFS{
			"shared.yaml":    {Data: []byte("remedies:\n  - {id: lower-utilization, title: t, set: {--gpu-memory-utilization: util_fit}}\ndo_not:\n  raise-utilization: {change: c, because: b}\n")},
			"new-thing.yaml": {Data: []byte(text)},
		})
	}
	text := Scaffold("new-thing")
	for _, w := range scaffoldWords {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), "is the scaffold's placeholder: "+w.want) {
			t.Errorf("%q is not refused: %v", w.text, err)
		}
		filled := map[string]string{"title: one line that a stranger understands": "title: scratch", "vllm#0]": "vllm#1]"}[w.text]
		if filled == "" {
			filled = "my_kernel"
		}
		text = strings.ReplaceAll(text, w.text, filled)
	}
	cat, err := load(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cat.TestSamples(); err != nil {
		t.Error(err)
	}
	// The formula that is offered in a comment holds as well.
	text = strings.NewReplacer("# demand:", "demand:", "#   scales", "  scales", "#   source", "  source", "#   parts", "  parts", "#     - {name", "    - {name").Replace(text)
	if _, err := load(text); err != nil || !strings.Contains(text, "\n    - {name: the tensor") {
		t.Errorf("%v\n%s", err, text)
	}
}

// Hostile logs must not bring the tracker down, and a diagnosis must come out
// whatever they hold.
func FuzzTracker(f *testing.F) {
	f.Add("(EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] EngineCore encountered a fatal error.\n(EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.")
	f.Add("CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:163\nRuntimeError: x")
	f.Add(goodEntry)
	cat, err := EmbeddedCatalog()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, log string) {
		a, _ := diagnoseText(t, cat, []byte(log), Options{})
		b, _ := diagnoseText(t, cat, []byte(log), Options{})
		if len(a) != len(b) {
			t.Fatalf("the same bytes give %d and %d incidents", len(a), len(b))
		}
		for i := range a {
			if a[i].ID != b[i].ID {
				t.Fatalf("the same bytes give ids %s and %s", a[i].ID, b[i].ID)
			}
		}
	})
}
