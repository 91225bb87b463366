package parser

import (
	"strings"

	"diagnose/parser/framing"
)

// Limits of what a record keeps. The exception stands last, so head and tail
// are kept and the middle is dropped.
const (
	MaxRecordLines = 4000
	maxRecordBytes = 1 << 20
	maxLineText    = 16 << 10
	// maxText bounds the lines taken for a text of several lines where nothing
	// but the order says that they belong to it, and maxTextGap how far the
	// next one may stand.
	maxText    = 12
	maxTextGap = 64
)

// open is a record that may still grow.
type open struct {
	slot       slot
	proc       Process
	level      Level
	time, file string
	line       string
	meta       framing.Meta
	text       textLines

	prev, next *open
	begin, seq int64 // of its first and its last line
	from       Pos   // see Parser.OpenFrom

	// sawCR tells that the record shows its end: vLLM ends every line but the
	// last in "\r" (logging_utils/formatter.py); some collectors strip it.
	sawCR bool
	trace bool // inside a traceback, its exception line is still to come
	exc   bool // an exception line was read
	after int  // lines taken after the exception line
	// bodyRaw is set for a head below which a traceback is printed without
	// heads.
	bodyRaw bool
	// frame is the newest line if it is a frame's; wrap is the width at which
	// a terminal broke one.
	frame       *frame
	wrap, width int
	wrapped     bool
}

func newOpen(h *head, meta framing.Meta, raw bool) *open {
	return &open{
		slot: h.slot(raw), proc: h.proc, level: h.level, meta: meta, bodyRaw: raw,
		time: string(h.time), file: string(h.file), line: string(h.line),
	}
}

func (o *open) add(l piece, seq int64) {
	o.text.add(TextLine{At: l.at, Text: l.text})
	o.seq, o.sawCR, o.width = seq, o.sawCR || l.cr, l.width
	o.read(l.text)
}

// addBelow takes a line that stands without prefix and head below the last.
func (o *open) addBelow(l piece, seq int64) {
	if o.broken(l) {
		// A terminal broke the line before; put it together again.
		o.wrap = o.width
		o.seq, o.width = seq, l.width
		o.read(o.text.glue(l.text))
		return
	}
	if o.exc {
		o.wrapped = o.wrapped || !o.slot.raw
	} else {
		o.bodyRaw = true
	}
	o.add(l, seq)
}

// read follows what the newest line means for the record.
func (o *open) read(text string) {
	o.frame = nil
	s, grouped := margin(strings.TrimRight(text, " "))
	if s == "" {
		return
	}
	if s[0] != ' ' {
		switch {
		case isTraceHead(s):
			o.trace, o.exc, o.after = true, false, 0
			return
		case isChain(s):
			o.trace, o.exc, o.after = false, false, 0
			return
		case o.isException(s):
			o.trace, o.exc, o.after = false, true, 0
			return
		}
	}
	if f, ok := frameLine(s); ok {
		o.trace, o.exc, o.frame = true, false, &f
	} else if o.exc && !grouped {
		o.after++
	}
}

func (o *open) isException(s string) bool {
	_, _, ok := exceptionLine(s)
	if !ok && o.trace {
		_, _, ok = looseException(s)
	}
	return ok
}

// whole tells whether nothing shows that more of the record will come.
func (o *open) whole() bool {
	if o.slot.raw {
		return o.exc
	}
	return !o.sawCR && !o.trace
}

// continues tells whether a formatted line of the same process belongs to the
// record. Lines of one record share level, time, file and line number; so do
// two calls of the same place within a second.
func (o *open) continues(h *head, text string) bool {
	if h.level != o.level || string(h.time) != o.time || string(h.file) != o.file || string(h.line) != o.line {
		return false
	}
	s := strings.TrimRight(text, " ")
	switch {
	case o.sawCR: // it would be closed
		return true
	case s == "", text[0] == ' ', isTraceHead(s), isChain(s):
		return true
	case o.trace:
		return true
	case o.begins(s):
		return false
	}
	_, _, ok := exceptionLine(s)
	// A cut log has the exception right below the message.
	return o.exc && !ok && o.after < maxText || !o.exc && ok
}

// begins tells whether a line begins another record of the same place. Both
// print the same format, so they begin alike; a place that logs bare
// exceptions is told by their names.
func (o *open) begins(s string) bool {
	const alike = 10
	first := o.text.head[0].Text
	n := min(len(first), alike)
	if n > 0 && len(s) >= n && s[:n] == first[:n] && !isTraceHead(first) {
		return true
	}
	for _, begin := range []string{
		"EngineCore encountered", "EngineCore failed", "WorkerProc ", "AsyncLLM output_handler",
		"Error in ", "Dumping ", "Worker proc ", "Invocation of ", "Exception ",
	} {
		if strings.HasPrefix(s, begin) {
			return true
		}
	}
	return false
}

// opensRaw tells whether an unformatted line begins a record of several lines.
func opensRaw(s string) bool {
	if isTraceHead(s) || isChain(s) {
		return true
	}
	// multiprocessing/process.py, _bootstrap
	if strings.HasPrefix(s, "Process ") && strings.HasSuffix(s, ":") && len(s) < 80 {
		return true
	}
	if _, ok := frameLine(s); ok {
		return true
	}
	_, _, ok := exceptionLine(s)
	return ok
}

// takesRaw tells whether an unformatted line of the same process continues an
// unformatted record.
func (o *open) takesRaw(text string, seq int64) bool {
	if !o.bodyRaw {
		return false
	}
	s := strings.TrimRight(text, " ")
	if _, grouped := margin(s); grouped && (o.trace || o.exc) {
		return true
	}
	switch {
	case s == "", s == tracebackHead, isChain(s):
		return true
	case !o.exc:
		// Anything but an indented line or the exception is another writer's.
		return text[0] == ' ' || isTraceHead(s) || o.isException(s)
	}
	_, _, another := exceptionLine(s)
	return !another && o.after < maxText && seq-o.seq <= maxTextGap && !foreign(s)
}

// takesBelow tells whether a line without any prefix that stands directly
// below the record's last line is a piece of it: a text that a terminal broke,
// or a traceback below a head whose process prints without a prefix.
func (o *open) takesBelow(l piece) bool {
	s := strings.TrimRight(l.text, " ")
	switch {
	case s == "" || o.sawCR:
		// A record that was written with its line ends is not broken.
		return false
	case o.broken(l):
		return true
	case o.exc:
		_, _, another := exceptionLine(s)
		return !another && s != tracebackHead && o.after < maxText && !foreign(s)
	case o.slot.raw || o.trace:
		return false // takesRaw knows better, or the lines have heads
	}
	_, frame := frameLine(s)
	return frame || isTraceHead(s)
}

// broken tells whether l is the rest of the frame or source line before it.
func (o *open) broken(l piece) bool {
	if o.exc || o.width == 0 || l.width > o.width {
		return false
	}
	s := strings.TrimRight(l.text, " ")
	if _, frame := frameLine(s); frame || strings.HasPrefix(s, "    ") || o.isException(s) {
		return false
	}
	switch f := o.frame; {
	case o.trace && o.wrap > 0 && o.width == o.wrap:
		return true
	case f == nil:
		return false
	case f.cut:
		return true
	case f.fn == "": // broken inside the number
		return isDigit(l.text[0]) || l.text[0] == ','
	}
	// Broken inside the function's name: what else is one bare word?
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.<>") == ""
}

// foreign knows lines that certainly begin something else.
func foreign(s string) bool {
	switch s[0] {
	case '[', '(', '{', '/', '*':
		return true
	}
	for _, begin := range []string{
		"INFO", "Process ", "Exception ignored in", "Exception in thread", "Fatal Python error", "terminate called", "nanobind: ",
	} {
		if strings.HasPrefix(s, begin) {
			return true
		}
	}
	return false
}

// ends tells whether a line begins a traceback that is certainly none of this
// record's: a raw record that holds two already takes no third, so that those
// of hundreds of requests do not become one.
func (o *open) ends(text string) bool {
	return o.slot.raw && o.exc && text == tracebackHead && len(parts(o.text.all())) > 1
}

// events emits what the record says: one event, or one for each traceback of a
// raw record in which several stand below each other.
func (o *open) events(emit func(Event)) {
	lines := o.text.all()
	if !o.slot.raw {
		o.event(emit, lines, exceptions(lines, true), o.level, o.text.dropped)
		return
	}
	level, dropped := o.level, o.text.dropped
	all := parts(lines)
	for i, q := range all {
		to := len(lines)
		if i+1 < len(all) {
			to = all[i+1].from
		}
		o.event(emit, lines[q.from:to:to], q.list, level, dropped)
		level, dropped = Raw, 0
	}
}

func (o *open) event(emit func(Event), lines []TextLine, list []Exception, level Level, dropped int) {
	r := &Record{Proc: o.proc, Level: level, Time: o.time, File: o.file, Lines: lines, Dropped: dropped}
	e := Event{At: r.At(), Proc: r.Proc, Time: r.Time, Meta: o.meta, Body: Notice{Record: r}}
	if len(list) > 0 {
		last := &list[len(list)-1]
		last.Wrapped = last.Wrapped || o.wrapped
		e.Body = Failure{Record: r, Exceptions: list}
	}
	emit(e)
}
