package parser

import "strings"

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
		inFrames
		inText
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
			cur.grouped, cur.to, state = grouped, i, inFrames
			continue
		case isChain(s):
			state, chained, cur = outside, true, nil
			continue
		case s == "NoneType: None":
			continue // logger.exception outside of a handler
		}
		if f, ok := frameLine(s); ok {
			if state != inFrames {
				begin(i, false)
			}
			cur.Frames = append(cur.Frames, Frame{File: f.file, Func: f.fn, At: l.At})
			state, cur.to = inFrames, i
			continue
		}
		switch state {
		case inFrames:
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
				cur.Class, cur.text, cur.At, cur.to, state = class, []string{txt}, l.At, i, inText
			}
		case outside:
			if class, txt, ok := exceptionLine(s); ok {
				begin(i, false)
				cur.Class, cur.text, cur.At, cur.to, state = class, []string{txt}, l.At, i, inText
			}
		case inText:
			cur.text, cur.to = append(cur.text, s), i
		}
	}
	for i := range out {
		r := &out[i]
		r.Text = strings.Join(r.text, "\n")
		r.Wrapped = wrappedText(r.Class, r.text)
	}
	return out
}

// wrappedText tells whether the lines of a text are those of a terminal: all
// but the last are of one length. The first may have lost a prefix.
func wrappedText(class string, text []string) bool {
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
