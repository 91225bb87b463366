package watch

import (
	"time"

	"diagnose/matcher"
	"diagnose/parser"
	"diagnose/tailer"
)

// maxLive is how many generations of a log are known to be read live.
const maxLive = 8

// liveness tells text that was written while the daemon stood at the end of the
// log from text that was there before: what a server prints as the time can be
// hours off, when its text came cannot.
type liveness struct {
	heard uint64    // the generation of the last call of the follower
	seen  time.Time // when its end was last seen
	// from is by generation the offset from which its text is live.
	from map[uint64]int64
}

// line takes note of a line. After a long time without a sight of the end it
// can be a backlog: the daemon was stopped, or reads slower than is written.
func (v *liveness) line(gen uint64, now time.Time, limit time.Duration) {
	v.heard = gen
	if now.Sub(v.seen) > limit {
		delete(v.from, gen)
	}
}

// end says that a generation is read to its end, which is at an offset.
func (v *liveness) end(gen uint64, at int64, now time.Time) {
	v.seen = now
	if _, ok := v.from[gen]; ok {
		return
	}
	if v.from == nil || len(v.from) >= maxLive {
		v.from = map[uint64]int64{}
	}
	v.from[gen] = at
}

// idleAtEnd takes the follower's word that nothing arrives. The first one of a
// generation proves nothing: it can come before the first look into the file.
func (s *stream) idleAtEnd(ref tailer.SourceRef, now time.Time) {
	if s.live.heard != ref.Gen {
		s.live.heard = ref.Gen
		return
	}
	s.atEnd(ref.Gen, now)
}

// atEnd notes that a generation is read to its end.
func (s *stream) atEnd(gen uint64, now time.Time) {
	i, read := s.sources.find(gen)
	switch {
	case !read:
		s.live.end(gen, 0, now)
	case s.next.Source == i:
		s.live.end(gen, s.next.Offset, now)
	}
}

// isLive tells whether the root of an incident was written while the end of the
// log was followed.
func (s *stream) isLive(in matcher.Incident, r *liveRun) bool {
	at := r.from
	if root := in.Root.At; root != nil && root.Offset != nil {
		at = parser.Pos{Source: root.Source, Offset: *root.Offset}
	}
	ref := s.sources.ref(at.Source)
	from, ok := s.live.from[ref.Gen]
	return ok && ref.Gen != 0 && at.Offset >= from
}

// CaughtUp tells the daemon that a source has been read to its end, for logs
// that are never quiet. It is to be called every few seconds.
func (d *Daemon) CaughtUp(ref tailer.SourceRef) {
	s := d.existing(ref.Path)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, read := s.sources.find(ref.Gen); read && s.live.heard == ref.Gen {
		s.atEnd(ref.Gen, d.opt.Now())
	}
}
