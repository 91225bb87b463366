package watch

import (
	"bytes"
	"sync"
	"time"

	"diagnose/matcher"
	"diagnose/parser"
	"diagnose/tailer"
)

const (
	// commitBytes and commitEvery bound how often the position is moved while
	// text comes in.
	commitBytes = 64 << 10
	commitEvery = 500 * time.Millisecond
	// maxCommits is how many of them are remembered, to be recognised in a
	// checkpoint.
	maxCommits = 64
	// restEvery is how often a log at rest is looked at.
	restEvery = time.Minute
)

// stream is one followed path.
type stream struct {
	mu      sync.Mutex
	d       *Daemon
	path    string
	ledger  *ledger
	p       *parser.Parser
	t       *matcher.Tracker
	sources sources

	begun   bool       // a line or the beginning of one was seen
	read    bool       // a whole line was read
	resumed bool       // the reading goes on from an earlier life's checkpoint
	next    parser.Pos // where reading would resume, if read
	ahead   int        // the first source that is no excerpt
	raw     []byte     // the line that is being read
	rawAt   parser.Pos

	// heads are the start-up and statistics lines of the runs that are still
	// held, oldest run first; dirty tells that they changed since they were
	// written.
	heads []*runHead
	dirty bool
	// written is what was written last, for the position startPos; safe what
	// belongs to the checkpoint safeFor, the last one on disk.
	written, safe []byte
	startPos      parser.Pos
	safeFor       string

	runs map[string]*liveRun
	live liveness
	// changed tells that an event may change a diagnosis, changedFrom where the
	// first such record since the last look begins.
	changed     bool
	changedFrom parser.Pos
	// lastInput is when the newest line came; peeked is the position up to which
	// the open records were shown to the tracker.
	lastInput time.Time
	peeked    parser.Pos
	// torn tells that the log ends with a line without its end; the records were
	// shown with it.
	torn bool
	// mark is how far the log had been read at the time marked.
	mark   parser.Pos
	marked time.Time

	committed   parser.Pos
	committedOn time.Time
	commits     []parser.Pos
	// atRest tells that nothing is pending since the last look, so that a quiet
	// log costs next to nothing.
	atRest bool
	looked time.Time
	called time.Time // by the follower
}

func newStream(d *Daemon, path string, l *ledger) *stream {
	s := &stream{d: d, path: path, ledger: l, runs: map[string]*liveRun{}}
	s.t = matcher.NewTracker(d.opt.Catalog, matcher.Options{Single: true})
	s.p = parser.New(s.event)
	return s
}

// source numbers the generation of a line; the first one of all brings the
// start of its run with it.
func (s *stream) source(ref tailer.SourceRef) int {
	if i, ok := s.sources.find(ref.Gen); ok {
		return i
	}
	if !s.begun {
		s.begun = true
		s.restore()
	}
	if s.sources.ref(s.sources.last).Excerpt {
		s.p.Flush() // what stood between is not read
	}
	i := s.sources.add(ref)
	if ref.Excerpt {
		s.ahead = i + 1
	}
	return i
}

// line takes a line of the log.
func (s *stream) line(ref tailer.SourceRef, l tailer.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	src := s.source(ref)
	now := s.d.opt.Now()
	s.lastInput, s.called, s.atRest = now, now, false
	s.live.line(ref.Gen, now, s.d.opt.Historic)
	s.d.metrics.line(len(l.Data), l.Cut > 0)
	s.feed(parser.Line{At: parser.Pos{Source: src, Line: l.Number, Offset: l.Offset}, Data: l.Data, Cut: l.Cut})
	if ref.Excerpt {
		return
	}
	s.read, s.torn = true, false
	s.next = parser.Pos{Source: src, Offset: l.Next}
	if l.Number > 0 {
		s.next.Line = l.Number + 1
	}
	switch {
	case s.changed:
		s.look(now, false)
	case s.next.Offset-s.committed.Offset > commitBytes || s.next.Source != s.committed.Source:
		s.rest(now)
		s.commit(now, false)
	}
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
	if s.t.Runs() != before {
		s.heads = append(s.heads, &runHead{start: e.At})
		s.dirty = true
		s.suspect(e.At) // the run before may be over, and is to be forgotten
	}
	switch body := e.Body.(type) {
	case parser.Banner, parser.Args, parser.Facts, parser.Ready, parser.Stop, parser.Stats:
		s.keep(e)
		return
	case parser.Config:
		if !body.Dump { // a dump is a part of a crash
			s.keep(e)
			return
		}
	}
	s.suspect(e.At)
}

// suspect notes that a record may change a diagnosis.
func (s *stream) suspect(at parser.Pos) {
	if !s.changed || at.Before(s.changedFrom) {
		s.changedFrom = at
	}
	s.changed = true
}

// tail takes a last line that has no newline yet: it is read as if it ended
// here, and read again when it does.
func (s *stream) tail(ref tailer.SourceRef, l tailer.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	src := s.source(ref)
	now := s.d.opt.Now()
	p := s.p.Fork(func(e parser.Event) {
		if _, again := e.Body.(parser.Stats); !again { // they would count twice
			s.event(e)
		}
	})
	p.Line(parser.Line{At: parser.Pos{Source: src, Line: l.Number, Offset: l.Offset}, Data: bytes.Clone(l.Data), Cut: l.Cut})
	p.Flush()
	s.called, s.atRest, s.torn, s.peeked = now, false, true, s.next
	s.look(now, false)
}

// idle is called about once a second while nothing arrives.
func (s *stream) idle(ref tailer.SourceRef, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called = now
	s.idleAtEnd(ref, now)
	if s.atRest && now.Sub(s.looked) < restEvery {
		return
	}
	s.held(now)
	if !s.begun {
		s.looked, s.atRest = now, true
		return
	}
	s.look(now, false)
}

// gone ends the log of a container that was replaced.
func (s *stream) gone(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p.Flush()
	s.look(now, true)
}

// forsaken tells that the follower no longer knows the path, and that nothing
// here is needed any more.
func (s *stream) forsaken(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.unsaved {
			return false
		}
	}
	return now.Sub(s.called) > forsaken
}

// commit tells the follower from where a restart must read: the oldest open
// record, or the start of what is not told and on disk.
func (s *stream) commit(now time.Time, force bool) {
	if !s.read {
		return
	}
	at := s.next
	if from, ok := s.p.OpenFrom(); ok && from.Before(at) {
		at = from
	}
	for _, r := range s.runs {
		if s.pinned(r, now) && r.from.Before(at) {
			at = r.from
		}
	}
	if ref := s.sources.ref(at.Source); at == s.committed || ref.Gen == 0 || ref.Excerpt {
		return
	}
	if !force && at.Source == s.committed.Source && at.Offset-s.committed.Offset < commitBytes && now.Sub(s.committedOn) < commitEvery {
		return
	}
	s.committed, s.committedOn = at, now
	if len(s.commits) == maxCommits {
		s.commits = append(s.commits[:0], s.commits[maxCommits/2:]...)
	}
	s.commits = append(s.commits, at)
	s.d.opt.Commit(s.sources.ref(at.Source), at.Offset, at.Line)
}

// trimSources forgets the names of generations that nothing points into.
func (s *stream) trimSources() {
	if len(s.sources.refs) <= maxSources {
		return
	}
	used := map[int]bool{s.committed.Source: true, s.next.Source: true}
	for _, at := range s.commits {
		used[at.Source] = true
	}
	for _, h := range s.heads {
		for _, list := range [][]headLine{h.starts, h.stats} {
			for _, l := range list {
				used[l.at.Source] = true
			}
		}
	}
	for _, r := range s.runs {
		used[r.from.Source] = true
	}
	s.sources.trim(used)
}

// meta is what the place of the log tells about its writer.
func (s *stream) meta() tailer.Meta { return s.sources.ref(s.sources.last).Meta }
