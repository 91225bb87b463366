package framing

import "bytes"

// maxPrefix bounds a process prefix. Ray Data nests class names in it.
const maxPrefix = 200

// processPrefix returns the length of "(name pid=N[, ip=A])" at the start of
// b, 0 if there is none. The name may hold parentheses, or be missing.
func processPrefix(b []byte) int {
	if len(b) < len("(pid=1)") || b[0] != '(' {
		return 0
	}
	w := b[:min(len(b), maxPrefix)]
	i := bytes.Index(w, []byte("pid="))
	if i < 1 || w[i-1] != ' ' && w[i-1] != '(' {
		return 0
	}
	i += len("pid=")
	from := i
	for i < len(w) && isDigit(w[i]) {
		i++
	}
	if i == from {
		return 0
	}
	if bytes.HasPrefix(w[i:], []byte(", ip=")) {
		for i += len(", ip="); i < len(w) && w[i] != ')' && w[i] > ' '; i++ {
		}
	}
	if i < len(w) && w[i] == ')' {
		return i + 1
	}
	return 0
}

// levelWord returns the length of the level name at the start of b, 0 if there
// is none.
func levelWord(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	var w string
	switch b[0] {
	case 'I':
		w = "INFO"
	case 'W':
		w = "WARNING"
	case 'E':
		w = "ERROR"
	case 'D':
		w = "DEBUG"
	case 'C':
		w = "CRITICAL"
	case 'T':
		w = "TRACE"
	}
	if w == "" || len(b) < len(w) || string(b[:len(w)]) != w {
		return 0
	}
	if len(b) > len(w) && (isLetter(b[len(w)]) || b[len(w)] == '_') {
		return 0
	}
	return len(w)
}

// vllmHead tells whether b begins as only a line of vLLM does: with a process
// prefix, or level and date.
func vllmHead(b []byte) bool {
	b = b[colour(b):]
	if processPrefix(b) > 0 {
		return true
	}
	n := levelWord(b)
	if n == 0 {
		return false
	}
	b = b[n:]
	b = b[colour(b):]
	if len(b) == 0 || b[0] != ' ' {
		return false
	}
	b = b[1:]
	return isShortDate(b[colour(b):])
}

// looksLog tells whether b begins as a line of an engine's log does: what must
// follow an unknown name before it is believed to be a wrapper's.
func looksLog(b []byte) bool {
	if vllmHead(b) {
		return true
	}
	b = b[colour(b):]
	switch {
	case bytes.HasPrefix(b, []byte("Traceback (most recent call last):")),
		bytes.HasPrefix(b, []byte(`  File "`)),
		bytes.HasPrefix(b, []byte(`{"asctime"`)):
		return true
	case bytes.HasPrefix(b, []byte("[rank")):
		return len(b) > 5 && isDigit(b[5])
	}
	if n := levelWord(b); n > 0 {
		// uvicorn pads its level to ten columns
		return bytes.HasPrefix(b[n:], []byte(":  "))
	}
	s, ok := scanStamp(b)
	return ok && (len(b) == s.n || b[s.n] == ' ')
}

// colour returns the length of the colour sequences at the start of b, also of
// those that lost their ESC.
func colour(b []byte) int {
	i := 0
	for i < len(b) {
		n := oneColour(b[i:])
		if n == 0 {
			break
		}
		i += n
	}
	return i
}

func oneColour(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case esc:
		return csi(b, 1)
	case '[':
		return lostColour(b)
	case '#':
		if bytes.HasPrefix(b, []byte(octalEsc)) {
			return csi(b, len(octalEsc))
		}
	}
	return 0
}
