package matcher

import (
	"sort"

	"diagnose/parser"
	"diagnose/parser/oom"
)

// numbers fills in the allocator's figures, the budget and the last load.
func (w *wording) numbers() {
	for _, rf := range w.in.ranks {
		if rf.oom == nil {
			continue
		}
		w.out.OOM = append(w.out.OOM, oomOf(rf))
	}
	w.out.Budget = w.budgets()
	w.out.KVCache = w.kvCache()
}

func oomOf(rf rankFailure) OOM {
	m := rf.oom
	o := OOM{Process: rf.proc.Name, GPU: m.GPU, OtherProcesses: []OtherProcess{}, Precision: map[string]int64{}, Masked: m.Masked, At: atOf(rf.at)}
	put := func(name string, z *oom.Size) *int64 {
		if z == nil {
			return nil
		}
		v := z.Bytes
		o.Precision[name] = z.Precision
		return &v
	}
	a := m.Account()
	o.TriedBytes = put("tried_bytes", m.Tried)
	o.TotalBytes = put("total_bytes", m.Total)
	o.FreeBytes = put("free_bytes", m.Free)
	o.ProcessBytes = put("process_bytes", a.Self)
	o.AllowedBytes = put("allowed_bytes", m.Allowed)
	o.AllocatedBytes = put("allocated_bytes", m.Allocated)
	o.PrivatePoolsBytes = put("private_pools_bytes", m.PrivatePools)
	o.ReservedUnallocatedBytes = put("reserved_unallocated_bytes", a.Unallocated)
	for _, p := range a.OtherProcesses {
		o.OtherProcesses = append(o.OtherProcesses, OtherProcess{PID: p.PID, Bytes: p.Size.Bytes})
	}
	return o
}

// budgets gives one entry a process that printed memory figures.
func (w *wording) budgets() []Budget {
	var pids []int
	for pid, facts := range w.r.byProc {
		for _, name := range []string{"kv_cache_bytes", "weights_bytes", "free_at_start_bytes"} {
			if _, ok := facts[name]; ok {
				pids = append(pids, pid)
				break
			}
		}
	}
	sort.Ints(pids)
	var out []Budget
	for _, pid := range pids {
		out = append(out, w.budget(pid))
	}
	return out
}

func (w *wording) budget(pid int) Budget {
	facts := w.r.byProc[pid]
	part := func(name string) *BudgetPart {
		f, ok := facts[name]
		if !ok && len(w.r.byProc) == 1 {
			f, ok = w.r.facts[name]
		}
		if !ok || f.kind != numberKind {
			return nil
		}
		p := &BudgetPart{Value: int64(f.num + 0.5), Grade: f.grade}
		if len(f.at) > 0 {
			p.At = atOf(f.at[0])
		}
		return p
	}
	b := Budget{
		Process: w.r.name(parser.Process{PID: pid}), TotalBytes: part("total_at_start_bytes"), FreeAtStartBytes: part("free_at_start_bytes"),
		RequestedBytes: part("requested_bytes"), WeightsBytes: part("weights_bytes"), PeakActivation: part("peak_activation_bytes"),
		NonTorchBytes: part("non_torch_bytes"), ConsumedBytes: part("consumed_bytes"), GraphEstimate: part("graph_estimate_bytes"),
		GraphActual: part("graph_actual_bytes"), KVCacheBytes: part("kv_cache_bytes"), KVCacheTokens: part("kv_cache_tokens"),
	}
	for _, rf := range w.in.ranks {
		if rf.proc.PID == pid && rf.oom != nil {
			b.GPU = rf.oom.GPU
			if b.TotalBytes == nil && rf.oom.Total != nil {
				b.TotalBytes = &BudgetPart{Value: rf.oom.Total.Bytes, Grade: Established, At: atOf(rf.at)}
			}
		}
	}
	if b.KVCacheTokens == nil {
		if f, ok := w.r.facts["kv_cache_tokens"]; ok {
			b.KVCacheTokens = &BudgetPart{Value: int64(f.num), Grade: Established, At: atOf(f.at[0])}
		}
	}
	if u, ok := w.s.num("gpu_memory_utilization"); ok && b.TotalBytes != nil && b.RequestedBytes == nil {
		b.RequestedBytes = &BudgetPart{Value: int64(u * float64(b.TotalBytes.Value)), Grade: Computed}
	}
	if b.TotalBytes != nil && b.RequestedBytes != nil {
		outside := b.TotalBytes.Value - b.RequestedBytes.Value
		if b.FreeAtStartBytes != nil {
			outside = b.FreeAtStartBytes.Value - b.RequestedBytes.Value
		}
		b.OutsideBytes = &BudgetPart{Value: outside, Grade: Computed}
	}
	return b
}

// kvCache gives the last known load before the failure.
func (w *wording) kvCache() *KVCache {
	usage, ok := w.s.facts["kv_usage_pct"]
	if !ok || usage.kind != numberKind {
		return nil
	}
	k := &KVCache{}
	u := float64(int64(usage.num*100+0.5)) / 100
	k.UsagePct = &u
	if len(usage.at) > 0 {
		k.At = atOf(usage.at[0])
	}
	count := func(name string) *int {
		if v, ok := w.s.num(name); ok {
			n := int(v)
			return &n
		}
		return nil
	}
	k.Running, k.Waiting, k.Preemptions = count("running"), count("waiting"), count("preemptions")
	if w.in.root != nil && w.in.root.f != nil {
		if d, fromDump := w.r.dump["stats"]; fromDump && len(usage.at) > 0 && d.at == usage.at[0] {
			zero := 0
			k.AgeSeconds = &zero
		} else if st := w.lastStatsBefore(w.in.root.f.ev.At); st != nil {
			if age, ok := secondsBetween(st.time, w.in.root.f.ev.Time); ok {
				k.AgeSeconds = &age
			}
		}
	}
	return k
}

func (w *wording) lastStatsBefore(at parser.Pos) *statsAt {
	var last *statsAt
	for i := range w.r.stats {
		if w.r.stats[i].at.Before(at) {
			last = &w.r.stats[i]
		}
	}
	return last
}
