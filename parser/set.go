package parser

import (
	"math"
	"slices"

	"diagnose/parser/framing"
)

// Limits of what is open at a time.
const (
	maxOpen      = 512
	maxOpenBytes = 8 << 20
	// maxQuiet is after how many lines without one of its own a record has
	// ended. The largest gap seen inside a record is a device assert's flood
	// of some hundred lines between a head and its traceback.
	maxQuiet = 10_000
)

// slot is where a process's open record stands. A process can have two: what
// its logger writes, and what it prints.
type slot struct {
	pid  int
	name string // only where there is no pid
	raw  bool
}

// openSet holds the open records, the one that was quiet for longest first.
type openSet struct {
	by          map[slot]*open
	front, back *open
	bytes       int
	// deadline is a lower bound of the seq at which the first one expires.
	deadline int64
}

func (s *openSet) push(o *open) {
	o.prev, o.next = s.back, nil
	if s.back != nil {
		s.back.next = o
	} else {
		s.front = o
		s.deadline = o.seq + maxQuiet
	}
	s.back = o
}

func (s *openSet) unlink(o *open) {
	if o.prev != nil {
		o.prev.next = o.next
	} else {
		s.front = o.next
	}
	if o.next != nil {
		o.next.prev = o.prev
	} else {
		s.back = o.prev
	}
	o.prev, o.next = nil, nil
	if s.front == nil {
		s.deadline = math.MaxInt64
	}
}

// byAge lists the open records, the one that began first first.
func (s *openSet) byAge() []*open {
	all := make([]*open, 0, len(s.by))
	for o := s.front; o != nil; o = o.next {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *open) int { return int(a.begin - b.begin) })
	return all
}

// start opens a record with its first line.
func (p *Parser) start(h *head, l piece, meta framing.Meta, raw bool) *open {
	if len(p.set.by) >= maxOpen {
		p.close(p.set.front)
	}
	o := newOpen(h, meta, raw)
	o.begin, o.from = p.seq, l.at
	if p.orphan.seq == p.seq-1 && p.orphan.proc == o.proc && !o.proc.IsZero() {
		o.from = p.orphan.at // its process is told there
	}
	o.add(l, p.seq)
	p.set.by[o.slot] = o
	p.set.push(o)
	p.set.bytes += o.text.bytes
	p.last = o
	p.trim()
	return o
}

// grow adds a line to an open record.
func (p *Parser) grow(o *open, l piece) {
	p.added(o, func() { o.add(l, p.seq) })
}

// growBelow adds a line that stands without prefix below a record's last.
func (p *Parser) growBelow(o *open, l piece) {
	p.added(o, func() { o.addBelow(l, p.seq) })
	if o.bodyRaw {
		p.loose = o
	}
}

func (p *Parser) added(o *open, add func()) {
	before := o.text.bytes
	add()
	p.set.bytes += o.text.bytes - before
	p.set.unlink(o)
	p.set.push(o)
	// Records that began later are mixed with this one: who starts to read at
	// one of them would find this one's middle.
	for r := p.set.front; r != nil; r = r.next {
		if r.begin > o.begin && o.from.Before(r.from) {
			r.from = o.from
		}
	}
	if len(p.pieces) > 0 && o.from.Before(p.heldFrom) {
		p.heldFrom = o.from
	}
	p.last = o
	p.trim()
}

// trim closes the quietest records while too much is kept.
func (p *Parser) trim() {
	for p.set.bytes > maxOpenBytes && p.set.front != p.set.back {
		p.close(p.set.front)
	}
}

// expire ends the records that were quiet for too long.
func (p *Parser) expire() {
	for o := p.set.front; o != nil && o.seq+maxQuiet <= p.seq; o = p.set.front {
		p.close(o)
	}
	p.set.deadline = math.MaxInt64
	if o := p.set.front; o != nil {
		p.set.deadline = o.seq + maxQuiet
	}
}

// close ends a record; nil is allowed.
func (p *Parser) close(o *open) {
	if o == nil {
		return
	}
	p.set.unlink(o)
	delete(p.set.by, o.slot)
	p.set.bytes -= o.text.bytes
	if p.last == o {
		p.last = nil
	}
	if p.loose == o {
		p.loose = nil
	}
	o.events(p.emit)
}

// closeIfWhole ends a record that nothing shows to be unfinished.
func (p *Parser) closeIfWhole(o *open) {
	if o != nil && o.whole() {
		p.close(o)
	}
}

// closeWhole ends all such records: a server starts, and what the one before
// it wrote belongs before its first line.
func (p *Parser) closeWhole() {
	for _, o := range p.set.byAge() {
		p.closeIfWhole(o)
	}
}
