package parser

import (
	"bytes"
	"strings"

	"diagnose/parser/framing"
	"diagnose/parser/pyrepr"
)

// Limits of what a record keeps. The exception stands last, so head and tail
// are kept and the middle is dropped.
const (
	MaxRecordLines = 4000
	maxLineText    = 16 << 10
	maxOpen        = 512 // processes with an open record
)

// Parser turns the lines of one source into events. It is not safe for
// concurrent use.
type Parser struct {
	emit func(Event)
	dec  *framing.Decoder
	// lineID names lines to the decoder; pieces holds where those begin that
	// it still keeps.
	lineID uint64
	pieces map[uint64]Pos
	last   *open // the record that the line before belonged to
	open   map[int]*open
	ranks  map[string]*open // raw output that torch prefixed with "[rankN]: "
	seq    int64
	ansi   []byte
	engine bool // a line of an engine was seen
}

// New returns a parser that calls emit for each event, in an order in which a
// record's event comes when the record ends.
func New(emit func(Event)) *Parser {
	return &Parser{
		emit: emit, dec: framing.NewDecoder(1 << 20),
		open: map[int]*open{}, ranks: map[string]*open{}, pieces: map[uint64]Pos{},
	}
}

// SawEngine tells whether any line had the shape of an engine's log.
func (p *Parser) SawEngine() bool { return p.engine }

// Framing says what wrapped the lines.
func (p *Parser) Framing() string { return string(p.dec.Kind()) }

// Line takes the next physical line.
func (p *Parser) Line(l Line) {
	if skippable(l.Data) {
		// The skipped line still ends what stood open beside it: see adjacent.
		p.seq++
		p.engine = true
		return
	}
	p.lineID++
	inner := p.dec.Decode(l.Data, p.lineID)
	for _, in := range inner {
		p.inner(in, p.position(in.At, l.At))
	}
	if len(inner) == 0 {
		// A piece of a split line: its position is needed when the rest comes.
		p.pieces[p.lineID] = l.At
	} else if _, held := p.dec.Held(); !held && len(p.pieces) > 0 {
		clear(p.pieces)
	}
}

// position gives where a decoded line began: on the line just read, or on an
// earlier piece of it.
func (p *Parser) position(id uint64, now Pos) Pos {
	if at, ok := p.pieces[id]; ok {
		return at
	}
	return now
}

// Flush ends all open records: the end of the input.
func (p *Parser) Flush() {
	for _, in := range p.dec.Flush() {
		p.inner(in, p.position(in.At, Pos{Offset: -1}))
	}
	for p.closeOldest() {
	}
}

// Peek emits the open records as they would be if they ended now and keeps
// them open. A consumer recognises a record that comes again by its first
// line.
func (p *Parser) Peek() {
	for _, o := range p.byAge() {
		if e, ok := o.event(); ok {
			p.emit(e)
		}
	}
}

// OpenFrom gives the first line of the oldest open record, so that a reader
// which starts there again loses nothing; ok is false if nothing is open.
func (p *Parser) OpenFrom() (Pos, bool) {
	var best Pos
	ok := false
	for _, o := range p.byAge() {
		if !ok || o.rec.At().Before(best) {
			best, ok = o.rec.At(), true
		}
	}
	if at, held := p.dec.Held(); held {
		if q, known := p.pieces[at]; known && (!ok || q.Before(best)) {
			best, ok = q, true
		}
	}
	return best, ok
}

func (p *Parser) inner(in framing.Inner, at Pos) {
	p.seq++
	b := bytes.TrimRight(in.Text, "\x00")
	cr := len(b) > 0 && b[len(b)-1] == '\r'
	b = bytes.TrimRight(b, "\r")
	p.ansi = framing.StripANSI(p.ansi[:0], b)
	b = afterProgress(p.ansi)
	if h, ok := sglangHead(b); ok {
		p.sglang(h, at, in.Meta)
		return
	}
	h := readHead(b)
	if h.level != Raw || !h.proc.IsZero() {
		p.engine = true
	}
	switch {
	case h.uvicorn:
		p.uvicorn(h, at, in.Meta)
	case h.level != Raw:
		p.headed(h, cr, at, in.Meta)
	default:
		p.raw(h, at, in.Meta)
	}
}

// hangSign is the one INFO message that can be evidence: a process waits for
// another one (distributed/device_communicators/shm_broadcast.py).
const hangSign = "No available shared memory broadcast block found in"

func (p *Parser) one(h head, at Pos, meta framing.Meta, body Body) {
	p.emit(Event{At: at, Proc: h.proc, Time: h.time, Meta: meta, Body: body})
}

// headed takes a line that a logger formatted.
func (p *Parser) headed(h head, cr bool, at Pos, meta framing.Meta) {
	text := clip(h.rest)
	o := p.open[h.proc.PID]
	if o != nil && o.continues(h, text) {
		o.add(text, at, cr, p.seq)
		p.last = o
		return
	}
	p.close(o)
	if p.message(h, at, meta) {
		p.last = nil
		return
	}
	if h.level <= Info {
		if strings.HasPrefix(text, hangSign) {
			p.one(h, at, meta, Notice{Record: &Record{Proc: h.proc, Level: h.level, Time: h.time, File: h.file, Lines: []TextLine{{At: at, Text: text}}}})
		}
		p.last = nil
		return
	}
	p.start(h, text, cr, at, meta)
}

// message reads the messages that are whole in one line, whatever the level.
func (p *Parser) message(h head, at Pos, meta framing.Meta) bool {
	msg := string(h.rest)
	switch {
	case strings.HasPrefix(msg, "non-default args: {"):
		v, _, _ := pyrepr.ParseDict(msg[len("non-default args: "):])
		p.one(h, at, meta, Args{Values: v})
	case strings.HasPrefix(msg, "args: Namespace("):
		p.one(h, at, meta, Args{Values: namespace(msg[len("args: "):]), Full: true})
	case strings.HasPrefix(msg, dumpConfig):
		p.config(h, at, meta, msg[len(dumpConfig):], true)
	case strings.HasPrefix(msg, "Initializing a"):
		i := strings.Index(msg, " LLM engine (v")
		if i < 0 || i > 24 {
			return false
		}
		p.config(h, at, meta, msg[i+len(" LLM engine (v"):], false)
	case strings.HasPrefix(msg, "vLLM API server version "):
		p.one(h, at, meta, Banner{Version: firstWord(msg[len("vLLM API server version "):])})
	case strings.HasPrefix(msg, "vLLM server version "):
		b := Banner{Version: firstWord(msg[len("vLLM server version "):])}
		if i := strings.Index(msg, "serving model "); i >= 0 {
			b.Model = firstWord(msg[i+len("serving model "):])
		}
		p.one(h, at, meta, b)
	case strings.HasPrefix(msg, "[shutdown] "):
		if !strings.Contains(msg, "shutdown triggered") && !strings.Contains(msg, "trigger received signal=") {
			return h.level <= Info
		}
		p.one(h, at, meta, Stop{Text: msg})
	case h.level <= Info && isBannerArt(msg):
		b := bannerLine(msg)
		if b == (Banner{}) {
			return true
		}
		p.one(h, at, meta, b)
	default:
		if d, ok := readDump(msg); ok {
			p.one(h, at, meta, d)
			return true
		}
		if s, ok := readStats(msg); ok && h.level <= Info {
			p.one(h, at, meta, s)
			return true
		}
		f := readFacts(msg, h.file, at)
		if len(f) == 0 {
			return false
		}
		p.one(h, at, meta, Facts{List: f})
		// A warning can be a fact and a notice; the padding notice is a fact.
		return true
	}
	return true
}

func (p *Parser) config(h head, at Pos, meta framing.Meta, s string, dump bool) {
	end := strings.IndexByte(s, ')')
	if end < 0 {
		return
	}
	c := Config{Version: s[:end], Dump: dump}
	if i := strings.Index(s, "with config: "); i >= 0 {
		c.Values, _ = pyrepr.ParseKV(s[i+len("with config: "):])
	}
	p.one(h, at, meta, c)
}

func namespace(s string) map[string]pyrepr.Value {
	out := map[string]pyrepr.Value{}
	v, _, _ := pyrepr.Parse(s)
	for _, e := range v.Entries {
		out[e.Key.Text()] = e.Value
	}
	return out
}

func firstWord(s string) string {
	if f := strings.Fields(s); len(f) > 0 {
		return strings.TrimRight(f[0], ",")
	}
	return ""
}

// isBannerArt tells whether a line is of the start-up banner (from 0.15 on).
func isBannerArt(msg string) bool {
	return strings.Contains(msg, "█") && (strings.Contains(msg, "version ") || strings.Contains(msg, "model ")) ||
		strings.Trim(msg, " ▄█▀▐▌") == "" && msg != ""
}

func bannerLine(msg string) Banner {
	if i := strings.LastIndex(msg, "█  version "); i >= 0 {
		return Banner{Version: firstWord(msg[i+len("█  version "):])}
	}
	if i := strings.LastIndex(msg, "█  model "); i >= 0 {
		return Banner{Model: strings.TrimSpace(msg[i+len("█  model "):])}
	}
	return Banner{}
}

// uvicorn takes "INFO:     text".
func (p *Parser) uvicorn(h head, at Pos, meta framing.Meta) {
	p.close(p.open[h.proc.PID])
	p.last = nil
	msg := string(h.rest)
	switch {
	case strings.HasPrefix(msg, "Application startup complete"):
		p.one(h, at, meta, Ready{})
	case strings.HasPrefix(msg, "Finished server process"):
		p.one(h, at, meta, Ended{Text: msg})
	case h.level >= Error:
		p.start(h, msg, false, at, meta)
	default:
		if status, path, ok := accessLine(msg); ok && status >= 500 {
			p.one(h, at, meta, HTTPError{Status: status, Path: path})
		}
	}
}

// accessLine reads `ADDR - "POST /path HTTP/1.1" 500 Internal Server Error`.
// The request line is the client's: only its last quote counts.
func accessLine(msg string) (status int, path string, ok bool) {
	i := strings.LastIndex(msg, `" `)
	j := strings.Index(msg, ` - "`)
	if i < 0 || j < 0 || j+4 > i || len(msg) < i+5 {
		return 0, "", false
	}
	for _, c := range msg[i+2 : i+5] {
		if c < '0' || c > '9' {
			return 0, "", false
		}
		status = status*10 + int(c-'0')
	}
	if f := strings.Fields(msg[j+4 : i]); len(f) > 1 {
		path, _, _ = strings.Cut(f[1], "?")
	}
	return status, path, true
}

// raw takes output that no logger formatted: print, tracebacks, C++.
func (p *Parser) raw(h head, at Pos, meta framing.Meta) {
	text := clip(h.rest)
	if h.proc.IsZero() {
		if rank, rest, ok := torchRank(text); ok {
			p.rawOf(p.ranks, rank, Process{Name: rank}, rest, at, meta)
			return
		}
		if o := p.last; o != nil && o.seq == p.seq-1 && o.takesLoose(text) {
			o.add(text, at, false, p.seq)
			return
		}
	}
	o := p.open[h.proc.PID]
	if o != nil && !o.headed && o.takesRaw(text) {
		o.add(text, at, false, p.seq)
		p.last = o
		return
	}
	p.close(o)
	if strings.TrimSpace(text) == "" {
		return
	}
	if opensRaw(text) {
		p.start(h, text, false, at, meta)
		return
	}
	p.last = nil
	r := &Record{Proc: h.proc, Lines: []TextLine{{At: at, Text: text}}}
	p.one(h, at, meta, Notice{Record: r})
}

func (p *Parser) rawOf(set map[string]*open, key string, proc Process, text string, at Pos, meta framing.Meta) {
	if o := set[key]; o != nil {
		if o.takesRaw(text) {
			o.add(text, at, false, p.seq)
			return
		}
		p.finish(o)
		delete(set, key)
	}
	if opensRaw(text) && len(set) < maxOpen {
		set[key] = newOpen(head{proc: proc}, text, false, at, meta, p.seq)
		return
	}
	p.one(head{proc: proc}, at, meta, Notice{Record: &Record{Proc: proc, Lines: []TextLine{{At: at, Text: text}}}})
}

// torchRank strips the "[rank0]: " that torch.distributed's excepthook puts in
// front of each line of a traceback.
func torchRank(s string) (rank, rest string, ok bool) {
	if !strings.HasPrefix(s, "[rank") {
		return "", "", false
	}
	i := strings.Index(s, "]: ")
	if i < 6 || i > 12 {
		return "", "", false
	}
	return s[1:i], s[i+3:], true
}

// clip keeps head and tail of a huge line; dumps of token ids pass 500 KB.
func clip(b []byte) string {
	if len(b) <= maxLineText {
		return string(b)
	}
	half := maxLineText / 2
	return string(b[:half]) + " … " + string(b[len(b)-half:])
}
