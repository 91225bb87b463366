package parser

import (
	"bytes"
	"unicode/utf8"

	"diagnose/parser/framing"
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
	// heldFrom is for the unfinished lines what open.from is for a record.
	heldFrom Pos

	set  openSet
	last *open // the record that the newest line belonged to
	// loose is the newest record whose body its process prints without prefix
	// and head: SGLang's tracebacks, uvicorn's, a traceback below a head.
	loose *open
	// seq counts inner lines; what stood on the line before has seq-1.
	seq    int64
	orphan orphan
	free   freeText
	names  nameCache
	ansi   []byte

	engine           bool // a line of an engine was seen
	ungated          bool // for tests: read what the gate would skip
	skipped, decoded int64
}

// New returns a parser that calls emit for each event. The event of a record
// comes when the record has ended, so it can come after those of lines that
// began later.
func New(emit func(Event)) *Parser {
	return &Parser{
		emit: emit, dec: framing.NewDecoder(1 << 20),
		set: openSet{by: map[slot]*open{}}, pieces: map[uint64]Pos{},
	}
}

// SawEngine tells whether any line had the shape of an engine's log.
func (p *Parser) SawEngine() bool { return p.engine }

// Framing says what wrapped the lines.
func (p *Parser) Framing() string {
	if p.skipped > p.decoded {
		return string(framing.Plain) // the gate passes over plain lines only
	}
	return string(p.dec.Kind())
}

// Line takes the next physical line. Its data may be reused after the call.
func (p *Parser) Line(l Line) {
	if p.seq >= p.set.deadline {
		p.expire()
	}
	switch gate(l.Data) {
	case skipRecord:
		if p.ungated {
			break
		}
		p.free.miss()
		fallthrough
	case skipAccess:
		if p.ungated {
			break
		}
		// A skipped line is no record's, but it stands between two others.
		p.seq++
		p.skipped++
		p.engine = true
		p.dec.Passed()
		return
	}
	p.decoded++
	p.lineID++
	inner := p.dec.Decode(l.Data, p.lineID)
	for i, in := range inner {
		// Several lines of one object, as a JSON formatter writes a traceback,
		// are one record.
		p.inner(in, p.position(in.At, l.At), i < len(inner)-1)
	}
	p.keepPieces(len(inner), l.At)
}

// maxPieces bounds what is remembered of unfinished lines.
const maxPieces = 4096

func (p *Parser) keepPieces(inner int, at Pos) {
	oldest, held := p.dec.Held()
	switch {
	case !held:
		if len(p.pieces) > 0 {
			clear(p.pieces)
		}
	case inner == 0:
		// Its position is needed when the rest comes.
		if len(p.pieces) == 0 {
			p.heldFrom = at
		}
		p.pieces[p.lineID] = at
		if len(p.pieces) > maxPieces {
			// An unfinished line that waits for ever: its own piece is kept,
			// and the newest.
			for id := range p.pieces {
				if id != oldest && id+maxPieces/2 < p.lineID {
					delete(p.pieces, id)
				}
			}
		}
	}
}

// position gives where a decoded line began: on the line just read, or on an
// earlier piece of it.
func (p *Parser) position(id uint64, now Pos) Pos {
	at, ok := p.pieces[id]
	if !ok {
		return now
	}
	// Who starts to read at a record that began since would find the rest only.
	for o := p.set.front; o != nil; o = o.next {
		if p.heldFrom.Before(o.from) {
			o.from = p.heldFrom
		}
	}
	return at
}

// Flush ends all open records: the end of the input.
func (p *Parser) Flush() {
	for _, in := range p.dec.Flush() {
		p.inner(in, p.position(in.At, Pos{Offset: -1}), false)
	}
	clear(p.pieces)
	for _, o := range p.set.byAge() {
		p.close(o)
	}
	p.orphan = orphan{}
}

// Peek emits the open records as they would be if they ended now and keeps
// them open. A consumer recognises a record that comes again by its first
// line.
func (p *Parser) Peek() {
	p.expire()
	for _, o := range p.set.byAge() {
		o.events(p.emit)
	}
}

// OpenFrom gives the line from which a reader has to start again so that a new
// Parser gives the same events: the first line of the oldest record that is
// open, or that an open one is mixed with; ok is false if nothing is open. All
// events of records that begin there or later come again. What a parser learns
// from earlier lines (the free text of VLLM_LOGGING_PREFIX, the names that
// compose or stern print, that each line begins with a bare date) a new one has to learn anew.
func (p *Parser) OpenFrom() (Pos, bool) {
	p.expire()
	var best Pos
	ok := false
	earlier := func(at Pos) {
		if !ok || at.Before(best) {
			best, ok = at, true
		}
	}
	for o := p.set.front; o != nil; o = o.next {
		earlier(o.from)
	}
	if len(p.pieces) > 0 {
		earlier(p.heldFrom)
	}
	if p.orphan.seq == p.seq && !p.orphan.proc.IsZero() {
		earlier(p.orphan.at)
	}
	return best, ok
}

// maxScratch is the largest buffer that is kept from line to line.
const maxScratch = 64 << 10

func (p *Parser) inner(in framing.Inner, at Pos, more bool) {
	p.seq++
	b := bytes.TrimRight(in.Text, "\x00")
	cr := more || len(b) > 0 && b[len(b)-1] == '\r'
	b = bytes.TrimRight(b, "\r")
	if framing.HasANSI(b) {
		p.ansi = framing.StripANSI(p.ansi[:0], b)
		b = p.ansi
		if cap(p.ansi) > maxScratch {
			p.ansi = nil
		}
	}
	if h, ok := p.sglangHead(b); ok {
		p.sglang(h, at, in.Meta)
		return
	}
	h := p.readHead(b)
	if h.level == Raw {
		p.readHidden(&h, b)
	}
	if h.level != Raw || !h.proc.IsZero() {
		p.engine = true
	}
	if h.proc.IsZero() && p.orphan.seq == p.seq-1 {
		h.proc = p.orphan.proc
	}
	if h.outer.PID != 0 {
		p.orphan = orphan{proc: h.outer, seq: p.seq, at: at}
	}
	l := piece{at: at, cr: cr}
	if !cr && (h.level == Raw || h.level > Info) {
		l.width = utf8.RuneCount(b)
	}
	switch {
	case h.uvicorn:
		p.uvicorn(h, l, in.Meta)
	case h.level != Raw:
		if !h.free {
			p.free.miss()
		}
		p.headed(h, l, in.Meta)
	default:
		p.raw(h, l, in.Meta)
	}
}

// orphan is a process whose prefix stood in front of another one's: two
// processes wrote at the same time, and the rest of its line comes without a
// prefix on the next one.
type orphan struct {
	proc Process
	seq  int64
	at   Pos
}

// piece is one line of a record on its way into it.
type piece struct {
	text string
	at   Pos
	// cr tells that the line ended in "\r": another one of its record follows.
	cr bool
	// width counts the characters of the whole line; 0 where no terminal can
	// have broken it.
	width int
}

func (p *Parser) one(h head, at Pos, meta framing.Meta, body Body) {
	p.emit(Event{At: at, Proc: h.proc, Time: string(h.time), Meta: meta, Body: body})
}

func (p *Parser) notice(h head, at Pos, meta framing.Meta, text string) {
	p.one(h, at, meta, Notice{Record: &Record{
		Proc: h.proc, Level: h.level, Time: string(h.time), File: string(h.file),
		Lines: []TextLine{{At: at, Text: text}},
	}})
}

// hangSign is the one INFO message that can be evidence: a process waits for
// another one (distributed/device_communicators/shm_broadcast.py).
const hangSign = "No available shared memory broadcast block found in"

// headed takes a line that a logger formatted.
func (p *Parser) headed(h head, l piece, meta framing.Meta) {
	msg := string(h.rest)
	if h.level <= Info {
		// INFO and DEBUG open no record, and they end none: most of them do not
		// pass the gate, and what is skipped must change nothing.
		p.last = nil
		if !p.message(h, msg, l.at, meta) && len(msg) > len(hangSign) && msg[:len(hangSign)] == hangSign {
			p.notice(h, l.at, meta, clip(msg))
		}
		return
	}
	l.text = clip(msg)
	o := p.set.by[h.slot(false)]
	if o != nil && o.continues(&h, l.text) {
		p.grow(o, l)
		if o.sawCR && !l.cr {
			p.close(o)
		}
		return
	}
	p.close(o)
	p.closeIfWhole(p.set.by[h.slot(true)])
	if p.message(h, msg, l.at, meta) {
		p.last = nil
		return
	}
	p.start(&h, l, meta, false)
}

// raw takes output that no logger formatted: print, tracebacks, C++.
func (p *Parser) raw(h head, l piece, meta framing.Meta) {
	l.text = clip(string(h.rest))
	bare := h.proc.IsZero()
	if rank, rest, ok := torchRank(l.text); ok {
		if bare {
			h.proc = Process{Name: p.names.get([]byte(rank))}
		}
		l.text, bare = rest, false
	} else if bare {
		if o := p.last; o != nil && o.seq == p.seq-1 && o.takesBelow(l) {
			p.growBelow(o, l)
			return
		}
	}
	own := p.set.by[h.slot(true)]
	if o := p.taker(own, bare, l.text); o != nil && !o.ends(l.text) {
		p.grow(o, l)
		return
	}
	switch {
	case isBlank(l.text):
	case opensRaw(l.text):
		p.close(own)
		p.start(&h, l, meta, true)
	default:
		p.last = nil
		p.notice(h, l.at, meta, l.text)
	}
}

// taker gives the open record that takes an unformatted line: that of its
// process, or the newest one whose body comes without a prefix.
func (p *Parser) taker(own *open, bare bool, text string) *open {
	loose := p.loose
	if !bare || loose != nil && loose.exc && text == tracebackHead {
		loose = nil // another traceback can be anybody's
	}
	if own != nil && loose != nil && loose.seq > own.seq {
		own, loose = loose, own
	}
	for _, o := range [...]*open{own, loose} {
		if o != nil && o.takesRaw(text, p.seq) {
			return o
		}
	}
	return nil
}

// torchRank strips the "[rank0]: " that torch.distributed's excepthook puts in
// front of each line of a traceback.
func torchRank(s string) (rank, rest string, ok bool) {
	const begin = "[rank"
	if len(s) < len(begin)+3 || s[:len(begin)] != begin {
		return "", "", false
	}
	i := len(begin)
	for i < len(s) && i < len(begin)+6 && isDigit(s[i]) {
		i++
	}
	if i == len(begin) || i+2 > len(s) || s[i:i+2] != "]:" {
		return "", "", false
	}
	// The empty lines of a chain lose their trailing space in many collectors.
	if i+2 == len(s) {
		return s[1:i], "", true
	}
	if s[i+2] != ' ' {
		return "", "", false
	}
	return s[1:i], s[i+3:], true
}

// clip keeps head and tail of a huge line; dumps of token ids pass 500 KB.
func clip(s string) string {
	if len(s) <= maxLineText {
		return s
	}
	const half = maxLineText / 2
	return s[:half] + " … " + s[len(s)-half:]
}
