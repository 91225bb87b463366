package parser

import (
	"bytes"
	"slices"
)

// verdict is what the gate says of a line.
type verdict uint8

const (
	pass verdict = iota
	skipRecord
	skipAccess
)

// gate tells by a few bytes that a line says nothing to a diagnosis: an access
// line that is no server error, or an INFO or DEBUG record whose message
// begins like none that is read. It stands in front of everything else, for
// most of a log does not pass it. Such a line opens, continues and ends no
// record; what the gate does not know for sure passes.
func gate(b []byte) verdict {
	if len(b) < 24 {
		return pass
	}
	i := 0
	if b[0] == '(' {
		if i = prefixLen(b); i == 0 {
			return pass
		}
		b = b[i:]
	}
	if len(b) < 24 {
		return pass
	}
	switch {
	case b[0] == 'I' && b[1] == 'N' && b[2] == 'F' && b[3] == 'O':
		if b[4] == ':' {
			return gateAccess(b[5:])
		}
		b = b[4:]
	case b[0] == 'D' && string(b[:5]) == "DEBUG":
		b = b[5:]
	default:
		return pass
	}
	if b[0] != ' ' || !isTime(b[1:]) {
		return pass
	}
	b = b[15:]
	// " [file:line] " or the older " file:line] ".
	w := b[:min(len(b), maxPlace)]
	end := bytes.IndexByte(w, ']')
	if end < 2 || end+2 > len(b) || b[0] != ' ' {
		return pass
	}
	for _, c := range w[1:end] {
		if c <= ' ' || c == '#' {
			return pass
		}
	}
	if b[end+1] != ' ' {
		return pass
	}
	return gateMessage(b[end+2:])
}

// gateMessage looks at the beginning of a message. Whatever is read there
// begins with one of a few words, with no letter at all (the banner, a
// "[shutdown]", a number of engines), or is "X KV cache size".
func gateMessage(b []byte) verdict {
	if len(b) < 4 || !isLetter(b[0]) {
		return pass
	}
	for _, w := range wanted[b[0]] {
		if w == [3]byte(b[1:4]) {
			return pass
		}
	}
	w := b[:min(len(b), maxDevice+2)]
	for i, c := range w {
		switch {
		case c == ' ':
			if i+1 < len(w) && w[i+1] == 'K' {
				return pass
			}
			return skipRecord
		case c < ' ' || c > '~' || c == '#' || c == '[':
			return pass // colour, or what is left of it
		}
	}
	return skipRecord
}

// prefixLen gives the length of a plain "(name pid=N) ", 0 if b begins with
// anything else.
func prefixLen(b []byte) int {
	w := b[:min(len(b), 64)]
	i := 1
	for ; i < len(w); i++ {
		c := w[i]
		if c == ')' {
			break
		}
		if c < ' ' || c > '~' || c == '(' || c == '[' || c == '#' {
			return 0
		}
	}
	if i+1 >= len(w) || w[i+1] != ' ' {
		return 0
	}
	j := i
	for j > 0 && isDigit(w[j-1]) {
		j--
	}
	if n := i - j; n == 0 || n > 9 || j < 6 || string(w[j-5:j]) != " pid=" {
		return 0
	}
	// Of two the first counts, and only the last was looked at.
	if bytes.Contains(w[:j-5], []byte("pid=")) {
		return 0
	}
	return i + 2
}

// gateAccess takes "     ADDR - "GET /path HTTP/1.1" 200 OK". The request line
// is the client's, so only its last quote counts, and only plain characters
// may follow it.
func gateAccess(b []byte) verdict {
	if b[0] != ' ' || b[1] != ' ' {
		return pass
	}
	n := 2 + countSpaces(b[2:])
	if n >= len(b) || !isDigit(b[n]) {
		return pass
	}
	for i := len(b) - 1; i >= n && i > len(b)-40; i-- {
		switch c := b[i]; {
		case isLetter(c), isDigit(c), c == ' ', c == '\'', c == '-':
		case c == '\r' && i == len(b)-1:
		case c == '"':
			if i+2 < len(b) && b[i+1] == ' ' && b[i+2] >= '1' && b[i+2] <= '4' {
				return skipAccess
			}
			return pass
		default:
			return pass
		}
	}
	return pass
}

// wanted holds, by its first byte, the next three of every message that is
// read at INFO or DEBUG.
var wanted = func() (m [256][][3]byte) {
	add := func(s string) {
		if !isLetter(s[0]) {
			return // passes anyway
		}
		k := [3]byte([]byte(s[1:4]))
		if list := &m[s[0]]; !slices.Contains(*list, k) {
			*list = append(*list, k)
		}
	}
	for _, l := range startupLines {
		add(l.begin)
	}
	for _, s := range []string{
		"non-default args", "args: Namespace", dumpConfig, oldDumpConfig, "Initializing a", "vLLM API server", "vLLM server version",
		"Shutting down", "Shutdown initiated", "SchedulerOutput", "SchedulerStats", "Engine 000: ", "Avg prompt ", "Using ", hangSign,
	} {
		add(s)
	}
	return m
}()
