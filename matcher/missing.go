package matcher

import (
	"sort"
	"strings"
)

func sortStrings(s []string) { sort.Strings(s) }

// missing says what would settle the open points, and the command that gets
// it.
func (w *wording) missing() {
	add := func(s string) { w.out.Missing = append(w.out.Missing, s) }
	if w.entry != nil {
		for _, g := range w.entry.Missing {
			if said, ok := g.Say.Render(w.s); ok && g.When.holds(w.s) {
				add(said)
			}
		}
	}
	if !w.r.banner {
		add("the start banner and the arguments: give the log from the server's start on (journalctl -u UNIT -b --no-pager, docker logs CONTAINER, kubectl logs --previous POD); without it no flag of this run is known")
	}
	if w.r.repeated {
		add("tracebacks of other ranks: Ray printed \"[repeated Nx across cluster]\" in their place; set RAY_DEDUP_LOGS=0 and read the workers' own files below /tmp/ray/session_latest/logs")
	}
	if w.r.suppress {
		add("lines that the journal dropped in the crash (\"Suppressed N messages\"): set LogRateLimitIntervalSec=0 in the unit")
	}
	if w.in.root == nil || w.out.Verdict.Class == "unknown" {
		w.missingCause(add)
	}
	if w.r.stdout && !w.r.stderr || w.r.stderr && !w.r.stdout {
		other, has := "stderr", "stdout"
		if w.r.stderr {
			other, has = has, other
		}
		add("the other half of the output: only " + has + " is in this log; vLLM's records go to stdout, raw tracebacks and C++ messages to stderr. Collect " + other + " too (docker logs CONTAINER 2>&1)")
	}
	if w.s.facts["masked"].yes {
		add("the numbers: this text carries none. They may stand on stderr just before it; the budget line of the start (VLLM_LOGGING_LEVEL=DEBUG up to 0.25, INFO from 0.26) gives the headroom")
	}
	if _, ok := w.s.num("tried"); ok && w.r.banner {
		if _, ok := w.s.num("gpu_memory_utilization"); !ok {
			add("gpu_memory_utilization: neither typed nor known as the release's default; give it with --set gpu-memory-utilization=VALUE")
		}
		if _, ok := w.s.num("kv_usage_pct"); !ok && w.in.phase == "runtime" {
			add("the KV cache usage at the crash: no statistics line and no scheduler dump stand in the log (they are off with --disable-log-stats, and idle ones go to DEBUG); give it with --kv-usage PCT, or read vllm:kv_cache_usage_perc from /metrics")
		}
	}
}

func (w *wording) missingCause(add func(string)) {
	if w.in.root != nil && w.s.facts["oom_form"].kind == textKind {
		add("the traceback above the out-of-memory: the frame tells which code asked; give the whole record")
		return
	}
	if w.in.root == nil {
		add("the record of the process that failed first: look above the first EngineDeadError, in the other processes' files (--join FILE...), and in stderr; up to 5 minutes earlier for a timeout")
		add("whether a process was killed: journalctl -k --since '1 hour ago' | grep -i -E 'killed process|Xid', the container's last state (kubectl describe pod, docker inspect)")
		return
	}
	if strings.HasPrefix(w.out.Root.Text, CutRoot) {
		add("the exception line below the traceback: the log stops before it")
	}
}

// observe gives what is wrong in a run without having failed.
func (t *Tracker) observe(r *run, failed bool) []Incident {
	var out []Incident
	for _, l := range r.lines {
		kernel := !failed && l.ev.Meta.Unit == "kernel" && l.entry.Role == "failure"
		if l.entry.Role != "observation" && !kernel {
			continue
		}
		out = append(out, t.observation(r, l.entry, &candidate{line: l, at: l.ev.At, proc: r.proc(l.ev), hit: hit{entry: l.entry, sig: l.sig, confidence: l.sig.Confidence, vars: l.vars}}))
	}
	if e := t.cat.Entry("kv-pressure-runtime"); e != nil && !failed {
		if st := r.saturated(); st != nil {
			out = append(out, t.observation(r, e, &candidate{
				line: &lineHit{entry: e, sig: &Signature{On: "line", Confidence: 0.9}, n: 1, last: st.at, text: "KV cache usage " + pct(st.KVUsagePct)},
				at:   st.at, hit: hit{entry: e, sig: &Signature{On: "line"}, confidence: 0.9, vars: map[string]Value{
					"kv_usage_pct": Num(st.KVUsagePct), "running": Num(float64(st.Running)), "waiting": Num(float64(st.Waiting)),
				}},
			}))
		}
	}
	return out
}

// saturated gives the statistics line of the fullest KV cache that had
// requests waiting: from 95 % of vLLM's pool, 90 % of SGLang's, which retracts
// earlier.
func (r *run) saturated() *statsAt {
	limit := 95.0
	if r.engine == "sglang" {
		limit = 90
	}
	var best *statsAt
	for i := range r.stats {
		st := &r.stats[i]
		if st.KVUsagePct >= limit && (st.Waiting > 0 || st.Preemptions > 0) && (best == nil || st.KVUsagePct > best.KVUsagePct) {
			best = st
		}
	}
	return best
}

func (t *Tracker) observation(r *run, e *Entry, c *candidate) Incident {
	in := &incident{run: r, root: c, all: []candidate{*c}, phase: r.phaseAt(c.at)}
	s := t.facts(r, nil, nil, in.phase)
	w := &wording{t: t, in: in, r: r, s: s}
	w.out = Incident{Status: StatusNew, Occurrences: 1, Phase: in.phase, Time: r.time(t.opt, c), Engine: t.engine(r, s)}
	w.decide()
	w.out.Root = Root{Kind: "unknown", Text: firstLine(c.line.text), At: w.at(c.at)}
	for _, st := range e.Evidence {
		w.statement(st)
	}
	w.sayLoad()
	w.out.KVCache = w.kvCache()
	w.remedies()
	w.out.ID = incidentID(in)
	return w.out
}
