package matcher

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hashicorp/go-multierror"
)

// Each fault is refused when the entry is loaded, with the line of the value.
func TestEntryFaults(t *testing.T) {
	demand := func(scales, bytes string) string {
		return "demand:\n  scales_with: " + scales + "\n  parts:\n    - name: scratch\n      bytes: " + bytes + "\nsummary:"
	}
	const step = "{title: lower it, set: {--max-num-batched-tokens: tokens_fit_pinned}, grade: computed}"
	const signature = "      confidence: 0.9"
	for _, c := range []struct{ name, from, to, want string }{
		{"the flag instead of the step", "summary:", demand("max_num_batched_tokens", `"max_num_batched_tokens * 8 * 64 * 4"`), `:13: part "scratch" does not depend on tokens; write tokens (the step's size), not max_num_batched_tokens (the flag)`},
		{"a constant part", "summary:", demand("max_num_batched_tokens", `"4 * MiB"`), `:13: part "scratch" does not depend on tokens`},
		{"tokens for sequences", "summary:", demand("max_num_seqs", `"tokens * 4"`), `:13: part "scratch" does not depend on seqs; write seqs (the step's sequences), not max_num_seqs (the flag)`},
		{"a demand that scales with something", "summary:", demand("max_model_len", `"tokens * 4"`), `:10: scales_with "max_model_len" is none of max_num_batched_tokens, max_num_seqs`},
		{"a demand of nothing", "summary:", "demand: {parts: []}\nsummary:", `:9: demand has no part`},
		{"scales_with", "summary:", "scales_with: tokens\nsummary:", `:9: scales_with "tokens" is none of max_num_batched_tokens, max_num_seqs, none`},
		{"the grade of a step", "grade: computed", "grade: compted", `:12: grade "compted" is none of computed, upstream_fix, field_report, inferred; did you mean computed?`},
		{"the grade of a statement", "summary:", "evidence:\n  - say: so\n    grade: sure\nsummary:", `:11: grade "sure" is none of established, computed, inferred`},
		{"a setting without dashes", "--max-num-batched-tokens:", "max-num-batched-tokens:", `:12: set: "max-num-batched-tokens" is neither a flag nor a variable; write --flag or env:NAME`},
		{"a setting that unsets", "--max-num-batched-tokens:", `"unset:--max-num-batched-tokens":`, `what a step takes away stands in unset, beside set`},
		{"an unset without dashes", step, "{title: t, unset: [block-size]}", `:12: unset: "block-size" is neither a flag nor a variable`},
		{"a step of nothing", step, "{why: it helps}", `:12: step 1 has neither use nor title`},
		{"a near miss without why", "why: another error, ", "", `:19: sample 2: a near miss says in why which mistake it guards against`},
		{"an open group", "{tried|GiB}.", "[[{tried|GiB}.", `:9: template: [[ without ]]`},
		{"a closed group", "{tried|GiB}.", "{tried|GiB}]].", `:9: template: ]] without [[`},
		{"a group closed behind", "{tried|GiB}.", "[[{tried|GiB}]] at most]].", `:9: template: ]] without [[`},
		{"a group in a group", "{tried|GiB}.", "[[a [[{tried|GiB}]]]].", `:9: template: [[ within [[ ]]`},
		{"the phase of a signature", signature, signature + "\n      phase: boot", `:9: signature 1: phase "boot" is none of startup, runtime, shutdown`},
		{"oom of a signature", "oom: any", "oom: yes", `:7: signature 1: oom "yes" is none of any, numbers, masked, no, cut`},
		{"on of a signature", signature, signature + "\n      on: lines", `:9: signature 1: on "lines" is none of exception, line, raw, kernel, any; did you mean line?`},
		{"root of a signature", signature, signature + "\n      root: last", `:9: signature 1: root "last" is none of first, matched`},
		{"a division by zero", "tokens_fit_pinned", "tokens_fit_pinned / 0", `a division by zero`},
		{"a division by a sum that is zero", "tokens_fit_pinned", "tokens_fit_pinned / (2 * 3 - 6)", `a division by zero`},
		{"an id in capitals", "id: my-scratch", "id: My-Scratch", `:1: id "My-Scratch" is not lower-case words joined by hyphens`},
		{"a role", "class:", "role: failur\nclass:", `:2: role "failur" is none of failure, observation, benign, explain; did you mean failure?`},
		{"a state", "summary:", "versions:\n  - range: <0.29\n    state: broken\nsummary:", `:11: versions 1: state "broken" is neither affected nor fixed`},
		{"a shared warning that is none", "samples:", "do_not:\n  - use: magic\nsamples:", `:14: do_not "magic" is not in shared.yaml`},
		{"a key that is misspelt", "explain:", "mistakn_for: x\nexplain:", `:10: unknown key "mistakn_for"; did you mean mistaken_for?`},
		{"a key of a signature", "frames_any:", "frame_any:", `:6: unknown key "frame_any"; did you mean frames_any?`},
		{"a key like none", "explain:", "zzzzzz: x\nexplain:", `:10: unknown key "zzzzzz"`},
		{"a list for a text", "explain: It happens.", "explain: [a]", `:10: a list is not a text`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(goodEntry, c.from) {
				t.Fatalf("nothing to replace: %q", c.from)
			}
			_, err := LoadCatalog(fstest.MapFS{"my-scratch.yaml": {Data: []byte(strings.Replace(goodEntry, c.from, c.to, 1))}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nexpected %s", err, c.want)
			}
		})
	}
}

// What looks like a fault and is none.
func TestEntryIsSound(t *testing.T) {
	for _, c := range []struct{ name, file, from, to string }{
		{"a formula", "my-scratch", "summary:", "demand:\n  parts:\n    - {name: a, bytes: \"2 * (tokens + 1)\"}\nsummary:"},
		{"a formula of sequences", "my-scratch", "summary:", "demand:\n  scales_with: max_num_seqs\n  parts:\n    - {name: a, bytes: \"seqs * max_model_len\"}\nsummary:"},
		{"an id of one word", "scratch", "id: my-scratch", "id: scratch"},
		{"a variable", "my-scratch", "--max-num-batched-tokens: tokens_fit_pinned", "env:NCCL_DEBUG: '\"INFO\"'"},
		{"a name of its own", "my-scratch", "class:", "also: [C99, my-scratch]\nclass:"},
		{"a division by what may be zero", "my-scratch", "tokens_fit_pinned", "tokens_fit_pinned / tensor_parallel_size"},
		{"two groups", "my-scratch", "{tried|GiB}.", "[[{tried|GiB}]] and [[{free|GiB}]]."},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := LoadCatalog(fstest.MapFS{c.file + ".yaml": {Data: []byte(strings.Replace(goodEntry, c.from, c.to, 1))}}); err != nil {
				t.Error(err)
			}
		})
	}
}

// Another name may not be the id of another entry: it would be for two.
func TestAlsoIsNoOthersID(t *testing.T) {
	cat, err := LoadCatalog(fstest.MapFS{
		"my-scratch.yaml": {Data: []byte(goodEntry)},
		"other.yaml":      {Data: []byte(strings.Replace(goodEntry, "id: my-scratch", "id: other\nalso: [X1, My-Scratch]", 1))},
	})
	if err == nil || err.Error() != `other.yaml:2: also: "My-Scratch" is the id of my-scratch.yaml` {
		t.Errorf("%v", err)
	}
	if len(cat.Entries) != 1 || cat.Entry("my-scratch") == nil {
		t.Errorf("%d entries", len(cat.Entries))
	}
}

// A directory of one's own: what is wrong with it is told with the full path,
// and the entry that a refused one would replace stays.
func TestOverlayDirectory(t *testing.T) {
	base := fstest.MapFS{"my-scratch.yaml": {Data: []byte(goodEntry)}}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(dir string) (*Catalog, []string) {
		t.Helper()
		cat, err := LoadCatalog(base, os.DirFS(dir))
		var lines []string
		if many, ok := err.(*multierror.Error); ok {
			for _, e := range many.Errors {
				lines = append(lines, e.Error())
			}
		} else if err != nil {
			t.Errorf("one error instead of a list: %v", err)
		}
		if cat.Entry("my-scratch") == nil {
			t.Error("the shipped entry is gone")
		}
		return cat, lines
	}
	expect := func(got []string, want ...string) {
		t.Helper()
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%q\nexpected %q", got, want)
		}
	}
	_, got := load(dir)
	expect(got, "no *.yaml in "+dir)
	_, got = load(dir + "/none")
	expect(got, dir+"/none does not exist")
	write("a.yml", goodEntry)
	_, got = load(dir)
	expect(got, dir+"/a.yml is not read; name it a.yaml")
	_, got = load(dir + "/a.yml")
	expect(got, dir+"/a.yml is a file; give the directory")
	write("my-scratch.yaml", strings.Replace(goodEntry, "remedies:", "remedies:\n  - use: magic", 1))
	write("bad.yaml", "id: bad\nclas: x\n")
	cat, got := load(dir)
	expect(got, dir+"/a.yml is not read; name it a.yaml",
		dir+`/bad.yaml:2: unknown key "clas"; did you mean class?`,
		dir+`/my-scratch.yaml:12: remedy "magic" is not in shared.yaml`)
	if cat.Overlaid() != 0 || len(cat.Clashes) != 0 {
		t.Errorf("%d entries of the overlay, clashes %v", cat.Overlaid(), cat.Clashes)
	}
	write("shared.yaml", "remedies:\n  - id: magic\n    title: t\n    grade: sure\n")
	_, got = load(dir)
	expect(got[2:], dir+`/shared.yaml:4: grade "sure" is none of computed, upstream_fix, field_report, inferred`,
		dir+`/my-scratch.yaml:12: remedy "magic" is not in shared.yaml`)
}
