package report

import "strings"

// wrap breaks safe text into lines of at most width columns, between words. A
// number stays with its unit. A flag or a path stays whole even if it is wider
// than a line, since a broken one cannot be copied; any other long word is cut.
func wrap(s string, width int) []string { return wrapHanging(s, width, width) }

// minText is the least a line holds, however deep it is indented.
const minText = 8

// wrapHanging wraps a text whose first line has another width than the rest.
func wrapHanging(s string, first, rest int) []string {
	width := max(first, minText)
	rest = max(rest, minText)
	var lines []string
	line, used := "", 0
	for _, w := range words(s) {
		n := columns(w)
		if used > 0 && used+1+n <= width {
			line, used = line+" "+w, used+1+n
			continue
		}
		if used > 0 {
			lines = append(lines, line)
			width = rest
		}
		for n > width && !solid(w) {
			i := breakAt(w, width)
			lines = append(lines, w[:i])
			w = w[i:]
			n, width = columns(w), rest
		}
		line, used = w, n
	}
	if used > 0 || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// words splits at spaces and glues "8.00 GiB" together.
func words(s string) []string {
	fields := strings.Fields(s)
	out := fields[:0]
	for _, f := range fields {
		if n := len(out); n > 0 && isUnit(f) && endsInDigit(out[n-1]) {
			out[n-1] += " " + f
			continue
		}
		out = append(out, f)
	}
	return out
}

// maxSolid keeps a hostile "path" of a megabyte from being one line.
const maxSolid = 256

func solid(w string) bool {
	return len(w) <= maxSolid &&
		(strings.HasPrefix(strings.TrimLeft(w, "`'\"(["), "-") || strings.Contains(w, "/"))
}

// breakAt is where to cut a word wider than a line: after at most width
// columns, and before a number rather than inside it.
func breakAt(w string, width int) int {
	i := prefixOf(w, width)
	for j := i; j > 0; j-- {
		if !numeric(w[j]) || !numeric(w[j-1]) {
			i = j
			break
		}
	}
	if i == 0 {
		i = len(w)
	}
	return i
}
