package watch

import (
	"slices"
	"time"

	"diagnose/notify"
)

const (
	eventOpened   = notify.EventOpened
	eventUpdated  = notify.EventUpdated
	eventClosed   = notify.EventClosed
	eventFollowup = notify.EventFollowup
)

// maxPending bounds what waits to be published of one incident: the newest
// state is what counts.
const maxPending = 16

// publish records a change of an incident and hands it on. Where the disk
// refuses the record it is handed on even so: the person on call comes first.
func (s *stream) publish(r *liveRun, event string, now time.Time) {
	r.record.addPending(Telling{event, now})
	s.save(r)
	s.flush(r)
}

// addPending keeps of several updates in a row the last one.
func (r *Record) addPending(t Telling) {
	n := len(r.Pending)
	switch {
	case n > 0 && t.Event == eventUpdated && r.Pending[n-1].Event == eventUpdated:
		r.Pending[n-1] = t
	case n >= maxPending: // the opening is not given up
		r.Pending = append(r.Pending[:1:1], append(r.Pending[2:], t)...)
	default:
		r.Pending = append(r.Pending, t)
	}
}

// save puts a record on disk.
func (s *stream) save(r *liveRun) {
	err := s.d.opt.Store.Put(*r.record)
	if err != nil {
		s.d.metrics.stateErrors.Add(1)
		s.d.warn(err)
		if !r.unsaved && !s.pinned(r, s.d.opt.Now()) {
			r.from = s.next
		}
	}
	r.unsaved = err != nil
	s.ledger.put(r.record.entry())
}

// flush hands on what waits of an incident.
func (s *stream) flush(r *liveRun) {
	waiting := r.record.Pending
	if len(waiting) == 0 {
		return
	}
	list := make([]notify.Notice, len(waiting))
	for i, t := range waiting {
		list[i] = notify.Notice{
			Event: t.Event, Incident: r.record.Incident, Time: t.Time, Sources: r.record.Sources, Printed: r.record.Printed, Followed: s.path,
			Unsent: whyUnsent(r.record.Incident, s.d.opt.Historic),
		}
	}
	r.record.Pending = nil
	for i, err := range s.d.opt.Publish(list) {
		if err == nil {
			continue
		}
		s.d.metrics.publishErrors.Add(1)
		if len(r.record.Pending) == 0 { // the others wait for this one
			s.d.warn(err)
		}
		r.record.Pending = append(r.record.Pending, waiting[i])
	}
	if len(r.record.Pending) < len(waiting) {
		s.save(r)
	}
}

// retry does again what failed before.
func (s *stream) retry(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failing := false
	for _, r := range s.runs {
		if r.record == nil {
			continue
		}
		if r.unsaved {
			s.save(r)
			failing = failing || r.unsaved
		}
		s.flush(r)
	}
	for _, e := range slices.Clone(s.ledger.list) {
		// A record that was not closed, and whose crash is not read again, is
		// complete as far as it will be.
		orphan := e.Open && now.Sub(s.d.began) >= s.d.opt.CloseAfter
		if !e.Waiting && !orphan {
			continue
		}
		r := s.recordOf(&e)
		if r == nil || !r.lastSaw.IsZero() {
			continue // unreadable, or looked after by look
		}
		s.flush(r)
		if orphan {
			s.end(r, now)
		}
	}
	s.held(now)
	s.tidy()
	if !failing {
		s.commit(now, false)
	}
}

// settle takes an incident whose file cannot be read as done.
func (l *ledger) settle(id string) {
	for i := range l.list {
		if e := &l.list[i]; e.ID == id {
			e.Waiting, e.Open, e.Done = false, false, true
		}
	}
}
