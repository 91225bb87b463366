package report

import (
	"strings"
	"unicode/utf8"
)

// clip shortens safe text to about max columns by taking out its middle. It
// never leaves a part of a number, nor a number without its unit: a cut "8.00"
// of "18.00 GiB" would be a lie in a report about memory.
func clip(s string, max int) string {
	if len(s) <= max || columns(s) <= max {
		return s
	}
	head := prefixOf(s, max*2/3)
	tail := len(s) - suffixOf(s, max-max*2/3-3)
	head, tail = wholeHead(s, head), wholeTail(s, tail)
	left, right := strings.TrimRight(s[:head], " "), strings.TrimLeft(s[tail:], " ")
	if left != "" {
		left += " "
	}
	if right != "" {
		right = " " + right
	}
	return left + "…" + right
}

// prefixOf is the length in bytes of the longest prefix of at most n columns.
func prefixOf(s string, n int) int {
	for i, r := range s {
		if n -= runeColumns(r); n < 0 {
			return i
		}
	}
	return len(s)
}

// suffixOf is the length in bytes of the longest suffix of at most n columns.
func suffixOf(s string, n int) int {
	i := len(s)
	for i > 0 {
		r, w := utf8.DecodeLastRuneInString(s[:i])
		if n -= runeColumns(r); n < 0 {
			break
		}
		i -= w
	}
	return len(s) - i
}

// wordReach is how far a cut moves to fall between two words.
const wordReach = 40

func wholeHead(s string, h int) int {
	if h > 0 && h < len(s) && s[h] != ' ' && s[h-1] != ' ' {
		if i := strings.LastIndexByte(s[max(0, h-wordReach):h], ' '); i >= 0 {
			h = max(0, h-wordReach) + i
		} else {
			for h > 0 && numeric(s[h]) && numeric(s[h-1]) {
				h--
			}
		}
	}
	left := strings.TrimRight(s[:h], " ")
	next, _, _ := strings.Cut(strings.TrimLeft(s[h:], " "), " ")
	if endsInDigit(left) && isUnit(next) {
		h = strings.LastIndexByte(left, ' ') + 1
	}
	return h
}

func wholeTail(s string, t int) int {
	if t > 0 && t < len(s) && s[t] != ' ' && s[t-1] != ' ' {
		if i := strings.IndexByte(s[t:min(len(s), t+wordReach)], ' '); i >= 0 {
			t += i
		} else {
			for t < len(s) && numeric(s[t]) && numeric(s[t-1]) {
				t++
			}
		}
	}
	right := strings.TrimLeft(s[t:], " ")
	first, _, _ := strings.Cut(right, " ")
	if endsInDigit(strings.TrimRight(s[:t], " ")) && isUnit(first) {
		t = len(s) - len(right) + len(first)
	}
	return t
}

func numeric(c byte) bool { return c >= '0' && c <= '9' || c == '.' || c == ',' }

func endsInDigit(s string) bool {
	return s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9'
}

// isUnit tells whether a word belongs to the number before it.
func isUnit(word string) bool {
	switch strings.TrimRight(word, ".,;:)]") {
	case "B", "bytes", "byte", "KiB", "MiB", "GiB", "TiB", "kB", "KB", "MB", "GB", "TB",
		"%", "s", "ms", "token", "tokens":
		return true
	}
	return false
}
