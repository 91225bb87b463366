package matcher

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"diagnose/parser"
)

// Live is what a daemon sees of one run: the diagnoses so far and what it
// needs to decide when to tell them.
type Live struct {
	// Run names the run for ever, over rotations and new readings.
	Run       string
	Incidents []Incident
	// Start is where the run begins; Banner tells that its start was seen, and
	// StartTime is the printed time of it.
	Start     parser.Pos
	Banner    bool
	StartTime string
	// Port is what the server was told to listen on, "" where it was not.
	Port string
	// Died tells whether the engine was seen to die.
	Died bool
	// From is the first line of what may be a crash, if Failed. Most of what
	// counts as Failed becomes no incident.
	From   parser.Pos
	Failed bool
	// Changed counts what was added that could change the diagnosis; Repeats of
	// them are one more of a known consequence, and change a number only.
	Changed, Repeats int
	// Ready tells that the start of the run is over.
	Ready bool
	// Over tells that the same server has started again, or that another run
	// began after this one's end. The newest run is never over, and neither is
	// a server that writes into the same log beside another one.
	Over bool
}

// Live lists the runs that the tracker still holds, oldest first. Diagnoses are
// made only for runs for which want is true, because making one costs more
// than asking; a nil want makes none.
func (t *Tracker) Live(want func(Live) bool) []Live {
	var out []Live
	for i, r := range t.runs {
		l := Live{
			Run: t.key(r), Start: r.start, Banner: r.banner, StartTime: r.startTime, Port: r.args["port"].text,
			Died: r.died(), Changed: r.changed, Repeats: r.repeats, Ready: r.started(), Over: t.superseded(i),
		}
		l.From, l.Failed = r.failedFrom()
		if want != nil && want(l) {
			next := t.restart(i)
			for _, in := range t.incidentsOf(r) {
				l.Incidents = append(l.Incidents, t.word(in, next))
			}
		}
		out = append(out, l)
	}
	return out
}

func (r *run) started() bool { return r.ready != nil || r.facts["engine_ready"].Known() }

// restart gives the next life of the server of a run, nil if there is none.
func (t *Tracker) restart(i int) *run {
	for _, n := range t.runs[i+1:] {
		if n.restartOf(t.runs[i]) {
			return n
		}
	}
	return nil
}

// superseded tells whether nothing but late words can come of a run. A later
// start that has not told its port yet may be that of another server.
func (t *Tracker) superseded(i int) bool {
	r := t.runs[i]
	for _, n := range t.runs[i+1:] {
		if n.source != r.source {
			continue
		}
		if n.restartOf(r) && (n.hasArgs || n.started()) || r.over() && r.lastSign().Before(n.start) || !r.banner {
			return true
		}
	}
	return false
}

// lastSign is where the run was last seen to fail or to stop.
func (r *run) lastSign() parser.Pos {
	at := r.lastFailureAt()
	for _, p := range []*parser.Pos{r.stop, r.ended} {
		if p != nil && at.Before(*p) {
			at = *p
		}
	}
	return at
}

// Forget drops runs that are done. The newest run stays in any case.
func (t *Tracker) Forget(done func(run string) bool) {
	keep := t.runs[:0]
	for i, r := range t.runs {
		if i < len(t.runs)-1 && done(t.key(r)) {
			for _, pids := range t.pids {
				for pid, of := range pids {
					if of == r {
						delete(pids, pid)
					}
				}
			}
			continue
		}
		keep = append(keep, r)
	}
	clear(t.runs[len(keep):])
	t.runs = keep
}

// Consequences lists what a run said of a failure that need not be in reach.
func (t *Tracker) Consequences(run string) []Consequence {
	var out []Consequence
	for _, r := range t.runs {
		if t.key(r) != run {
			continue
		}
		for _, c := range r.consq.sorted() {
			out = append(out, Consequence{Kind: c.kind, What: c.what, Count: c.n, At: atOf(c.at)})
		}
	}
	return out
}

// Held counts the runs that the tracker still holds.
func (t *Tracker) Held() int { return len(t.runs) }

// Continue names the run that the reading begins in the middle of: if its start
// is not among the lines to come, it keeps the name it had in an earlier
// reading.
func (t *Tracker) Continue(run string) { t.continued = run }

// key names a run by its first line's words, which a re-reading, a rotation or
// a compression does not change. It is fixed when it is first asked for: what
// comes later must not change it.
func (t *Tracker) key(r *run) string {
	if r.live != "" {
		return r.live
	}
	if !r.banner && r.seq == 0 && t.continued != "" {
		r.live = t.continued
		return r.live
	}
	h := sha256.New()
	if r.banner && r.startTime != "" {
		fmt.Fprintf(h, "%d\x00%s", r.apiPID, r.startTime)
	} else {
		fmt.Fprintf(h, "%d\x00%s\x00%d", r.apiPID, r.startTime, r.start.Offset)
	}
	r.live = hex.EncodeToString(h.Sum(nil))[:16]
	return r.live
}

// failedFrom gives the earliest line of what went wrong.
func (r *run) failedFrom() (parser.Pos, bool) {
	var from parser.Pos
	ok := false
	add := func(p parser.Pos) {
		if !ok || p.Before(from) {
			from, ok = p, true
		}
	}
	for _, f := range r.failures {
		add(f.rec.At())
	}
	for _, l := range r.lines {
		add(l.ev.At)
	}
	for _, d := range r.dump {
		add(d.at)
	}
	return from, ok
}

// Start describes the start of a run, to be compared with the run that failed
// before it.
type Start struct {
	Run     string
	Version string
	// Time is the printed time of the first line, "" if it has none.
	Time string
	// Flags are those typed, by name without dashes.
	Flags  map[string]string
	Budget []Budget
	Ready  bool
}

// StartOf gives the start of a run that the tracker holds; ok is false if its
// start was not seen.
func (t *Tracker) StartOf(run string) (Start, bool) {
	for _, r := range t.runs {
		if t.key(r) != run {
			continue
		}
		if !r.banner || !r.hasArgs {
			return Start{}, false
		}
		s := t.facts(r, nil, nil, "startup")
		w := &wording{t: t, r: r, s: s, in: &incident{run: r}}
		st := Start{Run: run, Version: r.version, Time: r.startTime, Flags: map[string]string{}, Budget: w.budgets(), Ready: r.started()}
		for name, f := range r.args {
			if !secretFlag(name) {
				st.Flags[argFlag(name)] = f.text
			}
		}
		return st, true
	}
	return Start{}, false
}
