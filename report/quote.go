package report

import (
	"slices"
	"strconv"
	"strings"

	"diagnose/matcher"
)

func (v viewer) quote(i matcher.Incident) quote {
	q := quote{Ref: v.names.Ref(i.Root.At)}
	if i.Root.At != nil && i.Root.At.Line != nil {
		q.Gutter = strconv.FormatInt(*i.Root.At.Line, 10)
	}
	for line := range strings.Lines(shorten(i.Root.Text)) {
		if line = quoted(strings.TrimRight(line, "\r\n \t")); line != "" {
			q.Lines = append(q.Lines, line)
		}
	}
	if n := len(q.Lines); n > maxQuoted {
		q.Lines = slices.Concat(q.Lines[:maxQuoted/2], []string{"…"}, q.Lines[n-maxQuoted/2:])
	}
	// The numbers stand in a table below, so the sentence with the size that was
	// asked for and the one with what was free are enough here.
	q.Brief = !v.o.Verbose
	if i.Root.Frame != nil {
		q.Frame = word(*i.Root.Frame)
	}
	if len(i.Ranks) > 0 {
		q.Who = "in " + who(i.Ranks[0].Process, i.Ranks[0].GPU)
		if len(i.Ranks) > 1 {
			q.Who = "first " + q.Who
		}
		if i.Ranks[0].PID != nil {
			q.Who += " (pid " + strconv.Itoa(*i.Ranks[0].PID) + ")"
		}
	}
	return q
}

// maxQuoted is how many lines of a text that has several are quoted.
const maxQuoted = 40

// where names the frame and the first process that failed there.
func (q quote) where() string {
	switch {
	case q.Frame == "":
		return q.Who
	case q.Who == "":
		return "in " + q.Frame
	}
	return "in " + q.Frame + ", " + q.Who
}

// briefLines is how many lines of the quote the first screen can spare. One
// more is no reason to cut a text.
const briefLines = 3

// wrapped are the quote's lines at a width, cut to its essential part.
func (q quote) wrapped(width int) []string {
	var out []string
	for _, l := range q.essential(width) {
		out = append(out, wrap(l, width)...)
	}
	return out
}

// essential is what the quote must show, in lines that are not wrapped yet: a
// text that takes many lines at the width is cut.
func (q quote) essential(width int) []string {
	n := 0
	for _, l := range q.Lines {
		n += len(wrap(l, width))
	}
	switch {
	case !q.Brief || n <= briefLines+1:
		return q.Lines
	case len(q.Lines) == 1:
		return []string{essence(q.Lines[0], briefLines*width*9/10)}
	}
	// Of a text with several lines the first says what, the last often why.
	out := []string{essence(q.Lines[0], 2*width*9/10)}
	if len(q.Lines) > 2 {
		out = append(out, "…")
	}
	return append(out, essence(q.Lines[len(q.Lines)-1], 2*width*9/10))
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
