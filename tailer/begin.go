package tailer

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// RunFinder knows where runs start in a log that was never followed. With it
// following begins at the start of the run before the last one, so that the
// configuration and a crash just before are known; in an older generation, if
// need be. At most Options.Back are read so. A start farther back is looked for
// in up to 4 GiB, and 1 MiB from it is read as an excerpt.
type RunFinder interface {
	// Back gives the starts of the last two runs that begin in the limit bytes
	// before end, the older one first.
	Back(f io.ReaderAt, end, limit int64) ([]int64, error)
	// Forward gives the same of a text that can only be read from its front.
	// Lines count from 1. size is that of the text.
	Forward(ctx context.Context, text io.Reader) (starts []Place, size int64, err error)
}

// Place is the start of a line.
type Place struct{ Offset, Line int64 }

const (
	// defaultBack is Options.Back.
	defaultBack = 64 << 20
	// maxSought is how much text is searched for the start of the run, and
	// excerpt how much is read from there.
	maxSought = 4 << 30
	excerpt   = 1 << 20
	// shortFront is read along, since only so are lines counted.
	shortFront = 8 << 10
	// runsBack is how many runs are read: the one that goes on, and the one
	// before.
	runsBack = 2
)

// StartBefore gives the start of the run before the last one that begins before
// an offset, as a first start looks for it; the offset itself where none is in
// reach.
func StartBefore(runs RunFinder, f io.ReaderAt, before int64) int64 {
	starts, err := runs.Back(f, before, defaultBack)
	switch {
	case err != nil || len(starts) == 0:
		return before
	case starts[0] <= shortFront:
		return 0
	}
	return starts[0]
}

// beginning is where a log that was never followed is begun.
type beginning struct {
	older  *candidate // an older generation to begin in, nil for the live file
	before *candidate // the newest that is not read
	place  Place
	// head is where the start of the run is read that is going on there.
	head   *candidate
	headAt Place
	headTo int64
}

// beginBack begins a log that was never followed, whose file is open. False: a
// rotator is at work, and it is to be tried again.
func (s *source) beginBack(ctx context.Context, path string, file *os.File, info os.FileInfo, name string) bool {
	s.setStatus(StatusReading, nil)
	live := candidateOf(name, file, info)
	if live == nil || live.compressed {
		s.beginAt(s.newLife(file, info, name, 0, 0), s.learnSiblings(path))
		return true
	}
	names := s.namesOfRuns(path)
	wanted := s.candidateNames(names)
	older := s.withoutLive(s.candidates(names...), live)
	defer closeCandidates(older) // not before: while open, no inode is given again
	b := s.plan(ctx, append(slices.Clone(older), live))
	now, err := os.Stat(path)
	moved := err != nil || idOf(now) != live.id || !slices.Equal(wanted, s.candidateNames(names))
	if ctx.Err() != nil || moved && s.tries < maxTries {
		s.tries++
		return false
	}
	newest := Position{Done: true}
	if b.before != nil {
		newest = b.before.position(Place{})
		newest.Done = true
	}
	if b.older != nil {
		if b.head != nil {
			s.readExcerpt(ctx, b)
		}
		// As after a restart with the last checkpoint there.
		s.saved.Generations = []Position{newest, b.older.position(b.place)}
		s.resume(ctx)
		_ = file.Close()
		return true
	}
	l := s.newLife(file, info, name, b.place.Offset, b.place.Line)
	if b.place.Offset > 0 && len(l.recent) == 0 {
		return false // truncated in this moment
	}
	if b.head != nil {
		s.readExcerpt(ctx, b)
	}
	for _, c := range older {
		s.learn(c.id, c.head)
	}
	s.beginAt(l, newest)
	return true
}

// namesOfRuns gives the path, and of a container also its run before.
func (s *source) namesOfRuns(path string) []string {
	names := []string{path, realName(path)}
	if n, ok := restartOf(filepath.Base(path)); ok && n > 0 {
		names = append(names, s.runsSince(strconv.Itoa(n-1)+".log", path)...)
	}
	return names
}

// plan finds the place in candidates of which the last one is live.
func (s *source) plan(ctx context.Context, all []*candidate) (b beginning) {
	at := len(all) - 1
	live := all[at]
	starts, err := s.f.opt.Runs.Back(beating{s: s, at: live.file}, live.size, s.f.opt.Back)
	if err != nil {
		starts = nil // told when the file is read
	}
	runs := len(starts)
	if runs > 0 {
		b.place.Offset = starts[0]
	} else {
		b.place.Offset = lineFrom(live.file, live.size, live.size-s.f.opt.Back)
	}
	room := s.f.opt.Back - (live.size - b.place.Offset)
	first := at // the oldest one that is read, if no start is found
	older := map[int]scanned{}
	for i := at - 1; i >= 0 && runs < runsBack && live.size <= s.f.opt.Back; i-- {
		scan := s.scan(ctx, all[i])
		older[i] = scan
		j := max(0, len(scan.starts)-(runsBack-runs))
		for j < len(scan.starts) && scan.size-scan.starts[j].Offset > room {
			j++
		}
		if j < len(scan.starts) {
			at, b.place = i, scan.starts[j]
			runs += len(scan.starts) - j
			room -= scan.size - b.place.Offset
			continue
		}
		if len(scan.starts) > 0 || scan.size > room {
			break
		}
		room -= scan.size
		first = i
	}
	if first < at && (runs == 0 || s.target.successor) {
		at, b.place = first, Place{}
	}
	if b.place.Offset <= shortFront {
		b.place = Place{Line: 1}
	}
	if at < len(all)-1 {
		b.older = all[at]
	}
	for i := at - 1; i >= 0 && b.before == nil; i-- {
		if len(all[i].head) > 0 {
			b.before = all[i]
		}
	}
	if runs == 0 {
		s.planHead(ctx, &b, all[:at+1], older)
	}
	return b
}

// planHead finds the last start before the beginning, which stands in the last
// candidate.
func (s *source) planHead(ctx context.Context, b *beginning, all []*candidate, older map[int]scanned) {
	at := len(all) - 1
	sought := int64(0)
	if c := all[at]; !c.compressed && b.place.Offset > 0 {
		starts, err := s.f.opt.Runs.Back(beating{s: s, at: c.file}, b.place.Offset, maxSought)
		if n := len(starts); n > 0 && err == nil {
			b.head, b.headAt = c, Place{Offset: starts[n-1]}
			b.headTo = min(starts[n-1]+excerpt, b.place.Offset)
			return
		}
		sought += b.place.Offset
	}
	for i := at - 1; i >= 0 && sought < maxSought && ctx.Err() == nil; i-- {
		if s.target.successor && s.target.restarted(all[i].name, all[at].name) {
			return // of another run
		}
		scan, ok := older[i]
		if !ok {
			scan = s.scan(ctx, all[i])
		}
		sought += scan.size
		if n := len(scan.starts); n > 0 {
			b.head, b.headAt = all[i], scan.starts[n-1]
			b.headTo = scan.starts[n-1].Offset + excerpt
			return
		}
	}
}

// scanned is what was found in one generation. Of one that is damaged it is
// what could be read.
type scanned struct {
	starts []Place
	size   int64
}

func (s *source) scan(ctx context.Context, c *candidate) (found scanned) {
	text, err := c.open()
	if err != nil {
		return found
	}
	defer func() { _ = text.Close() }()
	found.starts, found.size, _ = s.f.opt.Runs.Forward(ctx, beating{s: s, r: text})
	return found
}

// beating shows that the source is alive while much text is searched.
type beating struct {
	s  *source
	r  io.Reader
	at io.ReaderAt
}

func (b beating) Read(p []byte) (int, error) {
	b.beat()
	return b.r.Read(p)
}

func (b beating) ReadAt(p []byte, off int64) (int, error) {
	b.beat()
	return b.at.ReadAt(p, off)
}

func (b beating) beat() {
	b.s.mu.Lock()
	b.s.beat = time.Now()
	b.s.mu.Unlock()
}

func (c *candidate) position(at Place) Position {
	p := Position{
		Name: c.name, Device: c.id.device, Inode: c.id.inode, Head: hash(c.head), HeadLen: len(c.head),
		Offset: at.Offset, Line: at.Line, Modified: c.modified,
	}
	if n := int(min(at.Offset, beforeMax)); n > 0 {
		if before, ok := c.before(at.Offset, n); ok {
			p.Before, p.BeforeLen = hash(before), len(before)
		}
	}
	return p
}

// readExcerpt shows the start of the run that was going on where the reading
// begins. What cannot be read of it is missed and no more.
func (s *source) readExcerpt(ctx context.Context, b beginning) {
	text, err := b.head.open()
	if err != nil {
		return
	}
	defer func() { _ = text.Close() }()
	if text.SkipTo(b.headAt.Offset) != nil {
		return
	}
	c := b.head
	ref := SourceRef{
		Path: s.target.key, Gen: s.f.nextGen(), Name: c.name, Device: c.id.device, Inode: c.id.inode,
		Head: hash(c.head), HeadLen: len(c.head), Meta: s.target.metaOf(c.name), Excerpt: true,
	}
	opt := ReadOptions{Start: b.headAt.Offset, StartLine: b.headAt.Line, MaxLine: s.f.opt.MaxLine}
	_, _, err = Read(ctx, io.LimitReader(text, b.headTo-b.headAt.Offset), opt, func(line Line) error {
		line.ReadAt = s.f.opt.Now()
		s.f.handler.Line(ref, line)
		return nil
	})
	if err != nil && ctx.Err() == nil {
		s.f.opt.Warn(err)
	}
}

// lineFrom gives the start of the first line that begins at or after an offset,
// size if there is none close to it.
func lineFrom(f io.ReaderAt, size, at int64) int64 {
	if at <= 0 {
		return 0
	}
	for pos := at - 1; pos < size; pos += smallRead {
		chunk := readSome(f, pos, smallRead)
		if i := slices.Index(chunk, '\n'); i >= 0 {
			return pos + int64(i) + 1
		}
		if pos-at > excerpt {
			break
		}
	}
	return size
}
