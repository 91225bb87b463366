package matcher

import (
	"diagnose/parser"
)

// at converts a position; nil for one that stands nowhere.
func (w *wording) at(p parser.Pos) *At { return atOf(p) }

func atOf(p parser.Pos) *At {
	if p.Offset < 0 && p.Line == 0 {
		return nil
	}
	a := &At{Source: p.Source}
	if p.Line > 0 {
		n := p.Line
		a.Line = &n
	}
	if p.Offset >= 0 {
		o := p.Offset
		a.Offset = &o
	}
	return a
}

func ats(ps []parser.Pos) []At {
	out := []At{}
	for _, p := range ps {
		if a := atOf(p); a != nil {
			out = append(out, *a)
		}
	}
	return out
}
