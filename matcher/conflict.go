package matcher

import (
	"fmt"

	"diagnose/parser"
)

// conflicts says where two things that went wrong want opposite changes, and
// decides between them with numbers: a full KV cache wants more utilisation, a
// workspace wants less; a locked workspace wants a larger token budget.
func (w *wording) conflicts() {
	if w.out.Verdict.Family != "workspace_driven" || w.in.phase != "runtime" {
		return
	}
	w.kvConflict()
	w.lockedConflict()
}

func (w *wording) kvConflict() {
	s := w.s
	usage, ok := s.num("kv_usage_max_pct")
	if !ok {
		if usage, ok = s.num("kv_usage_pct"); !ok {
			return
		}
	}
	at := s.positions([]string{"kv_usage_max_pct", "kv_usage_pct", "preemptions"})
	preempted, _ := s.num("preemptions")
	if usage >= 95 || preempted > 0 {
		w.say(Inferred, at, "", "two needs pull opposite ways: the KV cache was full too (%s), which more utilisation would help, and that takes the memory from the step that failed. A smaller token budget helps the step and takes nothing from the cache, so it comes first; more GPUs help both", pct(usage))
		return
	}
	u, ok := s.num("gpu_memory_utilization")
	fit, ok2 := s.num("util_fit")
	kv, ok3 := s.num("kv_cache_bytes")
	if !ok || !ok2 || !ok3 || kv <= 0 {
		return
	}
	lost := (u - fit) * w.total()
	left := 1 - lost/kv
	if usage/100 <= left {
		return
	}
	w.say(Computed, append(at, s.positions([]string{"gpu_memory_utilization", "kv_cache_bytes"})...),
		fmt.Sprintf("(%.2f - %.2f) x %s = %s of %s", u, fit, gibs(w.total()), gibs(lost), gibs(kv)),
		"lowering utilisation to %.2f takes %s of the KV cache's %s; at the usage seen (%s) the rest would have been too small, and requests would be preempted. Prefer the step that lowers the token budget", fit, SizeText(int64(lost)), SizeText(int64(kv)), pct(usage))
}

// lockedConflict warns of a smaller token budget where the run also met a
// locked workspace, which wants a larger one (vllm#43026).
func (w *wording) lockedConflict() {
	for _, c := range w.in.all {
		if c.hit.entry == nil || c.hit.entry.Class != "workspace_locked" {
			continue
		}
		w.say(Inferred, []parser.Pos{c.at}, "", "two needs pull opposite ways: this run also met a locked workspace, which wants a larger --max-num-batched-tokens. Lower --gpu-memory-utilization, or pin the KV cache smaller, instead of lowering the token budget")
		return
	}
}

// otherFaults names what else failed in the run with a cause of its own: an
// illegal access after the out-of-memory, another mechanism on another rank.
func (w *wording) otherFaults() {
	if w.in.root == nil {
		return
	}
	seen := map[*Entry]bool{w.entry: true}
	for _, c := range w.in.all {
		e := c.hit.entry
		if e == nil || seen[e] || e.Role != "failure" || c.hit.confidence < mediumFrom || c.order >= orderDied || c.at == w.in.root.at {
			continue
		}
		seen[e] = true
		order := "after"
		if c.at.Before(w.in.root.at) {
			order = "before"
		}
		w.contribute(e.Class, []parser.Pos{c.at}, "another fault stands %s it in the same run, in %s: %s (diagnose explain %s)", order, orWords(c.proc.Name, "a process without a prefix"), e.Title, e.ID)
	}
}
