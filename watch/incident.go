package watch

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"diagnose/matcher"
	"diagnose/notify"
	"diagnose/parser"
)

// liveRun is what the daemon knows and has told about one run.
type liveRun struct {
	// record is the incident of the run; nil while there is none.
	record *Record
	closed bool
	// firstSaw and lastSaw are when its failure was first and last seen to
	// grow; zero for a run of an earlier life of the daemon.
	firstSaw, lastSaw time.Time
	changed           int
	told              int // of changed, when the incident was last worded
	from              parser.Pos
}

// pending tells that a restart would still need the lines of the crash.
func (r *liveRun) pending() bool { return !r.firstSaw.IsZero() && !r.closed }

// look decides for every run whether there is something to tell.
func (s *stream) look(now time.Time) {
	due := map[string]bool{}
	any := false
	s.t.Live(func(l matcher.Live) bool {
		if r := s.run(l, now); r != nil && !(r.closed && r.told == l.Changed) && s.due(r, l, now) {
			due[l.Run], any = true, true
		}
		return false
	})
	if any {
		s.peek()
	}
	s.changed = false
	states := s.t.Live(func(l matcher.Live) bool {
		s.run(l, now)
		return due[l.Run]
	})
	for _, l := range states {
		if r := s.runs[l.Run]; r != nil && due[l.Run] {
			s.tell(r, l, now)
		}
	}
	s.followUp(states, now)
	s.close(states, now)
	s.forget(states)
	s.commit()
	s.looked, s.atRest = now, s.settled()
}

// settled tells that time alone brings nothing new but the end of HeldAfter.
func (s *stream) settled() bool {
	if _, open := s.p.OpenFrom(); open && s.peeked != s.next {
		return false
	}
	for _, r := range s.runs {
		if r.pending() {
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

// run keeps the book of a failed run, nil for one without a failure.
func (s *stream) run(l matcher.Live, now time.Time) *liveRun {
	if !l.Failed {
		return nil
	}
	r := s.runs[l.Run]
	if r == nil {
		r = &liveRun{told: -1}
		s.runs[l.Run] = r
	}
	if r.firstSaw.IsZero() {
		r.firstSaw, r.lastSaw, r.from = now, now, l.From
	}
	if l.Changed != r.changed {
		r.changed, r.lastSaw = l.Changed, now
	}
	if l.From.Before(r.from) {
		r.from = l.From
	}
	return r
}

// due tells whether a run's failure should be worded now. The first telling
// waits for the other ranks: until the log has been quiet for a second, another
// run has begun, or Gather has passed. Later ones are bounded to one a second.
func (s *stream) due(r *liveRun, l matcher.Live, now time.Time) bool {
	if r.told == r.changed {
		return false
	}
	if r.record == nil || r.told < 0 {
		return !l.Last || now.Sub(r.firstSaw) >= s.d.opt.Gather || now.Sub(r.lastSaw) >= s.d.opt.Quiet
	}
	return !l.Last || now.Sub(r.lastSaw) >= s.d.opt.Quiet || now.Sub(r.record.Updated) >= s.d.opt.Gather
}

// tell opens or updates the incident of a run. The record is on disk before
// anything is published.
func (s *stream) tell(r *liveRun, l matcher.Live, now time.Time) {
	r.told = r.changed
	if len(l.Incidents) == 0 {
		if !l.Last && r.record == nil {
			r.closed = true // nothing came of it
		}
		return
	}
	in := l.Incidents[0]
	in.Restarted = nil // followUp tells it, once the new start is whole
	s.place(&in)
	if r.record == nil && l.Last && now.Sub(r.lastSaw) < s.d.patience(in) {
		r.told = -1 // a better assessment may be on its way
		return
	}
	if r.record == nil {
		s.open(r, l, in, now)
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

func (s *stream) open(r *liveRun, l matcher.Live, in matcher.Incident, now time.Time) {
	if s.d.opt.Historic > 0 && historic(in, now, s.d.opt.Historic) {
		in.Status = matcher.StatusHistoric
	}
	s.recur(&in, now)
	r.record = &Record{Incident: in, Path: s.path, Run: l.Run, Sources: s.names(), Opened: now, Updated: now}
	s.save(r.record)
	s.d.metrics.incident(in)
	s.publish(r.record, notify.EventOpened, now)
}

// recur links the incident to an earlier one of the same kind in this log.
func (s *stream) recur(in *matcher.Incident, now time.Time) {
	earlier := s.latest(func(r *Record) bool {
		return r.Incident.Verdict.Class == in.Verdict.Class && in.Verdict.Class != "unknown" &&
			deref(r.Incident.Verdict.Mechanism) == deref(in.Verdict.Mechanism)
	})
	if earlier == nil {
		return
	}
	id := earlier.Incident.ID
	in.RecurrenceOf = &id
	in.Occurrences = earlier.Incident.Occurrences + 1
	if in.Status == matcher.StatusNew {
		in.Status = matcher.StatusRecurring
	}
	if earlier.Applied {
		s.withdraw(earlier, in, now)
	}
}

// withdraw takes the advice back that was followed and did not help.
func (s *stream) withdraw(earlier *Record, in *matcher.Incident, now time.Time) {
	f := earlier.Incident.Followup
	if f == nil || len(f.Withdrawn) > 0 {
		return
	}
	for _, change := range f.ChangesMade {
		f.Withdrawn = append(f.Withdrawn, change+": applied, and the failure came again (incident "+in.ID+")")
	}
	in.Evidence = append(in.Evidence, matcher.Evidence{
		Grade:     matcher.Inferred,
		Statement: "the advice of incident " + earlier.Incident.ID + " was applied and did not hold: " + joinWords(f.ChangesMade),
		At:        []matcher.At{},
	})
	s.save(earlier)
	s.publish(earlier, notify.EventFollowup, now)
}

func joinWords(list []string) string {
	out := ""
	for i, w := range list {
		if i > 0 {
			out += "; "
		}
		out += w
	}
	return out
}

// update replaces the assessment if it says something new. The id, once told,
// stays.
func (s *stream) update(r *liveRun, in matcher.Incident, now time.Time) {
	old := r.record.Incident
	in.ID, in.Status, in.RecurrenceOf, in.Occurrences, in.Followup = old.ID, old.Status, old.RecurrenceOf, old.Occurrences, old.Followup
	if consequenceOnly(in) && !consequenceOnly(old) {
		// After a restart of the daemon only the consequences of a crash may be
		// in reach: they are counted, the diagnosis stays.
		merged := old
		merged.Consequences = mergeConsequences(old.Consequences, in.Consequences)
		in = merged
	}
	if same(old, in) {
		return
	}
	r.record.Incident, r.record.Updated, r.record.Sources = in, now, s.names()
	s.save(r.record)
	s.publish(r.record, notify.EventUpdated, now)
}

// consequenceOnly tells that no cause was in reach.
func consequenceOnly(in matcher.Incident) bool {
	return in.Root.Kind == "unknown" && in.Root.Text == ""
}

func mergeConsequences(old, more []matcher.Consequence) []matcher.Consequence {
	out := slices.Clone(old)
	for _, c := range more {
		i := slices.IndexFunc(out, func(o matcher.Consequence) bool { return o.Kind == c.Kind && o.What == c.What })
		if i < 0 {
			out = append(out, c)
		} else if c.Count > out[i].Count {
			out[i].Count = c.Count
		}
	}
	return out
}

// same compares two states without what changes by itself.
func same(a, b matcher.Incident) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// close ends the record of a crash: nothing related for Settle, or CloseAfter
// since it was opened.
func (s *stream) close(states []matcher.Live, now time.Time) {
	for _, l := range states {
		r := s.runs[l.Run]
		if r == nil || r.closed || r.firstSaw.IsZero() || r.told != r.changed {
			continue
		}
		settled := now.Sub(r.lastSaw) >= s.d.opt.Settle || !l.Last
		if r.record == nil {
			if now.Sub(r.lastSaw) >= s.d.opt.CloseAfter || !l.Last {
				r.closed = true // what was seen did not become a failure
			}
			continue
		}
		if !settled && now.Sub(r.record.Opened) < s.d.opt.CloseAfter {
			continue
		}
		r.closed = true
		if r.record.Closed == nil {
			at := now
			r.record.Closed = &at
			s.save(r.record)
			s.publish(r.record, notify.EventClosed, now)
		}
	}
}

// forget drops runs that are told and not the newest.
func (s *stream) forget(states []matcher.Live) {
	done := map[string]bool{}
	for _, l := range states {
		r := s.runs[l.Run]
		done[l.Run] = !l.Failed || r != nil && r.closed
	}
	s.t.Forget(func(run string) bool { return done[run] })
	if start, ok := s.t.OldestStart(); ok {
		s.p.DropBefore(start)
	}
	if n := s.t.Held(); len(s.heads) > n && n > 0 {
		s.heads = append(s.heads[:0], s.heads[len(s.heads)-n:]...)
	}
}

// latest gives the newest record of this log that fits, nil if none does.
func (s *stream) latest(fits func(*Record) bool) *Record {
	var best *Record
	for _, r := range s.runs {
		if r.record != nil && fits(r.record) && (best == nil || r.record.Opened.After(best.Opened)) {
			best = r.record
		}
	}
	return best
}

func (s *stream) save(r *Record) {
	if err := s.d.opt.Store.Put(*r); err != nil {
		s.d.warn(err)
	}
}

func (s *stream) publish(r *Record, event string, now time.Time) {
	n := notify.Notice{Event: event, Incident: r.Incident, Time: now, Sources: r.Sources}
	if err := s.d.opt.Publish(n); err != nil {
		s.d.warn(err)
		return
	}
	r.Published = event
	s.save(r)
}

func deref(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// historic tells whether an incident is older than the limit. The log's own
// time has no year and no zone, so it is taken for the nearest one to now, and
// a day's difference of zones is allowed for.
func historic(in matcher.Incident, now time.Time, limit time.Duration) bool {
	if in.Time.First != nil {
		if t, err := time.Parse(time.RFC3339, *in.Time.First); err == nil {
			return now.Sub(t) > limit
		}
	}
	if in.PrintedTime() == "" {
		return false
	}
	least := time.Duration(1<<63 - 1)
	for _, zone := range []*time.Location{time.UTC, now.Location()} {
		for _, year := range []int{now.Year() - 1, now.Year(), now.Year() + 1} {
			t, err := time.ParseInLocation("2006-01-02 15:04:05", itoa4(year)+"-"+in.PrintedTime(), zone)
			if err != nil {
				continue
			}
			if age := now.Sub(t); age.Abs() < least.Abs() {
				least = age
			}
		}
	}
	return least > limit
}

func itoa4(n int) string {
	b := []byte("0000")
	for i := 3; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return string(b)
}
