package report

import (
	"strconv"
	"strings"

	"diagnose/matcher"
)

// Options shape a report for a reader.
type Options struct {
	// Width is the number of columns of a text; 80 if zero, at least 40.
	Width int
	// Color allows the eight basic colours in a text.
	Color bool
	// Verbose shows every list in full.
	Verbose bool
	// Names are display names of the inputs, by index; see NamesOf.
	Names []string
	// Titles are the catalogue's titles by mechanism id. A mechanism that is
	// not among them is shown by its id.
	Titles map[string]string
}

// page is a document as every form shows it: safe strings in reading order.
// Text, Markdown and HTML differ only in how they lay it out.
type page struct {
	Incidents []section
	Notes     []section
	// Read says what was read, where nothing was found.
	Read []string
	Foot []string
}

// section is one incident, or one observation.
type section struct {
	ID       string
	Headline string
	Unknown  bool
	// Meta are facts of a few words each.
	Meta    []string
	Quote   quote
	Summary string
	// First is the step to take first, Further are the others.
	First, Further     []step
	DoNot              []reason
	Why, RuledOut      []statement
	Worse              []statement
	Numbers            []table
	Ranks              []string
	Load               string
	Consequences       []string
	After              []string
	Verify, Missing    []string
	References         []string
	MoreSteps, MoreNot string
}

// quote is the line of the log that carries the cause.
type quote struct {
	Ref string
	// Gutter is the line's number, empty where it is not known.
	Gutter string
	// Lines are the text's own lines, whole; Brief says to show the start.
	Lines []string
	Brief bool
	Frame string
	Who   string
}

// step is one remedy.
type step struct {
	N       string
	Title   string
	Grade   string
	Command []string
	Sizes   string
	Also    []string // what a command line cannot say: to remove, to install
	Why     string
	Expect  string
	Costs   string
	Refs    string
	Compact bool // reasons in one paragraph
}

// reason is a change and why it is no good.
type reason struct{ What, Because string }

// statement is one piece of evidence. Tag holds grade and lines.
type statement struct{ Lead, Text, Formula, Tag string }

// table is a block of numbers of one GPU.
type table struct {
	Title string
	Ref   string
	Rows  []row
}

// row is one number. Ref is empty where the table's holds.
type row struct {
	Label, Value, Grade, Ref string
	Part                     bool // a part of the row above
}

// The limits of a report that is not verbose.
const (
	maxFullSteps  = 3
	maxSteps      = 8
	maxDoNot      = 6
	maxEvidence   = 12
	maxStatements = 8
	maxRanks      = 8
	maxLines      = 10
)

// viewer makes a page of a document.
type viewer struct {
	o     Options
	names Names
	limit func(n, max int) int
}

func newPage(d matcher.Document, o Options) page {
	v := viewer{o: o, names: NamesOf(d, o.Names), limit: func(n, max int) int { return min(n, max) }}
	if o.Verbose {
		v.limit = func(n, _ int) int { return n }
	}
	var p page
	for _, i := range d.Incidents {
		p.Incidents = append(p.Incidents, v.section(i, false))
	}
	for _, i := range d.Observations {
		p.Notes = append(p.Notes, v.section(i, true))
	}
	p.Foot = v.foot(d)
	if len(d.Incidents) == 0 {
		p.Read = v.read(d)
	}
	return p
}

func (v viewer) section(i matcher.Incident, note bool) section {
	title := ""
	if i.Verdict.Mechanism != nil {
		title = v.o.Titles[*i.Verdict.Mechanism]
	}
	s := section{
		ID:       prose(i.ID),
		Headline: Headline(i, title),
		Unknown:  i.Verdict.Family == "unknown",
		Meta:     v.meta(i, title, note),
		Quote:    v.quote(i),
		Summary:  prose(i.Verdict.Summary),
		Load:     v.load(i.KVCache),
		After:    v.after(i),
	}
	if note {
		// Nothing has failed, so no word of an error.
		s.Headline = title
		if s.Headline == "" && i.Verdict.Mechanism != nil {
			s.Headline = *i.Verdict.Mechanism
		}
		s.Headline = prose(s.Headline)
		if s.Headline == "" {
			s.Headline = className(i.Verdict.Class)
		}
	}
	v.steps(&s, i)
	for _, n := range i.DoNot[:v.limit(len(i.DoNot), maxDoNot)] {
		s.DoNot = append(s.DoNot, reason{prose(n.Change), prose(n.Because)})
	}
	s.MoreNot = more(len(i.DoNot) - len(s.DoNot))
	for _, e := range i.Evidence[:v.limit(len(i.Evidence), maxEvidence)] {
		st := statement{Text: prose(e.Statement), Tag: v.tag(string(e.Grade), e.At)}
		if e.Formula != nil {
			st.Formula = prose(*e.Formula)
		}
		s.Why = append(s.Why, st)
	}
	addMore(&s.Why, len(i.Evidence))
	for _, r := range i.RuledOut[:v.limit(len(i.RuledOut), maxStatements)] {
		s.RuledOut = append(s.RuledOut, statement{Lead: className(r.Class), Text: prose(r.Because), Tag: v.tag("", r.At)})
	}
	addMore(&s.RuledOut, len(i.RuledOut))
	for _, c := range i.Contributing[:v.limit(len(i.Contributing), maxStatements)] {
		s.Worse = append(s.Worse, statement{Lead: className(c.Class), Text: prose(c.Statement), Tag: v.tag("", c.At)})
	}
	addMore(&s.Worse, len(i.Contributing))
	v.numbers(&s, i)
	for _, c := range i.Consequences[:v.limit(len(i.Consequences), maxLines)] {
		s.Consequences = append(s.Consequences, v.consequence(c))
	}
	if n := more(len(i.Consequences) - len(s.Consequences)); n != "" {
		s.Consequences = append(s.Consequences, n)
	}
	s.Verify = v.sentences(i.Verify)
	s.Missing = v.sentences(i.Missing)
	s.References = v.sentences(i.References)
	return s
}

// meta are the facts that stand under the headline.
func (v viewer) meta(i matcher.Incident, title string, note bool) []string {
	var m []string
	if n := len(i.Ranks); n > 0 && !note {
		m = append(m, counted(n, "rank")+", one incident")
	}
	if p := phaseName(i.Phase); p != "" {
		m = append(m, p)
	}
	if i.Verdict.Class != "" {
		m = append(m, "class "+prose(i.Verdict.Class))
	}
	if title != "" {
		m = append(m, "mechanism "+prose(*i.Verdict.Mechanism))
	}
	if i.Verdict.Confidence != "" {
		m = append(m, "confidence "+prose(i.Verdict.Confidence))
	}
	if i.Engine.Version != nil {
		m = append(m, engineName(i.Engine.Name)+" "+prose(*i.Engine.Version))
	}
	if i.Engine.Model != nil {
		m = append(m, prose(*i.Engine.Model))
	}
	for _, place := range []struct {
		name  string
		value *string
	}{{"host", i.Host}, {"unit", i.Unit}, {"pod", i.Pod}, {"container", i.Container}} {
		if place.value != nil {
			m = append(m, place.name+" "+prose(*place.value))
		}
	}
	if i.Time.First != nil {
		m = append(m, prose(*i.Time.First))
	}
	switch {
	case i.RecurrenceOf != nil:
		m = append(m, "again: "+ordinal(i.Occurrences)+" time, first "+prose(*i.RecurrenceOf))
	case i.Status == matcher.StatusHistoric:
		m = append(m, "historic")
	}
	if i.ID != "" {
		m = append(m, "id "+prose(i.ID))
	}
	return m
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

func engineName(name string) string {
	if name == "" || strings.EqualFold(name, "vllm") {
		return "vLLM"
	}
	return prose(name)
}

func (v viewer) quote(i matcher.Incident) quote {
	q := quote{Ref: v.names.Ref(i.Root.At)}
	if i.Root.At != nil && i.Root.At.Line != nil {
		q.Gutter = strconv.FormatInt(*i.Root.At.Line, 10)
	}
	for line := range strings.Lines(i.Root.Text) {
		line = strings.TrimRight(line, "\r\n \t")
		if line = clip(SafeText(line), maxProse); line != "" {
			q.Lines = append(q.Lines, line)
		}
		if len(q.Lines) == maxQuoted {
			break
		}
	}
	// The numbers stand in a table below, so the sentence with the size that was
	// asked for and the one with what was free are enough here.
	q.Brief = !v.o.Verbose
	if i.Root.Frame != nil {
		q.Frame = prose(*i.Root.Frame)
	}
	if len(i.Ranks) > 0 {
		q.Who = who(i.Ranks[0].Process, i.Ranks[0].GPU)
		if i.Ranks[0].PID != nil {
			q.Who += " (pid " + strconv.Itoa(*i.Ranks[0].PID) + ")"
		}
	}
	return q
}

// maxQuoted is how many lines of a text that has several are quoted.
const maxQuoted = 40

func who(process string, gpu *int) string {
	name := prose(process)
	if gpu == nil {
		return name
	}
	if name != "" {
		name += ", "
	}
	return name + "GPU " + strconv.Itoa(*gpu)
}

func (v viewer) steps(s *section, i matcher.Incident) {
	shown := i.Remedies[:v.limit(len(i.Remedies), maxSteps)]
	for n, r := range shown {
		st := step{
			N:       strconv.Itoa(n + 1),
			Title:   prose(r.Title),
			Grade:   gradeName(r.Grade),
			Command: Command(r),
			Sizes:   humanSizes(r),
			Why:     prose(r.Why),
			Expect:  prose(r.Expect),
			Costs:   prose(r.Costs),
			Refs:    prose(strings.Join(r.Refs, ", ")),
			Compact: n >= maxFullSteps && !v.o.Verbose,
		}
		for _, u := range r.Unset {
			st.Also = append(st.Also, "remove "+prose(strings.TrimPrefix(u, "env:")))
		}
		if r.UpgradeTo != nil {
			st.Also = append(st.Also, "install "+engineName(i.Engine.Name)+" "+prose(*r.UpgradeTo)+", this release and no other")
		}
		if n == 0 {
			s.First = append(s.First, st)
		} else {
			s.Further = append(s.Further, st)
		}
	}
	s.MoreSteps = more(len(i.Remedies) - len(shown))
}

func (v viewer) tag(grade string, at []matcher.At) string {
	limit := maxRefs
	if v.o.Verbose {
		limit = -1
	}
	refs := v.names.Refs(at, limit)
	switch grade = prose(grade); {
	case grade == "":
		return refs
	case refs == "":
		return grade
	}
	return grade + "; " + refs
}

func (v viewer) sentences(list []string) []string {
	var out []string
	for _, s := range list[:v.limit(len(list), maxLines)] {
		out = append(out, prose(s))
	}
	if n := more(len(list) - len(out)); n != "" {
		out = append(out, n)
	}
	return out
}

// more says how many entries a list lacks; empty for none.
func more(n int) string {
	if n <= 0 {
		return ""
	}
	return "… and " + grouped(int64(n)) + " more, all in --format json"
}

func addMore(list *[]statement, all int) {
	if n := more(all - len(*list)); n != "" {
		*list = append(*list, statement{Text: n})
	}
}

func (v viewer) consequence(c matcher.Consequence) string {
	s := prose(c.What) + " x" + grouped(int64(c.Count))
	ref := v.names.Ref(c.At)
	switch {
	case ref == "":
	case c.Count > 1:
		s += " (first " + ref + ")"
	default:
		s += " (" + ref + ")"
	}
	return s
}

// after tells what became of the server.
func (v viewer) after(i matcher.Incident) []string {
	var out []string
	add := func(lead string, list []string) {
		if len(list) > 0 {
			out = append(out, lead+prose(strings.Join(list, ", ")))
		}
	}
	if r := i.Restarted; r != nil {
		s := "the server was started again"
		if ref := v.names.Ref(r.At); ref != "" {
			s += " (" + ref + ")"
		}
		if len(r.ChangesMade) == 0 {
			s += ", with none of the changes above"
		}
		out = append(out, s)
		add("changed: ", r.ChangesMade)
		add("still to change: ", r.ChangesMissing)
	}
	if f := i.Followup; f != nil {
		if f.RestartedAt != nil {
			out = append(out, "the server was started again at "+prose(*f.RestartedAt))
		}
		add("changed: ", f.ChangesMade)
		add("still to change: ", f.ChangesMissing)
		for _, b := range f.BudgetNow {
			out = append(out, "budget now, "+v.budgetLine(b))
		}
		if f.HeldSince != nil {
			out = append(out, "no failure since "+prose(*f.HeldSince))
		}
		add("no longer advised: ", f.Withdrawn)
	}
	return out
}

// read says what was read: the names and sizes of the inputs, and what the
// observations know of the server.
func (v viewer) read(d matcher.Document) []string {
	var out []string
	for i, in := range d.Inputs {
		s := "read " + v.names.source(i)
		if in.Lines != nil {
			s += ", " + countedLines(*in.Lines)
		}
		out = append(out, s+", "+SizeText(in.Bytes))
	}
	for _, o := range d.Observations {
		var known []string
		if o.Engine.Version != nil {
			known = append(known, engineName(o.Engine.Name)+" "+prose(*o.Engine.Version))
		}
		if o.Engine.Model != nil {
			known = append(known, prose(*o.Engine.Model))
		}
		if len(known) > 0 {
			return append(out, strings.Join(known, ", "))
		}
	}
	return out
}

func countedLines(n int64) string {
	if n == 1 {
		return "1 line"
	}
	return grouped(n) + " lines"
}

// foot says what made the report and of what.
func (v viewer) foot(d matcher.Document) []string {
	tool := "diagnose"
	if d.Tool.Version != "" {
		tool += " " + prose(d.Tool.Version)
	}
	if d.Tool.Catalog != "" {
		tool += ", catalogue " + prose(d.Tool.Catalog)
	}
	out := []string{tool}
	for i, in := range d.Inputs {
		if len(d.Incidents) > 0 {
			s := v.names.source(i) + ": "
			if in.Lines != nil {
				s += countedLines(*in.Lines) + ", "
			}
			s += SizeText(in.Bytes)
			if in.Framing != "" {
				s += ", " + prose(in.Framing)
			}
			out = append(out, s)
		}
		for _, k := range in.Skipped {
			out = append(out, v.names.source(i)+": not read: "+SizeText(k.Bytes)+" at offset "+
				strconv.FormatInt(k.Offset, 10)+", "+prose(k.Why))
		}
	}
	seen := map[string]bool{}
	for _, i := range d.Incidents {
		if b := prose(i.Time.Basis); b != "" && !seen[b] {
			seen[b] = true
			out = append(out, "time: "+b)
		}
	}
	return out
}
