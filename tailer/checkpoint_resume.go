package tailer

import (
	"context"
	"fmt"
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
	if done := s.saved.Generations[0]; done.Done {
		if len(s.saved.Generations) == 1 {
			return // nothing was followed yet
		}
		s.done = &done
	}
	path, _ := s.livePath(time.Now())
	var lives []*life
	for try := 0; ; try++ {
		var whole bool
		var lost []Position
		if lives, lost, whole = s.remaining(path); whole && len(lost) == 0 || try == maxTries {
			lives = append(s.revive(lost), lives...)
			break
		}
		for _, l := range lives { // a rotator was at work
			l.discard()
		}
		time.Sleep(time.Duration(try) * time.Millisecond)
	}
	s.need(lives...) // all at once: a checkpoint may be saved while they are read
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

// revive makes lives of the text that the checkpoint carried for removed files.
// It stands at its offset in a file without a name.
func (s *source) revive(lost []Position) (lives []*life) {
	for _, p := range lost {
		file, info, err := holdText(p.Text, p.Offset)
		if err != nil {
			s.f.opt.Warn(fmt.Errorf("read the text kept of %s: %w", p.Name, err))
		}
		if file == nil {
			s.f.counters.LostGenerations.Add(1)
			continue
		}
		l := s.newLife(file, info, p.Name, p.Offset, p.Line)
		l.sought = true
		lives = append(lives, l)
	}
	return lives
}

// holdText gives nil for no text.
func holdText(text []byte, off int64) (*os.File, os.FileInfo, error) {
	if len(text) == 0 {
		return nil, nil, nil
	}
	file, err := os.CreateTemp("", "tailer")
	if err != nil {
		return nil, nil, err
	}
	err = os.Remove(file.Name())
	if err == nil {
		_, err = file.WriteAt(text, off)
	}
	var info os.FileInfo
	if err == nil {
		info, err = file.Stat()
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// remaining opens the lives to read, oldest first. lost are those that were
// found nowhere; whole is false if the names have changed while it looked.
func (s *source) remaining(path string) (lives []*life, lost []Position, whole bool) {
	names := []string{path}
	wanted := s.saved.Generations
	for _, p := range wanted {
		names = append(names, p.Name)
	}
	real := realName(path)
	last := wanted[len(wanted)-1]
	names = append(names, namesBetween(last.Name, real)...)
	for _, p := range wanted {
		names = append(names, s.runsSince(p.Name, path)...)
	}
	live := newCandidate(real)
	all := s.candidates(names...)
	if live != nil {
		all = append(s.withoutLive(all, live), live)
	}
	defer func() { closeCandidates(all) }()
	from, at, lost := s.locate(all, live)
	same := true // as when they were compared
	for _, c := range all[:from] {
		s.learn(c.id, c.head)
	}
	for i := from; i < len(all); i++ {
		c := all[i]
		off, line := int64(0), int64(0)
		if p, ok := at[i]; ok {
			off, line = p.Offset, p.Line
		} else if len(c.head) == 0 && c != live {
			continue
		}
		l := s.lifeOf(c, off, line)
		l.sought = c != live
		same = same && l.endsWith(at[i])
		if l.file != nil && !s.f.claim(l.id, s) {
			_ = l.file.Close()
			continue
		}
		lives = append(lives, l)
	}
	now, err := os.Stat(path)
	if live == nil {
		return lives, lost, err != nil
	}
	return lives, lost, same && err == nil && idOf(now) == live.id
}

// endsWith tells whether a life that was just opened begins behind the text
// that p names.
func (l *life) endsWith(p Position) bool {
	if l.file == nil || p.BeforeLen == 0 {
		return true
	}
	return len(l.recent) >= p.BeforeLen && hash(l.recent[len(l.recent)-p.BeforeLen:]) == p.Before
}

// locate tells which of all is the first to read, and which Position belongs
// to which. lost is what is found nowhere; only what is newer than the
// checkpoint is read then.
func (s *source) locate(all []*candidate, live *candidate) (from int, at map[int]Position, lost []Position) {
	at = map[int]Position{}
	from = len(all)
	positions := s.saved.Generations
	done, known := -1, false
	if p := positions[0]; p.Done {
		positions = positions[1:]
		done = s.find(p, all, nil)
		known = done >= 0 || p.Name == ""
	}
	for k, p := range positions {
		if k == 0 && p.Offset == 0 && known {
			from = done + 1
			if len(p.Text) > 0 && s.find(p, all, nil) < 0 {
				lost = append(lost, p)
			}
			continue
		}
		i := s.find(p, all, at)
		switch {
		case i >= 0:
			from = min(from, i)
			if p.HeadLen > 0 { // else only its number tells it, and that is used again
				at[i] = p
			}
		case p.HeadLen > 0 || p.Offset > 0 || len(p.Text) > 0:
			lost = append(lost, p)
		}
		if k == 0 && p.HeadLen == 0 {
			// It was empty, so this may be another text in the same file.
			from = min(from, s.firstAfter(all, p))
		}
	}
	if from == len(all) {
		if from = done + 1; !known {
			from = s.firstAfter(all, positions[len(positions)-1])
		}
		if live != nil {
			from = min(from, len(all)-1)
		}
	}
	return from, at, lost
}

// find gives the index of the best match of p, -1 for none.
func (s *source) find(p Position, all []*candidate, taken map[int]Position) int {
	best, score := -1, 0
	for i, c := range all {
		if _, ok := taken[i]; ok {
			continue
		}
		if n := s.match(p, c); n > score {
			best, score = i, n
		}
	}
	return best
}

// firstAfter gives the first candidate that was written after p was looked at
// last.
func (s *source) firstAfter(all []*candidate, p Position) int {
	for i, c := range all {
		if c.modified.After(p.Modified) {
			return i
		}
	}
	return len(all)
}

// withoutLive drops what is the live file, or a rotator's copy of it that no
// checkpoint names.
func (s *source) withoutLive(all []*candidate, live *candidate) []*candidate {
	return slices.DeleteFunc(all, func(c *candidate) bool {
		drop := c.id == live.id || c.copyOf(live.file) && !s.matchesAny(c)
		if drop {
			closeCandidates([]*candidate{c})
		}
		return drop
	})
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
	if p.HeadLen == 0 && (!sameFile || c.compressed) {
		return 0 // nothing but the inode tells an empty file
	}
	if p.Done && !sameFile && p.HeadLen < headMax && len(c.head) != p.HeadLen {
		return 0
	}
	if !c.compressed && c.size < p.Offset {
		return 0
	}
	if p.BeforeLen > 0 {
		if got, ok := c.before(p.Offset, p.BeforeLen); !ok || hash(got) != p.Before {
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
