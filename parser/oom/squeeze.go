package oom

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds how much of a text is read, in bytes. The longest real
// message is some kilobytes; a text comes from a log and can be of any length.
const maxText = 1 << 20

// squeeze gives the text without any white space, colour codes, and the \n, \r
// and \t that a Python repr writes for white space. All patterns match on this
// form: pasted and wrapped messages lose and gain spaces at every place, also
// inside words.
func squeeze(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\x1b':
			i += escapeLen(text[i:])
			continue
		case c == '\\' && i+1 < len(text) && strings.IndexByte("nrt", text[i+1]) >= 0:
			i += 2
			continue
		case c <= ' ' || c == 0x7f:
			i++
			continue
		case c < utf8.RuneSelf:
			b.WriteByte(c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if !unicode.IsSpace(r) {
			b.WriteString(text[i : i+n])
		}
		i += n
	}
	return b.String()
}

// escapeLen is the length of the terminal sequence (ECMA-48 CSI) that s begins
// with, or 1 for a lone escape byte.
func escapeLen(s string) int {
	if len(s) < 2 || s[1] != '[' {
		return 1
	}
	for i := 2; i < len(s); i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		if s[i] < 0x20 {
			return i
		}
	}
	return len(s)
}

// Unwrap joins the lines of a message that a terminal or a paste has wrapped.
// A line as wide as the widest was broken at its last column, perhaps within a
// word, so the next one follows without a space; a shorter one was broken at a
// space or lost its trailing spaces. Parse does not depend on the guess.
func Unwrap(lines []string) string {
	width := 0
	for i, line := range lines {
		if i < len(lines)-1 {
			width = max(width, utf8.RuneCountInString(strings.TrimRight(line, "\r\n")))
		}
	}
	var b strings.Builder
	for i, line := range lines {
		line = strings.TrimRight(line, "\r\n")
		b.WriteString(line)
		if i < len(lines)-1 && utf8.RuneCountInString(line) < width {
			b.WriteByte(' ')
		}
	}
	return strings.TrimRight(b.String(), " ")
}
