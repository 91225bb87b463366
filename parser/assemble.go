package parser

import (
	"sort"
	"strings"

	"diagnose/parser/framing"
)

// open is a record that may still grow.
type open struct {
	rec    Record
	key    head
	meta   framing.Meta
	headed bool
	seq    int64 // of its last line
	// vLLM ends every line of a record but the last in "\r"
	// (logging_utils/formatter.py); some collectors strip it.
	sawCR, lastCR bool
	trace         bool // inside a traceback, its exception line is still to come
	exc           bool // an exception line was read
	loose         int  // lines taken after the exception line
}

func newOpen(h head, text string, cr bool, at Pos, meta framing.Meta, seq int64) *open {
	o := &open{key: h, meta: meta, headed: h.level != Raw}
	o.rec = Record{Proc: h.proc, Level: h.level, Time: h.time, File: h.file}
	o.add(text, at, cr, seq)
	return o
}

func (o *open) add(text string, at Pos, cr bool, seq int64) {
	if len(o.rec.Lines) >= MaxRecordLines {
		half := MaxRecordLines / 2
		o.rec.Lines = append(o.rec.Lines[:half], o.rec.Lines[half+1:]...)
		o.rec.Dropped++
	}
	o.rec.Lines = append(o.rec.Lines, TextLine{At: at, Text: text})
	o.seq, o.sawCR, o.lastCR = seq, o.sawCR || cr, cr
	s := strings.TrimRight(text, " ")
	switch {
	case s == tracebackHead:
		o.trace, o.exc, o.loose = true, false, 0
	case isChain(s):
		o.exc, o.loose = false, 0
	default:
		if _, _, ok := frameLine(s); ok {
			o.trace, o.exc = true, false
		} else if _, _, ok := exceptionLine(s); ok {
			o.trace, o.exc, o.loose = false, true, 0
		} else if o.exc && s != "" {
			o.loose++
		}
	}
}

// continues tells whether a formatted line of the same process belongs to the
// record. Lines of one record share level, time, file and line number; so do
// two calls of the same place within a second.
func (o *open) continues(h head, text string) bool {
	k := o.key
	if !o.headed || h.level != k.level || h.time != k.time || h.file != k.file || h.line != k.line {
		return false
	}
	if o.sawCR {
		return o.lastCR
	}
	if text == o.rec.First() && text != tracebackHead {
		return false
	}
	s := strings.TrimRight(text, " ")
	switch {
	case s == "", text[0] == ' ', s == tracebackHead, isChain(s):
		return true
	case o.trace:
		return true
	case o.exc:
		_, _, another := exceptionLine(s)
		return !another && o.loose < 12 && !beginsRecord(s)
	}
	return false
}

// beginsRecord knows the first lines of records that carry a traceback.
func beginsRecord(s string) bool {
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
	if s == tracebackHead || strings.HasPrefix(s, tracebackHead) || isChain(s) {
		return true
	}
	if strings.HasPrefix(s, "Process ") && strings.HasSuffix(s, ":") && len(s) < 80 {
		return true
	}
	if _, _, ok := frameLine(s); ok {
		return true
	}
	_, _, ok := exceptionLine(s)
	return ok
}

// takesRaw tells whether an unformatted line of the same process continues an
// unformatted record.
func (o *open) takesRaw(text string) bool {
	s := strings.TrimRight(text, " ")
	if s == "" || s == tracebackHead || isChain(s) || text[0] == ' ' {
		return true
	}
	if o.trace || !o.exc {
		// Only the exception line may follow; anything else is another writer's.
		_, _, ok := exceptionLine(s)
		return ok
	}
	if _, _, another := exceptionLine(s); another {
		return false
	}
	return o.exc && o.loose < 12 && !foreign(s)
}

// takesLoose tells whether a line without any prefix that stands directly
// below the record's last line is a piece of it: a text that a terminal broke,
// or a traceback below a head whose process prints without a prefix.
func (o *open) takesLoose(text string) bool {
	s := strings.TrimRight(text, " ")
	switch {
	case s == "":
		return false
	case o.exc:
		if o.headed && o.sawCR {
			return false
		}
		_, _, another := exceptionLine(s)
		return !another && s != tracebackHead && o.loose < 12 && !foreign(s)
	case o.headed && !o.trace && s == tracebackHead, o.trace && o.rec.Proc.PID != 0 && looseTrace(o):
		return true
	}
	return false
}

// looseTrace tells whether the record's traceback is being printed without
// prefixes: its last line had none either.
func looseTrace(o *open) bool {
	return o.headed && !o.sawCR && len(o.rec.Lines) > 1 && o.rec.Level != Raw
}

// foreign knows lines that certainly begin something else.
func foreign(s string) bool {
	return s[0] == '[' || s[0] == '(' || s[0] == '{' || strings.HasPrefix(s, "INFO") || strings.HasPrefix(s, "Process ")
}

func (p *Parser) start(h head, text string, cr bool, at Pos, meta framing.Meta) {
	if len(p.open) >= maxOpen {
		p.closeOldest()
	}
	o := newOpen(h, text, cr, at, meta, p.seq)
	p.open[h.proc.PID], p.last = o, o
}

func (p *Parser) close(o *open) {
	if o == nil {
		return
	}
	p.finish(o)
	if p.open[o.key.proc.PID] == o {
		delete(p.open, o.key.proc.PID)
	}
	if p.last == o {
		p.last = nil
	}
}

func (p *Parser) finish(o *open) {
	if e, ok := o.event(); ok {
		p.emit(e)
	}
}

func (o *open) event() (Event, bool) {
	r := o.rec
	e := Event{At: r.At(), Proc: r.Proc, Time: r.Time, Meta: o.meta}
	if ex := readExceptions(r.Lines); len(ex) > 0 {
		e.Body = Failure{Record: &r, Exceptions: ex}
	} else {
		e.Body = Notice{Record: &r}
	}
	return e, true
}

// byAge lists the open records, the one that began first first.
func (p *Parser) byAge() []*open {
	all := make([]*open, 0, len(p.open)+len(p.ranks))
	for _, o := range p.open {
		all = append(all, o)
	}
	for _, o := range p.ranks {
		all = append(all, o)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].rec.At().Before(all[j].rec.At()) })
	return all
}

func (p *Parser) closeOldest() bool {
	all := p.byAge()
	if len(all) == 0 {
		return false
	}
	o := all[0]
	for k, r := range p.ranks {
		if r == o {
			delete(p.ranks, k)
			p.finish(o)
			return true
		}
	}
	p.close(o)
	return true
}
