package report

import (
	"strconv"
	"strings"

	"diagnose/matcher"
)

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
			known = append(known, engineName(o.Engine.Name)+" "+word(*o.Engine.Version))
		}
		if o.Engine.Model != nil {
			known = append(known, word(*o.Engine.Model))
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
		tool += " " + word(d.Tool.Version)
	}
	if d.Tool.Catalog != "" {
		tool += ", catalogue " + word(d.Tool.Catalog)
	}
	out := []string{tool}
	for i, in := range d.Inputs {
		// A store knows its inputs by name only.
		if len(d.Incidents) > 0 && (in.Lines != nil || in.Bytes > 0 || in.Framing != "") {
			var parts []string
			if in.Lines != nil {
				parts = append(parts, countedLines(*in.Lines))
			}
			if in.Lines != nil || in.Bytes > 0 { // a followed log has no end to measure
				parts = append(parts, SizeText(in.Bytes))
			}
			if in.Framing != "" {
				parts = append(parts, word(in.Framing))
			}
			out = append(out, v.names.source(i)+": "+strings.Join(parts, ", "))
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
	if n := v.o.EarlierFailed; n > 0 {
		where, what := "this log", "it"
		if len(d.Inputs) > 1 {
			where = "these logs"
		}
		if n > 1 {
			what = "them"
		}
		out = append(out, counted(n, "earlier failed run")+" in "+where+": --all tells "+what)
	}
	return out
}
