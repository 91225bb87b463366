package parser

import (
	"strings"
)

const tracebackHead = "Traceback (most recent call last):"

// isTraceHead tells whether a line begins a traceback: alone, behind a message
// ("EngineCore hit an exception: Traceback ...", 0.7.3 to 0.8.4), or as an
// exception group.
func isTraceHead(s string) bool {
	return strings.HasSuffix(s, tracebackHead) && (len(s) == len(tracebackHead) || len(s) < 200)
}

// isChain tells whether a line joins two exceptions of one traceback.
func isChain(s string) bool {
	return strings.HasPrefix(s, "During handling of the above exception, another exception occurred:") ||
		strings.HasPrefix(s, "The above exception was the direct cause of the following exception:")
}

// exceptionLine splits "module.Class: text" or a bare "module.Class". It wants
// the shape of an exception's name, so that a sentence with a colon is none.
func exceptionLine(s string) (class, text string, ok bool) {
	if s == "" || !isLetter(s[0]) && s[0] != '_' {
		return "", "", false
	}
	end := 0
	for end < len(s) && isNameByte(s[end]) {
		end++
	}
	if !isExceptionName(s[:end]) {
		return "", "", false
	}
	class, rest := s[:end], s[end:]
	if len(rest) > 1 && rest[0] == '(' {
		if rest[1] == '\'' || rest[1] == '"' {
			// A repr, as V0's engine process logs it: OutOfMemoryError('text').
			return class, unrepr(rest[1:]), true
		}
		// Ray names the cause: RayTaskError(OutOfMemoryError): text.
		i := strings.IndexByte(rest, ')')
		if i < 0 || !isExceptionName(rest[1:i]) {
			return "", "", false
		}
		class, rest = s[:end+i+1], rest[i+1:]
	}
	switch {
	case rest == "":
		return class, "", true
	case rest[0] != ':' || len(rest) > 1 && rest[1] != ' ':
		return "", "", false
	}
	return class, strings.TrimPrefix(rest[1:], " "), true
}

// looseException reads the line that ends a traceback where its class has no
// exception's name: "queue.Empty", "zmq.error.Again: text". Without a module
// only Python's own count.
func looseException(s string) (class, text string, ok bool) {
	end := 0
	for end < len(s) && isNameByte(s[end]) {
		end++
	}
	name, rest := s[:end], s[end:]
	last := lastName(name)
	if len(last) < 2 || last[0] < 'A' || last[0] > 'Z' || end > maxClass || rest != "" && !strings.HasPrefix(rest, ": ") {
		return "", "", false
	}
	if last == name && last != "StopIteration" && last != "StopAsyncIteration" && !strings.HasSuffix(last, "Warning") {
		return "", "", false
	}
	return name, strings.TrimPrefix(rest, ": "), true
}

// unrepr gives the text of a quoted string, its end cut off or not.
func unrepr(s string) string {
	quote := s[:1]
	s = strings.TrimSuffix(strings.TrimSuffix(s[1:], ")"), ",")
	s = strings.TrimSuffix(s, quote)
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	return strings.NewReplacer(`\n`, "\n", `\'`, `'`, `\"`, `"`, `\\`, `\`, `\t`, "\t").Replace(s)
}

const maxClass = 120

// exceptionEnds are how the names of exceptions end. Standard ones without
// such an end are read inside a traceback only (looseException).
var exceptionEnds = [...]string{"Error", "Exception", "Exit", "Interrupt", "OutOfResources", "Cancelled", "TimeoutExpired", "ExceptionGroup", "RemoteTraceback"}

func isExceptionName(name string) bool {
	if name == "" || len(name) > maxClass {
		return false
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last == "" || (last[0] < 'A' || last[0] > 'Z') && last[0] != '_' {
		return false
	}
	for _, end := range exceptionEnds {
		if strings.HasSuffix(last, end) {
			return true
		}
	}
	return false
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

func isNameByte(c byte) bool { return c == '.' || c == '_' || isLetter(c) || isDigit(c) }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// frame is a frame's line.
type frame struct {
	file, fn string
	// cut is set where the line ends before it should.
	cut bool
}

// frameLine reads `File "path", line N, in func`.
func frameLine(s string) (frame, bool) {
	const begin, middle = `File "`, `", line `
	t := strings.TrimLeft(s, " ")
	if len(t) < len(begin) || t[:len(begin)] != begin {
		return frame{}, false
	}
	t = t[len(begin):]
	q := strings.Index(t, middle)
	if q < 0 {
		// A terminal broke it. Without its indentation it may be anything.
		e := strings.IndexByte(t, '"')
		cut := len(s) > len(t)+len(begin) && strings.IndexByte(t, '/') >= 0 && (e < 0 || strings.HasPrefix(middle, t[e:]))
		return frame{file: t, cut: true}, cut
	}
	f := frame{file: t[:q]}
	t = t[q+len(middle):]
	n := 0
	for n < len(t) && isDigit(t[n]) {
		n++
	}
	switch rest := t[n:]; {
	case strings.HasPrefix(rest, ", in "):
		f.fn = strings.TrimSpace(rest[len(", in "):])
		f.cut = f.fn == ""
	case rest != "" || n == 0:
		f.cut = true // a syntax error's frame ends with the number
	}
	return f, true
}

// margin strips what an exception group puts in front of its lines: "  | ",
// "    +-+---- 1 ----"; of a rule nothing is left.
func margin(s string) (rest string, grouped bool) {
	t := strings.TrimLeft(s, " ")
	if len(t) == len(s) || t == "" || t[0] != '|' && t[0] != '+' {
		return s, false
	}
	switch {
	case strings.HasPrefix(t, "| "):
		return t[2:], true
	case t == "|", strings.HasPrefix(t, "+-"):
		return "", true
	case t == "+ Exception Group "+tracebackHead:
		return tracebackHead, true
	}
	return s, false
}

// reading is one exception as it stands in a record.
type reading struct {
	Exception
	text []string
	// from and to are its lines; headed tells that a traceback's head stands
	// first, chained that it is joined to the one before.
	from, to        int
	headed, chained bool
	grouped         bool
}

// readings takes the exceptions of a record apart, in the order of its lines.
func readings(lines []TextLine) []reading {
	const (
		outside = iota
		frames
		text
	)
	var (
		out     []reading
		cur     *reading
		state   = outside
		chained bool
	)
	begin := func(i int, headed bool) {
		out = append(out, reading{from: i, headed: headed, chained: chained})
		cur, chained = &out[len(out)-1], false
	}
	for i, l := range lines {
		s, grouped := margin(strings.TrimRight(l.Text, " \r"))
		if s == "" {
			if grouped {
				state = outside // a rule: the next exception of the group
			}
			continue
		}
		switch {
		case isTraceHead(s):
			begin(i, true)
			cur.grouped, cur.to, state = grouped, i, frames
			continue
		case isChain(s):
			state, chained, cur = outside, true, nil
			continue
		case s == "NoneType: None":
			continue // logger.exception outside of a handler
		}
		if f, ok := frameLine(s); ok {
			if state != frames {
				begin(i, false)
			}
			cur.Frames = append(cur.Frames, Frame{File: f.file, Func: f.fn, At: l.At})
			state, cur.to = frames, i
			continue
		}
		switch state {
		case frames:
			if s[0] == ' ' {
				if n := len(cur.Frames); n > 0 && cur.Frames[n-1].Code == "" && strings.Trim(s, " ^~") != "" {
					cur.Frames[n-1].Code, cur.Frames[n-1].CodeAt = strings.TrimSpace(s), l.At
				}
				cur.to = i
				continue
			}
			class, txt, ok := exceptionLine(s)
			if !ok && len(cur.Frames) > 0 {
				class, txt, ok = looseException(s)
			}
			if ok {
				cur.Class, cur.text, cur.At, cur.to, state = class, []string{txt}, l.At, i, text
			}
		case outside:
			if class, txt, ok := exceptionLine(s); ok {
				begin(i, false)
				cur.Class, cur.text, cur.At, cur.to, state = class, []string{txt}, l.At, i, text
			}
		case text:
			cur.text, cur.to = append(cur.text, s), i
		}
	}
	for i := range out {
		r := &out[i]
		r.Text = strings.Join(r.text, "\n")
		r.Wrapped = broken(r.Class, r.text)
	}
	return out
}

// broken tells whether the lines of a text are those of a terminal: all but
// the last are of one length. The first may have lost a prefix.
func broken(class string, text []string) bool {
	if len(text) < 3 {
		return false
	}
	width := len(text[1])
	for _, s := range text[2 : len(text)-1] {
		if len(s) != width {
			return false
		}
	}
	return width >= 40 && len(text[0])+len(class)+2 <= width && len(text[len(text)-1]) <= width && len(text) > 3
}

// carries tells whether the exception's text holds the traceback of another
// process, which is its cause. For any other, what looks like a traceback
// inside its text is text.
func (r *reading) carries() bool {
	name := lastName(r.Class)
	for _, carrier := range [...]string{"RayTaskError", "RayActorError", "ActorDiedError", "RemoteTraceback", "_RemoteTraceback", "ProcessRaisedException"} {
		if strings.HasPrefix(name, carrier) {
			return true
		}
	}
	return strings.HasSuffix(name, "ExceptionGroup")
}

func lastName(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// copyOf finds the exception that r repeats, -1 if none. A text that is still
// being read counts as far as it goes.
func copyOf(list []reading, r *reading) int {
	for i := range list {
		q := &list[i]
		if q.Class == "" {
			continue
		}
		switch {
		case r.Class == "":
			if !r.chained && len(r.Frames) <= len(q.Frames) && sameFrames(q.Frames, r.Frames) {
				return i
			}
		case lastName(q.Class) != lastName(r.Class):
		case q.Text == r.Text, !r.chained && r.Text != "" && strings.HasPrefix(q.Text, r.Text):
			return i
		}
	}
	return -1
}

func sameFrames(long, short []Frame) bool {
	for i := range short {
		if long[i].File != short[i].File || long[i].Func != short[i].Func {
			return false
		}
	}
	return true
}

// fold puts the exceptions of one traceback into causal order, copies folded.
// With Python's add_note (vLLM 0.8.2 on) a record holds its traceback twice.
// sure tells that all lines were written in one go, so that a traceback that
// is neither joined to the one before nor its copy can only be text.
func fold(lines []TextLine, list []reading, sure bool) []Exception {
	var out []reading
	traced, quoted := false, false
	carrier := -1
	for i := range list {
		r := &list[i]
		if c := copyOf(out, r); c >= 0 && !(quoted && r.chained) {
			if r.Class != "" {
				out[c].Copies++
			}
			if len(out[c].Frames) == 0 {
				out[c].Frames = r.Frames
			}
			traced, quoted = traced || len(r.Frames) > 0, false
			continue
		}
		if n := len(out); n > 0 && !r.chained && out[n-1].carries() {
			carrier = n - 1
		} else if r.chained {
			carrier = -1
		}
		switch {
		case carrier >= 0:
			// The cause stands in the text of what carries it.
			out = append(out, reading{})
			copy(out[carrier+1:], out[carrier:])
			out[carrier] = *r
			carrier++
		case len(out) > 0 && sure && (traced && !r.chained || quoted):
			last := &out[len(out)-1]
			var b strings.Builder
			b.WriteString(last.Text)
			for _, l := range lines[r.from : r.to+1] {
				if !isBlank(l.Text) {
					b.WriteByte('\n')
					b.WriteString(l.Text)
				}
			}
			last.Text, quoted = b.String(), true
			continue
		default:
			out = append(out, *r)
		}
		traced, quoted = traced || len(r.Frames) > 0 || r.headed, false
	}
	ex := make([]Exception, len(out))
	for i := range out {
		ex[i] = out[i].Exception
	}
	return ex
}

// exceptions reads the exceptions of a record.
func exceptions(lines []TextLine, sure bool) []Exception {
	list := readings(lines)
	if len(list) == 0 {
		return nil
	}
	return fold(lines, list, sure)
}

// part is one traceback of a raw record, with its chain and its copies.
type part struct {
	from int
	list []Exception
}

// parts tells the tracebacks of a raw record apart: one that is neither joined
// to the one before nor its copy was printed for itself.
func parts(lines []TextLine) []part {
	list := readings(lines)
	var out []part
	from, first := 0, 0
	cut := func(line, next int) {
		out = append(out, part{from: from, list: fold(lines, list[first:next], false)})
		from, first = line, next
	}
	for i := range list {
		r := &list[i]
		if i == first || r.chained || !r.headed || r.grouped || r.Class == "" || list[i-1].Class == "" || list[i-1].carries() {
			continue
		}
		if lines[r.from].Text != tracebackHead || copyOf(list[first:i], r) >= 0 {
			continue
		}
		cut(r.from, i)
	}
	cut(0, len(list))
	return out
}
