package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"diagnose/matcher"
)

// Markdown writes d as GitHub markdown, for an issue or a chat that renders it.
// Log text stands in fences longer than any run of backticks inside it, and
// everywhere else with HTML, markdown and mentions escaped.
func Markdown(w io.Writer, d matcher.Document, o Options) error {
	m := &marker{}
	m.page(newPage(d, o))
	if _, err := w.Write(m.b.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

type marker struct{ b bytes.Buffer }

func (m *marker) line(parts ...string) {
	for _, p := range parts {
		m.b.WriteString(p)
	}
	m.b.WriteByte('\n')
}

// para is a paragraph of its own, with the blank line before it.
func (m *marker) para(parts ...string) {
	if m.b.Len() > 0 {
		m.b.WriteByte('\n')
	}
	m.line(parts...)
}

func (m *marker) page(g page) {
	if len(g.Incidents) == 0 {
		m.para("## no failure found")
		m.list("", g.Read)
	}
	if len(g.Incidents) > 1 {
		m.para("## ", counted(len(g.Incidents), "incident"))
		m.b.WriteByte('\n')
		for i, s := range g.Incidents {
			m.line(fmt.Sprintf("%d. ", i+1), escape(s.Headline), ref(s.Quote.Ref))
		}
	}
	for i, s := range g.Incidents {
		if i > 0 {
			m.para("---")
		}
		m.section(s, "error")
	}
	for _, s := range g.Notes {
		m.section(s, "note")
	}
	m.b.WriteByte('\n')
	for i, f := range g.Foot {
		end := "<br>"
		if i == len(g.Foot)-1 {
			end = ""
		}
		m.line("<sub>", escape(f), "</sub>", end)
	}
}

func ref(s string) string {
	if s == "" {
		return ""
	}
	return " (" + codeSpan(s) + ")"
}

func (m *marker) section(s section, lead string) {
	m.para("## ", lead, ": ", escape(s.Headline))
	if s.Quote.Ref != "" {
		where := ""
		if w := s.Quote.where(); w != "" {
			where = " " + escape(w)
		}
		m.para(codeSpan(s.Quote.Ref), where)
	}
	if lines := s.Quote.wrapped(quoteWidth); len(lines) > 0 {
		m.b.WriteByte('\n')
		m.fence("text", lines)
	}
	if len(s.Meta) > 0 {
		m.para(escape(strings.Join(s.Meta, " · ")))
	}
	if s.Summary != "" {
		m.para("**", escape(s.Summary), "**")
	}
	if s.Unknown {
		m.list("what is missing", s.Missing)
	}
	name := "do this"
	if len(s.Further) > 0 {
		name = "do this first"
	}
	m.steps(name, s.First)
	if len(s.DoNot) > 0 {
		m.para("### do not")
		m.b.WriteByte('\n')
		for _, n := range s.DoNot {
			text := "- **" + escape(n.What) + "**"
			if n.Because != "" {
				text += ": " + escape(n.Because)
			}
			m.line(text)
		}
		m.more(s.MoreNot)
	}
	m.steps("further steps, in this order", s.Further)
	m.more(s.MoreSteps)
	why := "why"
	if s.Unknown {
		why = "what is established"
	}
	m.statements(why, s.Why)
	m.statements("not this", s.RuledOut)
	m.statements("made it worse", s.Worse)
	m.numbers(s)
	m.list("consequences, not causes", s.Consequences)
	m.list("after the crash", s.After)
	m.list("how to verify", s.Verify)
	if !s.Unknown {
		m.list("what is missing", s.Missing)
	}
	m.list("references", s.References)
}

// quoteWidth is that of the quoted lines on a page, which does not wrap them.
const quoteWidth = 96

func (m *marker) steps(name string, list []step) {
	if len(list) == 0 {
		return
	}
	m.para("### ", name)
	for _, s := range list {
		m.para("**", s.N, ". ", escape(s.Title), "** [", escape(s.Grade), "]")
		if len(s.Command) > 0 {
			m.b.WriteByte('\n')
			m.fence("sh", commandLines(s.Command, quoteWidth))
		}
		if s.Sizes != "" {
			m.para("(", escape(s.Sizes), ")")
		}
		for _, a := range s.Also {
			m.para(escape(a))
		}
		parts := s.parts()
		if len(parts) > 0 {
			m.b.WriteByte('\n')
		}
		for _, r := range parts {
			m.line("- ", r.What, ": ", escape(r.Because))
		}
	}
}

func (m *marker) statements(name string, list []statement) {
	if len(list) == 0 {
		return
	}
	m.para("### ", name)
	m.b.WriteByte('\n')
	for _, s := range list {
		text := "- "
		if s.Lead != "" {
			text += "**" + escape(s.Lead) + "**: "
		}
		text += escape(s.Text)
		if s.Formula != "" {
			text += "<br>" + codeSpan(s.Formula)
		}
		if s.Tag != "" {
			text += " \\[" + escape(s.Tag) + "\\]"
		}
		m.line(text)
	}
}

func (m *marker) list(name string, list []string) {
	if len(list) == 0 {
		return
	}
	if name != "" {
		m.para("### ", name)
	}
	m.b.WriteByte('\n')
	for _, s := range list {
		m.line("- ", escape(s))
	}
}

func (m *marker) more(s string) {
	if s != "" {
		m.para(escape(s))
	}
}

func (m *marker) numbers(s section) {
	if len(s.Numbers) == 0 && s.Load == "" {
		return
	}
	m.para("### numbers")
	for _, t := range s.Numbers {
		m.table(t)
		m.list("", t.Others)
	}
	if s.Load != "" {
		m.para(escape(s.Load))
	}
}

func (m *marker) table(t table) {
	graded := false
	for _, r := range t.Rows {
		graded = graded || r.Grade != "" || r.Ref != ""
	}
	m.b.WriteByte('\n')
	title := escape(t.Title)
	if t.Ref != "" {
		title += " (" + cell(t.Ref) + ")"
	}
	head := "| " + title + " | |"
	rule := "| --- | ---: |"
	if graded {
		head, rule = head+" | |", rule+" --- | --- |"
	}
	m.line(head)
	m.line(rule)
	for _, r := range t.Rows {
		label := escape(r.Label)
		if r.Part {
			label = "&nbsp;&nbsp;" + label
		}
		text := "| " + label + " | " + escape(r.Value) + " |"
		if graded {
			place := ""
			if r.Ref != "" {
				place = cell(r.Ref)
			}
			text += " " + escape(r.Grade) + " | " + place + " |"
		}
		m.line(text)
	}
}
