package watch

import (
	"time"

	"diagnose/matcher"
	"diagnose/notify"
)

// followUp looks whether the server came back, and with which of the advised
// changes.
func (s *stream) followUp(states []matcher.Live, now time.Time) {
	if len(states) == 0 {
		return
	}
	newest := states[len(states)-1]
	if newest.Failed {
		return
	}
	r := s.latest(func(r *Record) bool { return r.Run != newest.Run })
	if r == nil {
		return
	}
	if r.Restarted == nil && newest.Ready {
		start, ok := s.t.NewestStart()
		if !ok {
			return
		}
		s.restarted(r, start, now)
	}
	s.held(r, now)
}

func (s *stream) restarted(r *Record, start matcher.Start, now time.Time) {
	made, missing := matcher.Compare(r.Incident, start)
	at := now
	stamp := now.UTC().Format(time.RFC3339)
	r.Restarted, r.Applied = &at, len(made) > 0 && len(missing) == 0
	r.Incident.Followup = &matcher.Followup{
		RestartedAt: &stamp, ChangesMade: made, ChangesMissing: missing, BudgetNow: start.Budget, Withdrawn: []string{},
	}
	if r.Incident.Followup.BudgetNow == nil {
		r.Incident.Followup.BudgetNow = []matcher.Budget{}
	}
	s.save(r)
	s.publish(r, notify.EventFollowup, now)
}

// held marks an advice that has held: no recurrence for HeldAfter since the
// restart with it.
func (s *stream) held(r *Record, now time.Time) {
	if r.Restarted == nil || r.Held != nil || !r.Applied || now.Sub(*r.Restarted) < s.d.opt.HeldAfter || r.Incident.Followup == nil {
		return
	}
	at := now
	stamp := r.Restarted.UTC().Format(time.RFC3339)
	r.Held = &at
	r.Incident.Followup.HeldSince = &stamp
	s.save(r)
	s.publish(r, notify.EventFollowup, now)
}
