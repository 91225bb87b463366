package watch

import (
	"slices"
	"time"

	"diagnose/matcher"
)

// followUp looks which servers came back, and with which of the advised
// changes. Each start is looked at: the first one after a crash is often the
// service manager's, the change comes later.
func (s *stream) followUp(states []matcher.Live, now time.Time) {
	order := runOrder(states)
	for _, l := range states {
		if !l.Ready || !l.Banner || l.Over || s.failed(l.Run) {
			continue
		}
		port := portOr8000(l.Port)
		e := s.ledger.latest(func(e entry) bool {
			return e.Run != l.Run && e.Port == port && earlier(e, order, l.Run, l.StartTime)
		})
		if e == nil || e.FollowedRun == l.Run {
			continue
		}
		start, ok := s.t.StartOf(l.Run)
		if !ok {
			continue
		}
		if r := s.recordOf(e); r != nil {
			s.restarted(r, start, now)
		}
	}
}

// failed tells whether an incident of a run is known.
func (s *stream) failed(run string) bool {
	r := s.runs[run]
	return r != nil && (r.record != nil || r.mute)
}

// recordOf gives the book of an incident, read from disk if need be; nil where
// it cannot be read.
func (s *stream) recordOf(e *entry) *liveRun {
	r := s.book(e.Run)
	if r.record == nil || r.record.Incident.ID != e.ID {
		s.ledger.settle(e.ID)
		return nil
	}
	return r
}

func portOr8000(p string) string {
	if p == "" {
		return "8000"
	}
	return p
}

// runOrder numbers the runs in reach in the order of the log.
func runOrder(states []matcher.Live) map[string]int {
	order := map[string]int{}
	for i, l := range states {
		order[l.Run] = i
	}
	return order
}

// earlier tells whether an incident came before another run: by their order in
// the log, if both are in reach, for a clock can be set back; else by the time
// printed in that run.
func earlier(e entry, order map[string]int, run, printed string) bool {
	first, knownFirst := order[e.Run]
	then, knownThen := order[run]
	if knownFirst && knownThen {
		return first < then
	}
	return notAfter(e.Printed, printed)
}

// notAfter tells whether one printed time can be before another. They have no
// year, so what is more than half a year later is of the year before.
func notAfter(a, b string) bool {
	x, errX := time.Parse(printedForm, a)
	y, errY := time.Parse(printedForm, b)
	if errX != nil || errY != nil {
		return true // nothing speaks against it
	}
	d := y.Sub(x)
	const halfYear = 183 * 24 * time.Hour
	return d >= 0 && d < halfYear || d < -halfYear
}

func (s *stream) restarted(r *liveRun, start matcher.Start, now time.Time) {
	s.end(r, now) // a record of an earlier life may be open
	change := matcher.Compare(r.record.Incident, start)
	rec := r.record
	f := rec.Incident.Followup
	news := f == nil || !slices.Equal(f.ChangesMade, change.Made) || !slices.Equal(f.ChangesMissing, change.Missing)
	at := now
	rec.Restarted, rec.FollowedRun = &at, start.Run
	switch {
	case !taken(change):
		rec.AppliedAt = nil
	case rec.AppliedAt == nil:
		rec.AppliedAt = &at
	}
	next := followup(f, start, change, now)
	rec.Incident.Followup = next
	if news {
		s.publish(r, eventFollowup, now)
		return
	}
	s.save(r)
}

// taken tells whether an advice was followed.
func taken(c matcher.Comparison) bool { return c.Step != nil && len(c.Made) > 0 }

// followup words a restart; what was found out before stays.
func followup(old *matcher.Followup, start matcher.Start, c matcher.Comparison, now time.Time) *matcher.Followup {
	stamp := now.UTC().Format(time.RFC3339)
	f := &matcher.Followup{RestartedAt: &stamp, ChangesMade: c.Made, ChangesMissing: c.Missing, StepTaken: c.Step, BudgetNow: []matcher.Budget{}, Withdrawn: []string{}}
	if start.Budget != nil {
		// Its positions would have to be numbered with the incident's.
		f.BudgetNow = slices.Clone(start.Budget)
		in := matcher.Incident{Budget: f.BudgetNow}
		eachAt(&in, func(at *matcher.At) { *at = matcher.At{} })
	}
	if old != nil {
		f.HeldSince, f.Withdrawn = old.HeldSince, old.Withdrawn
	}
	return f
}

// held marks the advice that has held: no recurrence for HeldAfter since the
// restart with it.
func (s *stream) held(now time.Time) {
	for _, e := range slices.Clone(s.ledger.list) {
		if e.AppliedAt == nil || e.Done || now.Sub(*e.AppliedAt) < s.d.opt.HeldAfter {
			continue
		}
		r := s.recordOf(&e)
		if r == nil {
			continue
		}
		f := r.record.Incident.Followup
		if f == nil || r.record.AppliedAt == nil {
			s.ledger.settle(e.ID)
			continue
		}
		at := now
		stamp := r.record.AppliedAt.UTC().Format(time.RFC3339)
		r.record.Held, f.HeldSince = &at, &stamp
		s.publish(r, eventFollowup, now)
	}
}

// recur links the incident to an earlier one of the same kind in this log, and
// takes back advice that was followed and did not help. It gives the evidence
// of that.
func (s *stream) recur(in *matcher.Incident, run string, now time.Time) []matcher.Evidence {
	class, mechanism := in.Verdict.Class, deref(in.Verdict.Mechanism)
	order := runOrder(s.t.Live(nil))
	e := s.ledger.latest(func(e entry) bool {
		return e.Run != run && e.Class == class && class != "unknown" && e.Mechanism == mechanism && earlier(e, order, run, in.PrintedTime())
	})
	if e == nil {
		return nil
	}
	first := e.First
	in.RecurrenceOf, in.Occurrences = &first, e.Occurrences+1
	if in.Status == matcher.StatusNew {
		in.Status = matcher.StatusRecurring
	}
	r := s.recordOf(e)
	if r == nil || r.record.Withdrawn() {
		return nil
	}
	// Was the advice in force in the run that failed now?
	f, applied := r.record.Incident.Followup, r.record.AppliedAt != nil && r.record.FollowedRun == run
	if start, ok := s.t.StartOf(run); ok {
		change := matcher.Compare(r.record.Incident, start)
		applied = taken(change)
		f = followup(f, start, change, now)
	}
	if applied && f != nil {
		return s.withdraw(r, f, in.ID, run, now)
	}
	if r.record.AppliedAt != nil {
		r.record.AppliedAt = nil // it does not hold without being there
		s.save(r)
	}
	return nil
}

// withdraw takes the advice of an incident back.
func (s *stream) withdraw(r *liveRun, f *matcher.Followup, by, run string, now time.Time) []matcher.Evidence {
	withdrawn := *f
	withdrawn.Withdrawn = slices.Clone(f.Withdrawn)
	withdrawn.HeldSince = nil // it held for a while
	for _, change := range f.ChangesMade {
		withdrawn.Withdrawn = append(withdrawn.Withdrawn, change+": applied, and the failure came again (incident "+by+")")
	}
	r.record.Incident.Followup, r.record.FollowedRun = &withdrawn, run
	if r.record.Restarted == nil {
		at := now
		r.record.Restarted = &at
	}
	s.publish(r, eventFollowup, now)
	return []matcher.Evidence{{
		Grade:     matcher.Inferred,
		Statement: "the advice of incident " + r.record.Incident.ID + " was applied and did not hold: " + joinWords(f.ChangesMade),
		At:        []matcher.At{},
	}}
}
