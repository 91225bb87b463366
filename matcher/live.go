package matcher

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"diagnose/parser"
)

// Live is what a daemon sees of one run: the diagnoses so far and what it
// needs to decide when to tell them.
type Live struct {
	// Run names the run for ever: a digest of its first line.
	Run       string
	Incidents []Incident
	// Died tells whether the engine was seen to die.
	Died bool
	// From is the first line of the crash; a restart must not read from later
	// while the incident is open. ok is false if there is none.
	From   parser.Pos
	Failed bool
	// Changed counts what was added that could change the diagnosis.
	Changed int
	// Ready tells that the start of the run is over.
	Ready bool
	Last  bool // the newest run of its log
}

// Live lists the runs that the tracker still holds, oldest first. Diagnoses are
// made only for runs for which want is true, because making one costs more
// than asking.
func (t *Tracker) Live(want func(Live) bool) []Live {
	var out []Live
	for i, r := range t.runs {
		l := Live{Run: r.key(), Died: r.died(), Changed: r.changed, Last: i == len(t.runs)-1}
		l.Ready = r.ready != nil || r.facts["engine_ready"].Known()
		l.From, l.Failed = r.failedFrom()
		if want(l) {
			var next *run
			if i+1 < len(t.runs) {
				next = t.runs[i+1]
			}
			for _, in := range t.incidentsOf(r) {
				l.Incidents = append(l.Incidents, t.word(in, next))
			}
		}
		out = append(out, l)
	}
	return out
}

// Forget drops runs that are done: all before the newest one for which done is
// true.
func (t *Tracker) Forget(done func(run string) bool) {
	keep := t.runs[:0]
	for i, r := range t.runs {
		if i < len(t.runs)-1 && done(r.key()) {
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
	t.runs = keep
}

// Held counts the runs that the tracker still holds.
func (t *Tracker) Held() int { return len(t.runs) }

// key names a run by its first line's words, which a re-reading, a rotation or
// a compression does not change.
func (r *run) key() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\x00%s\x00%s\x00%s", r.apiPID, r.startTime, r.version, r.args["port"].text)
	if !r.banner {
		h.Write([]byte("\x00" + r.firstTim + "\x00" + strconv.FormatInt(r.start.Offset, 10)))
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
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

// Start describes the newest run's start, to be compared with the run that
// failed before it.
type Start struct {
	Run     string
	Version string
	// Flags are those typed, by name without dashes.
	Flags  map[string]string
	Budget []Budget
	Ready  bool
}

// NewestStart gives the start of the newest run; ok is false if its start was
// not seen.
func (t *Tracker) NewestStart() (Start, bool) {
	if len(t.runs) == 0 {
		return Start{}, false
	}
	r := t.runs[len(t.runs)-1]
	if !r.banner || !r.hasArgs {
		return Start{}, false
	}
	s := t.facts(r, nil, nil, "startup")
	w := &wording{t: t, r: r, s: s, in: &incident{run: r}}
	st := Start{Run: r.key(), Version: r.version, Flags: map[string]string{}, Budget: w.budgets()}
	st.Ready = r.ready != nil || r.facts["engine_ready"].Known()
	for name, f := range r.args {
		if !secretFlag(name) {
			st.Flags[argFlag(name)] = f.text
		}
	}
	return st, true
}
