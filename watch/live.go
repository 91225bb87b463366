package watch

import (
	"os"
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

// proven is how long a sight of the end counts before another one is looked for.
const proven = 30 * time.Second

// CaughtUp tells the daemon up to where a source was read when it seemed to be
// at its end, which is then looked for in the file. Idle alone comes late, and
// to a busy log never. It is to be called about once a second.
func (d *Daemon) CaughtUp(ref tailer.SourceRef, offset int64) {
	if ref.Gen == 0 {
		return
	}
	s, now := d.stream(ref.Path), d.opt.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.live.from[ref.Gen]
	if known && now.Sub(s.live.seen) < proven {
		return
	}
	if ref.Inode == 0 { // a journal, or a pipe
		if _, read := s.sources.find(ref.Gen); read && s.live.heard == ref.Gen {
			s.atEnd(ref.Gen, now)
		}
		return
	}
	if info, err := os.Stat(ref.Name); err == nil && info.Size() == offset && isFile(info, ref.Device, ref.Inode) {
		s.live.end(ref.Gen, offset, now)
	}
}
