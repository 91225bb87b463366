package report

import (
	"strings"
)

// fence writes a code block that its own text cannot end.
func (m *marker) fence(lang string, lines []string) {
	f := strings.Repeat("`", max(3, longestRun(strings.Join(lines, "\n"))+1))
	m.line(f, lang)
	for _, l := range lines {
		m.line(l)
	}
	m.line(f)
}

// codeSpan is inline code.
func codeSpan(s string) string {
	f := strings.Repeat("`", longestRun(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return f + s + f
}

// cell is inline code in a table, where a pipe would end the cell.
func cell(s string) string { return strings.ReplaceAll(codeSpan(s), "|", `\|`) }

func longestRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// escape makes safe text plain in a paragraph, a list item or a table cell.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; c {
		case '&':
			b.WriteString("&amp;")
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '@':
			// GitHub notifies people even through a backslash; an empty comment
			// parts the name from the sign.
			b.WriteString("@<!-- -->")
		case '\\', '`', '*', '[', ']', '|', '~', '$':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '_':
			// Inside a word an underscore is no emphasis, so names of flags stay
			// readable in the source.
			if !(i > 0 && i < len(s)-1 && alnum(s[i-1]) && alnum(s[i+1])) {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		case '-', '+', '#', '=', '.', ')':
			if c == '#' && i > 0 && !alnum(s[i-1]) && i < len(s)-1 && digit(s[i+1]) {
				// GitHub would link this to an issue of wherever it is posted.
				b.WriteString("#<!-- -->")
				continue
			}
			if opensBlock(s, i) {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// opensBlock tells whether the character at i would make the text a list, a
// heading or a rule. A flag ("--x") and a number ("4.65") do not.
func opensBlock(s string, i int) bool {
	last := i == len(s)-1 || s[i+1] == ' '
	switch s[i] {
	case '.', ')':
		return last && i > 0 && digits(s[:i])
	case '#', '=':
		return i == 0
	}
	return i == 0 && (last || strings.Trim(s, "-+ ") == "")
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func alnum(c byte) bool {
	return digit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func digits(s string) bool { return len(s) < 10 && strings.Trim(s, "0123456789") == "" }
