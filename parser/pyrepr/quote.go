package pyrepr

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted reads a string of Python or JSON. An escape that neither knows stays
// as it is, as in Python.
func (p *parser) quoted() (string, bool) {
	q := p.s[p.pos]
	p.pos++
	end := closing(p.s, p.pos, q)
	if end < 0 {
		text := unescape(p.s[p.pos:])
		p.pos = len(p.s)
		return text, false
	}
	text := unescape(p.s[p.pos:end])
	p.pos = end + 1
	return text, true
}

func unescape(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i >= 0 {
		b.WriteString(s[:i])
		s = s[i+1:]
		s = s[escape(&b, s):]
		i = strings.IndexByte(s, '\\')
	}
	b.WriteString(s)
	return b.String()
}

// escape writes what the escape sequence stands for and gives its length. s
// begins after the backslash.
func escape(b *strings.Builder, s string) int {
	if s == "" {
		b.WriteByte('\\')
		return 0
	}
	if i := strings.IndexByte("\n\\'\"abfnrtv/", s[0]); i >= 0 {
		b.WriteString([...]string{"", "\\", "'", "\"", "\a", "\b", "\f", "\n", "\r", "\t", "\v", "/"}[i])
		return 1
	}
	switch s[0] {
	case 'x':
		return codepoint(b, s, 2)
	case 'u':
		return codepoint(b, s, 4)
	case 'U':
		return codepoint(b, s, 8)
	}
	n := 0
	for n < 3 && n < len(s) && '0' <= s[n] && s[n] <= '7' {
		n++
	}
	if n > 0 {
		r, _ := strconv.ParseUint(s[:n], 8, 32)
		b.WriteRune(rune(r))
		return n
	}
	b.WriteByte('\\')
	return 0
}

// codepoint writes the character given by n hexadecimal digits behind the
// letter that s begins with. JSON spells one beyond 16 bits as two.
func codepoint(b *strings.Builder, s string, n int) int {
	r, ok := hex(s, n)
	if !ok {
		b.WriteByte('\\')
		return 0
	}
	if n == 4 && utf16.IsSurrogate(r) && len(s) > 5 && s[5] == '\\' && len(s) > 6 && s[6] == 'u' {
		if low, ok := hex(s[6:], 4); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			b.WriteRune(utf16.DecodeRune(r, low))
			return 11
		}
	}
	b.WriteRune(r) // a lone surrogate becomes the replacement character
	return n + 1
}

func hex(s string, n int) (rune, bool) {
	if len(s) < n+1 {
		return 0, false
	}
	r, err := strconv.ParseUint(s[1:n+1], 16, 32)
	if err != nil || r > utf8.MaxRune {
		return 0, false
	}
	return rune(r), true
}
