package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"diagnose/matcher"
	"diagnose/parser"
)

// Provenance of a case: what a log's figures and words rest on.
const (
	fromServer = iota
	fromReport
	made
)

const noFailure = "no failure"

// labelledLog is what one log was expected to be and what the program made of it.
type labelledLog struct {
	name, label       string // label is the class, or noFailure
	also              []string
	labelConfidence   string
	provenance        int
	class, confidence string // class is noFailure where nothing failed
	observed          []string
	summary, asks     string
}

// right tells whether the answer is the label or one that is as good.
func (a labelledLog) right() bool {
	switch {
	case a.class == a.label, slices.Contains(a.also, a.class):
		return true
	case a.class == noFailure:
		// Nothing need have failed for a full cache to be what is wrong.
		return a.label == "kv_pressure" && slices.Contains(a.observed, a.label)
	case a.label == "not_oom" || slices.Contains(a.also, "not_oom"):
		return matcher.FamilyOf(a.class) == "not_oom"
	case a.label == "illegal_access" && a.class == "device_assert":
		return true // the finer class of the same fault
	}
	return false
}

// outcome sorts an answer for the summary.
func (a labelledLog) outcome() string {
	switch {
	case a.right():
		return "as labelled"
	case a.class == "unknown":
		return "unknown"
	case a.class == noFailure:
		return "not found"
	}
	return "another class, " + a.confidence
}

var outcomes = []string{"as labelled", "unknown", "not found", "another class, low", "another class, medium", "another class, high"}

// TestConfusion answers every log of the tree and every sample of the
// catalogue, and keeps the table in docs/confusion.md. The bar is over real and
// re-rendered logs: no class but the label's is ever said with high confidence.
func TestConfusion(t *testing.T) {
	all := slices.Concat(labelled(t, "vllm-h200", fromServer), labelled(t, "reports", fromReport), labelled(t, "startup", fromReport),
		labelled(t, "seed", made), labelledSignatures(t), labelledHostile(t), labelledSamples(t))
	sort.SliceStable(all, func(i, j int) bool { return all[i].name < all[j].name })
	for _, a := range all {
		switch {
		case a.provenance == fromServer && !a.right():
			t.Errorf("%s: %s, it was %s", a.name, a.class, a.label)
		case a.provenance == fromReport && !a.right() && a.class != "unknown" && a.confidence == "high":
			t.Errorf("%s: sure of %s, the label is %s (%s)", a.name, a.class, a.label, a.labelConfidence)
		case a.provenance == made && !a.right() && a.class != "unknown" && a.confidence == "high":
			t.Errorf("%s: sure of %s, it was made as %s", a.name, a.class, a.label)
		}
	}
	got := confusionTable(all)
	t.Log("\n" + got[:strings.Index(got, "## By class")])
	written(t, filepath.Join("..", "..", "docs", "confusion.md"), got)
}

// answered runs the program on a log.
func answered(t *testing.T, log string, a labelledLog) labelledLog {
	t.Helper()
	d := call(t, "", "--format", "json", "--no-siblings", log).document(t)
	return a.with(d.Incidents, d.Observations)
}

// with takes in what was found.
func (a labelledLog) with(incidents, observations []matcher.Incident) labelledLog {
	for _, o := range observations {
		a.observed = append(a.observed, o.Verdict.Class)
	}
	a.class = noFailure
	if n := len(incidents); n > 0 {
		in := incidents[n-1]
		a.class, a.confidence, a.summary = in.Verdict.Class, in.Verdict.Confidence, in.Verdict.Summary
		for _, m := range in.Missing {
			if !strings.HasPrefix(m, "the start banner") {
				a.asks = m
				break
			}
		}
	}
	return a
}

func expected(e expectation) labelledLog {
	a := labelledLog{also: e.ClassAlso, labelConfidence: e.LabelConfidence, label: noFailure}
	if e.Class != nil && (e.Incidents == nil || *e.Incidents > 0) {
		a.label = *e.Class
	}
	return a
}

func labelled(t *testing.T, folder string, provenance int) []labelledLog {
	var out []labelledLog
	for log, file := range cases(t, folder) {
		var c struct {
			Expect expectation `json:"expect"`
		}
		readJSON(t, file, &c)
		a := expected(c.Expect)
		a.name, a.provenance = folder+"/"+strings.TrimSuffix(filepath.Base(log), ".log"), provenance
		out = append(out, answered(t, log, a))
	}
	return out
}

func labelledSignatures(t *testing.T) []labelledLog {
	var out []labelledLog
	for log, file := range cases(t, "signatures") {
		var c struct {
			Label *string `json:"label"`
		}
		readJSON(t, file, &c)
		a := labelledLog{name: "signatures/" + strings.TrimSuffix(filepath.Base(log), ".log"), provenance: made, label: "unknown"}
		if c.Label != nil {
			a.label = *c.Label
		}
		a = answered(t, log, a)
		if a.label == "unknown" && a.class == noFailure {
			a.also = []string{noFailure} // a lone line that decides nothing
		}
		out = append(out, a)
	}
	return out
}

func labelledHostile(t *testing.T) []labelledLog {
	folder := filepath.Join(fixtures, "hostile")
	table := map[string]expectation{}
	readJSON(t, filepath.Join(folder, "expect.json"), &table)
	var out []labelledLog
	for name, e := range table {
		if e.Incidents == nil {
			continue // no diagnosis is possible
		}
		a := expected(e)
		a.name, a.provenance = "hostile/"+name, made
		out = append(out, answered(t, filepath.Join(folder, name), a))
	}
	return out
}

// labelledSamples takes the inline samples that prove an entry, without the
// program around the matcher: some are pieces that it would not take for a log. Near misses
// have no class to compare; the catalogue's own test holds them.
func labelledSamples(t *testing.T) []labelledLog {
	cat, err := matcher.EmbeddedCatalog()
	if err != nil {
		t.Fatal(err)
	}
	var out []labelledLog
	for _, e := range cat.Entries {
		for i, s := range e.Samples {
			if s.Text == "" || s.Not || e.Role == "explain" {
				continue
			}
			a := labelledLog{name: fmt.Sprintf("catalogue/%s/%d", e.ID, i+1), provenance: made, label: e.Class}
			switch {
			case e.Role == "benign":
				a.label = noFailure
			case e.Role == "observation":
				a.label, a.also = noFailure, []string{e.Class}
			case s.Expect["class"] != "":
				a.label = s.Expect["class"]
			}
			tr := matcher.NewTracker(cat, matcher.Options{})
			ps := parser.New(tr.Add)
			for n, line := range strings.Split(strings.TrimRight(s.Text, "\n"), "\n") {
				ps.Line(parser.Line{At: parser.Pos{Line: int64(n + 1), Offset: int64(n)}, Data: []byte(line)})
			}
			ps.Flush()
			out = append(out, a.with(tr.Incidents()))
		}
	}
	return out
}

// confusionTable words docs/confusion.md.
func confusionTable(all []labelledLog) string {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# What was expected and what was answered")
	p("")
	p("Every log of `fixtures/` and every inline sample of the catalogue, by what it rests on: **real** servers that were made to fail")
	p("(`fixtures/vllm-h200`); logs **re-rendered** from the facts of public reports (`fixtures/reports`, `fixtures/startup`); **invented** ones")
	p("(`fixtures/seed`, `signatures`, `hostile`, samples of `matcher/catalog`), which test forms and prove nothing about the world.")
	p("Only the first two columns count. The bar: no other class than the label's is ever said with high confidence there.")
	p("")
	p("Generated: `go test ./cmd/diagnose -run TestConfusion -update`. The test fails if this page is stale.")
	p("")
	p("| | real | re-rendered | of these with a label of high or medium confidence | invented |")
	p("|---|---:|---:|---:|---:|")
	count := func(keep func(labelledLog) bool) [4]int {
		var n [4]int
		for _, a := range all {
			if !keep(a) {
				continue
			}
			switch {
			case a.provenance == fromServer:
				n[0]++
			case a.provenance == made:
				n[3]++
			default:
				n[1]++
				if a.labelConfidence != "low" {
					n[2]++
				}
			}
		}
		return n
	}
	row := func(name string, n [4]int) { p("| %s | %d | %d | %d | %d |", name, n[0], n[1], n[2], n[3]) }
	row("logs", count(func(labelledLog) bool { return true }))
	for _, o := range outcomes {
		row(o, count(func(a labelledLog) bool { return a.outcome() == o }))
	}
	p("")
	p("A label of low confidence is a question: there, unknown with the right reasons is right. `not found` is \"no failure found\" although one was reported.")
	p("")
	p("## By class")
	p("")
	p("Rows are pairs of label and answer that occur. The label `not_oom` stands for any class of that family; where a fixture accepts a second class, both are as labelled.")
	p("")
	p("| label | answer | real | re-rendered | invented |")
	p("|---|---|---:|---:|---:|")
	type pair struct{ label, class string }
	pairs := map[pair]*[3]int{}
	for _, a := range all {
		k := pair{a.label, a.class}
		if pairs[k] == nil {
			pairs[k] = &[3]int{}
		}
		pairs[k][a.provenance]++
	}
	keys := make([]pair, 0, len(pairs))
	for k := range pairs {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool {
		a, b := keys[i], keys[j]
		if a.label != b.label {
			return a.label < b.label
		}
		if (a.label == a.class) != (b.label == b.class) {
			return a.label == a.class
		}
		return a.class < b.class
	})
	for _, k := range keys {
		n := pairs[k]
		p("| %s | %s | %s | %s | %s |", k.label, k.class, dot(n[0]), dot(n[1]), dot(n[2]))
	}
	p("")
	p("## Real and re-rendered logs that were not answered as labelled")
	p("")
	p("| log | label | answer | why, or what the answer asks for |")
	p("|---|---|---|---|")
	for _, a := range all {
		if a.provenance == made || a.right() {
			continue
		}
		said := a.class
		if a.confidence != "" && a.class != "unknown" {
			said += " (" + a.confidence + ")"
		}
		p("| %s | %s (%s) | %s | %s |", a.name, a.label, a.labelConfidence, said, reason(a))
	}
	return b.String()
}

// reason says why an answer differs: the note of an open case, or the answer's
// own words.
func reason(a labelledLog) string {
	if note := startupOpen[strings.TrimPrefix(a.name, "startup/")]; note != "" {
		return note
	}
	words := []string{a.summary}
	if a.asks != "" {
		words = append(words, "It asks for "+a.asks+".")
	}
	return strings.ReplaceAll(strings.Join(words, " "), "|", `\|`)
}

func dot(n int) string {
	if n == 0 {
		return "·"
	}
	return fmt.Sprint(n)
}
