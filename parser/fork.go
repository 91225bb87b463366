package parser

import (
	"maps"
	"slices"
)

// Fork gives a parser in the same state that emits to another place: to read a
// line that may still grow without changing p. What was split by a container's
// log driver and is not whole yet stays with p.
func (p *Parser) Fork(emit func(Event)) *Parser {
	q := *p
	q.emit, q.dec, q.ansi = emit, p.dec.Fork(), nil
	q.pieces, q.last, q.loose = map[uint64]Pos{}, nil, nil
	q.set = openSet{by: maps.Clone(p.set.by)}
	clear(q.set.by)
	for _, o := range p.set.byAge() {
		c := *o
		c.text.head, c.text.tail = slices.Clone(o.text.head), slices.Clone(o.text.tail)
		q.set.push(&c)
		q.set.by[c.slot] = &c
		if p.last == o {
			q.last = &c
		}
		if p.loose == o {
			q.loose = &c
		}
	}
	q.set.bytes, q.set.deadline = p.set.bytes, p.set.deadline
	return &q
}

// DropBefore forgets open records that began before a position: what they
// belong to is told and over.
func (p *Parser) DropBefore(at Pos) {
	keep := p.emit
	p.emit = func(Event) {}
	for _, o := range p.set.byAge() {
		if len(o.text.head) > 0 && o.text.head[0].At.Before(at) {
			p.close(o)
		}
	}
	p.emit = keep
}

// CloseBefore ends the records whose newest line stands before a position, as
// if their writers had gone on to something else.
func (p *Parser) CloseBefore(at Pos) {
	for _, o := range p.set.byAge() {
		if o.newest().Before(at) {
			p.close(o)
		}
	}
}

// newest is where the last line of an open record stands.
func (o *open) newest() Pos {
	if n := len(o.text.tail); n > 0 {
		return o.text.tail[n-1].At
	}
	return o.text.head[len(o.text.head)-1].At
}
