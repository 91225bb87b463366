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
			p.rule()
		}
		lead := "error: "
		if len(g.Incidents) > 1 {
			lead = fmt.Sprintf("error %d of %d: ", i+1, len(g.Incidents))
		}
		p.section(s, lead, styleError)
	}
	for i, s := range g.Notes {
		p.blank()
		if i == 0 && len(g.Incidents) > 0 {
			p.rule()
		}
		p.section(s, "note: ", styleNote)
	}
	p.blank()
	for _, f := range g.Foot {
		p.block(block{text: f, textStyle: styleDim, hang: 2})
	}
}

func (p *printer) rule() { p.line(p.paint(styleDim, strings.Repeat("─", p.width))) }

// firstScreen is how many lines of an incident can be seen without scrolling.
const firstScreen = 34

func (p *printer) section(s section, lead string, st style) {
	start := p.lines()
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
	first := "do this"
	if len(s.Further) > 0 {
		first = "do this first"
	}
	p.steps(first, s.First)
	later := p.doNot(s, firstScreen-(p.lines()-start))
	p.steps("further steps, in this order", s.Further)
	p.more(s.MoreSteps)
	if later {
		p.reasons("why not", styleTitle, s)
	}
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
	if len(s.References) > 0 {
		p.heading("references", styleTitle)
		p.block(block{indent: 2, text: strings.Join(s.References, ", ")})
	}
}

// doNot prints what not to do, with the reasons if they fit into the room that
// is left of the first screen. It tells whether they are still to be printed:
// what not to do must be seen, why not can wait.
func (p *printer) doNot(s section, room int) (later bool) {
	if len(s.DoNot) == 0 {
		return false
	}
	full := &printer{width: p.width, color: p.color}
	full.reasons("do not", styleWarn, s)
	if full.lines() <= room {
		p.b.Write(full.b.Bytes())
		return false
	}
	p.heading("do not (the reasons stand below)", styleWarn)
	for _, n := range s.DoNot {
		p.reason(reason{What: n.What})
	}
	p.more(s.MoreNot)
	return true
}

func (p *printer) reasons(name string, st style, s section) {
	p.heading(name, st)
	for _, n := range s.DoNot {
		p.reason(n)
	}
	p.more(s.MoreNot)
}

// quote prints the root line as a compiler prints a line of source.
func (p *printer) quote(q quote) {
	if q.Ref == "" && len(q.Lines) == 0 {
		return
	}
	pad := strings.Repeat(" ", max(len(q.Gutter), 3))
	if q.Ref != "" {
		text := q.Ref
		if where := q.where(); where != "" {
			text += ", " + where
		}
		p.block(block{lead: pad + "--> ", leadStyle: styleGutter, text: text, strong: q.Ref})
	}
	gutter := strings.Repeat(" ", len(pad)-len(q.Gutter)) + q.Gutter
	for _, l := range q.wrapped(p.width - len(pad) - 3) {
		p.line(p.paint(styleGutter, gutter+" | "), l)
		gutter = pad
		if i := strings.Index(l, q.Frame); q.Frame != "" && i >= 0 {
			p.line(p.paint(styleGutter, pad+" | "), strings.Repeat(" ", columns(l[:i])),
				p.paint(styleError, strings.Repeat("^", columns(q.Frame))))
		}
	}
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

func (p *printer) steps(name string, list []step) {
	if len(list) == 0 {
		return
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
		why = strings.TrimSpace(strings.TrimRight(why, ".") + " (" + s.Refs + ")")
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
