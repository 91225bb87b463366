package matcher

import (
	"crypto/sha256"
	"encoding/hex"
	"sort"
	"strconv"
	"strings"

	"diagnose/parser"
	"diagnose/parser/oom"
)

// incident is a failure of a run before it is worded.
type incident struct {
	run  *run
	root *candidate
	// all are the candidates of the incident, the root first.
	all []candidate
	// ranks are the failures of the root's kind, one a process.
	ranks []rankFailure
	phase string
}

type rankFailure struct {
	proc parser.Process
	f    *failure
	oom  *oom.Message
	at   parser.Pos
}

// incidentsOf splits a run's candidates into incidents: what the server
// survived, and what killed it.
func (t *Tracker) incidentsOf(r *run) []*incident {
	var own []candidate
	for _, c := range t.candidates(r) {
		if t.counts(r, c) {
			own = append(own, c)
		}
	}
	if len(own) > 0 {
		surerFirst(own)
		return []*incident{t.newIncident(r, &own[0], own)}
	}
	if r.stop != nil && !r.diedBefore(*r.stop) {
		return nil // an ordered stop, and what it made the processes say
	}
	if r.consq.count("engine_dead") > 0 || r.dying || r.fatal() || len(r.dump) > 0 {
		return []*incident{t.newIncident(r, nil, nil)}
	}
	return nil
}

// surerFirst lets a mechanism that is only a guess yield to a sure one of the
// same process: a broken context is met by several calls in the same second, and
// one of them says what broke it. CUDA repeats an assertion and an illegal
// access at every later call, so those count wherever they stand.
func surerFirst(own []candidate) {
	first := own[0]
	if first.f == nil || first.hit.entry == nil || first.hit.confidence >= mediumFrom {
		return
	}
	for i, c := range own[1:] {
		if c.f == nil || c.hit.entry == nil || c.hit.confidence < mediumFrom || c.proc.PID != first.proc.PID {
			continue
		}
		sticky := c.hit.entry.Class == "device_assert" || c.hit.entry.Class == "illegal_access"
		if sticky || c.order != orderSecond && c.f.ev.Time == first.f.ev.Time {
			copy(own[1:i+2], own[:i+1])
			own[0] = c
			return
		}
	}
}

// counts tells whether a candidate is a failure of the server: a mechanism
// says so, the engine died of it, or the log is a piece that shows nothing
// else. An error of one request in the API server is none.
func (t *Tracker) counts(r *run, c candidate) bool {
	if c.line != nil {
		if !r.lineCounts(c.line) {
			return false
		}
		return c.line.sig.Alone && !r.outlived(c.line) || r.died() || !r.banner || c.line.sig.On == "kernel" && t.endsAt(r, c.line.last)
	}
	if c.order == orderFrontEnd {
		if r.ready == nil && c.f.rec.Level == parser.Raw && r.phaseAt(c.at) != "runtime" {
			return true // the front end itself could not start
		}
		return c.hit.entry != nil && c.hit.sig.Alone
	}
	if r.died() || c.f.fatal {
		return true
	}
	if len(r.names) == 0 && c.f.rec.Level == parser.Raw && (r.ready == nil || c.hit.entry != nil && !r.aliveAfter(c.at)) {
		return true // releases without process prefixes: never ready, or silent ever since
	}
	if strings.HasPrefix(c.f.rec.First(), "WorkerProc hit an exception") {
		return true
	}
	if c.hit.entry != nil && c.hit.sig.Alone {
		return true
	}
	if c.f.ooms[c.f.own] != nil || c.hit.entry != nil {
		// A worker's or core's own OOM; a raw one needs a process or a piece of
		// a log, because a program's output can quote anything.
		return !c.proc.IsZero() && c.f.rec.Level >= parser.Error || !r.banner
	}
	return !r.banner
}

// endsAt tells whether a finished log ends with a line, or nearly so: then
// nobody lived to say more. A live log may go on.
func (t *Tracker) endsAt(r *run, at parser.Pos) bool {
	const few = 3
	n, finished := t.ends[at.Source]
	return finished && at.Line >= n-few && !r.aliveAfter(at)
}

// outlived tells whether the server went on after what a kernel line says, so
// that the line speaks of another process or was no kernel's.
func (r *run) outlived(l *lineHit) bool {
	return l.sig.On == "kernel" && (r.aliveAfter(l.last) || r.stop != nil && l.last.Before(*r.stop))
}

// aliveAfter tells whether the server showed life after a point.
func (r *run) aliveAfter(at parser.Pos) bool {
	n := len(r.stats)
	return n > 0 && at.Before(r.stats[n-1].at) || r.ready != nil && at.Before(*r.ready)
}

// diedBefore tells whether the engine was seen to die before a point.
func (r *run) diedBefore(p parser.Pos) bool {
	for _, f := range r.failures {
		if f.ev.At.Before(p) && (f.fatal || f.kind == "engine_dead") {
			return true
		}
	}
	return false
}

func (t *Tracker) newIncident(r *run, root *candidate, all []candidate) *incident {
	in := &incident{run: r, root: root, all: all, phase: "unknown"}
	if root == nil {
		in.phase = r.phaseAt(r.lastFailureAt())
		return in
	}
	if root.f == nil {
		in.phase = r.phaseAt(root.at)
		in.ranks = []rankFailure{{proc: root.proc, at: root.at}}
		if root.line.entry.Class == "device_assert" || root.proc.IsZero() {
			// A library wrote without a prefix; the process is the one that
			// failed next.
			for _, c := range all {
				if c.f != nil && !c.proc.IsZero() {
					in.ranks[0].proc = c.proc
					break
				}
			}
			if in.ranks[0].proc.IsZero() && r.died() {
				in.ranks[0].proc = r.core()
			}
		}
		return in
	}
	in.phase = r.phaseOf(root.f)
	seen := map[parser.Process]bool{}
	for _, c := range all {
		if c.f == nil || c.order != root.order || seen[c.proc] || !sameKind(root, &c) {
			continue
		}
		if c.proc.IsZero() && !root.proc.IsZero() {
			continue // an unnamed process that raises the same error again
		}
		seen[c.proc] = true
		rf := rankFailure{proc: c.proc, f: c.f, at: c.at}
		for _, m := range c.f.ooms {
			if m != nil && (rf.oom == nil || rf.oom.Masked && !m.Masked) {
				rf.oom = m
			}
		}
		in.ranks = append(in.ranks, rf)
	}
	sort.SliceStable(in.ranks, func(i, j int) bool { return in.ranks[i].at.Before(in.ranks[j].at) })
	return in
}

// sameKind tells whether two failures are one fault on several ranks.
func sameKind(a, b *candidate) bool {
	if a.hit.entry != nil || b.hit.entry != nil {
		return a.hit.entry == b.hit.entry
	}
	xa, xb := a.f.exs[a.f.own], b.f.exs[b.f.own]
	return lastName(xa.Class) == lastName(xb.Class)
}

func (r *run) lastFailureAt() parser.Pos {
	at := r.start
	for _, f := range r.failures {
		at = f.ev.At
	}
	return at
}

// incidentID is stable against framing, colour, the file's name and what is
// learnt later: the earliest root record alone decides it.
func incidentID(in *incident) string {
	h := sha256.New()
	write := func(parts ...string) {
		for _, p := range parts {
			h.Write([]byte(p))
			h.Write([]byte{0})
		}
	}
	switch {
	case in.root == nil:
		f := in.run.firstFailure()
		if f == nil {
			write("run")
			write(in.run.identity()...)
			break
		}
		x := f.exs[0]
		write(f.ev.Proc.Name, strconv.Itoa(f.ev.Proc.PID), f.ev.Time, x.Class, x.Text)
	case in.root.f != nil:
		f := in.root.f
		x := f.exs[f.own]
		write(in.run.name(f.ev.Proc), strconv.Itoa(f.ev.Proc.PID), f.ev.Time, x.Class, x.Text)
		if f.ev.Time == "" {
			write(in.run.identity()...)
		}
	default:
		l := in.root.line
		write(l.ev.Proc.Name, strconv.Itoa(l.ev.Proc.PID), l.ev.Time, firstLine(l.text))
		if l.ev.Time == "" {
			write(in.run.identity()...)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// identity tells two runs apart where the root is raw output, which has neither
// time nor process: many servers can start in one second and fail alike.
func (r *run) identity() []string {
	return []string{r.firstTim, strconv.Itoa(r.apiPID), r.args["port"].text, r.model}
}
