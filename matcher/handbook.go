package matcher

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"
)

// Handbook gives the whole catalogue as one Markdown document: the text of
// docs/catalogue.md, which is generated and never edited.
func Handbook(c *Catalog) string {
	var b strings.Builder
	b.WriteString("# How a vLLM server runs out of memory, or dies otherwise\n\n")
	b.WriteString("Generated from the entries in `matcher/catalog`; `diagnose explain ID` prints one of them.\n\n")
	byFamily := map[string][]*Entry{}
	for _, e := range c.Entries {
		f := FamilyOf(e.Class)
		if e.Role == "benign" {
			f = "benign"
		}
		byFamily[f] = append(byFamily[f], e)
	}
	families := []struct{ name, title string }{
		{"workspace_driven", "Workspace-driven: scratch that start-up profiling never bounded"},
		{"kv_pressure", "KV pressure"},
		{"capacity", "Capacity: it does not fit at start"},
		{"other_oom", "Other ways to run out of GPU memory"},
		{"host", "Host memory"},
		{"not_oom", "Not out of memory"},
		{"benign", "Looks like a failure and is none"},
	}
	for _, f := range families {
		list := byFamily[f.name]
		if len(list) == 0 {
			continue
		}
		fmt.Fprintf(&b, "## %s\n\n| mechanism | class | what it is |\n|---|---|---|\n", f.title)
		for _, e := range list {
			fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", e.ID, e.ID, e.Class, strings.ReplaceAll(e.Title, "|", "\\|"))
		}
		b.WriteString("\n")
	}
	b.WriteString("The steps that several of them use: [Shared steps](#shared-steps).\n\n")
	pages := []string{sharedChapter(c)}
	for _, e := range c.Entries {
		p := page{figures: map[string]bool{}, chapter: true}
		pages = append(pages, p.entry(c, e))
	}
	for _, text := range pages {
		for _, line := range strings.SplitAfter(text, "\n") {
			// Each page is one level below the document's title.
			if strings.HasPrefix(line, "#") {
				line = "#" + line
			}
			b.WriteString(line)
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// EntryFormat gives the reference for authors of entries, docs/entry-format.md:
// every key with the comment that it has in entry.go, whose text is given, what
// expressions may use, and the shared steps.
func EntryFormat(c *Catalog, source []byte) (string, error) {
	var b strings.Builder
	b.WriteString("# What an entry of the catalogue may say\n\n")
	b.WriteString("Generated from `matcher/entry.go`, `matcher/vocabulary.go` and `matcher/catalog/shared.yaml`; never edited.\n")
	b.WriteString("`diagnose catalog new ID` writes a scaffold, `diagnose catalog test DIR` proves a directory of entries,\n")
	b.WriteString("`diagnose catalog names` prints the names, functions and formats below.\n\n")
	docs, err := fieldDocs(source)
	if err != nil {
		return "", err
	}
	for _, t := range entryTypes() {
		if t == reflect.TypeFor[shared]() {
			continue
		}
		fmt.Fprintf(&b, "## %s\n\n", t.Name())
		b.WriteString(wrap(docs[t.Name()], "", "") + "\n\n| key | value | meaning |\n|---|---|---|\n")
		for i := range t.NumField() {
			f := t.Field(i)
			key := f.Tag.Get("yaml")
			if key == "" {
				continue
			}
			doc := docs[t.Name()+"."+f.Name]
			if doc == "" {
				return "", fmt.Errorf("%s.%s has no comment", t.Name(), f.Name)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, valueWords(f.Type), cell(strings.TrimPrefix(doc, f.Name+" ")))
		}
		b.WriteString("\n")
	}
	b.WriteString("## Words that a key may have\n\n| key | words |\n|---|---|\n")
	for _, w := range []struct {
		key   string
		words []string
	}{
		{"class", classWords()},
		{"role", entryRoles},
		{"scales_with of an entry", entryScales},
		{"scales_with of a demand", demandScales},
		{"on", signatureOns},
		{"oom", signatureOOMs},
		{"phase", signaturePhases},
		{"root", signatureRoots},
		{"state", versionStates},
		{"grade of a statement", statementGrades},
		{"grade of a step", stepGrades},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", w.key, strings.Join(w.words, ", "))
	}
	for _, t := range nameTables() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", t.title, wrap(t.note, "", ""))
		b.WriteString("| name | gives | meaning |\n|---|---|---|\n")
		for _, r := range t.rows {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", cell(r.name), orWords(r.kind, "text"), cell(r.doc))
		}
	}
	b.WriteString("\n## Shared steps\n\nFrom `shared.yaml`, by `use: ID`; what the entry gives itself wins, but for the values.\n\n| id | step | applies when |\n|---|---|---|\n")
	for _, id := range c.sharedOrder {
		r := c.remedies[id]
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", id, cell(r.Title.words(map[string]bool{})), cell(code(r.When)))
	}
	b.WriteString("\n## Shared warnings\n\n| id | what not to do | applies when |\n|---|---|---|\n")
	for _, id := range slices.Sorted(maps.Keys(c.doNots)) {
		d := c.doNots[id]
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", id, cell(d.Change.words(map[string]bool{})), cell(code(d.When)))
	}
	return b.String(), nil
}

// cell makes a text fit into a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// code is a condition as Markdown shows it, empty for none.
func code(c *Condition) string {
	if c == nil {
		return ""
	}
	return "`" + strings.Join(strings.Fields(c.String()), " ") + "`"
}

// fieldDocs gives the comments of a Go file's structs and of their fields, by
// "Type" and "Type.Field".
func fieldDocs(source []byte) (map[string]string, error) {
	file, err := goparser.ParseFile(token.NewFileSet(), "entry.go", source, goparser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("entry format: %w", err)
	}
	docs := map[string]string{}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			ts, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			st, ok := ts.Type.(*ast.StructType)
			if !ok {
				continue
			}
			docs[ts.Name.Name] = strings.Join(strings.Fields(g.Doc.Text()), " ")
			for _, f := range st.Fields.List {
				for _, n := range f.Names {
					docs[ts.Name.Name+"."+n.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
				}
			}
		}
	}
	return docs, nil
}

// valueWords says what stands behind a key.
func valueWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return valueWords(t.Elem())
	case reflect.Slice:
		return "list: " + valueWords(t.Elem())
	case reflect.Map:
		return "mapping: " + valueWords(t.Elem())
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "whole number"
	case reflect.Float64:
		return "number"
	}
	switch t {
	case reflect.TypeFor[Template]():
		return "template"
	case reflect.TypeFor[Condition]():
		return "expression (truth)"
	case reflect.TypeFor[Figure]():
		return "expression"
	case reflect.TypeFor[Pattern]():
		return "regular expression"
	case reflect.TypeFor[VersionSet]():
		return "versions"
	}
	return "[" + t.Name() + "](#" + strings.ToLower(t.Name()) + ")"
}

// Scaffold gives a new entry's file, ready to be filled in.
func Scaffold(id string) string {
	return `id: ` + id + `
class: workspace   # one of: ` + strings.Join(classWords(), ", ") + `
title: one line that a stranger understands

match:
  signatures:
    # Any one of these is enough; all parts of one must hold.
    - frames_any: [name_of_the_function_that_allocates]
      oom: any            # any, numbers, masked, no
      phase: runtime      # startup or runtime; leave out for any
      confidence: 0.9     # high from 0.85, medium from 0.6, low from 0.4

# What one call needs beyond the profile; leave out if no formula is known. tokens
# is the step's size; max_num_batched_tokens is only the flag that bounds it.
# demand:
#   scales_with: max_num_batched_tokens   # or max_num_seqs, with seqs for tokens
#   source: where the formula was read
#   parts:
#     - {name: the tensor, bytes: "tokens * 1024"}

# versions:
#   - {range: "<0.29", state: affected, certainty: how it is known}

summary: Two sentences at most, with figures such as {tried|GiB}.

explain: |
  What happens, for a person who does not know the kernel.

mistaken_for: |
  What it is taken for, and how the two differ.

remedies:
  - use: lower-utilization   # see shared.yaml, or write the step out here

do_not:
  - use: raise-utilization

verify:
  - what to run, and what to read in the log

refs: [vllm#0]

samples:
  - text: |
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] EngineCore encountered a fatal error.
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] Traceback (most recent call last):
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1]   File "a.py", line 1, in name_of_the_function_that_allocates
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 512.00 MiB is free.
  - not: true
    why: which mistake this near miss guards against
    text: |
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] EngineCore encountered a fatal error.
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] Traceback (most recent call last):
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1]   File "a.py", line 1, in name_of_the_function_that_allocates
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] ValueError: not an out-of-memory
`
}

// classes lists the classes of the contract with their families.
var classes = map[string]string{
	"workspace": "workspace_driven", "sampler_logits": "workspace_driven", "multimodal_encoder": "workspace_driven",
	"cudagraph": "workspace_driven", "speculative": "workspace_driven", "lora": "workspace_driven",
	"kv_pressure": "kv_pressure",
	"weights":     "capacity", "profiling": "capacity", "kv_allocation": "capacity",
	"fragmentation": "other_oom", "other_process": "other_oom", "process_limit": "other_oom", "comm_buffers": "other_oom",
	"host_memory":      "host",
	"workspace_locked": "not_oom", "illegal_access": "not_oom", "device_assert": "not_oom", "nccl": "not_oom",
	"hardware": "not_oom", "rpc_timeout": "not_oom", "worker_died": "not_oom", "assertion": "not_oom",
	"software_fault": "not_oom", "config": "not_oom", "dependency": "not_oom",
}

func classWords() []string {
	out := make([]string, 0, len(classes))
	for c := range classes {
		out = append(out, c)
	}
	sort.Strings(out)
	return out
}
