package watch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"sync"
	"time"

	"diagnose/matcher"
	"diagnose/parser"
	"diagnose/tailer"
)

// Bounds of what a stream keeps of a run to replay it after a restart.
const (
	maxStartLines = 400
	maxStatsLines = 48
	maxSavedLine  = 32 << 10
)

// stream is one followed path.
type stream struct {
	mu   sync.Mutex
	d    *Daemon
	path string
	p    *parser.Parser
	t    *matcher.Tracker

	// sources numbers the generations that were read: a position's Source.
	sources []tailer.SourceRef
	index   map[uint64]int
	next    parser.Pos // where reading would resume
	// heads are the start-up and statistics lines of the runs that are still
	// held, oldest run first.
	heads []*runHead
	dirty bool // heads changed since the snapshot was written
	raw   []byte
	rawAt parser.Pos

	runs map[string]*liveRun
	// lastInput is when the newest line came; peeked is the position up to which
	// the open records were shown to the tracker.
	lastInput time.Time
	peeked    parser.Pos
	changed   bool
	committed parser.Pos
	// atRest tells that nothing is pending since the last look, so that a quiet
	// log costs next to nothing.
	atRest bool
	looked time.Time
}

// runHead is what has to be replayed to know a run without reading it again.
type runHead struct {
	start         parser.Pos
	starts, stats []headLine
}

type headLine struct {
	at   parser.Pos
	data []byte
}

func newStream(d *Daemon, path string) *stream {
	s := &stream{d: d, path: path, index: map[uint64]int{}, runs: map[string]*liveRun{}}
	s.t = matcher.NewTracker(d.opt.Catalog, matcher.Options{Single: true})
	s.p = parser.New(s.event)
	for _, r := range d.recordsOf(path) {
		record := r
		s.runs[r.Run] = &liveRun{record: &record, closed: r.Closed != nil, told: -1}
	}
	return s
}

// source numbers the generation of a line; the first one of all brings the
// snapshot of an earlier life with it.
func (s *stream) source(ref tailer.SourceRef, offset int64) int {
	if i, ok := s.index[ref.Gen]; ok {
		return i
	}
	if len(s.sources) == 0 {
		s.restore(ref, offset)
	}
	i := len(s.sources)
	s.sources = append(s.sources, ref)
	s.index[ref.Gen] = i
	return i
}

// restore replays the start-up lines of the run in which the reading goes on.
// They get a source of their own, before all that is read now.
func (s *stream) restore(ref tailer.SourceRef, offset int64) {
	sn, err := s.d.opt.Store.loadSnapshot(s.path)
	if err != nil {
		s.d.warn(err)
	}
	if len(sn.Lines) == 0 {
		return
	}
	s.sources = append(s.sources, tailer.SourceRef{Path: s.path, Name: sn.Lines[0].Source})
	for _, l := range sn.Lines {
		if l.Device == ref.Device && l.Inode == ref.Inode && l.Offset >= offset {
			break // it will be read again; the checkpoint is older than the snapshot
		}
		s.feed(parser.Line{At: parser.Pos{Source: 0, Line: l.Line, Offset: l.Offset}, Data: l.Data})
	}
	s.p.Flush()
}

// line takes a line of the log.
func (s *stream) line(ref tailer.SourceRef, l tailer.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	src := s.source(ref, l.Offset)
	s.lastInput, s.atRest = s.d.opt.Now(), false
	s.d.metrics.line(len(l.Data), l.Cut > 0)
	s.feed(parser.Line{At: parser.Pos{Source: src, Line: l.Number, Offset: l.Offset}, Data: l.Data, Cut: l.Cut})
	s.next = parser.Pos{Source: src, Offset: l.Next}
	if l.Number > 0 {
		s.next.Line = l.Number + 1
	}
	if s.changed {
		s.look(s.lastInput)
	} else if s.quiet() {
		s.commit()
	}
}

// quiet tells that nothing is open, so that the position alone has to move.
func (s *stream) quiet() bool {
	return s.next.Offset-s.committed.Offset > 64<<10 || s.next.Source != s.committed.Source
}

func (s *stream) feed(l parser.Line) {
	s.raw, s.rawAt = l.Data, l.At
	s.p.Line(l)
	s.raw = nil
}

// event takes what the parser read and keeps the start-up lines.
func (s *stream) event(e parser.Event) {
	before := s.t.Runs()
	s.t.Add(e)
	if s.t.Runs() != before || len(s.heads) == 0 {
		s.heads = append(s.heads, &runHead{start: e.At})
	}
	switch e.Body.(type) {
	case parser.Banner, parser.Args, parser.Config, parser.Facts, parser.Ready, parser.Stop:
		s.keep(e, false)
	case parser.Stats:
		s.keep(e, true)
	case parser.Failure, parser.Notice, parser.Dump, parser.HTTPError, parser.Ended:
		s.changed = true
	}
}

func (s *stream) keep(e parser.Event, stats bool) {
	if s.raw == nil || len(s.raw) > maxSavedLine || e.At != s.rawAt {
		return
	}
	h := s.heads[len(s.heads)-1]
	into, limit := &h.starts, maxStartLines
	if stats {
		into, limit = &h.stats, maxStatsLines
	}
	if n := len(*into); n > 0 && (*into)[n-1].at == e.At {
		return
	}
	if len(*into) >= limit {
		if !stats {
			return
		}
		*into = append((*into)[:0], (*into)[limit/2:]...)
	}
	*into = append(*into, headLine{e.At, bytes.Clone(s.raw)})
	s.dirty = true
}

// tail takes a last line that has no newline yet: it is read as if it ended
// here, and read again when it does.
func (s *stream) tail(ref tailer.SourceRef, l tailer.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	src := s.source(ref, l.Offset)
	p := s.p.Fork(s.event)
	p.Line(parser.Line{At: parser.Pos{Source: src, Line: l.Number, Offset: l.Offset}, Data: l.Data, Cut: l.Cut})
	p.Flush()
	s.changed, s.atRest = true, false
	s.look(s.d.opt.Now())
}

// idle is called about once a second while nothing arrives.
func (s *stream) idle(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sources) == 0 || s.atRest && now.Sub(s.looked) < time.Minute {
		return
	}
	s.look(now)
}

// gone ends the log of a container that was replaced.
func (s *stream) gone(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p.Flush()
	s.look(now.Add(s.d.opt.CloseAfter + s.d.opt.Gather))
}

// commit tells the follower from where a restart must read: the oldest open
// record, or the start of a crash that is still open.
func (s *stream) commit() {
	at := s.next
	if from, ok := s.p.OpenFrom(); ok && from.Before(at) {
		at = from
	}
	for _, r := range s.runs {
		if r.pending() && r.from.Before(at) {
			at = r.from
		}
	}
	if at == s.committed || at.Source >= len(s.sources) || s.sources[at.Source].Gen == 0 {
		return
	}
	if s.dirty || at.Source != s.committed.Source {
		if err := s.d.opt.Store.putSnapshot(s.snapshot(at)); err != nil {
			s.d.warn(err)
			return // the old position stays valid, with the old snapshot
		}
		s.dirty = false
	}
	s.committed = at
	s.d.opt.Commit(s.sources[at.Source], at.Offset, at.Line)
}

// snapshot holds the lines before a position of the run that is current there.
func (s *stream) snapshot(at parser.Pos) snapshot {
	out := snapshot{Path: s.path, Lines: []savedLine{}}
	var h *runHead
	for _, c := range s.heads {
		if c.start.Before(at) {
			h = c
		}
	}
	if h == nil {
		return out
	}
	for _, list := range [][]headLine{h.starts, h.stats} {
		for _, l := range list {
			if !l.at.Before(at) {
				continue
			}
			ref := s.sources[l.at.Source]
			out.Lines = append(out.Lines, savedLine{Source: ref.Name, Device: ref.Device, Inode: ref.Inode, Offset: l.at.Offset, Line: l.at.Line, Data: l.data})
		}
	}
	return out
}

func (s *stream) names() []string {
	out := make([]string, len(s.sources))
	for i, r := range s.sources {
		out[i] = filepath.Base(r.Name)
	}
	return out
}

// meta is what the place of the log tells about its writer.
func (s *stream) meta() tailer.Meta {
	if len(s.sources) == 0 {
		return tailer.Meta{}
	}
	return s.sources[len(s.sources)-1].Meta
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:24]
}
