package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"diagnose/parser"
	"diagnose/tailer"
)

// Bounds of what a stream keeps of a run to replay it after a restart. A server
// of eight ranks prints some 200 start-up lines of together 60 KB.
const (
	maxStartLines = 1000
	maxStatsLines = 48
	maxSavedLine  = 32 << 10
	maxHeadBytes  = 256 << 10
	// vitalBytes are kept free for what decides how a run is read.
	vitalBytes = 64 << 10
)

// runHead is what has to be replayed to know a run without reading it again.
type runHead struct {
	start         parser.Pos
	starts, stats []headLine
	bytes         int
}

type headLine struct {
	at   parser.Pos
	data []byte
}

// keep takes the line just read into the newest run's head.
func (s *stream) keep(e parser.Event) {
	if s.raw == nil || len(s.raw) > maxSavedLine || e.At != s.rawAt || len(s.heads) == 0 {
		return
	}
	h := s.heads[len(s.heads)-1]
	into, room, most := &h.starts, maxHeadBytes-vitalBytes-h.bytes, maxStartLines
	switch e.Body.(type) {
	case parser.Stats:
		into = &h.stats
		if n := len(*into); n >= maxStatsLines {
			gone := n - maxStatsLines/2
			for _, l := range (*into)[:gone] {
				h.bytes -= len(l.data)
			}
			*into = slices.Delete(*into, 0, gone)
		}
	case parser.Banner, parser.Args, parser.Ready, parser.Stop:
		room += vitalBytes
		most *= 2
	}
	if n := len(*into); n > 0 && (*into)[n-1].at == e.At || n >= most || len(s.raw) > room {
		return
	}
	*into = append(*into, headLine{e.At, bytes.Clone(s.raw)})
	h.bytes += len(s.raw)
	s.dirty = true
}

// trimHeads drops the heads of runs that the tracker has forgotten and that a
// restart would not read again.
func (s *stream) trimHeads(held map[parser.Pos]bool) {
	keep := s.heads[:0]
	for i, h := range s.heads {
		past := slices.ContainsFunc(s.heads[i+1:], func(n *runHead) bool { return !s.committed.Before(n.start) })
		if held[h.start] || !past {
			keep = append(keep, h)
		} else {
			s.dirty = true
		}
	}
	clear(s.heads[len(keep):])
	s.heads = keep
}

// runStart is what is known of the runs at one position.
type runStart struct {
	// Run names the run that goes on there without its start having been seen.
	Run string `json:"run,omitempty"`
	// Lines are the start-up and statistics lines before it, as written, in
	// their order.
	Lines []savedLine `json:"lines"`
}

// savedLine is a line and where it stood. Gen numbers the generations among
// the lines of one runStart.
type savedLine struct {
	Gen    int    `json:"gen"`
	Source string `json:"source"`
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	Offset int64  `json:"offset"`
	Line   int64  `json:"line"`
	Data   []byte `json:"data"`
}

// startAt collects the lines that stand before a position.
func (s *stream) startAt(at parser.Pos) runStart {
	out := runStart{Lines: []savedLine{}}
	var lines []headLine
	for _, h := range s.heads {
		for _, list := range [][]headLine{h.starts, h.stats} {
			for _, l := range list {
				if l.at.Before(at) {
					lines = append(lines, l)
				}
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b headLine) int {
		switch {
		case a.at.Before(b.at):
			return -1
		case b.at.Before(a.at):
			return 1
		}
		return 0
	})
	gen, last := -1, -1
	for _, l := range lines {
		if l.at.Source != last {
			gen, last = gen+1, l.at.Source
		}
		ref := s.sources.ref(l.at.Source)
		out.Lines = append(out.Lines, savedLine{Gen: gen, Source: ref.Name, Device: ref.Device, Inode: ref.Inode, Offset: l.at.Offset, Line: l.at.Line, Data: l.data})
	}
	for _, l := range s.t.Live(nil) {
		if l.Start.Before(at) && !l.Banner {
			out.Run = l.Run
		}
	}
	return out
}

// saveStart puts the start of the runs at a checkpoint on disk, beside the one
// that belongs to the checkpoint saved last.
func (s *stream) saveStart(c tailer.Checkpoint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun || s.resumed && len(s.commits) == 0 {
		return nil // the checkpoint is still that of an earlier life
	}
	at := s.committedAt(c)
	there := s.d.opt.Store.hasStart(s.path)
	if there && !s.dirty && s.written != nil && !s.headBetween(s.startPos, at) {
		s.startPos = at
		return nil
	}
	start, err := json.Marshal(s.startAt(at))
	if err != nil {
		return fmt.Errorf("encode start of %s: %w", s.path, err)
	}
	if !there || !bytes.Equal(start, s.written) {
		if err := s.d.opt.Store.putStart(s.path, start, s.safe, s.safeFor); err != nil {
			return err
		}
		s.written = start
	}
	s.dirty, s.startPos = false, at
	return nil
}

// headBetween tells whether a kept line stands from a position on and before
// another one.
func (s *stream) headBetween(from, to parser.Pos) bool {
	if to.Before(from) {
		from, to = to, from
	}
	for _, h := range s.heads {
		for _, list := range [][]headLine{h.starts, h.stats} {
			for _, l := range list {
				if !l.at.Before(from) && l.at.Before(to) {
					return true
				}
			}
		}
	}
	return false
}

// startSaved notes that a checkpoint is on disk as well.
func (s *stream) startSaved(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun {
		s.safe, s.safeFor = s.written, key
	}
}

// committedAt gives the position that a checkpoint stands for: the newest
// commit that it can come from.
func (s *stream) committedAt(c tailer.Checkpoint) parser.Pos {
	if !s.read {
		return parser.Pos{Source: s.ahead} // an excerpt stands before it
	}
	if len(c.Generations) == 0 {
		return s.committed
	}
	p := resumesAt(c)
	for _, same := range []bool{true, false} {
		for _, at := range slices.Backward(s.commits) {
			ref := s.sources.ref(at.Source)
			if at.Offset == p.Offset && (!same || ref.Device == p.Device && ref.Inode == p.Inode) {
				return at
			}
		}
	}
	return s.committed
}

// restore replays the start of the run in which the reading goes on. Its lines
// get sources of their own, before all that is read now.
func (s *stream) restore() {
	key, ok := s.d.takeResumed(s.path)
	if !ok {
		return
	}
	s.resumed, s.safeFor = true, key
	start, raw, err := s.d.opt.Store.loadStart(s.path, key)
	if err != nil {
		s.d.warn(err)
	}
	s.safe, s.written = raw, raw
	if start.Run != "" {
		s.t.Continue(start.Run)
	}
	gen, source := -1, 0
	for _, l := range start.Lines {
		if l.Gen != gen {
			gen = l.Gen
			source = s.sources.add(tailer.SourceRef{Path: s.path, Name: l.Source, Device: l.Device, Inode: l.Inode})
		}
		s.feed(parser.Line{At: parser.Pos{Source: source, Line: l.Line, Offset: l.Offset}, Data: l.Data})
	}
	s.p.Flush()
	s.changed, s.dirty = false, false
}

// takeResumed gives the checkpoint that the reading of a path goes on from,
// once.
func (d *Daemon) takeResumed(path string) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, ok := d.resumed[path]
	delete(d.resumed, path)
	return key, ok
}

// safeKey names the last checkpoint that is on disk.
func (s *stream) safeKey() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.safeFor
}
