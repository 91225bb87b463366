package tailer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// known is the front of a text that has been read.
type known struct {
	id   fileID
	head []byte
}

// maxKnown bounds how many fronts are kept; rotators keep fewer files.
const maxKnown = 256

func (s *source) learn(id fileID, head []byte) {
	same := func(k known) bool { return k.id == id && bytes.Equal(k.head, head) }
	if len(head) == 0 || slices.ContainsFunc(s.known, same) {
		return
	}
	if len(s.known) >= maxKnown {
		s.known = slices.Delete(s.known, 0, 1)
	}
	s.known = append(s.known, known{id, bytes.Clone(head)})
}

// learnSiblings takes what stands beside the log at a start for read. It gives
// the newest of it.
func (s *source) learnSiblings(path string) (newest Position) {
	newest = Position{Done: true}
	all := s.candidates(path)
	defer closeCandidates(all)
	for _, c := range all {
		s.learn(c.id, c.head)
		if len(c.head) > 0 {
			newest = Position{
				Name: c.name, Device: c.id.device, Inode: c.id.inode,
				Head: hash(c.head), HeadLen: len(c.head), Modified: c.modified, Done: true,
			}
		}
	}
	return newest
}

// explains tells whether c is a text that has been read, under whatever name.
func (k known) explains(c *candidate) bool {
	if !bytes.HasPrefix(c.head, k.head) {
		return false
	}
	return len(k.head) >= headMax || len(c.head) == len(k.head) || k.id == c.id
}

// rotate goes over to the file that the path names now.
func (s *source) rotate(ctx context.Context, path string) {
	file, info, name := s.openLive(path)
	if file == nil {
		return // the old file is read on
	}
	s.stopTail()
	cur := s.cur()
	if idOf(info) == cur.id { // it has come back
		_ = file.Close()
		s.misses = 0
		return
	}
	if !s.drainOrTruncate(ctx) && (ctx.Err() != nil || s.cur() != cur) {
		_ = file.Close() // truncated as well: the next look finds it rotated
		return
	}
	kind := s.kindOf(cur, path, name)
	s.misses = 0
	if s.target.successor && name != cur.name && s.target.restarted(cur.name, name) {
		s.replaceContainer(ctx, cur, file, info, name)
		return
	}
	s.enter(ctx, s.newLife(file, info, name, 0, 0), kind)
}

// kindOf tells how the file of cur lost the name of the log.
func (s *source) kindOf(cur *life, path, name string) RotationKind {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 && name != cur.name {
		return RotatedSymlink
	}
	own := known{cur.id, cur.front()}
	all := s.candidates(path, cur.name)
	defer closeCandidates(all)
	for _, c := range all {
		if c.id == cur.id || (c.compressed && len(own.head) > 0 && own.explains(c)) {
			return RotatedRename
		}
	}
	if info, err := cur.file.Stat(); err == nil && links(info) == 0 {
		return RotatedDelete
	}
	return RotatedReplaced
}

// enter makes next the followed life, after those that came and went unseen.
func (s *source) enter(ctx context.Context, next *life, kind RotationKind) {
	s.retire(s.cur())
	for _, h := range s.hidden(next, nil) {
		s.follow(h, kind)
		s.readWhole(ctx, h)
		s.retire(h)
	}
	s.follow(next, kind)
	s.setStatus(StatusFollowing, nil)
	s.hurry = 1
}

// follow appends next to the lives.
func (s *source) follow(next *life, kind RotationKind) {
	old := s.cur()
	s.lives = append(s.lives, next)
	s.lastKnown, s.progOff, s.progress = 0, next.off, time.Now()
	s.watch.forgive(time.Now(), s.f.opt.Tick)
	s.need(next)
	if old != nil {
		s.f.counters.rotated(kind)
		s.f.handler.Rotated(old.ref, next.ref, kind)
	}
}

// retire keeps a life open for what its writer still adds.
func (s *source) retire(l *life) {
	if l == nil {
		return
	}
	head := l.front()
	s.learn(l.id, head)
	s.mu.Lock()
	l.turned = l.off
	l.head = head
	l.late = l.file != nil
	s.mu.Unlock()
	l.quiet = time.Now()
}

// late reads rotated files until their writers have been quiet for the grace
// period.
func (s *source) late(ctx context.Context, now time.Time) {
	for _, l := range slices.Clone(s.lives) {
		if !l.late || l.file == nil {
			continue
		}
		before := l.size
		err := s.drain(ctx, l)
		if ctx.Err() != nil {
			return // what is unread is not its end
		}
		if err == nil && l.size != before {
			l.quiet = now
			continue
		}
		if now.Sub(l.quiet) >= s.f.opt.Grace {
			s.learn(l.id, l.front()) // it may have grown since
			s.closeFile(l)
		}
	}
	s.mu.Lock()
	s.prune()
	s.mu.Unlock()
	n, cur := len(s.lives), s.cur()
	s.lives = slices.DeleteFunc(s.lives, func(l *life) bool {
		return l != cur && l.file == nil && !l.unread && (l.joined != nil || l.rest.size() == 0)
	})
	if len(s.lives) < n {
		s.f.release(s)
	}
}

// truncated goes over to the new text in the same file. What was unread is
// looked for in the rotator's copy.
func (s *source) truncated(ctx context.Context) {
	cur := s.cur()
	s.salvage(ctx)
	s.stopTail()
	kind := RotatedTruncate
	copied := s.findCopy(cur)
	file := cur.file
	info, err := file.Stat()
	if err != nil {
		s.setStatus(StatusUnfit, err)
		return
	}
	next := s.newLife(file, info, cur.name, 0, 0)
	s.mu.Lock()
	cur.file = nil
	s.mu.Unlock()
	if copied != nil {
		kind = RotatedCopy
		s.readCopy(ctx, cur, copied)
	} else if lost := cur.size - cur.off; lost > 0 {
		s.f.counters.LostBytes.Add(lost)
	}
	s.enter(ctx, next, kind)
}

// findCopy looks for the text that was read up to l.off in another file.
func (s *source) findCopy(l *life) *candidate {
	want := l.before()
	if len(want) == 0 && len(l.head) == 0 {
		return nil
	}
	all := s.candidates(l.name, s.target.path)
	defer closeCandidates(all)
	for _, c := range slices.Backward(all) {
		if c.id != l.id && bytes.HasPrefix(c.head, l.head) && c.holds(l.off, want) {
			found := *c
			c.file = nil
			return &found
		}
	}
	return nil
}

// readCopy reads the rest of l from the rotator's copy of it.
func (s *source) readCopy(ctx context.Context, l *life, c *candidate) {
	s.mu.Lock()
	l.name = c.name
	if c.compressed {
		l.packed, l.unread = c.file, true
	} else {
		l.file, l.id = c.file, c.id
	}
	s.mu.Unlock()
	s.readWhole(ctx, l)
}

// readWhole reads a life that is complete, from its off on: by its own
// descriptor, or decompressing it. Its unterminated end stays behind.
func (s *source) readWhole(ctx context.Context, l *life) {
	var err error
	if l.file != nil {
		err = s.drain(ctx, l)
	} else {
		err = s.readPacked(ctx, l)
	}
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	l.unread = false
	s.mu.Unlock()
	if err != nil {
		s.f.opt.Warn(fmt.Errorf("read %s: %w", l.name, err))
	}
}

func (s *source) readPacked(ctx context.Context, l *life) error {
	if l.packed == nil {
		return nil
	}
	defer func() {
		_ = l.packed.Close()
		l.packed = nil
	}()
	src, err := openFrom(l.packed)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	if err := src.SkipTo(l.off); err != nil {
		return err
	}
	opt := ReadOptions{Start: l.off, StartLine: l.line, MaxLine: s.f.opt.MaxLine, Final: true}
	_, _, err = Read(ctx, src, opt, func(line Line) error {
		if line.Unterminated {
			s.mu.Lock()
			l.rest = piece{bytes.Clone(line.Data), line.Cut}
			s.mu.Unlock()
			return nil
		}
		s.take(ctx, l, line)
		return nil
	})
	return err
}

// hidden gives the lives that came and went between two looks, oldest first,
// opened but not read: siblings that nothing explains. inHand is the beginning
// of next, if it has been read.
func (s *source) hidden(next *life, inHand []byte) []*life {
	var lives []*life
	for _, l := range s.lives {
		if l != next {
			s.learn(l.id, l.front())
		}
	}
	all := s.candidates(append(append([]string{s.target.path}, s.between(next)...), next.name)...)
	defer closeCandidates(all)
	info, err := os.Stat(s.target.path)
	live := err == nil && idOf(info) == next.id
	front := next.head
	if len(front) == 0 {
		front = inHand
	}
	for _, c := range all {
		if (c.id == next.id && !live) || c.packs(next.file) {
			break // next itself, rotated in its turn: what follows came after it
		}
		if c.id == next.id || len(c.head) == 0 || c.copyOf(next.file) || s.explained(c) {
			continue
		}
		// Looked at last, since next can be truncated at any moment: then what
		// begins as it did is its copy, and what follows came after it.
		if bytes.HasPrefix(c.head, front) && !bytes.Equal(readSome(next.file, 0, int64(len(front))), front) {
			break
		}
		l := s.lifeOf(c, 0, 0)
		l.sought = true
		lives = append(lives, l)
	}
	return lives
}

// explained tells whether c is a life that is open, or a text that was read.
func (s *source) explained(c *candidate) bool {
	return slices.ContainsFunc(s.lives, func(l *life) bool { return l.id == c.id && !c.compressed }) ||
		slices.ContainsFunc(s.known, func(k known) bool { return k.explains(c) })
}

// catchHidden looks, before the first line of l is handed on, for lives that
// came before it.
func (s *source) catchHidden(ctx context.Context, l *life, inHand []byte) {
	if l.sought || l.start > 0 {
		return
	}
	l.sought = true
	if inHand = append(bytes.Clone(inHand), '\n'); len(inHand) > headMax {
		inHand = inHand[:headMax]
	}
	s.seekHidden(ctx, l, inHand)
}

// watchFolder looks for them while l has no line, each time the folder changes:
// l can be truncated without a trace, and then nothing else tells.
func (s *source) watchFolder(ctx context.Context, l *life) {
	if !l.fresh || l.sought || l.start > 0 {
		return
	}
	info, err := os.Stat(filepath.Dir(s.target.path))
	if err != nil || info.ModTime().Equal(s.folder) {
		return
	}
	// Looked at before the files are, so that a later change counts.
	s.folder = info.ModTime()
	if time.Since(s.folder) < folderGrain {
		s.folder = time.Time{} // it may change again within the same tick of the clock
	}
	s.seekHidden(ctx, l, nil)
}

// folderGrain is more than the grain of file times, a tick of the kernel.
const folderGrain = 20 * time.Millisecond

func (s *source) seekHidden(ctx context.Context, l *life, inHand []byte) {
	for _, h := range s.hidden(l, inHand) {
		s.lives = slices.Insert(s.lives, len(s.lives)-1, h)
		s.mu.Lock()
		s.needed = slices.Insert(s.needed, len(s.needed)-1, h)
		s.mu.Unlock()
		s.f.counters.rotated(RotatedReplaced)
		s.f.handler.Rotated(l.ref, h.ref, RotatedReplaced)
		s.readWhole(ctx, h)
		s.retire(h)
		s.f.handler.Rotated(h.ref, l.ref, RotatedReplaced)
	}
}

// lifeOf makes a life of a candidate, whose file it takes.
func (s *source) lifeOf(c *candidate, off, line int64) *life {
	file := c.file
	c.file = nil
	if !c.compressed {
		return s.newLife(file, c.info, c.name, off, line)
	}
	l := &life{
		name: c.name, packed: file, unread: true, id: c.id, start: off, fresh: true, off: off, line: line,
		turned: -1, shown: off, modified: c.modified, head: c.head,
	}
	if off == 0 && line == 0 {
		l.line = 1
	}
	l.commit = mark{off: off, line: l.line}
	l.ref = SourceRef{
		Path: s.target.key, Gen: s.f.nextGen(), Name: c.name, Device: c.id.device, Inode: c.id.inode,
		Head: hash(c.head), HeadLen: len(c.head), Meta: s.target.metaOf(c.name),
	}
	return l
}
