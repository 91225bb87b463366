package tailer

import (
	"bytes"
	"context"
	"slices"
	"time"
)

// take hands one line of l on; only then has it been read.
func (s *source) take(ctx context.Context, l *life, line Line) {
	line.ReadAt = s.f.opt.Now()
	ref, out := l.ref, line
	if l.fresh {
		l.fresh = false
		s.catchHidden(ctx, l, line.Data)
		ref, out = s.join(ctx, l, line)
	}
	s.mu.Lock()
	l.remember(line)
	s.mu.Unlock()
	s.f.handler.Line(ref, out)
	s.lastLine = time.Now()

	s.f.counters.Bytes.Add(line.Next - line.Offset)
	s.f.counters.Lines.Add(1)
	if line.Cut > 0 {
		s.f.counters.CutLines.Add(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beat = s.lastLine
	l.off = line.Next
	if l.line > 0 && !line.Unterminated {
		l.line++
	}
	l.scanned = max(l.scanned, l.off)
	l.shown = max(l.shown, l.off)
	s.prune()
}

// join puts the unterminated ends of the lives before l in front of its first
// line.
func (s *source) join(ctx context.Context, l *life, line Line) (SourceRef, Line) {
	open := s.openEnd(ctx, l)
	if len(open) == 0 {
		return l.ref, line
	}
	if s.f.opt.Starts != nil && s.f.opt.Starts(line.Data) {
		s.surrender(open)
		return l.ref, line
	}
	first, out := open[0], line
	out.Offset, out.Number, out.Data = first.off, first.line, nil
	next := line.Number
	if next > 0 {
		next++
	}
	s.mu.Lock()
	for _, p := range open {
		rest := p.remainder(s.f.opt.MaxLine)
		out.Data = append(out.Data, rest.data...)
		out.Cut += rest.cut
		p.off += rest.size()
		p.rest, p.recent, p.fresh = piece{}, nil, false
		p.joined = &joint{at: p.off, to: l, off: line.Next, line: next}
	}
	out.Next = first.off
	s.mu.Unlock()
	out.Data = append(out.Data, line.Data...)
	if maxLine := s.f.opt.MaxLine; len(out.Data) > maxLine {
		out.Cut += int64(len(out.Data) - maxLine)
		out.Data = cutMiddle(out.Data, maxLine/4, maxLine)
	}
	return first.ref, out
}

// openEnd gives the lives before l that together hold the beginning of its
// first line, oldest first: the last one with a "\n" in it, and those after
// that which are nothing but a piece.
func (s *source) openEnd(ctx context.Context, l *life) []*life {
	earlier := s.lives[:max(0, slices.Index(s.lives, l))]
	// Whoever wrote to l has written to its predecessors before.
	for _, p := range slices.Clone(earlier) {
		if p.joined == nil {
			_ = s.drain(ctx, p)
		}
	}
	var open []*life
	for _, p := range slices.Backward(s.lives[:max(0, slices.Index(s.lives, l))]) {
		if p.joined != nil {
			break
		}
		if p.remainder(s.f.opt.MaxLine).size() > 0 {
			open = append(open, p)
		}
		if !p.fresh {
			break
		}
	}
	slices.Reverse(open)
	return open
}

// surrender hands on the unterminated ends of lives whose line was never
// ended.
func (s *source) surrender(lives []*life) {
	for _, p := range lives {
		rest := p.remainder(s.f.opt.MaxLine)
		if rest.size() == 0 || p.joined != nil {
			continue
		}
		s.f.handler.Line(p.ref, Line{
			Data: bytes.Clone(rest.data), Offset: p.off, Next: p.off + rest.size(), Number: p.line,
			Cut: rest.cut, Unterminated: true, ReadAt: s.f.opt.Now(),
		})
		s.f.counters.Lines.Add(1)
		s.f.counters.Bytes.Add(rest.size())
		s.mu.Lock()
		p.off += rest.size()
		p.rest, p.recent, p.fresh = piece{}, nil, false
		s.mu.Unlock()
	}
}

// partial shows text that has been waiting for its "\n".
func (s *source) partial(now time.Time) {
	for i := len(s.lives) - 1; i >= 0 && i >= len(s.lives)-2; i-- {
		l := s.lives[i]
		if l.joined != nil {
			return
		}
		end := l.off + l.rest.size()
		if l.file != nil {
			end = l.size
		}
		if end == l.off {
			if !l.fresh {
				return
			}
			continue // nothing here yet: what stands before is still the end
		}
		if end != s.grewSize {
			s.grew, s.grewSize = now, end
		}
		if end <= l.shown || now.Sub(s.grew) < s.f.opt.TailAfter || (l.file != nil && l.hasNewline()) {
			return
		}
		rest := l.remainder(s.f.opt.MaxLine)
		if rest.size() == 0 {
			return
		}
		l.shown = l.off + rest.size()
		s.f.handler.Tail(l.ref, Line{
			Data: rest.data, Offset: l.off, Next: l.shown, Number: l.line, Cut: rest.cut,
			Unterminated: true, ReadAt: s.f.opt.Now(),
		})
		return
	}
}
