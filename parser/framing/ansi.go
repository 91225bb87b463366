package framing

import "bytes"

const (
	esc = 0x1b
	bel = 0x07
	// maxParams and maxOSC bound a sequence, so that a stray ESC cannot take a
	// line with it. An OSC carries a title or a link.
	maxParams = 64
	maxOSC    = 4096
)

// octalEsc is how journald and rsyslog write an ESC into a text file.
const octalEsc = "#033"

// HasANSI tells whether StripANSI would look closer at b. False means that b
// is free of colour.
func HasANSI(b []byte) bool {
	if bytes.IndexByte(b, esc) >= 0 || bytes.Contains(b, []byte(octalEsc)) {
		return true
	}
	for i := 0; ; i++ {
		n := bytes.IndexByte(b[i:], '[')
		if n < 0 {
			return false
		}
		i += n
		if lostColour(b[i:]) > 0 {
			return true
		}
	}
}

// StripANSI appends src to dst without terminal sequences and returns the
// result: CSI (ESC "[" up to its final byte), OSC (ESC "]" up to BEL or ESC
// "\"), and CSI with its ESC written as #033. Colours that lost their ESC, as
// "[36m" in pasted logs, are removed only directly around a process prefix, a
// level, or the parts of a record's head, for "rate(x[5m])" is no colour.
//
// StripANSI(src[:0], src) works in place. It allocates only where dst is too
// small, and never returns src itself otherwise.
func StripANSI(dst, src []byte) []byte {
	if !HasANSI(src) {
		return append(dst, src...)
	}
	start, last := len(dst), 0
	for i := 0; i < len(src); {
		n := 0
		switch src[i] {
		case esc:
			n = sequence(src[i:])
		case '#':
			if bytes.HasPrefix(src[i:], []byte(octalEsc)) {
				n = csi(src[i:], len(octalEsc))
			}
		case '[':
			if n = lostColour(src[i:]); n > 0 {
				// What stands to the left is judged without its colours.
				dst = append(dst, src[last:i]...)
				last = i
				if !beforeHead(src[i+n:]) && !(isReset(src[i:i+n]) && afterHead(dst[start:])) {
					n = 0
				}
			}
		}
		if n == 0 {
			i++
			continue
		}
		dst = append(dst, src[last:i]...)
		i += n
		last = i
	}
	return append(dst, src[last:]...)
}

// sequence returns the length of the escape sequence at the start of b, 0 if
// it is none of those removed.
func sequence(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '[':
		return csi(b, 1)
	case ']':
		return osc(b)
	case '(':
		// "tput sgr0" also chooses a character set: ESC ( B
		if len(b) > 2 && (b[2] == 'B' || b[2] == '0') {
			return 3
		}
	}
	return 0
}

// csi returns the length of a control sequence whose ESC takes at bytes: the
// "[", parameters, intermediates, one final byte (ECMA-48, 5.4). A sequence
// cut off by the end of the text goes whole; at any other wrong byte only what
// is before it goes.
func csi(b []byte, at int) int {
	if len(b) <= at || b[at] != '[' {
		return 0
	}
	i := at + 1
	for ; i < len(b) && i-at <= maxParams; i++ {
		c := b[i]
		switch {
		case 0x40 <= c && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x3f:
			return i
		}
	}
	return i
}

func osc(b []byte) int {
	for i := 2; i < len(b) && i < maxOSC; i++ {
		switch b[i] {
		case bel:
			return i + 1
		case esc:
			if i+1 < len(b) && b[i+1] == '\\' {
				return i + 2
			}
			return i
		}
	}
	// Without an end the text after it may be the log's own.
	return 2
}

// lostColour returns the length of "[36m", "[0;36m" or "[m" at the start of b,
// 0 if it is none.
func lostColour(b []byte) int {
	if len(b) < 2 || b[0] != '[' {
		return 0
	}
	run := 0
	for i := 1; i < len(b) && i < 24; i++ {
		switch c := b[i]; {
		case isDigit(c):
			if run++; run > 3 {
				return 0
			}
		case c == ';':
			run = 0
		case c == 'm':
			return i + 1
		default:
			return 0
		}
	}
	return 0
}

// isReset tells whether a colour only switches colours off.
func isReset(b []byte) bool {
	for _, c := range b[1 : len(b)-1] {
		if c != '0' && c != ';' {
			return false
		}
	}
	return true
}

// beforeHead tells whether b begins with what vLLM or Ray prints in colour.
func beforeHead(b []byte) bool {
	if processPrefix(b) > 0 || levelWord(b) > 0 || bytes.HasPrefix(b, []byte(" [repeated ")) {
		return true
	}
	if isShortDate(b) && len(b) >= 14 && isClock(b[6:14]) {
		return true
	}
	return fileInfo(b)
}

// fileInfo tells whether b begins with "[core.py:123]" or "[core.py:123".
func fileInfo(b []byte) bool {
	if len(b) < 2 || b[0] != '[' || !isLetter(b[1]) {
		return false
	}
	w := b[1:min(len(b), 128)]
	i := bytes.IndexByte(w, ':')
	return i > 0 && i+1 < len(w) && isDigit(w[i+1]) && bytes.IndexByte(w[:i], ' ') < 0
}

// afterHead tells whether b ends with what vLLM or Ray prints in colour.
func afterHead(b []byte) bool {
	n := len(b)
	if n == 0 {
		return false
	}
	switch c := b[n-1]; {
	case c == ')':
		i := bytes.LastIndexByte(b[max(0, n-maxPrefix):], '(')
		return i >= 0 && bytes.Contains(b[max(0, n-maxPrefix)+i:], []byte("pid="))
	case c == ']':
		return bytes.HasSuffix(b, []byte(" across cluster]")) || n > 1 && isDigit(b[n-2]) && endsFileInfo(b)
	case isDigit(c):
		return n >= 8 && isClock(b[n-8:])
	}
	w := b[bytes.LastIndexByte(b[max(0, n-9):], ' ')+1+max(0, n-9):]
	for i := 0; i < len(w) && i < 9; i++ {
		if levelWord(w[i:]) == len(w)-i {
			return i == 0 || !isLetter(w[i-1])
		}
	}
	return false
}

func endsFileInfo(b []byte) bool {
	w := b[max(0, len(b)-128):]
	i := bytes.LastIndexByte(w, '[')
	return i >= 0 && fileInfo(w[i:])
}
