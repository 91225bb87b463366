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

// startFrames and stepFrames are functions of vLLM that only a start, or only a
// step of a running engine, passes through.
var (
	startFrames = []string{
		"load_model", "profile_run", "determine_available_memory", "capture_model", "initialize_from_config",
		"initialize_kv_cache", "_initialize_kv_caches", "compile_or_warm_up_model", "kernel_warmup", "init_device",
		"_dummy_sampler_run", "profile_cudagraph_memory", "_allocate_kv_cache_tensors", "_allocate_kv_cache",
		"create_weights", "load_weights", "process_weights_after_loading", "initialize_model", "_init_executor",
		"warmup_kernels", "get_kv_cache_configs", "check_enough_kv_cache_memory", "from_engine_args", "create_engine_config",
	}
	stepFrames = []string{
		"execute_model", "sample_tokens", "run_busy_loop", "worker_busy_loop", "_process_engine_step", "step_with_batch_queue",
		"engine_step", "run_engine_loop", "wake_up", "generate", "step", "_run_engine",
	}
)

// phaseOf tells when in its run's life a failure happened.
func (r *run) phaseOf(f *failure) string {
	if afterStop(r, f.ev.At) {
		return "shutdown"
	}
	frames := allFrames(f)
	if fr, _ := findFrame(frames, startFrames); fr != nil {
		return "startup"
	}
	first := f.rec.First()
	if strings.HasPrefix(first, "EngineCore failed to start") || strings.HasPrefix(first, "WorkerProc failed to start") {
		return "startup"
	}
	if r.ready != nil && r.ready.Before(f.ev.At) {
		return "runtime"
	}
	if fr, _ := findFrame(frames, stepFrames); fr != nil {
		return "runtime"
	}
	if len(r.stats) > 0 || len(r.dump) > 0 || strings.HasPrefix(first, "EngineCore encountered a fatal error") {
		return "runtime"
	}
	return r.phaseAt(f.ev.At)
}

func (r *run) phaseAt(at parser.Pos) string {
	switch {
	case r.stop != nil && r.stop.Before(at):
		return "shutdown"
	case r.ready != nil && r.ready.Before(at):
		return "runtime"
	case r.ready == nil && r.banner && (r.hasArgs || r.version != ""):
		return "startup"
	case len(r.stats) > 0:
		return "runtime"
	}
	return "unknown"
}

// died tells whether the run shows that its engine died, as against an error
// of one request.
func (r *run) died() bool {
	if r.fatal() || r.dying || len(r.dump) > 0 || r.consq.count("engine_dead") > 0 {
		return true
	}
	for _, l := range r.lines {
		if l.sig.Alone && r.lineCounts(l) && l.entry.Role == "failure" {
			return true
		}
	}
	return false
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
	n := len(r.stats)
	alive := n > 0 && l.last.Before(r.stats[n-1].at) || r.ready != nil && l.last.Before(*r.ready)
	return l.n >= l.sig.MinCount && !alive
}

// lineHolds holds a line's conditions against the facts of the run and what
// its pattern captured.
func (t *Tracker) lineHolds(r *run, l *lineHit) bool {
	if l.sig.Requires == nil && len(l.entry.Match.Vetoes) == 0 {
		return true
	}
	s := t.facts(r, nil, nil, r.phaseAt(l.ev.At))
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
		return []*incident{t.newIncident(r, &own[0], own)}
	}
	if r.stop != nil && !r.diedBefore(*r.stop) {
		return nil // an ordered stop, and what it made the processes say
	}
	if r.consq.count("engine_dead") > 0 || r.dying || len(r.dump) > 0 {
		return []*incident{t.newIncident(r, nil, nil)}
	}
	return nil
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

// counts tells whether a candidate is a failure of the server: a mechanism
// says so, the engine died of it, or the log is a piece that shows nothing
// else. An error of one request in the API server is none.
func (t *Tracker) counts(r *run, c candidate) bool {
	if c.line != nil {
		if !r.lineCounts(c.line) {
			return false
		}
		return c.line.sig.Alone || r.died() || !r.banner
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
	if r.ready == nil && len(r.names) == 0 && c.f.rec.Level == parser.Raw {
		return true // a library run without process prefixes that never got ready
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
