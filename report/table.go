package report

import (
	"strings"
)

func (p *printer) numbers(s section) {
	if len(s.Numbers) == 0 && s.Load == "" {
		return
	}
	p.heading("numbers", styleTitle)
	for _, t := range s.Numbers {
		p.table(t)
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
	for _, o := range t.Others {
		p.block(block{indent: 2, text: o, hang: 4})
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
