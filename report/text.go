package report

import (
	"fmt"
	"io"
	"strings"

	"diagnose/matcher"
)

const (
	defaultWidth = 80
	minWidth     = 40
)

// Text writes d for a terminal. Nothing is wider than o.Width, except a flag, a
// path or a name that would be no use in two pieces.
func Text(w io.Writer, d matcher.Document, o Options) error {
	p := &printer{width: max(o.Width, minWidth), color: o.Color}
	if o.Width == 0 {
		p.width = defaultWidth
	}
	p.page(newPage(d, o))
	if _, err := w.Write(p.b.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (p *printer) page(g page) {
	if len(g.Incidents) == 0 {
		p.line(p.paint(styleTitle, "no failure found"))
		for _, r := range g.Read {
			p.block(block{indent: 2, text: r, hang: 4})
		}
	}
	if len(g.Incidents) > 1 {
		p.line(p.paint(styleTitle, counted(len(g.Incidents), "incident")))
		for i, s := range g.Incidents {
			p.block(block{indent: 2, lead: fmt.Sprintf("%d. ", i+1), text: s.Headline, tail: s.Quote.Ref})
		}
	}
	for i, s := range g.Incidents {
		if len(g.Incidents) > 1 {
			p.blank()
			p.line(p.paint(styleDim, strings.Repeat("─", p.width)))
		}
		lead := "error: "
		if len(g.Incidents) > 1 {
			lead = fmt.Sprintf("error %d of %d: ", i+1, len(g.Incidents))
		}
		p.section(s, lead, styleError)
	}
	for _, s := range g.Notes {
		p.blank()
		p.section(s, "note: ", styleNote)
	}
	p.blank()
	for _, f := range g.Foot {
		p.block(block{text: f, textStyle: styleDim, hang: 2})
	}
}

func (p *printer) section(s section, lead string, st style) {
	p.block(block{lead: lead, leadStyle: st, text: s.Headline, textStyle: styleTitle, hang: 7})
	p.quote(s.Quote)
	p.meta(s.Meta)
	if s.Summary != "" {
		p.blank()
		p.block(block{text: s.Summary})
	}
	if s.Unknown {
		p.list("what is missing", styleWarn, s.Missing)
	}
	p.steps("do this", "do this first", s.First, len(s.Further) > 0)
	if len(s.DoNot) > 0 {
		p.heading("do not", styleWarn)
		for _, n := range s.DoNot {
			p.reason(n)
		}
		p.more(s.MoreNot)
	}
	p.steps("further steps, in this order", "further steps, in this order", s.Further, false)
	p.more(s.MoreSteps)
	why := "why"
	if s.Unknown {
		why = "what is established"
	}
	p.statements(why, s.Why)
	p.statements("not this", s.RuledOut)
	p.statements("made it worse", s.Worse)
	p.numbers(s)
	p.list("consequences, not causes", styleTitle, s.Consequences)
	p.list("after the crash", styleTitle, s.After)
	p.list("how to verify", styleTitle, s.Verify)
	if !s.Unknown {
		p.list("what is missing", styleTitle, s.Missing)
	}
	p.list("references", styleTitle, s.References)
}

// quote prints the root line as a compiler prints a line of source.
func (p *printer) quote(q quote) {
	if q.Ref == "" && len(q.Lines) == 0 {
		return
	}
	pad := strings.Repeat(" ", max(len(q.Gutter), 3))
	if q.Ref != "" {
		b := block{lead: pad + "--> ", leadStyle: styleGutter, text: q.Ref}
		if len(q.Lines) == 0 {
			b.tail = q.where()
		}
		p.block(b)
	}
	gutter := strings.Repeat(" ", len(pad)-len(q.Gutter)) + q.Gutter
	width := p.width - len(pad) - 3
	lines := q.wrapped(width)
	for _, l := range lines {
		p.line(p.paint(styleGutter, gutter+" | "), l)
		gutter = pad
		if i := strings.Index(l, q.Frame); q.Frame != "" && i >= 0 {
			p.line(p.paint(styleGutter, pad+" | "), strings.Repeat(" ", columns(l[:i])),
				p.paint(styleError, strings.Repeat("^", columns(q.Frame))))
		}
	}
	if where := q.where(); where != "" && len(lines) > 0 {
		p.block(block{lead: pad + " = ", leadStyle: styleGutter, text: where})
	}
}

// where names the frame and the first process that failed there.
func (q quote) where() string {
	switch {
	case q.Frame != "" && q.Who != "":
		return "in " + q.Frame + ", first in " + q.Who
	case q.Frame != "":
		return "in " + q.Frame
	case q.Who != "":
		return "first in " + q.Who
	}
	return ""
}

// briefLines is how many lines of the quote the first screen can spare.
const briefLines = 3

// wrapped are the quote's lines at a width, cut to its essential part.
func (q quote) wrapped(width int) []string {
	var all []string
	for _, l := range q.Lines {
		all = append(all, wrap(l, width)...)
	}
	if !q.Brief || len(all) <= briefLines {
		return all
	}
	if len(q.Lines) == 1 {
		return wrap(essence(q.Lines[0], briefLines*width*9/10), width)
	}
	// Of a text with several lines the first says what, the last often why.
	var some []string
	for _, l := range []string{q.Lines[0], q.Lines[len(q.Lines)-1]} {
		some = append(some, wrap(essence(l, 2*width*9/10), width)...)
	}
	if len(q.Lines) > 2 {
		some = append(some[:1], append([]string{"…"}, some[1:]...)...)
	}
	return some
}

// essence is a text's first sentences, as many as fit into max columns, or, if
// that is less than half of it, its start and its end.
func essence(s string, max int) string {
	if columns(s) <= max {
		return s
	}
	head := s[:prefixOf(s, max)]
	for i := len(head) - 2; i > len(head)/2; i-- {
		if head[i] == '.' && head[i+1] == ' ' {
			return head[:i+1] + " …"
		}
	}
	return clip(s, max)
}

// meta prints short facts, parted by a middle dot and never broken inside.
func (p *printer) meta(facts []string) {
	line := ""
	flush := func() {
		if line != "" {
			p.block(block{indent: 2, text: line, textStyle: styleDim})
		}
		line = ""
	}
	for _, f := range facts {
		if line != "" && columns(line)+3+columns(f) > p.width-2 {
			flush()
		}
		if line != "" {
			line += " · "
		}
		line += f
	}
	flush()
}

func (p *printer) steps(one, several string, list []step, first bool) {
	if len(list) == 0 {
		return
	}
	name := one
	if first {
		name = several
	}
	p.heading(name, styleTitle)
	for _, s := range list {
		p.step(s)
	}
}

// flagIndent leaves 75 of 80 columns to a command.
const flagIndent = 5

func (p *printer) step(s step) {
	indent := len(s.N) + 4
	p.block(block{
		indent: 2, lead: s.N + ". ", leadStyle: styleTitle,
		text: s.Title, textStyle: styleTitle, tail: "[" + s.Grade + "]",
	})
	for _, l := range commandLines(s.Command, p.width-flagIndent) {
		p.line(strings.Repeat(" ", flagIndent), p.paint(styleCommand, l))
	}
	if s.Sizes != "" {
		p.block(block{indent: flagIndent, text: "(" + s.Sizes + ")", textStyle: styleDim})
	}
	for _, a := range s.Also {
		p.block(block{indent: flagIndent, text: a, textStyle: styleCommand, hang: flagIndent + 2})
	}
	if s.Compact {
		if text := s.inShort(); text != "" {
			p.block(block{indent: indent, text: text})
		}
		return
	}
	for _, part := range s.parts() {
		p.block(block{indent: indent, lead: part.What + ": ", leadStyle: styleDim, text: part.Because, hang: indent + 2})
	}
}

// parts are the labelled sentences of a step that are not empty.
func (s step) parts() []reason {
	why := s.Why
	if s.Refs != "" {
		why = strings.TrimSpace(why + " (" + s.Refs + ")")
	}
	var out []reason
	for _, r := range []reason{{"why", why}, {"expect", s.Expect}, {"costs", s.Costs}} {
		if r.Because != "" {
			out = append(out, r)
		}
	}
	return out
}

// inShort is all of a step's reasons in one paragraph.
func (s step) inShort() string {
	var out []string
	for _, r := range s.parts() {
		text := r.Because
		if r.What != "why" {
			text = r.What + ": " + text
		}
		out = append(out, strings.TrimRight(text, ".;"))
	}
	return strings.Join(out, "; ")
}

func (p *printer) reason(r reason) {
	b := block{indent: 2, lead: "x ", leadStyle: styleError, text: r.What, strong: r.What}
	if r.Because != "" {
		b.text += ": " + r.Because
	}
	p.block(b)
}

func (p *printer) statements(name string, list []statement) {
	if len(list) == 0 {
		return
	}
	p.heading(name, styleTitle)
	for _, s := range list {
		b := block{indent: 2, lead: "- ", text: s.Text, hang: 4}
		if s.Lead != "" {
			b.text = s.Lead + ": " + s.Text
		}
		if s.Tag != "" && s.Formula == "" {
			b.tail = "[" + s.Tag + "]"
		}
		p.block(b)
		if s.Formula != "" {
			f := block{indent: 6, text: s.Formula, textStyle: styleCommand, hang: 8}
			if s.Tag != "" {
				f.tail = "[" + s.Tag + "]"
			}
			p.block(f)
		}
	}
}

func (p *printer) list(name string, st style, list []string) {
	if len(list) == 0 {
		return
	}
	p.heading(name, st)
	for _, s := range list {
		p.block(block{indent: 2, lead: "- ", text: s})
	}
}

func (p *printer) more(s string) {
	if s != "" {
		p.block(block{indent: 2, text: s})
	}
}

func (p *printer) numbers(s section) {
	if len(s.Numbers) == 0 && len(s.Ranks) == 0 && s.Load == "" {
		return
	}
	p.heading("numbers", styleTitle)
	for _, t := range s.Numbers {
		p.table(t)
	}
	for _, r := range s.Ranks {
		p.block(block{indent: 2, text: r, hang: 4})
	}
	if s.Load != "" {
		p.block(block{indent: 2, text: s.Load, hang: 4})
	}
}

func (p *printer) table(t table) {
	title := t.Title
	if t.Ref != "" {
		title += " (" + t.Ref + ")"
	}
	p.block(block{indent: 2, text: title, hang: 4})
	label, value, grade := 0, 0, 0
	for _, r := range t.Rows {
		label = max(label, columns(r.name()))
		value = max(value, columns(r.Value))
		grade = max(grade, columns(r.Grade))
	}
	for _, r := range t.Rows {
		text := pad(r.name(), label) + "  " + padLeft(r.Value, value)
		note := r.Grade
		if r.Ref != "" {
			note = pad(r.Grade, grade) + "  " + r.Ref
		}
		switch {
		case note == "":
			p.line("    ", text)
		case 4+columns(text)+2+columns(note) <= p.width:
			p.line("    ", text, "  ", p.paint(styleDim, note))
		default:
			p.line("    ", text)
			p.block(block{indent: 6, text: strings.Join(strings.Fields(note), " "), textStyle: styleDim})
		}
	}
}

func (r row) name() string {
	if r.Part {
		return "  " + r.Label
	}
	return r.Label
}

func pad(s string, n int) string     { return s + strings.Repeat(" ", max(0, n-columns(s))) }
func padLeft(s string, n int) string { return strings.Repeat(" ", max(0, n-columns(s))) + s }
