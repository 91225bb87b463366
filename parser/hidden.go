package parser

import (
	"bytes"
	"strings"
)

// readHidden looks for a head that does not stand where it should: behind a
// progress bar, or behind the free text of VLLM_LOGGING_PREFIX. b is a line
// without a head; h is what was read of it.
func (p *Parser) readHidden(h *head, b []byte) {
	if len(h.rest) == 0 {
		return
	}
	if rest, ok := afterProgress(h.rest); ok {
		in := p.readHead(rest)
		if in.level == Raw && in.proc.IsZero() {
			h.rest = rest
			return
		}
		if in.proc.IsZero() {
			in.proc = h.proc
		}
		*h = in
		return
	}
	if h.rest[0] == ' ' {
		return // a traceback's lines are indented
	}
	if _, _, ok := exceptionLine(string(h.rest[:min(len(h.rest), 256)])); ok {
		return // its text may quote anything
	}
	if o := p.set.by[h.slot(true)]; o != nil && o.exc && p.seq-o.seq <= maxTextGap {
		return // as may the lines below it
	}
	p.free.read(p, h, b)
}

// afterProgress returns the part of a line that follows a progress bar: tqdm
// rewrites its line with "\r" and ends it without "\n", so another process's
// record is glued behind it. What stands before the last "\r" was overwritten
// on a terminal. A line without a bar's meter is left as it is.
func afterProgress(b []byte) ([]byte, bool) {
	if b[0] != '\r' {
		if _, _, ok := exceptionLine(string(b[:min(len(b), 256)])); ok {
			return b, false // a quoted bar is none
		}
	}
	found := false
	if i := bytes.LastIndexByte(b, '\r'); i >= 0 && (meterEnd(b[:i]) > 0 || len(bytes.Trim(b[:i], " \r")) == 0) {
		b, found = b[i+1:], true
	}
	if n := meterEnd(b); n > 0 {
		rest := bytes.TrimLeft(b[n:], " ")
		var h head
		if _, _, _, ok := readPrefix(rest); ok || readLevel(&h, rest) && h.time != nil {
			b, found = rest, true
		}
	}
	return b, found
}

// meterEnd gives where the first meter of tqdm in b ends, 0 if there is none:
// "[00:01<00:03,  1.2s/it]" (tqdm/std.py, format_meter).
func meterEnd(b []byte) int {
	for i := 0; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '[')
		if n < 0 {
			return 0
		}
		i += n
		j := i + 1
		for j < len(b) && (isDigit(b[j]) || b[j] == ':') {
			j++
		}
		if j < i+5 || j >= len(b) || b[j] != '<' {
			continue
		}
		if e := bytes.IndexByte(b[j:min(len(b), j+160)], ']'); e >= 0 {
			return j + e + 1
		}
	}
	return 0
}

// freeText knows the value of VLLM_LOGGING_PREFIX, which stands in front of
// the level without a separator, and from 0.31.0 in front of the process
// prefix; and what a collector that framing does not know puts in front of
// each line, its clock's digits left aside. It is believed only after the same
// text stood at the same place on two lines, with no plain head between, for a
// single such line may quote.
type freeText struct {
	known []freePlace
	try   freePlace
	hits  int
}

type freePlace struct {
	// text has a 0 for each run of digits.
	text string
	// inner tells that it stands behind the process prefix.
	inner bool
}

// sameDigits is b with a 0 for each run of digits.
func sameDigits(b []byte) string {
	out := make([]byte, 0, len(b))
	for i, c := range b {
		if !isDigit(c) {
			out = append(out, c)
		} else if i == 0 || !isDigit(b[i-1]) {
			out = append(out, '0')
		}
	}
	return string(out)
}

// at gives how many bytes of b the text is, 0 if b does not begin with it.
func (f freePlace) at(b []byte) int {
	n := 0
	for i := range len(f.text) {
		switch {
		case n >= len(b):
			return 0
		case f.text[i] != '0':
			if b[n] != f.text[i] {
				return 0
			}
			n++
		default:
			from := n
			for n < len(b) && isDigit(b[n]) {
				n++
			}
			if n == from {
				return 0
			}
		}
	}
	return n
}

// clocked tells whether the text holds a time of day: a collector's, which
// stands in front of what has no head too.
func (f freePlace) clocked() bool { return !f.inner && strings.Contains(f.text, "0:0:0") }

// omniStage is the prefix that vLLM-Omni gives the processes of a stage.
var omniStage = freePlace{text: "[Stage-0] "}

const (
	freeHits    = 2
	maxFreeText = 64
	maxFree     = 4
)

// miss takes note of a plain head.
func (f *freeText) miss() { f.hits = 0 }

// read fills h from a line whose head stands behind free text.
func (f *freeText) read(p *Parser, h *head, b []byte) {
	inner := len(h.rest) < len(b)
	if n := omniStage.at(h.rest); n > 0 {
		if in, ok := p.readBehind(h, n); ok {
			*h = in
			return
		}
	}
	for _, k := range f.known {
		n := k.at(h.rest)
		if k.inner != inner || n == 0 {
			continue
		}
		if in, ok := p.readBehind(h, n); ok {
			*h = in
			return
		}
		if k.clocked() {
			*h = p.readHead(h.rest[n:])
			return
		}
	}
	n := findHead(h.rest)
	if n <= 0 || n > maxFreeText || bytes.ContainsAny(h.rest[:n], "\"'`{}\\") {
		return // what is quoted is no prefix
	}
	in, ok := p.readBehind(h, n)
	if !ok {
		return
	}
	at := freePlace{text: sameDigits(h.rest[:n]), inner: inner}
	if at != f.try {
		f.try, f.hits = at, 0
	}
	if f.hits < freeHits {
		f.hits++
		return
	}
	if len(f.known) < maxFree {
		f.known = append(f.known, at)
	}
	*h = in
}

// readBehind reads the head behind n bytes of free text. Only a whole head of
// a record counts, and a prefix only once.
func (p *Parser) readBehind(h *head, n int) (head, bool) {
	in := p.readHead(h.rest[n:])
	if in.level == Raw || in.time == nil || in.file == nil || !in.proc.IsZero() && !h.proc.IsZero() {
		return in, false
	}
	if in.proc.IsZero() {
		in.proc = h.proc
	}
	in.free = true
	return in, true
}

// findHead gives where the first head of a record begins in b, with its
// process prefix if it has one; -1 if there is none near.
func findHead(b []byte) int {
	w := b[:min(len(b), maxFreeText+maxPrefix)]
	for i := range w {
		switch w[i] {
		case '(':
			if _, _, rest, ok := readPrefix(b[i:]); ok {
				var h head
				if readLevel(&h, rest) && h.time != nil {
					return i
				}
			}
		case 'I', 'E', 'W', 'D', 'C':
			var h head
			if readLevel(&h, b[i:]) && h.time != nil {
				return i
			}
		}
	}
	return -1
}
