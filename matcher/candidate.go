package matcher

import (
	"sort"
	"strings"

	"diagnose/parser"
	"diagnose/parser/oom"
)

// candidate is something that may be the cause of a run's death.
type candidate struct {
	f    *failure
	line *lineHit
	hit  hit
	proc parser.Process
	at   parser.Pos
	// order is the causal rank: what stands nearer to the cause is lower. The
	// order of lines of several processes within a second proves nothing
	// (stdout against stderr, buffers), causality does.
	order int
}

const (
	orderWorker   = iota // a worker's own exception, or a line that a mechanism knows
	orderCore            // the engine process's own exception
	orderKernel          // the kernel says what it did to a process
	orderDied            // a process vanished
	orderTimeout         // somebody waited in vain
	orderFrontEnd        // the API server's own exception
	orderSecond          // an exception while the engine was already going down
	orderEmpty           // a record that stops before it says anything
)

// candidates lists what may have caused the run's failure, nearest to the
// cause first.
func (t *Tracker) candidates(r *run) []candidate {
	var out []candidate
	for _, f := range r.failures {
		if f.own < 0 || afterStop(r, f.ev.At) {
			continue
		}
		phase := r.phaseOf(f)
		c := candidate{f: f, proc: r.proc(f.ev), at: f.exs[f.own].At, order: orderOf(f)}
		if f.exs[f.own].Class == "" {
			c.at = f.rec.At()
		}
		c.hit = t.bestHit(r, f, phase)
		if c.hit.entry != nil && c.hit.entry.Role == "benign" {
			continue
		}
		if x := f.exs[f.own]; x.Class == "" && len(x.Frames) == 0 && f.rec.Level == parser.Raw {
			c.order = orderEmpty // printed: the head of a traceback and nothing more
		}
		if c.hit.entry != nil {
			switch c.hit.entry.Class {
			case "rpc_timeout":
				c.order = orderTimeout
			case "worker_died":
				c.order = orderDied
			}
		}
		out = append(out, c)
	}
	for _, l := range r.lines {
		if afterStop(r, l.ev.At) || l.entry.Role != "failure" || !t.lineHolds(r, l) {
			continue
		}
		c := candidate{line: l, proc: r.proc(l.ev), at: l.ev.At, order: orderWorker}
		switch l.entry.Class {
		case "worker_died":
			c.order = orderDied
			c.proc = r.victim(l)
		case "rpc_timeout":
			c.order = orderTimeout
		}
		c.hit = hit{entry: l.entry, sig: l.sig, confidence: l.sig.Confidence, vars: l.vars}
		out = append(out, c)
	}
	out = append(out, t.kernelCandidates(r)...)
	out = t.lendRelay(r, out)
	sortByCause(out)
	return demoteLate(r, out)
}

func sortByCause(list []candidate) {
	sort.SliceStable(list, func(i, j int) bool {
		if list[i].order != list[j].order {
			return list[i].order < list[j].order
		}
		return list[i].at.Before(list[j].at)
	})
}

// lendRelay gives a worker's traceback that was cut before its exception the
// text that the core quotes of it.
func (t *Tracker) lendRelay(r *run, list []candidate) []candidate {
	var relay *failure
	for i := range list {
		if f := list[i].f; f != nil && f.relay {
			relay = f
		}
	}
	if relay == nil {
		return list
	}
	for i := range list {
		c := &list[i]
		if c.f == nil || c.f.relay || c.order != orderWorker || c.f.exs[c.f.own].Class != "" {
			continue
		}
		whole := *c.f
		whole.exs = append([]parser.Exception{}, c.f.exs...)
		whole.ooms = append([]*oom.Message{}, c.f.ooms...)
		whole.exs[whole.own].Text = relay.exs[relay.own].Text
		whole.exs[whole.own].Class = lastName(relay.exs[relay.own].Class)
		whole.exs[whole.own].At = relay.exs[relay.own].At
		whole.ooms[whole.own] = relay.ooms[relay.own]
		whole.lent = true
		c.f, c.at = &whole, whole.exs[whole.own].At
		c.hit = t.bestHit(r, c.f, r.phaseOf(c.f))
	}
	return list
}

// demoteLate puts what a worker or a library said after the engine had already
// failed, and not in the same second, behind the engine's own failure: errors
// of a shutdown look like causes (NCCL "out of memory" in
// destroy_process_group, an illegal access while tearing down).
func demoteLate(r *run, list []candidate) []candidate {
	var core *candidate
	for i := range list {
		if list[i].order == orderCore && list[i].f != nil && !inShutdown(list[i].f) {
			core = &list[i]
			break
		}
	}
	if core == nil {
		return list
	}
	// A core that only relays, or stumbles over a missing answer, proves no
	// cause of its own: then the workers' records count wherever they stand.
	for i := range list {
		c := &list[i]
		if c.order != orderWorker || c.at.Before(core.at) {
			continue
		}
		sameSecond := c.f != nil && c.f.ev.Time != "" && c.f.ev.Time == core.f.ev.Time
		if !sameSecond && !core.f.relay {
			c.order = orderSecond
		}
	}
	sortByCause(list)
	return list
}

func orderOf(f *failure) int {
	if inShutdown(f) {
		return orderSecond
	}
	name := f.ev.Proc.Name
	switch {
	case strings.HasPrefix(name, "APIServer"), strings.HasPrefix(name, "ApiServer"):
		return orderFrontEnd
	case f.relay:
		return orderCore
	case strings.HasPrefix(name, "EngineCore"):
		return orderCore
	}
	return orderWorker
}

// inShutdown tells whether the failure happened while the process was going
// down: a frame of its exception is a shutdown function.
func inShutdown(f *failure) bool {
	for _, fr := range f.exs[max(f.own, 0)].Frames {
		switch fr.Func {
		case "shutdown", "destroy_process_group", "_cleanup", "cleanup", "__del__", "destroy_model_parallel":
			return true
		}
	}
	return false
}

func afterStop(r *run, at parser.Pos) bool { return r.stop != nil && r.stop.Before(at) }

// proc gives the writer under its newest name.
func (r *run) proc(e parser.Event) parser.Process {
	return parser.Process{Name: r.name(e.Proc), PID: e.Proc.PID}
}

// victim gives the process that a "died" line speaks of, not its writer.
func (r *run) victim(l *lineHit) parser.Process {
	low := strings.ToLower(l.text)
	if strings.Contains(low, "engine core") || strings.Contains(low, "enginecore") {
		return r.core()
	}
	name := ""
	if v, ok := l.vars["name"]; ok {
		name = v.text
	}
	if rank, ok := strings.CutPrefix(name, "VllmWorker-"); ok {
		for pid, n := range r.names {
			if strings.HasPrefix(n, "Worker_") && strings.Contains(n+"_", "TP"+rank+"_") && !strings.Contains(n, "PP") && !strings.Contains(n, "DP") {
				return parser.Process{Name: n, PID: pid}
			}
		}
	}
	if name != "" {
		return parser.Process{Name: name}
	}
	return r.proc(l.ev)
}

func (t *Tracker) bestHit(r *run, f *failure, phase string) hit {
	s := t.facts(r, []*failure{f}, f, phase)
	if !s.facts["oom_form"].Known() {
		s.setLaterOOM(r, f)
	}
	best := hit{}
	for _, e := range t.cat.Entries {
		if e.Role == "explain" || e.Role == "observation" {
			continue
		}
		h, ok := matchFailure(e, f, phase, s)
		if ok && h.confidence > best.confidence {
			best = h
		}
	}
	return best
}

// lineCounts tells whether a line is there often enough, in the right phase,
// and was not followed by signs of life.
func (r *run) lineCounts(l *lineHit) bool {
	if phase := r.phaseAt(l.ev.At); l.sig.Phase != "" && phase != l.sig.Phase && phase != "unknown" {
		return false
	}
	if l.sig.MinCount < 2 {
		return true
	}
	return l.n >= l.sig.MinCount && !r.aliveAfter(l.last)
}

// lineHolds holds a line's conditions against the facts of the run and what
// its pattern captured.
func (t *Tracker) lineHolds(r *run, l *lineHit) bool {
	if l.sig.Requires == nil && len(l.entry.Match.Vetoes) == 0 {
		return true
	}
	s := t.facts(r, r.failures, nil, r.phaseAt(l.ev.At))
	for name, v := range l.vars {
		s.facts[name] = fact{Value: v, grade: Established, at: []parser.Pos{l.ev.At}}
	}
	if !l.sig.Requires.holds(s) {
		return false
	}
	for _, v := range l.entry.Match.Vetoes {
		if v.When.Eval(s).True() {
			return false
		}
	}
	return true
}

// setLaterOOM tells a failure without an out-of-memory of its own which form
// the same process named afterwards: NCCL says "out of memory" only while it
// is torn down (vllm#18446).
func (s *scope) setLaterOOM(r *run, f *failure) {
	for _, other := range r.failures {
		if other == f || r.proc(other.ev) != r.proc(f.ev) || !f.ev.At.Before(other.ev.At) {
			continue
		}
		for i, m := range other.ooms {
			if m != nil {
				s.set("oom_form", Text(m.Form), Established, other.exs[i].At)
				return
			}
		}
	}
}
