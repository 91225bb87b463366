package report

import (
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
	// EarlierFailed is how many failed runs before the last one the document
	// leaves out.
	EarlierFailed int
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
	// Others are the other GPUs, a line each.
	Others []string
}

// row is one number. Ref is empty where the table's holds.
type row struct {
	Label, Value, Grade, Ref string
	Part                     bool // a part of the row above
}

// The limits of a report that is not verbose.
const (
	maxFullSteps  = 3
	maxSteps      = 14
	maxDoNot      = 8
	maxEvidence   = 20
	maxStatements = 8
	maxRanks      = 8
	maxLines      = 12
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
