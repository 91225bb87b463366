package tailer

import (
	"bytes"
	"context"
	"os"
	"slices"
	"time"
)

// resume finds the generations that the checkpoint names, and those that are
// newer, and reads all but the live file. That one is read by the loop.
func (s *source) resume(ctx context.Context) {
	if len(s.saved.Generations) == 0 {
		return
	}
	s.old = false // a file that is not found again is read from its start
	if n := len(s.saved.Generations); s.saved.Generations[0].Done && n > 1 {
		done := s.saved.Generations[0]
		s.done = &done
	}
	path, _ := s.livePath(time.Now())
	var lives []*life
	for range 3 { // files can be renamed and compressed while this looks
		var whole bool
		if lives, whole = s.remaining(path); whole {
			break
		}
		for _, l := range lives {
			if l.file != nil {
				_ = l.file.Close()
			}
		}
		lives = nil
	}
	s.learnSiblings(path)
	for i, l := range lives {
		if i == 0 {
			s.begin(l)
		} else if s.target.successor && s.target.restarted(s.cur().name, l.name) {
			s.finishContainer(ctx)
			s.begin(l)
		} else {
			s.retire(s.cur())
			s.follow(l, RotatedOffline)
		}
		if i < len(lives)-1 || l.file == nil {
			s.readWhole(ctx, l)
		}
	}
	// The last one may be no longer what the path names; the loop sees that.
	if cur := s.cur(); cur != nil && cur.file != nil {
		s.setStatus(StatusFollowing, nil)
	}
}

// remaining opens the lives to read, oldest first; whole is false if one
// disappeared while it was opened.
func (s *source) remaining(path string) (lives []*life, whole bool) {
	names := []string{path}
	wanted := s.saved.Generations
	for _, p := range wanted {
		names = append(names, p.Name)
	}
	real := realName(path)
	last := wanted[len(wanted)-1]
	names = append(names, namesBetween(last.Name, real)...)
	all := s.candidates(names...)
	live := newCandidate(path)
	if live != nil {
		all = slices.DeleteFunc(all, func(c *candidate) bool {
			return c.id == live.id || (live.isCopiedBy(c) && !s.matchesAny(c))
		})
		live.name = real
		all = append(all, live)
	}
	from, at := s.locate(all, live)
	for i := from; i < len(all); i++ {
		c := all[i]
		off, line := int64(0), int64(0)
		if p, ok := at[i]; ok {
			off, line = p.Offset, p.Line
		} else if len(c.head) == 0 && c != live {
			continue
		}
		l := s.lifeOf(c, off, line)
		if l == nil {
			return lives, false
		}
		if l.file != nil && !s.f.claim(l.id, s) {
			_ = l.file.Close()
			continue
		}
		lives = append(lives, l)
	}
	return lives, true
}

// locate tells which of all is the first to read, and which Position belongs
// to which. Nothing found is counted, and only what is newer than the
// checkpoint is read.
func (s *source) locate(all []*candidate, live *candidate) (from int, at map[int]Position) {
	at = map[int]Position{}
	from = -1
	done := -1
	for k, p := range s.saved.Generations {
		best, score := -1, 0
		for i, c := range all {
			if _, taken := at[i]; taken {
				continue
			}
			if n := s.match(p, c); n > score {
				best, score = i, n
			}
		}
		switch {
		case best < 0 && p.Done: // deleted since, as it may be
		case best < 0:
			if p.HeadLen > 0 || p.Offset > 0 {
				s.f.counters.LostGenerations.Add(1)
			}
		case p.Done:
			done = best
		default:
			at[best] = p
			if from < 0 {
				from = best
			}
			if k == s.firstNeeded() && done >= 0 && p.HeadLen == 0 {
				// Nothing of it had been read, so this may be another text in
				// the same file; all after the last read one is to be read.
				from = min(from, done+1)
			}
		}
	}
	if from >= 0 {
		return from, at
	}
	if done >= 0 {
		return done + 1, at
	}
	for i, c := range all {
		if c == live || c.modified.After(s.saved.Saved) {
			return i, at
		}
	}
	return len(all), at
}

func (s *source) firstNeeded() int {
	if s.saved.Generations[0].Done {
		return 1
	}
	return 0
}

func (s *source) matchesAny(c *candidate) bool {
	return slices.ContainsFunc(s.saved.Generations, func(p Position) bool { return s.match(p, c) > 1 })
}

// match tells how well a file fits a position: 0 not, 1 by its text, 2 by its
// text and identity.
func (s *source) match(p Position, c *candidate) int {
	sameFile := c.id.inode == p.Inode && (c.id.device == p.Device || s.saved.Boot != s.f.boot)
	if len(c.head) < p.HeadLen || hash(c.head[:p.HeadLen]) != p.Head {
		return 0
	}
	if p.HeadLen == 0 && !sameFile {
		return 0 // nothing but the inode tells an empty file
	}
	if !c.compressed && c.size < p.Offset {
		return 0
	}
	if p.BeforeLen > 0 {
		src, err := Open(c.name, nil)
		if err != nil {
			return 0
		}
		defer func() { _ = src.Close() }()
		got := make([]byte, p.BeforeLen)
		if src.SkipTo(p.Offset-int64(p.BeforeLen)) != nil || !readAll(src, got) || hash(got) != p.Before {
			return 0
		}
	} else if p.Offset > 0 && p.HeadLen < headMax && !sameFile {
		return 0
	}
	if sameFile {
		return 2
	}
	return 1
}

func readAll(src *Source, p []byte) bool {
	for len(p) > 0 {
		n, err := src.Read(p)
		p = p[n:]
		if err != nil && len(p) > 0 {
			return false
		}
	}
	return true
}

// isCopiedBy tells whether c is a copy of the front of the live file.
func (c *candidate) isCopiedBy(o *candidate) bool {
	if o.compressed || c.compressed || o.size == 0 || o.size > c.size || !bytes.HasPrefix(c.head, o.head) {
		return false
	}
	a, errA := os.Open(c.name)
	if errA != nil {
		return false
	}
	defer func() { _ = a.Close() }()
	b, errB := os.Open(o.name)
	if errB != nil {
		return false
	}
	defer func() { _ = b.Close() }()
	n := min(o.size, beforeMax)
	return bytes.Equal(readSome(a, o.size-n, n), readSome(b, o.size-n, n))
}
