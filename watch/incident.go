package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"diagnose/matcher"
	"diagnose/parser"
)

// liveRun is what the daemon knows and has told about one run that may have
// failed.
type liveRun struct {
	// record is the incident of the run; nil while there is none.
	record *Record
	closed bool
	// earlier tells that the record is of an earlier life, and ended that it was
	// closed then; base is what it had counted, up to the place counted.
	earlier, ended bool
	base           []matcher.Consequence
	counted        place
	// mute is set where the incident's file cannot be read, or belongs to
	// another log: it was told.
	mute bool
	// unsaved tells that the record on disk is older.
	unsaved bool

	// burst is when the newest burst of changes began, lastSaw when it last
	// grew; zero while only an earlier life saw the failure.
	burst, lastSaw time.Time
	changed        int
	told           int // of changed, when the incident was last worded; -1 for never
	worded         time.Time
	// news is what of changed is more than a number, toldNews the same when the
	// incident was last worded. pace is the time to the next wording if there is
	// none: a dead server that is asked on fails for hours.
	news, toldNews int
	pace           time.Duration
	// from is where a restart must read again, while the run is pinned.
	from parser.Pos
}

// pinned tells that a restart would still need what the run wrote.
func (s *stream) pinned(r *liveRun, now time.Time) bool {
	switch {
	case r.unsaved:
		return true
	case r.lastSaw.IsZero() || r.mute:
		return false
	case r.record == nil:
		return !r.closed && now.Sub(r.lastSaw) < s.d.opt.LookBack
	}
	// What comes soon after can belong to it, and a record that was read as it
	// stood can grow: with the whole crash in reach both are read right.
	return !r.closed || r.told != r.changed || now.Sub(r.lastSaw) < s.d.opt.CloseAfter
}

// look decides for every run whether there is something to tell. final is the
// end of the log: nothing more is waited for.
func (s *stream) look(now time.Time, final bool) {
	s.rest(now)
	if now.Sub(s.lastInput) >= s.d.opt.Quiet || final {
		s.peek() // a crash can be one record, and nobody is left to write another
	}
	states := s.t.Live(nil)
	s.note(states, now)
	due := map[string]bool{}
	for _, l := range states {
		if r := s.runs[l.Run]; r != nil && s.due(r, l, now, final) {
			due[l.Run] = true
		}
	}
	if len(due) > 0 {
		s.peek()
		states = s.t.Live(func(l matcher.Live) bool { return due[l.Run] })
		s.note(states, now)
		for _, l := range states {
			if r := s.runs[l.Run]; r != nil && due[l.Run] {
				s.tell(r, l, now, final)
			}
		}
	}
	s.changed = false
	s.close(states, now, final)
	s.followUp(states, now) // after closing: the record ends before what followed is told
	s.forget(states, now)
	s.commit(now, final || !s.lastInput.Equal(now))
	s.looked, s.atRest = now, s.settled(now)
}

// rest ends the records that nothing was added to for LookBack or longer, so
// that nothing will be: an open one would hold the position.
func (s *stream) rest(now time.Time) {
	if !s.read || now.Sub(s.marked) < s.d.opt.LookBack {
		return
	}
	if s.marked.IsZero() || s.torn {
		s.mark, s.marked = s.next, now
		return
	}
	if now.Sub(s.lastInput) >= s.d.opt.LookBack {
		s.p.Flush() // nobody writes; what a container's driver split stays split
	} else {
		s.p.CloseBefore(s.mark)
	}
	s.mark, s.marked = s.next, now
}

// settled tells that time alone brings nothing new but the end of HeldAfter.
func (s *stream) settled(now time.Time) bool {
	if _, open := s.p.OpenFrom(); open && s.peeked != s.next {
		return false
	}
	for _, r := range s.runs {
		if s.pinned(r, now) || r.record == nil && !r.closed {
			return false
		}
	}
	return true
}

// peek shows the open records to the tracker: the record of the process that
// died is ended by no later line.
func (s *stream) peek() {
	if s.peeked != s.next {
		s.peeked = s.next
		s.p.Peek()
	}
}

// note keeps the book of the runs that may have failed.
func (s *stream) note(states []matcher.Live, now time.Time) {
	for _, l := range states {
		if !l.Failed {
			continue
		}
		r := s.book(l.Run)
		if l.Changed == r.changed {
			continue
		}
		from := l.From
		if s.changed {
			from = s.changedFrom
		}
		if !s.pinned(r, now) || from.Before(r.from) {
			r.from = from
		}
		if r.lastSaw.IsZero() || now.Sub(r.lastSaw) > s.d.opt.Gather {
			r.burst = now
		}
		r.changed, r.news, r.lastSaw = l.Changed, l.Changed-l.Repeats, now
		if r.record == nil {
			r.closed = false // what came to nothing may yet be a part of something
		}
	}
}

// book gives the book of a run; a new one begins with what an earlier life
// recorded of it.
func (s *stream) book(run string) *liveRun {
	if r := s.runs[run]; r != nil {
		return r
	}
	r := &liveRun{told: -1}
	s.runs[run] = r
	if e := s.ledger.latest(func(e entry) bool { return e.Run == run }); e != nil {
		s.adopt(r, e.ID)
	}
	return r
}

// adopt goes on with an incident that is on disk.
func (s *stream) adopt(r *liveRun, id string) {
	record, err := s.d.opt.Store.Get(id)
	if err == nil && record.Path != s.path {
		err = fs.ErrExist // the same text under another name, told there
	}
	if err != nil {
		if !errors.Is(err, fs.ErrExist) {
			s.d.warn(err)
		}
		r.mute, r.closed = true, true
		return
	}
	r.record, r.earlier, r.ended = &record, true, record.Closed != nil
	r.closed = r.ended
	r.base, r.counted = slices.Clone(record.Incident.Consequences), record.Counted
}

// due tells whether a run's failure should be worded now. The first telling
// waits for the other ranks: until the log has been quiet for a second, another
// run has begun, or Gather has passed. Later ones are bounded to one a second.
func (s *stream) due(r *liveRun, l matcher.Live, now time.Time, final bool) bool {
	switch {
	case r.mute, r.told == r.changed, r.lastSaw.IsZero():
		return false
	case final, l.Over:
		return true
	case now.Sub(r.worded) < s.d.opt.Quiet:
		return false
	case r.record != nil && r.told >= 0 && r.news == r.toldNews && !s.ending(r, now):
		return now.Sub(r.worded) >= r.pace
	}
	return now.Sub(r.burst) >= s.d.opt.Gather || now.Sub(r.lastSaw) >= s.d.opt.Quiet
}

// ending tells that an incident is about to be closed, or that no more comes for
// now: then its numbers are told as they are.
func (s *stream) ending(r *liveRun, now time.Time) bool {
	return now.Sub(r.lastSaw) >= s.d.opt.Settle || !r.closed && now.Sub(r.record.Opened) >= s.d.opt.CloseAfter
}

// maxPace is the longest time between two updates that change numbers only.
const maxPace = 10 * time.Minute

// step sets the time to the next wording.
func (r *liveRun) step(quiet time.Duration) {
	if r.news != r.toldNews || r.pace == 0 {
		r.pace = quiet
	} else {
		r.pace = min(10*r.pace, maxPace)
	}
	r.toldNews = r.news
}

// tell opens or updates the incident of a run. The record is on disk before
// anything is published.
func (s *stream) tell(r *liveRun, l matcher.Live, now time.Time, final bool) {
	r.told, r.worded = r.changed, now
	r.step(s.d.opt.Quiet)
	if len(l.Incidents) == 0 {
		if r.record != nil && r.ended {
			s.count(r, s.t.Consequences(l.Run), now)
		}
		return // nothing came of it so far
	}
	in := l.Incidents[0]
	in.Restarted = nil // followUp tells it, once the new start is whole
	s.place(&in)
	if r.record == nil {
		if !l.Over && !final && now.Sub(r.lastSaw) < s.d.patience(in) && now.Sub(r.burst) < s.d.opt.CloseAfter {
			r.told = -1 // a better assessment may be on its way
			return
		}
		s.open(r, l.Run, in, now)
		return
	}
	s.update(r, in, now)
}

// patience is how long the first telling waits for a better assessment: not at
// all for a known mechanism, Gather where no cause is in reach, and as long as
// an incident may stay open where a crash dump or a traceback has begun and the
// exception is still to come; the exception is the root event.
func (d *Daemon) patience(in matcher.Incident) time.Duration {
	switch {
	case strings.HasPrefix(in.Root.Text, matcher.CutRoot), consequenceOnly(in) && len(in.Consequences) == 0:
		return d.opt.CloseAfter
	case in.Verdict.Mechanism == nil:
		return d.opt.Gather
	}
	return 0
}

// place adds what the log's place tells.
func (s *stream) place(in *matcher.Incident) {
	m := s.meta()
	set := func(p **string, v string) {
		if *p == nil && v != "" {
			*p = &v
		}
	}
	set(&in.Pod, m.Pod)
	set(&in.Container, m.Container)
	set(&in.Unit, m.Unit)
	set(&in.Host, m.Host)
	set(&in.Host, s.d.opt.Host)
}

func (s *stream) open(r *liveRun, run string, in matcher.Incident, now time.Time) {
	id := in.ID
	if s.d.opt.Store.has(id) && s.anothers(in) {
		id = idIn(id, s.path)
	}
	if s.d.opt.Store.has(id) {
		// Told before under another run's name, or in another log.
		if s.adopt(r, id); r.record != nil {
			s.update(r, in, now)
		} else {
			s.d.warn(fmt.Errorf("incident %s in %s stands in another log too, and is told there", id, s.path))
		}
		return
	}
	if !s.isLive(in, r) && historic(in, now, s.d.opt.Historic) {
		in.Status = matcher.StatusHistoric
	}
	added := s.recur(&in, run, now)
	in.Evidence = append(in.Evidence, added...)
	r.record = &Record{
		Printed: in.PrintedTime(), Failed: in.FailedTime(), Path: s.path, Run: run, Root: in.ID, Added: added, Opened: now, Updated: now, Counted: s.place0(),
	}
	in.ID = id
	r.record.Sources = s.localize(&in)
	r.record.Incident = in
	s.d.metrics.incident(in)
	s.publish(r, eventOpened, now)
}

// place0 is how far the log has been read.
func (s *stream) place0() place {
	ref := s.sources.ref(s.next.Source)
	return place{ref.Device, ref.Inode, s.next.Offset}
}

// update replaces the assessment if it says something new. The id, once told,
// stays.
func (s *stream) update(r *liveRun, in matcher.Incident, now time.Time) {
	old := &r.record.Incident
	if r.ended && in.ID != r.record.Root || consequenceOnly(in) && !consequenceOnly(*old) || startless(in) && !startless(*old) {
		s.count(r, in.Consequences, now)
		return
	}
	root, printed := in.ID, in.PrintedTime()
	in.ID, in.Status, in.RecurrenceOf, in.Occurrences, in.Followup = old.ID, old.Status, old.RecurrenceOf, old.Occurrences, old.Followup
	in.Evidence = append(in.Evidence, r.record.Added...)
	sources := s.localize(&in)
	if same(*old, in) {
		return
	}
	r.record.Incident, r.record.Updated, r.record.Sources = in, now, sources
	r.record.Root, r.record.Printed, r.record.Counted = root, printed, s.place0()
	s.publish(r, eventUpdated, now)
}

// count adds consequences to an incident whose crash is not in reach: the
// diagnosis stays.
func (s *stream) count(r *liveRun, more []matcher.Consequence, now time.Time) {
	in := r.record.Incident
	in.Consequences = s.mergeConsequences(r, more)
	if same(r.record.Incident, in) {
		return
	}
	r.record.Incident, r.record.Updated, r.record.Counted = in, now, s.place0()
	s.publish(r, eventUpdated, now)
}

// startless tells that the server's arguments were not in reach.
func startless(in matcher.Incident) bool {
	for _, f := range in.Engine.Flags {
		if f.Basis == "arguments" {
			return false
		}
	}
	return true
}

// consequenceOnly tells that no cause was in reach.
func consequenceOnly(in matcher.Incident) bool {
	return in.Root.Kind == "unknown" && in.Root.Text == ""
}

// mergeConsequences adds what this life has counted to what an earlier one had.
// What stands before the place up to which that one had read was counted.
func (s *stream) mergeConsequences(r *liveRun, more []matcher.Consequence) []matcher.Consequence {
	out := slices.Clone(r.base)
	if !r.earlier {
		out = slices.Clone(r.record.Incident.Consequences)
	}
	for _, c := range more {
		i := slices.IndexFunc(out, func(o matcher.Consequence) bool { return o.Kind == c.Kind && o.What == c.What })
		switch {
		case i < 0:
			c.At = nil // its line is in no source of the record
			out = append(out, c)
		case s.beyond(c.At, r):
			out[i].Count += c.Count
		default:
			out[i].Count = max(out[i].Count, c.Count)
		}
	}
	return out
}

// beyond tells whether a position had not been read yet in the earlier life.
func (s *stream) beyond(at *matcher.At, r *liveRun) bool {
	if !r.earlier || at == nil || at.Offset == nil {
		return false
	}
	ref := s.sources.ref(at.Source)
	return ref.Inode == 0 || ref.Device != r.counted.Device || ref.Inode != r.counted.Inode || *at.Offset >= r.counted.Offset
}

// same compares two states by what they say; where it stands differs from one
// reading to another.
func same(a, b matcher.Incident) bool {
	x, errX := said(a)
	y, errY := said(b)
	return errX == nil && errY == nil && x == y
}

func said(in matcher.Incident) (string, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	var c matcher.Incident
	if err := json.Unmarshal(data, &c); err != nil {
		return "", err
	}
	eachAt(&c, func(at *matcher.At) { *at = matcher.At{} })
	data, err = json.Marshal(c)
	return string(data), err
}

// close ends the record of a crash: nothing related for Settle, or CloseAfter
// since it was opened.
func (s *stream) close(states []matcher.Live, now time.Time, final bool) {
	for _, l := range states {
		r := s.runs[l.Run]
		if r == nil || r.closed || r.lastSaw.IsZero() || r.told != r.changed {
			continue
		}
		quiet := now.Sub(r.lastSaw)
		if r.record == nil {
			r.closed = final || l.Over || quiet >= s.d.opt.LookBack // what was seen did not become a failure
			continue
		}
		if final || l.Over || quiet >= s.d.opt.Settle || now.Sub(r.record.Opened) >= s.d.opt.CloseAfter {
			s.end(r, now)
		}
	}
}

// end closes an incident.
func (s *stream) end(r *liveRun, now time.Time) {
	r.closed = true
	if r.record.Closed == nil {
		at := now
		r.record.Closed = &at
		s.publish(r, eventClosed, now)
	}
}

// keptRuns is how many runs are held at most when they are told and over: the
// newest one, and the one before, whose processes may still have a word.
const keptRuns = 2

// maxRuns bounds the runs that are held because they are not over: servers that
// write into the same log.
const maxRuns = 16

// forget drops runs that are told and over.
func (s *stream) forget(states []matcher.Live, now time.Time) {
	done := map[string]bool{}
	for i, l := range states {
		r := s.runs[l.Run]
		told := !l.Failed || r != nil && r.closed && r.told == r.changed && !r.unsaved || r != nil && r.mute
		done[l.Run] = told && (l.Over && i < len(states)-keptRuns || i < len(states)-maxRuns)
	}
	s.t.Forget(func(run string) bool { return done[run] })
	held := map[parser.Pos]bool{}
	for _, l := range states {
		if !done[l.Run] {
			held[l.Start] = true
		}
	}
	if len(held) < len(states) {
		if start, ok := s.t.OldestStart(); ok {
			s.p.DropBefore(start)
		}
	}
	s.trimHeads(held)
	s.trimSources()
	s.tidy()
}

// tidy forgets the books of runs that the tracker does not hold; the ledger
// and the disk know them.
func (s *stream) tidy() {
	if len(s.runs) <= s.t.Held() {
		return
	}
	held := map[string]bool{}
	for _, l := range s.t.Live(nil) {
		held[l.Run] = true
	}
	for run, r := range s.runs {
		if !held[run] && !r.unsaved {
			delete(s.runs, run)
		}
	}
}
