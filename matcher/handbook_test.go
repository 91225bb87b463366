package matcher

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const sharedSteps = `remedies:
  - id: magic
    title: Do magic
    when: tried > 1
    set: {--max-num-seqs: "8"}
    why: The long reason.
    costs: The price.
  - id: unused
    title: Not used
    why: Nothing.
do_not:
  curse: {change: curse it, when: free > 2, because: It hears you.}
`

// A page tells a step's condition; the handbook tells a shared step once, and
// in each entry what is the entry's own.
func TestExplainAndHandbook(t *testing.T) {
	entry := func(id, steps string) *fstest.MapFile {
		text := strings.Replace(goodEntry, "id: my-scratch", "id: "+id+"\napplies_when: gpus > 3", 1)
		return &fstest.MapFile{Data: []byte(strings.Replace(text, "remedies:\n", "do_not:\n  - use: curse\nremedies:\n"+steps, 1))}
	}
	cat, err := LoadCatalog(fstest.MapFS{
		"shared.yaml": {Data: []byte(sharedSteps)},
		"one.yaml":    entry("one", "  - use: magic\n"),
		"two.yaml":    entry("two", "  - {use: magic, when: total > 5, why: Its own reason., costs: Its own price.}\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, two, _ := strings.Cut(Handbook(cat), "\n## two\n")
	one := ExplainText(cat, cat.Entry("one"))
	for _, c := range []struct {
		name, text, want string
		times            int
	}{
		{"a page has the shared reason", one, "The long reason.", 1},
		{"and costs", one, "Costs: The price.", 1},
		{"and condition", one, "   Applies when: `tried > 1`", 1},
		{"and a warning's", one, "- curse it: It hears you.\n  Applies when: `free > 2`", 1},
		{"when the code runs", one, "The code runs when: `gpus > 3`", 1},
		{"what a condition's name means", one, "- free: " + vocabulary["free"].doc, 1},
		{"the handbook has the chapter", Handbook(cat), "## Shared steps\n", 1},
		{"and the shared reason once", Handbook(cat), "The long reason.", 1},
		{"the condition once", Handbook(cat), "`tried > 1`", 1},
		{"the warning once", Handbook(cat), "It hears you.", 1},
		{"a heading for each", Handbook(cat), "\n### Shared: magic\n", 1},
		{"a link from each entry", Handbook(cat), "(#shared-magic)", 2},
		{"the entry's own words", two, "   Its own reason. See [magic](#shared-magic).\n   Costs: Its own price.\n   Applies when: `total > 5`\n", 1},
	} {
		if got := strings.Count(c.text, c.want); got != c.times {
			t.Errorf("%s: %q stands there %d times, not %d:\n%s", c.name, c.want, got, c.times, c.text)
		}
	}
}

// Every link of the handbook has its heading.
func TestHandbookLinks(t *testing.T) {
	text := Handbook(embedded(t))
	for _, m := range regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		heading := strings.Replace(m[1], "shared-", "Shared: ", 1)
		if heading == "Shared: steps" {
			heading = "Shared steps"
		}
		if !strings.Contains(text, "# "+heading+"\n") && !strings.Contains(text, "# "+m[1]+"\n") {
			t.Errorf("#%s leads nowhere", m[1])
		}
	}
}

// The reference has every key, name, function and format, and refuses a key
// that nothing is said of.
func TestEntryFormatIsWhole(t *testing.T) {
	source, err := os.ReadFile("entry.go")
	if err != nil {
		t.Fatal(err)
	}
	cat := embedded(t)
	text, err := EntryFormat(cat, source)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, typ := range entryTypes() {
		if typ.Name() != "shared" {
			want = append(want, keysOf(typ)...)
		}
	}
	want = append(want, slices.Collect(maps.Keys(vocabulary))...)
	want = append(want, slices.Collect(maps.Keys(cat.remedies))...)
	want = append(want, slices.Collect(maps.Keys(cat.doNots))...)
	for _, w := range want {
		if !strings.Contains(text, "| `"+w+"` |") {
			t.Errorf("%s is not told of", w)
		}
	}
	names := NamesText()
	for _, list := range []struct{ names []string }{{slices.Collect(maps.Keys(vocabulary))}, {slices.Collect(maps.Keys(functions))}, {slices.Collect(maps.Keys(formats))}} {
		for _, n := range list.names {
			if !strings.Contains(names, n) {
				t.Errorf("%s is not among the names", n)
			}
		}
	}
	if _, err := EntryFormat(cat, []byte("package matcher\n")); err == nil || err.Error() != "Entry.ID has no comment" {
		t.Errorf("%v", err)
	}
	if _, err := EntryFormat(cat, []byte("no Go")); err == nil {
		t.Error("what is no Go is taken")
	}
}
