package matcher

// Incidents gives the failures of every run so far, oldest first, and what is
// wrong without having failed. It may be called at any time; it changes
// nothing.
func (t *Tracker) Incidents() (incidents, observations []Incident) {
	for i, r := range t.runs {
		var next *run
		for _, n := range t.runs[i+1:] {
			if n.restartOf(r) {
				next = n
				break
			}
		}
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

// LastFailed keeps the incidents of the last failed run of each source.
func (t *Tracker) LastFailed() (incidents, observations []Incident) {
	last := map[int]*run{}
	for _, r := range t.runs {
		if len(t.incidentsOf(r)) > 0 {
			last[r.source] = r
		}
	}
	for i, r := range t.runs {
		var next *run
		for _, n := range t.runs[i+1:] {
			if n.restartOf(r) {
				next = n
				break
			}
		}
		if last[r.source] == r {
			for _, in := range t.incidentsOf(r) {
				incidents = append(incidents, t.word(in, next))
			}
		}
		if last[r.source] == r || next == nil {
			observations = append(observations, t.observe(r, last[r.source] == r)...)
		}
	}
	return incidents, observations
}

// restartOf tells whether a run is the next life of the same server: it came
// later in the same log and serves at the same port. Another port is another
// server that writes into the same file.
func (r *run) restartOf(old *run) bool {
	port := func(r *run) string { return orWords(r.args["port"].text, "8000") }
	return r.source == old.source && r.banner && (!r.hasArgs || !old.hasArgs || port(r) == port(old))
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
