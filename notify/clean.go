package notify

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes log text safe to show anywhere: valid UTF-8, no terminal
// sequences, no control characters but newline and tab, nothing that reorders
// or hides text. A carriage return becomes a newline.
func clean(s string) string {
	if !needsCleaning(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if n := escapeLen(s[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == '\r' || r == '\u2028' || r == '\u2029':
			b.WriteByte('\n')
		case !hidden(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

func needsCleaning(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return true
		}
	}
	return false
}

// hidden tells whether a rune is invisible or changes how its neighbours are
// shown: controls, format characters (category Cf holds the bidirectional
// overrides, zero-width characters, and tags), private use, and the unassigned
// fillers that fonts show as nothing.
func hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) ||
		r == '\u034F' || r == '\u115F' || r == '\u1160' || r == '\u3164' || r == '\uFFA0'
}

// escapeLen returns the length of the terminal sequence at the start of s, or 0
// (ECMA-48: CSI, OSC and the other strings, two-byte escapes, and their C1
// forms).
func escapeLen(s string) int {
	if s[0] == 0x1b && len(s) > 1 {
		switch s[1] {
		case '[':
			return 2 + csiLen(s[2:])
		case ']', 'P', 'X', '^', '_':
			return 2 + stringLen(s[2:])
		default:
			if s[1] >= 0x20 && s[1] < 0x7f {
				return 2
			}
			return 1
		}
	}
	if r, n := utf8.DecodeRuneInString(s); r == 0x9b {
		return n + csiLen(s[n:])
	} else if r == 0x9d || r == 0x90 {
		return n + stringLen(s[n:])
	}
	return 0
}

func csiLen(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x7e:
			return i
		}
	}
	return len(s)
}

// stringLen ends at BEL, ST or the end of the line: an unterminated string must
// not swallow the lines after it.
func stringLen(s string) int {
	for i := range len(s) {
		switch {
		case s[i] == 0x07:
			return i + 1
		case s[i] == '\n':
			return i
		case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case strings.HasPrefix(s[i:], "\u009c"):
			return i + len("\u009c")
		}
	}
	return len(s)
}

// cut shortens s to at most limit bytes, on a rune's boundary, and marks it.
func cut(s string, limit int) string {
	const mark = "…"
	if len(s) <= limit {
		return s
	}
	if limit <= len(mark) {
		return ""
	}
	return headBytes(s, limit-len(mark)) + mark
}

// headBytes is the longest prefix of s of whole runes with at most n bytes.
func headBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// cutLines keeps as many whole lines of s as fit into limit bytes, and says in a
// last line how many it left out. A first line that is too long alone is cut.
func cutLines(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	lines := strings.Split(s, "\n")
	note := func(left int) string { return fmt.Sprintf("… %d more lines", left) }
	room := limit - len(note(len(lines))) - 1
	kept, size := 0, 0
	for kept < len(lines) && size+len(lines[kept])+1 <= room {
		size += len(lines[kept]) + 1
		kept++
	}
	if kept == 0 {
		return cut(lines[0], limit)
	}
	return strings.Join(lines[:kept], "\n") + "\n" + note(len(lines)-kept)
}

// oneLine folds all white space, newlines included, into single spaces.
func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}

// firstLine is the text before the first newline that is not blank.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(line)
}
