package matcher

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// pageWidth is the column at which a page of an entry breaks its lines.
const pageWidth = 100

// ExplainText gives everything an entry knows, as a page for a reader without
// the kernel in mind. It is the source of `diagnose explain` and of the
// handbook. No line is longer than 100 characters, but for one long word.
func ExplainText(c *Catalog, e *Entry) string {
	p := page{figures: map[string]bool{}}
	return p.entry(c, e)
}

// entry writes the whole page.
func (p *page) entry(c *Catalog, e *Entry) string {
	p.line("# " + e.ID)
	p.para(e.Title + ".")
	kind := fmt.Sprintf("Class %s, family %s", e.Class, FamilyOf(e.Class))
	switch e.Role {
	case "benign":
		kind = "Looks like a failure and is none"
	case "observation":
		kind += "; nothing has failed"
	case "explain":
		kind += "; never the answer of a diagnosis, because its details are not verified"
	}
	if len(e.Also) > 0 {
		kind += "; also " + strings.Join(e.Also, ", ")
	}
	p.para(kind + ".")
	p.section("What happens", e.Explain)
	p.section("Mistaken for", e.Mistaken)
	p.signatures(e)
	if e.Applies != nil {
		p.para("The code runs when: " + p.condition(e.Applies))
	}
	p.demand(e.Demand)
	p.versions(e.Versions)
	p.steps(c, e)
	p.list("How to verify", templates(e.Verify))
	var open []Template
	for _, m := range e.Missing {
		open = append(open, m.Say)
	}
	p.list("What would settle an open point", templates(open))
	p.legend()
	if len(e.Refs) > 0 {
		p.section("References", strings.Join(e.Refs, ", "))
	}
	return strings.TrimRight(p.b.String(), "\n") + "\n"
}

// page is one entry's text while it is written.
type page struct {
	b strings.Builder
	// figures are the names that the texts use for figures of a run.
	figures map[string]bool
	// chapter: the shared steps stand in a chapter of their own.
	chapter bool
}

// condition shows an expression that decides whether something is printed.
func (p *page) condition(c *Condition) string {
	for _, n := range c.Names() {
		p.figures[n] = true
	}
	return code(c)
}

func (p *page) line(s string) { p.b.WriteString(s + "\n\n") }

func (p *page) para(text string) { p.line(wrap(text, "", "")) }

// section writes a heading and its paragraphs, which an empty line parts.
func (p *page) section(title, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	p.line("## " + title)
	for _, para := range strings.Split(strings.TrimSpace(text), "\n\n") {
		p.para(para)
	}
}

// item writes a list's item; what follows hangs below its text.
func (p *page) item(mark, text string) {
	p.b.WriteString(wrap(text, mark, strings.Repeat(" ", len(mark))) + "\n")
}

type worded interface {
	words(figures map[string]bool) string
}

func templates(list []Template) []worded {
	var out []worded
	for _, t := range list {
		out = append(out, t)
	}
	return out
}

func (p *page) list(title string, list []worded) {
	if len(list) == 0 {
		return
	}
	p.line("## " + title)
	for _, t := range list {
		p.item("- ", t.words(p.figures))
	}
	p.b.WriteString("\n")
}

// words gives the template for a reader: a figure of the run is its expression
// in braces, without the format; what is optional stands there like the rest.
func (t Template) words(figures map[string]bool) string {
	var b strings.Builder
	partWords(&b, t.parts, figures)
	return strings.Join(strings.Fields(b.String()), " ")
}

func partWords(b *strings.Builder, parts []part, figures map[string]bool) {
	for _, p := range parts {
		switch {
		case p.group != nil:
			partWords(b, p.group, figures)
		case p.expr != nil:
			for _, n := range p.expr.Names() {
				figures[n] = true
			}
			b.WriteString("{" + p.expr.String() + "}")
		default:
			b.WriteString(p.text)
		}
	}
}

// legend says what the names in braces stand for.
func (p *page) legend() {
	var names, printed []string
	for n := range p.figures {
		w, known := vocabulary[n]
		switch {
		case known && w.doc == capturedDoc:
			printed = append(printed, n)
		case known:
			names = append(names, n)
		}
	}
	if len(names)+len(printed) == 0 {
		return
	}
	sort.Strings(names)
	sort.Strings(printed)
	p.line("## Names in braces and conditions: figures of the run")
	for _, n := range names {
		p.item("- ", n+": "+vocabulary[n].doc)
	}
	if len(printed) > 0 {
		p.item("- ", strings.Join(printed, ", ")+": as the message itself prints")
	}
	p.b.WriteString("\n")
}

// capturedDoc is the vocabulary's word for what a signature's pattern gives.
const capturedDoc = "captured from the matched text"

// oomWords says what a signature asks of the exception.
var oomWords = map[string]string{
	"any":     "an out-of-memory error",
	"numbers": "an out-of-memory error with figures",
	"masked":  "an out-of-memory error whose text hides it",
	"no":      "no out-of-memory error",
	"cut":     "a traceback that stops before its exception",
}

// onWords says where a signature's text may stand.
var onWords = map[string]string{
	"line":   "a log line without an exception",
	"raw":    "a raw line of a library",
	"kernel": "a line of the kernel log",
	"any":    "any line or exception",
}

func (p *page) signatures(e *Entry) {
	if len(e.Match.Signatures) == 0 {
		return
	}
	p.line("## How it is recognised")
	said := map[string]bool{}
	for i := range e.Match.Signatures {
		if s := e.Match.Signatures[i].words(); !said[s] {
			said[s] = true
			p.item("- ", s)
		}
	}
	for _, v := range e.Match.Vetoes {
		p.item("- ", fmt.Sprintf("not if %s: %s", v.When.String(), v.Because))
	}
	p.b.WriteString("\n")
}

// words describes a signature in one sentence.
func (s *Signature) words() string {
	var parts []string
	add := func(label string, list []string) {
		if len(list) > 0 {
			parts = append(parts, label+" `"+strings.Join(list, "`, `")+"`")
		}
	}
	if w := oomWords[s.OOM]; w != "" {
		parts = append(parts, w)
	} else if len(s.Forms) > 0 {
		parts = append(parts, oomWords["any"])
	} else if w := onWords[s.On]; w != "" {
		parts = append(parts, w)
	}
	add("of the form", s.Forms)
	add("exception", s.Exceptions)
	if len(s.Texts) > 1 {
		add("one of the texts", s.Texts)
	} else {
		add("text", s.Texts)
	}
	add("all of the texts", s.TextsAll)
	add("a frame of", s.FramesAny)
	add("all frames of", s.FramesAll)
	add("no frame of", s.FramesNone)
	if s.Phase != "" {
		parts = append(parts, "at "+s.Phase)
	}
	if s.MinCount > 1 {
		parts = append(parts, fmt.Sprintf("%d times or more", s.MinCount))
	}
	if s.Requires != nil {
		parts = append(parts, "only if "+s.Requires.String())
	}
	sure := "confidence " + confidenceWord(s.Confidence)
	if s.Confidence < lowFrom {
		sure = "proves the failure, not its cause"
	}
	return strings.Join(parts, "; ") + " (" + sure + ")"
}

func (p *page) demand(d *Demand) {
	if d == nil {
		return
	}
	p.line("## What one call needs beyond the profile")
	for _, part := range d.Parts {
		p.item("- ", fmt.Sprintf("%s: %s bytes", part.Name, part.Bytes.String()))
	}
	p.b.WriteString("\n")
	if d.Source != "" {
		p.para("Source: " + d.Source)
	}
	for _, c := range d.Coincidences {
		p.para("Beware: " + c)
	}
}

func (p *page) versions(list []VersionState) {
	if len(list) == 0 {
		return
	}
	p.line("## Versions")
	for _, v := range list {
		by := ""
		if v.By != "" {
			by = " (" + v.By + ")"
		}
		p.item("- ", fmt.Sprintf("`%s`: %s%s; %s", v.Range.Text, v.State, by, v.Certainty))
	}
	p.item("- ", "any other release: not known")
	p.b.WriteString("\n")
}

func (p *page) steps(c *Catalog, e *Entry) {
	if len(e.Remedies) > 0 {
		p.line("## What to do, in this order")
		p.para("A diagnosis prints the steps that apply to the run, with the values filled in.")
	}
	number, last, indent := 0, "", ""
	for _, spec := range e.Remedies {
		r := c.remedy(spec)
		title := strings.Join(append([]string{r.Title.words(p.figures)}, p.settings(r)...), "; ")
		if title == last {
			// The same step from other figures: where the failure has none.
			p.below(fmt.Sprintf("In another case [%s]: %s", gradeWords(r), p.why(spec, r)), indent)
			p.stepRest(spec, r, indent, true)
			continue
		}
		number, last = number+1, title
		mark := fmt.Sprintf("%d. ", number)
		indent = strings.Repeat(" ", len(mark))
		p.item(mark, fmt.Sprintf("%s [%s]", title, gradeWords(r)))
		p.below(p.why(spec, r), indent)
		p.stepRest(spec, r, indent, false)
	}
	if len(e.Remedies) > 0 {
		p.b.WriteString("\n")
	}
	if len(e.DoNot) > 0 {
		p.line("## What not to do")
		for _, spec := range e.DoNot {
			d := c.doNot(spec)
			because := d.Because
			if p.chapter && spec.Use != "" {
				because = spec.Because
			}
			text := d.Change.words(p.figures)
			if said := because.words(p.figures); said != "" {
				text += ": " + said
			}
			if p.chapter && spec.Use != "" {
				text += " (see " + anchor(spec.Use) + ")"
			}
			p.item("- ", text)
			p.applies(spec.Use, spec.When, d.When, "  ")
		}
		p.b.WriteString("\n")
	}
}

// below writes a text under a list's item, if there is one.
func (p *page) below(text, indent string) {
	if text != "" {
		p.b.WriteString(wrap(text, indent, indent) + "\n")
	}
}

// anchor is a link to a shared step or warning.
func anchor(id string) string { return "[" + id + "](#shared-" + id + ")" }

// why gives a step's reason; where the shared steps have a chapter, the entry's
// own words and the way there.
func (p *page) why(spec, r RemedySpec) string {
	if p.chapter && spec.Use != "" {
		return strings.TrimSpace(spec.Why.words(p.figures) + " See " + anchor(spec.Use) + ".")
	}
	return r.Why.words(p.figures)
}

// stepRest writes what a step costs and when it applies. Of a step that was
// told before in another form the costs are known.
func (p *page) stepRest(spec, r RemedySpec, indent string, again bool) {
	costs := r.Costs
	if p.chapter && spec.Use != "" {
		costs = spec.Costs
	}
	if text := costs.words(p.figures); text != "" && !again {
		p.below("Costs: "+text, indent)
	}
	p.applies(spec.Use, spec.When, r.When, indent)
}

// applies writes a step's condition; that of a shared step stands in the
// chapter, if there is one, unless the entry has its own.
func (p *page) applies(use string, own, when *Condition, indent string) {
	if p.chapter && use != "" {
		when = own
	}
	if when != nil {
		p.below("Applies when: "+p.condition(when), indent)
	}
}

// sharedChapter tells each step and warning that several entries use, once.
func sharedChapter(c *Catalog) string {
	p := page{figures: map[string]bool{}}
	p.line("# Shared steps")
	p.para("Steps and warnings that several mechanisms use. An entry that gives its own condition, reason or costs says so itself; the values stay these.")
	for _, id := range c.sharedOrder {
		r := c.remedies[id]
		p.line("## Shared: " + id)
		p.para(strings.Join(append([]string{r.Title.words(p.figures)}, p.settings(r)...), "; ") + " [" + gradeWords(r) + "]")
		p.para(r.Why.words(p.figures))
		for _, t := range []struct{ label, text string }{{"Costs: ", r.Costs.words(p.figures)}, {"Applies when: ", code(r.When)}, {"References: ", strings.Join(r.Refs, ", ")}} {
			if t.text != "" {
				p.para(t.label + t.text)
			}
		}
		if r.When != nil {
			p.condition(r.When)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.doNots)) {
		d := c.doNots[id]
		p.line("## Shared: " + id)
		p.para("Do not " + d.Change.words(p.figures) + ": " + d.Because.words(p.figures))
		if d.When != nil {
			p.para("Applies when: " + p.condition(d.When))
		}
	}
	p.legend()
	return p.b.String()
}

// gradeWords says how sure a step is.
func gradeWords(r RemedySpec) string {
	return strings.ReplaceAll(orWords(r.Grade, "inferred"), "_", " ")
}

// settings lists what a step changes.
func (p *page) settings(r RemedySpec) []string {
	var out []string
	for flag, fig := range r.Set {
		for _, n := range fig.Names() {
			p.figures[n] = true
		}
		value := strings.Trim(fig.String(), `"`)
		if len(fig.Names()) > 0 {
			value = "{" + value + "}"
		}
		switch name, env := strings.CutPrefix(flag, "env:"); {
		case env:
			out = append(out, fmt.Sprintf("`%s=%s` in the environment", name, value))
		case value == "":
			out = append(out, "`"+flag+"`")
		default:
			out = append(out, fmt.Sprintf("`%s` = %s", flag, value))
		}
	}
	for _, flag := range r.Unset {
		out = append(out, "unset `"+strings.TrimPrefix(flag, "env:")+"`")
	}
	sortStrings(out)
	if r.UpgradeTo != "" {
		out = append(out, "vLLM "+r.UpgradeTo)
	}
	return out
}

// wrap breaks a text into lines, the first behind mark, the others behind
// indent. It never begins a line with what Markdown takes for a list or a
// heading: such a word stays with the one before it.
func wrap(text, mark, indent string) string {
	var b strings.Builder
	column := 0
	words := strings.Fields(text)
	for i := 0; i < len(words); {
		unit := words[i]
		for i++; i < len(words) && beginsBlock(words[i]); i++ {
			unit += " " + words[i]
		}
		n := len([]rune(unit))
		switch {
		case column == 0:
			b.WriteString(mark + unit)
			column = len(mark) + n
		case column+1+n > pageWidth:
			b.WriteString("\n" + indent + unit)
			column = len(indent) + n
		default:
			b.WriteString(" " + unit)
			column += 1 + n
		}
	}
	return b.String()
}

func beginsBlock(word string) bool {
	if strings.ContainsAny(word[:1], "#>|=") || word == "-" || word == "+" || word == "*" {
		return true
	}
	digits := strings.TrimLeft(word, "0123456789")
	return digits != word && (digits == "." || digits == ")")
}
