package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks in a row are let through. More are no
// writing system but an attempt to draw over the lines above.
const maxMarks = 3

// SafeText makes text from a log safe for one line of a terminal, a chat
// message or a page. C0 control bytes become their Unicode pictures (ESC is
// "␛", a line feed "␊"), a tab becomes a space, any other character that does
// not print (C1 controls, bidirectional overrides, zero-width and private-use
// characters) becomes "<U+202E>", and a byte that is not UTF-8 "<0xFF>". The
// result is valid UTF-8 without a line break, and SafeText leaves it alone.
func SafeText(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	marks := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if unicode.In(r, unicode.Mn, unicode.Me) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "<0x%02X>", s[i])
		case r == '\t':
			b.WriteByte(' ')
		case r < 0x20:
			b.WriteRune('\u2400' + r)
		case r == 0x7f:
			b.WriteRune('\u2421')
		case !unicode.IsPrint(r) || marks > maxMarks:
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// maxProse is the most columns that one statement takes, about forty lines.
const maxProse = 3000

// maxName keeps a name from the log or from a path from filling the screen.
const maxName = 120

// word is prose for a name: of a process, a model, a release, a file.
func word(s string) string { return clip(prose(s), maxName) }

// prose is SafeText for a sentence: white space of any kind is folded, since
// catalogue texts and hard-wrapped log texts carry line breaks.
func prose(s string) string {
	return clip(SafeText(strings.Join(strings.Fields(shorten(s)), " ")), maxProse)
}

// quoted is SafeText for a line of the log, white space kept.
func quoted(s string) string { return clip(SafeText(shorten(s)), maxProse) }

// shorten takes the middle out of a string that is far too long for any report,
// so that a line of a hundred megabytes costs no more than another.
func shorten(s string) string {
	const half = 16 << 10
	if len(s) <= 4*half {
		return s
	}
	return s[:wholeHead(s, half)] + " … " + s[wholeTail(s, len(s)-half):]
}

// columns is how many terminal columns safe text takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case wide(r):
		return 2
	}
	return 1
}

// wide follows the classes W and F of Unicode's EastAsianWidth.txt, rounded up
// to whole blocks: too wide breaks a line early, too narrow would overflow.
func wide(r rune) bool {
	switch {
	case r < 0x1100:
		return false
	case r <= 0x115f, // Hangul Jamo
		r >= 0x231a && r <= 0x231b, r >= 0x23e9 && r <= 0x23f3, // watches
		r >= 0x25fd && r <= 0x25fe, r >= 0x2600 && r <= 0x27bf, // symbols, some drawn wide
		r >= 0x2b1b && r <= 0x2b1c, r >= 0x2b50 && r <= 0x2b55,
		r >= 0x2e80 && r <= 0xa4cf, r >= 0xa960 && r <= 0xa97f, // CJK
		r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe10 && r <= 0xfe1f, r >= 0xfe30 && r <= 0xfe6f,
		r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x16fe0 && r <= 0x18dff, r >= 0x1b000 && r <= 0x1b2ff,
		r >= 0x1f000 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return true
	}
	return false
}
