package matcher

import (
	"strings"

	"diagnose/parser"
	"diagnose/parser/oom"
	"diagnose/parser/version"
)

// facts gathers what is known about a failure: flags, start-up figures, the
// last load, and the allocator's numbers of the rank with the least free
// memory.
func (t *Tracker) facts(r *run, fs []*failure, root *failure, phase string) *scope {
	s := newScope()
	s.version, s.known = r.parsedVersion()
	if r.version != "" {
		s.set("version", Text(r.version), Established, r.verAt)
	}
	if r.model != "" {
		s.set("model", Text(r.model), Established, r.modelAt)
	}
	s.set("engine", Text(r.engine), Established)
	if root != nil && r.engine == "vllm" && r.version == "" {
		if fr, _ := findFrame(allFrames(root), []string{"sglang/srt/"}); fr != nil {
			r.engine = "sglang"
			s.set("engine", Text("sglang"), Established, fr.At)
		}
	}
	s.set("phase", Text(phase), Established)
	for name, f := range r.facts {
		s.facts[name] = f
	}
	t.flagFacts(r, s)
	var proc parser.Process
	if root != nil {
		proc = root.ev.Proc
	}
	for name, f := range r.byProc[proc.PID] {
		if _, isFlag := s.facts["flags."+name]; !isFlag {
			s.facts[name] = f
		}
	}
	t.loadFacts(r, s, root)
	if root != nil && root.own >= 0 {
		x := root.exs[root.own]
		s.set("exception", Text(x.Class), Established, x.At)
		s.set("exception_text", Text(x.Text), Established, x.At)
	}
	oomFacts(s, fs)
	r.lastAttempt(s, root)
	s.deriveHeads()
	return s
}

// flagFacts sets the flags: from the arguments, from the configuration line,
// given by hand, or the release's default.
func (t *Tracker) flagFacts(r *run, s *scope) {
	put := func(name string, f fact) {
		s.facts["flags."+name] = f
		if _, ok := vocabulary[name]; ok {
			s.facts[name] = f
		}
	}
	// What the log states itself wins over what is given, so the given come first.
	for name, v := range t.opt.Set {
		name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
		if f := s.facts[name]; f.Known() {
			f.basis = "config"
			s.facts["flags."+name] = f
			continue
		}
		f := fact{Value: textValue(v), grade: Established, basis: "given"}
		f.text = v
		put(name, f)
	}
	alias := map[string]string{"max_seq_len": "max_model_len"}
	for name, f := range r.config {
		if a, ok := alias[name]; ok {
			name = a
		}
		put(name, f)
	}
	for name, f := range r.args {
		if name == "max_model_len" && f.kind != numberKind {
			continue // "auto"; the start-up line has the number
		}
		put(name, f)
	}
	// The start-up lines say what came of the arguments.
	for _, name := range []string{"max_num_batched_tokens", "max_model_len", "gpu_memory_utilization", "kv_cache_dtype"} {
		if f, ok := r.facts[name]; ok {
			if _, typed := r.args[name]; !typed {
				f.basis = "config"
				put(name, f)
			}
		}
	}
	defaults(r, s, put)
	if f, ok := s.facts["flags.kv_cache_memory_bytes"]; ok && f.kind == numberKind {
		s.facts["kv_pinned"] = fact{Value: Truth(true), at: f.at, grade: Established, basis: f.basis}
		if _, known := s.facts["kv_cache_bytes"]; !known {
			s.facts["kv_cache_bytes"] = f
		}
	}
	if f, ok := s.facts["flags.num_gpu_blocks_override"]; ok && f.kind == numberKind {
		s.facts["kv_pinned"] = fact{Value: Truth(true), at: f.at, grade: Established, basis: f.basis}
	}
}

// defaults fills in what was not typed, where the release is known
// (vllm/config, vllm/engine/arg_utils.py).
func defaults(r *run, s *scope, put func(string, fact)) {
	if !s.known || !r.hasArgs {
		return
	}
	def := func(name string, v float64) {
		if _, ok := s.facts["flags."+name]; !ok {
			put(name, fact{Value: Num(v), grade: Established, basis: "default"})
		}
	}
	if version.Compare(s.version, mustVersion("0.21.0")) >= 0 {
		def("gpu_memory_utilization", 0.92) // vllm#38284
	} else {
		def("gpu_memory_utilization", 0.9)
	}
	def("tensor_parallel_size", 1)
	def("pipeline_parallel_size", 1)
	def("data_parallel_size", 1)
}

func mustVersion(s string) version.Version {
	v, _ := version.Parse(s)
	return v
}

// loadFacts sets the last known load: the scheduler's dump is exact, the
// statistics line is up to 10 s old.
func (t *Tracker) loadFacts(r *run, s *scope, root *failure) {
	before := func(at parser.Pos) bool {
		return root == nil || at.Before(root.ev.At) || !t.opt.Single && at.Source != root.ev.At.Source
	}
	var last *statsAt
	for i := range r.stats {
		st := &r.stats[i]
		if !before(st.at) {
			break
		}
		last = st
		if st.KVUsagePct >= 0 {
			t.bound(s, "kv_usage_max_pct", st.KVUsagePct, st.at, true)
			t.bound(s, "kv_usage_min_pct", st.KVUsagePct, st.at, false)
		}
		if st.Running >= 0 {
			t.bound(s, "running_max", float64(st.Running), st.at, true)
		}
		if st.Preemptions > 0 {
			p, _ := s.num("preemptions")
			s.set("preemptions", Num(p+float64(st.Preemptions)), Established, st.at)
		}
	}
	if last != nil {
		set := func(name string, v float64) {
			if v >= 0 {
				s.set(name, Num(v), Established, last.at)
			}
		}
		set("kv_usage_pct", last.KVUsagePct)
		set("running", float64(last.Running))
		set("waiting", float64(last.Waiting))
	}
	if d, ok := r.dump["stats"]; ok {
		if d.KVUsagePct >= 0 {
			s.set("kv_usage_pct", Num(d.KVUsagePct), Established, d.at)
			t.bound(s, "kv_usage_max_pct", d.KVUsagePct, d.at, true)
		}
		if d.Running >= 0 {
			s.set("running", Num(float64(d.Running)), Established, d.at)
		}
		if d.Waiting >= 0 {
			s.set("waiting", Num(float64(d.Waiting)), Established, d.at)
		}
	}
	if d, ok := r.dump["output"]; ok {
		if d.ScheduledTotal >= 0 {
			s.set("scheduled_tokens", Num(float64(d.ScheduledTotal)), Established, d.at)
		}
		if d.PromptLogprobs >= 0 {
			s.set("prompt_logprobs", Num(float64(d.PromptLogprobs)), Established, d.at)
		}
		if d.PromptTokens >= 0 {
			s.set("prompt_tokens", Num(float64(d.PromptTokens)), Established, d.at)
		}
	}
	// The log's own figure wins over the one that is given.
	if _, known := s.num("kv_usage_pct"); !known && t.opt.KVUsagePct != nil {
		s.facts["kv_usage_pct"] = fact{Value: Num(*t.opt.KVUsagePct), grade: Established, basis: "given"}
	}
}

func (t *Tracker) bound(s *scope, name string, v float64, at parser.Pos, upper bool) {
	if old, ok := s.num(name); ok && (upper && v <= old || !upper && v >= old) {
		return
	}
	s.set(name, Num(v), Established, at)
}

// oomFacts sets the allocator's numbers of the failure that had the least free
// memory: with several ranks that one counts.
func oomFacts(s *scope, fs []*failure) {
	var best *oom.Message
	var at parser.Pos
	for _, f := range fs {
		for i, m := range f.ooms {
			if m == nil {
				continue
			}
			if best == nil || better(m, best) {
				best, at = m, f.exs[i].At
			}
		}
	}
	s.set("gpus", Num(float64(len(fs))), Established)
	if best == nil {
		return
	}
	set := func(name string, z *oom.Size) {
		if z != nil && z.Possible() {
			s.facts[name] = fact{Value: Num(float64(z.Bytes)), at: []parser.Pos{at}, grade: Established, basis: "log", eps: float64(z.Precision)}
		}
	}
	s.set("oom_form", Text(best.Form), Established, at)
	s.set("masked", Truth(best.Masked), Established, at)
	set("tried", best.Tried)
	set("total", best.Total)
	set("free", best.Free)
	set("allowed", best.Allowed)
	set("allocated", best.Allocated)
	set("private_pools", best.PrivatePools)
	a := best.Account()
	set("this_process", a.Self)
	set("unallocated", a.Unallocated)
	derived := func(name string, z *oom.Size) {
		set(name, z)
		if f, ok := s.facts[name]; ok {
			f.grade = Computed
			s.facts[name] = f
		}
	}
	derived("others", a.Others)
	derived("non_pytorch", a.NonPyTorch)
	derived("unexplained", a.Unexplained)
	derived("live", a.Live)
	if tried, ok := s.num("tried"); ok {
		if free, ok := s.num("free"); ok {
			s.derive("shortfall", max(tried-free, 0), "tried", "free")
		}
	}
}

// lastAttempt lends a masked out-of-memory the numbers of the last failed
// attempt that PyTorch warned of before it (torch 2.13 on). The warning is
// printed for recovered attempts too, so that the two belong together is an
// inference and graded so.
func (r *run) lastAttempt(s *scope, root *failure) {
	if root == nil || !s.facts["masked"].yes {
		return
	}
	var last *warnAt
	for _, w := range r.warnW {
		if w.at.Before(root.exs[root.own].At) && (last == nil || last.at.Before(w.at)) {
			last = &w
		}
	}
	if last == nil {
		return
	}
	lend := func(name string, v int64) {
		s.facts[name] = fact{Value: Num(float64(v)), at: []parser.Pos{last.at}, grade: Inferred, basis: "log"}
	}
	lend("tried", last.tried)
	lend("free", last.free)
	lend("total", last.total)
	s.derive("shortfall", max(float64(last.tried-last.free), 0), "tried", "free")
}

// better prefers numbers to none, and less free memory to more.
func better(a, b *oom.Message) bool {
	switch {
	case a.Tried == nil:
		return false
	case b.Tried == nil:
		return true
	case a.Free == nil || b.Free == nil:
		return b.Free == nil && a.Free != nil
	}
	return a.Free.Bytes < b.Free.Bytes
}

// deriveHeads infers the heads of a rank from the model where no line states
// them. The counts are those of the public configurations; GLM-5.2's is taken
// from its sisters (vllm#53413 and threads about GLM-5 and GLM-5.1).
func (s *scope) deriveHeads() {
	if _, ok := s.num("heads_per_rank"); ok {
		return
	}
	tp, ok := s.num("tensor_parallel_size")
	model := s.facts["model"].text
	if !ok || tp < 1 || model == "" {
		return
	}
	low := strings.ToLower(model)
	for _, m := range []struct {
		name  string
		heads float64
	}{{"glm-5", 64}, {"deepseek-v3.2", 128}} {
		if strings.Contains(low, m.name) {
			f := fact{Value: Num(m.heads / tp), grade: Inferred, at: s.positions([]string{"model", "tensor_parallel_size"})}
			s.facts["heads_per_rank"] = f
		}
	}
}
