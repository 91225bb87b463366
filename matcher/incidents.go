package matcher

import "diagnose/parser"

// Incidents gives the failures of every run so far, oldest first, and what is
// wrong without having failed. It may be called at any time; it changes
// nothing.
func (t *Tracker) Incidents() (incidents, observations []Incident) {
	for i, r := range t.runs {
		next := t.restart(i)
		found := t.incidentsOf(r)
		for _, in := range found {
			incidents = append(incidents, t.word(in, next))
		}
		observations = append(observations, t.observe(r, len(found) > 0)...)
	}
	markRecurring(incidents)
	return incidents, observations
}

// Failed tells whether a failure was found in the server of an input.
func (t *Tracker) Failed(input int) bool {
	src := t.server(input)
	for _, r := range t.runs {
		if r.source == src && len(t.incidentsOf(r)) > 0 {
			return true
		}
	}
	return false
}

// LastFailed keeps the incidents of the last failed run of each source, and of
// those that lived beside it.
func (t *Tracker) LastFailed() (incidents, observations []Incident) {
	last := map[*run]bool{}
	since := map[int]parser.Pos{} // where the oldest kept run of a source begins
	for i := len(t.runs) - 1; i >= 0; i-- {
		r := t.runs[i]
		from, some := since[r.source]
		if some && r.lastAt.Before(from) || len(t.incidentsOf(r)) == 0 {
			continue
		}
		last[r] = true
		if !some || r.start.Before(from) {
			since[r.source] = r.start
		}
	}
	for i, r := range t.runs {
		next := t.restart(i)
		if last[r] {
			for _, in := range t.incidentsOf(r) {
				incidents = append(incidents, t.word(in, next))
			}
		}
		if last[r] || next == nil {
			observations = append(observations, t.observe(r, last[r])...)
		}
	}
	return incidents, observations
}

// restartOf tells whether a run is the next life of the same server: it came
// later in the same log and serves at the same port. Another port is another
// server that writes into the same file, and so is one that starts while the
// first is still well and goes on.
func (r *run) restartOf(old *run) bool {
	port := func(r *run) string { return orWords(r.args["port"].text, "8000") }
	if r.source != old.source || !r.banner || r.hasArgs && old.hasArgs && port(r) != port(old) {
		return false
	}
	return old.endedBefore(r.start) || !r.start.Before(old.lastAt)
}

// endedBefore tells whether the run was seen to stop or die before a point.
func (r *run) endedBefore(p parser.Pos) bool {
	return r.diedBefore(p) || r.stop != nil && r.stop.Before(p) || r.ended != nil && r.ended.Before(p)
}

// markRecurring links a failure to an earlier one of the same kind in the same
// reading.
func markRecurring(list []Incident) {
	first := map[string]*Incident{}
	for i := range list {
		in := &list[i]
		if in.Verdict.Mechanism == nil {
			continue
		}
		k := *in.Verdict.Mechanism
		if f := first[k]; f != nil && f.ID != in.ID {
			id := f.ID
			in.Status, in.RecurrenceOf = StatusRecurring, &id
			f.Occurrences++
			in.Occurrences = f.Occurrences
		} else if f == nil {
			first[k] = in
		}
	}
}
