package tailer

import (
	"slices"
)

// commit keeps from where the source is to be read again.
func (s *source) commit(gen uint64, offset, line int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.needed, func(l *life) bool { return l.ref.Gen == gen })
	if i < 0 {
		return
	}
	l := s.needed[i]
	if l.joined != nil && offset == l.joined.at {
		// The line that began here ended in a later life, and that is where
		// its end is.
		j := slices.Index(s.needed, l.joined.to)
		if j >= 0 {
			i, l, offset, line = j, l.joined.to, l.joined.off, l.joined.line
		}
	}
	l.commit = l.markAt(max(0, offset), line)
	for _, earlier := range s.needed[:i] {
		earlier.commit = earlier.markAt(earlier.off, earlier.line)
	}
	if l.turned < 0 || offset < l.turned || (l.joined != nil && offset < l.joined.at) {
		for _, later := range s.needed[i+1:] {
			later.commit = mark{off: later.start, line: later.commit.line}
			if later.start == 0 {
				later.commit.line = 1
			}
		}
	}
	s.prune()
}

// prune forgets lives that nobody needs any more. The last of them stays known
// as the one after which everything is new.
func (s *source) prune() {
	for len(s.needed) > 1 {
		l := s.needed[0]
		if l.turned < 0 || l.late || l.unread || l.commit.off < l.off || (l.joined == nil && l.open()) {
			return
		}
		done := l.position()
		done.Done = true
		s.done = &done
		s.needed = s.needed[1:]
	}
}

// open tells whether a piece at the end of l waits for its "\n".
func (l *life) open() bool { return l.file != nil || l.rest.size() > 0 }

func (l *life) position() Position {
	head := l.head
	if len(head) == 0 && l.file != nil {
		head = readSome(l.file, 0, headMax) // not looked at yet
	}
	return Position{
		Name: l.name, Device: l.id.device, Inode: l.id.inode,
		Head: hash(head), HeadLen: len(head),
		Offset: l.commit.off, Line: l.commit.line,
		Before: hash(l.commit.before), BeforeLen: len(l.commit.before),
		Modified: l.modified,
	}
}

// carried gives the text of l that would be lost with its file: all that is
// not committed.
func (s *source) carried(l *life) []byte {
	if l.file == nil {
		return nil
	}
	info, err := l.file.Stat()
	n := int64(0)
	if err == nil {
		n = info.Size() - l.commit.off
	}
	if n <= 0 || n > s.f.opt.Carry {
		return nil
	}
	if l.text == nil || l.textOff != l.commit.off || int64(len(l.text)) != n {
		l.text, l.textOff = readSome(l.file, l.commit.off, n), l.commit.off
	}
	return l.text
}

func (s *source) checkpoint() Checkpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.needed) == 0 {
		return s.saved
	}
	var c Checkpoint
	if s.done != nil {
		c.Generations = append(c.Generations, *s.done)
	}
	for _, l := range s.needed {
		p := l.position()
		p.Text = s.carried(l)
		c.Generations = append(c.Generations, p)
	}
	return c
}
