package matcher

import (
	"math"
)

// minMargin is the least room that "fits" needs: a block that fitted once was
// split by other tensors, and the next step failed with 0.77 GiB to spare
// (measured on an H200).
const minMargin = 1 << 30

// allocation rounding of PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp):
// requests of 10 MiB and more are rounded up to 2 MiB, smaller ones to 20 MiB.
const roundLarge, roundSmall = 2 << 20, 20 << 20

// deriveArithmetic adds the quantities of the remedies to the facts. What
// cannot be computed stays unknown, and the steps that need it disappear.
func (s *scope) deriveArithmetic(e *Entry) {
	if total, ok := s.capacity(); ok {
		s.derive("margin", math.Max(minMargin, 0.01*total), "total", "total_at_start_bytes")
	}
	s.deriveTokens()
	if e.Demand != nil {
		s.deriveDemand(e.Demand)
	} else if e.Scales != "none" {
		s.deriveFromTried(e)
	} else if tried, ok := s.num("tried"); ok {
		s.derive("demand", tried, "tried")
		s.derive("demand_live", 0, "tried")
	}
	s.deriveMissing()
	s.deriveKV()
	s.deriveUtilisation()
	s.deriveBudgets(e)
}

// capacity prefers the message's total to the start-up line's.
func (s *scope) capacity() (float64, bool) {
	if v, ok := s.num("total"); ok {
		return v, true
	}
	v, ok := s.num("total_at_start_bytes")
	return v, ok
}

func (s *scope) deriveTokens() {
	if b, ok := s.num("max_num_batched_tokens"); ok {
		s.derive("tokens", b, "max_num_batched_tokens")
	}
	if n, ok := s.num("max_num_seqs"); ok {
		s.derive("seqs", n, "max_num_seqs")
	}
	if st, ok := s.num("scheduled_tokens"); ok {
		s.derive("step_tokens", st, "scheduled_tokens")
	}
}

// withTokens evaluates part sizes at another step size.
type withTokens struct {
	*scope
	name string
	v    float64
}

func (w withTokens) Lookup(name string) Value {
	if name == w.name {
		return Num(w.v)
	}
	return w.scope.Lookup(name)
}

// deriveDemand sizes the whole call by the entry's formula, finds which part
// the allocator refused, and what was alive by then.
func (s *scope) deriveDemand(d *Demand) {
	unit := "tokens"
	if d.ScalesWith == "max_num_seqs" {
		unit = "seqs"
	}
	budget, known := s.num(unit)
	at := func(n float64) ([]float64, float64, bool) {
		sizes, sum := make([]float64, len(d.Parts)), 0.0
		for i, p := range d.Parts {
			v, ok := p.Bytes.Eval(withTokens{s, unit, n}).Float()
			if !ok {
				return nil, 0, false
			}
			sizes[i], sum = v, sum+v
		}
		return sizes, sum, true
	}
	perUnit, sum, ok := at(1)
	if !ok {
		return
	}
	s.derive("demand_per_token", sum, unit)
	if known {
		s.derive("demand", sum*budget, unit)
	}
	tried, ok := s.num("tried")
	if !ok {
		return
	}
	part, step, exact := s.matchPart(perUnit, tried, budget, known)
	if part < 0 {
		return
	}
	s.facts["demand_matches"] = fact{Value: Truth(exact), grade: Computed, at: s.positions([]string{"tried", unit})}
	s.facts["demand_part"] = fact{Value: Text(d.Parts[part].Name), grade: Computed, at: s.positions([]string{"tried"})}
	if _, dumped := s.num("step_tokens"); !dumped {
		s.derive("step_tokens", step, "tried")
	}
	live := 0.0
	for i := 0; i < part; i++ {
		live += perUnit[i] * step
	}
	s.derive("demand_live", live, "tried", unit)
	if !known {
		// Without the budget the step that failed is the only size known.
		s.derive("demand", sum*step, "tried")
	}
}

// matchPart finds the part whose size is what was asked for: at the step's own
// token count if a dump states it, at the full budget, else at any step below.
func (s *scope) matchPart(perUnit []float64, tried, budget float64, known bool) (part int, step float64, exact bool) {
	tol := s.facts["tried"].eps + roundLarge
	if tried < 10<<20 {
		tol = s.facts["tried"].eps + roundSmall
	}
	fits := func(n float64) int {
		best := -1
		for i, p := range perUnit {
			if p > 0 && math.Abs(p*n-tried) <= tol && (best < 0 || p > perUnit[best]) {
				best = i
			}
		}
		return best
	}
	if st, ok := s.num("step_tokens"); ok && st > 0 {
		if i := fits(st); i >= 0 {
			return i, st, true
		}
	}
	if known {
		if i := fits(budget); i >= 0 {
			return i, budget, true
		}
	}
	// The largest part that explains the size with a step within the budget.
	best := -1
	for i, p := range perUnit {
		if p <= 0 {
			continue
		}
		n := tried / p
		if n < 1 || known && n > budget*1.001 {
			continue
		}
		if best < 0 || p > perUnit[best] {
			best = i
		}
	}
	if best < 0 {
		return -1, 0, false
	}
	return best, math.Round(tried / perUnit[best]), false
}

// deriveFromTried scales the one size that is known to the worst case.
func (s *scope) deriveFromTried(e *Entry) {
	tried, ok := s.num("tried")
	if !ok {
		return
	}
	unit, step := "tokens", 0.0
	if e.Scales == "max_num_seqs" {
		unit = "seqs"
		// A dump tells how many sequences the failing step had; statistics are
		// seconds old and tell nothing of this step.
		if n, ok := s.num("running"); ok && s.facts["scheduled_tokens"].kind == numberKind {
			step = n
		}
	} else if st, ok := s.num("step_tokens"); ok {
		step = st
	}
	budget, known := s.num(unit)
	if step <= 0 || step > budget {
		step = budget
	}
	if !known || step <= 0 {
		s.derive("demand", tried, "tried")
	} else {
		s.derive("demand_per_token", tried/step, "tried", unit, "scheduled_tokens")
		s.derive("demand", tried*budget/step, "tried", unit, "scheduled_tokens")
	}
	s.derive("demand_live", 0, "tried")
}

// deriveMissing gives what the whole call lacked: demand - live - free.
func (s *scope) deriveMissing() {
	demand, ok := s.num("demand")
	if !ok {
		return
	}
	live, _ := s.num("demand_live")
	if free, ok := s.num("free"); ok {
		s.derive("missing", math.Max(demand-live-free, 0), "tried", "free", "tokens")
		return
	}
	// A masked OOM prints no numbers: the room is what the budget leaves.
	if room, ok := s.headroom(); ok {
		s.derive("missing", math.Max(demand-room, 0), "free_at_start_bytes", "gpu_memory_utilization", "tokens")
		f := s.facts["missing"]
		f.grade = Inferred
		s.facts["missing"] = f
	}
}

// headroom is what lies outside the budget: free at start - utilisation x
// total.
func (s *scope) headroom() (float64, bool) {
	free, ok := s.num("free_at_start_bytes")
	u, ok2 := s.num("gpu_memory_utilization")
	total, ok3 := s.capacity()
	return free - u*total, ok && ok2 && ok3
}

func (s *scope) deriveKV() {
	kv, ok := s.num("kv_cache_bytes")
	if !ok || kv <= 0 {
		return
	}
	s.derive("kv_pin", math.Floor(kv), "kv_cache_bytes")
	missing, ok := s.num("missing")
	margin, ok2 := s.num("margin")
	if fit := math.Floor(kv - missing - margin); ok && ok2 && fit > 0 && missing+margin > 0 {
		s.derive("kv_pin_fit", fit, "kv_cache_bytes", "tried", "free", "total")
	}
}

// deriveUtilisation gives the utilisation at which the call fits: u' = u -
// (missing + margin) / C, two decimals, rounded down. It is always less than
// u: more utilisation goes to the KV cache.
func (s *scope) deriveUtilisation() {
	u, ok := s.num("gpu_memory_utilization")
	missing, ok2 := s.num("missing")
	margin, ok3 := s.num("margin")
	total, ok4 := s.capacity()
	if !ok || !ok2 || !ok3 || !ok4 || s.facts["kv_pinned"].yes {
		return // with a pinned KV cache the utilisation is ignored
	}
	if fit := floor2(u - (missing+margin)/total); fit >= 0.1 && fit < u {
		s.derive("util_fit", fit, "gpu_memory_utilization", "tried", "free", "total")
	}
}

// deriveBudgets gives the token budgets (or numbers of sequences) that fit, as
// the largest power of two.
func (s *scope) deriveBudgets(e *Entry) {
	per, ok := s.num("demand_per_token")
	margin, ok2 := s.num("margin")
	room, known := s.room()
	if !ok || !ok2 || !known || per <= 0 {
		return
	}
	if e.Scales == "max_num_seqs" || e.Demand != nil && e.Demand.ScalesWith == "max_num_seqs" {
		if n := math.Floor((room - margin) / per); n >= 1 {
			s.derive("seqs_fit", n, "tried", "free", "total", "seqs")
		}
		return
	}
	budget, ok := s.num("tokens")
	if !ok {
		return
	}
	pinned := pow2Floor((room - margin) / per)
	if pinned >= 256 && pinned < budget {
		s.derive("tokens_fit_pinned", pinned, "tried", "free", "total", "tokens")
	}
	if auto := s.budgetWhileKVGrows(per, room, margin, budget, pinned); auto >= 256 && auto < budget {
		s.derive("tokens_fit_auto", auto, "tried", "free", "total", "tokens", "peak_activation_bytes")
	}
}

// room is what the call could use: what was free and what it already held.
func (s *scope) room() (float64, bool) {
	if free, ok := s.num("free"); ok {
		live, _ := s.num("demand_live")
		return free + live, true
	}
	return s.headroom()
}

// budgetWhileKVGrows counts that a smaller profiled peak leaves more to an
// automatically sized KV cache: it takes back P (1 - B'/B). Where the peak is
// not known one more halving stands for it.
func (s *scope) budgetWhileKVGrows(per, room, margin, budget, pinned float64) float64 {
	if s.facts["kv_pinned"].yes {
		return pinned
	}
	peak, ok := s.profiledGrowth()
	if !ok {
		return pinned / 2
	}
	slope := per - peak/budget
	if slope <= 0 {
		return 0 // every token less frees less than the KV cache takes
	}
	return pow2Floor((room - margin - peak) / slope)
}

// profiledGrowth is the part of the profile that shrinks with the token
// budget: the peak activation as printed, or at most what the budget leaves
// between weights and KV cache.
func (s *scope) profiledGrowth() (float64, bool) {
	if p, ok := s.num("peak_activation_bytes"); ok {
		return p, true
	}
	u, ok := s.num("gpu_memory_utilization")
	total, ok2 := s.capacity()
	weights, ok3 := s.num("weights_bytes")
	kv, ok4 := s.num("kv_cache_bytes")
	if !ok || !ok2 || !ok3 || !ok4 || s.facts["kv_pinned"].yes {
		return 0, false
	}
	graphs, _ := s.num("graph_estimate_bytes")
	rest := u*total - weights - kv - graphs
	if rest < 0 {
		return 0, false
	}
	// An upper bound: it holds the growth outside PyTorch too.
	s.derive("peak_activation_bytes", rest, "gpu_memory_utilization", "total", "weights_bytes", "kv_cache_bytes", "graph_estimate_bytes")
	return rest, true
}
