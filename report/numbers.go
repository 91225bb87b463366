package report

import (
	"slices"
	"strconv"
	"strings"

	"diagnose/matcher"
)

// numbers fills in the sizes of the failed allocation and of the budget. One
// GPU is shown in full: of several ranks the one with the least free memory
// decides what helps.
func (v viewer) numbers(s *section, i matcher.Incident) {
	worst := leastFree(i.OOM)
	if worst >= 0 {
		o := i.OOM[worst]
		t := v.oomTable(o)
		if len(i.OOM) > 1 && o.FreeBytes != nil {
			t.Title += ", least free of " + counted(len(i.OOM), "rank")
		}
		t.Others = others(v, i.OOM, worst, v.oomLine)
		s.Numbers = append(s.Numbers, t)
	}
	if len(i.Budget) == 0 {
		return
	}
	main := 0
	if worst >= 0 {
		main = max(0, slices.IndexFunc(i.Budget, func(b matcher.Budget) bool { return sameGPU(b, i.OOM[worst]) }))
	}
	t := v.budgetTable(i.Budget[main])
	t.Others = others(v, i.Budget, main, func(b matcher.Budget) string { return "budget of " + v.budgetLine(b) })
	s.Numbers = append(s.Numbers, t)
}

// others gives a line for each entry but one.
func others[T any](v viewer, list []T, but int, line func(T) string) []string {
	var out []string
	limit := v.limit(len(list)-1, maxRanks)
	for n, x := range list {
		if n != but && len(out) < limit {
			out = append(out, line(x))
		}
	}
	if m := more(len(list) - 1 - limit); m != "" {
		out = append(out, m)
	}
	return out
}

func sameGPU(b matcher.Budget, o matcher.OOM) bool {
	if b.GPU != nil && o.GPU != nil {
		return *b.GPU == *o.GPU && b.Process == o.Process
	}
	return b.Process == o.Process
}

// leastFree is the index of the rank with the least free memory, else the first
// one with any number, else the first; -1 without an OOM.
func leastFree(list []matcher.OOM) int {
	best := -1
	for n, o := range list {
		switch {
		case best < 0:
			best = n
		case o.FreeBytes == nil:
			if list[best].Masked && !o.Masked {
				best = n
			}
		case list[best].FreeBytes == nil || *o.FreeBytes < *list[best].FreeBytes:
			best = n
		}
	}
	return best
}

func (v viewer) oomTable(o matcher.OOM) table {
	t := table{Title: who(o.Process, o.GPU), Ref: v.names.Ref(o.At)}
	if t.Title == "" {
		t.Title = "the failed allocation"
	}
	add := func(label string, bytes *int64, part bool) {
		if bytes != nil {
			t.Rows = append(t.Rows, row{Label: label, Value: SizeText(*bytes), Part: part})
		}
	}
	add("tried to allocate", o.TriedBytes, false)
	add("free", o.FreeBytes, false)
	add("total", o.TotalBytes, false)
	add("this process", o.ProcessBytes, false)
	for _, p := range o.OtherProcesses {
		add("process "+strconv.Itoa(p.PID), &p.Bytes, false)
	}
	add("allowed to this process", o.AllowedBytes, false)
	add("allocated by PyTorch", o.AllocatedBytes, false)
	add("in private pools", o.PrivatePoolsBytes, true)
	add("reserved but unallocated", o.ReservedUnallocatedBytes, false)
	if len(t.Rows) == 0 {
		t.Rows = []row{{Label: "sizes", Value: "not printed"}}
	}
	return t
}

func (v viewer) oomLine(o matcher.OOM) string {
	s := who(o.Process, o.GPU) + ": "
	switch {
	case o.TriedBytes != nil && o.FreeBytes != nil:
		s += "tried " + SizeText(*o.TriedBytes) + ", free " + SizeText(*o.FreeBytes)
	case o.TriedBytes != nil:
		s += "tried " + SizeText(*o.TriedBytes) + ", free not printed"
	default:
		s += "sizes not printed"
	}
	return withRef(s, v.names.Ref(o.At))
}

func withRef(s, ref string) string {
	if ref == "" {
		return s
	}
	return s + " (" + ref + ")"
}

func (v viewer) budgetTable(b matcher.Budget) table {
	t := table{Title: strings.TrimSpace("budget of " + who(b.Process, b.GPU))}
	// The file is named once, in the title, and again only where it changes.
	home := -1
	for _, p := range budgetParts(b) {
		if p.part == nil {
			continue
		}
		r := row{Label: p.label, Value: p.text(), Grade: word(string(p.part.Grade))}
		if at := p.part.At; at != nil {
			if home < 0 {
				home = at.Source
				t.Ref = v.names.source(home)
			}
			if r.Ref = v.names.Ref(at); at.Source == home && spot(*at) != "" {
				r.Ref = spot(*at)
			}
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

// budgetLine is a budget in one line: what it was for and what the KV cache got.
func (v viewer) budgetLine(b matcher.Budget) string {
	s := who(b.Process, b.GPU)
	sep := ": "
	for _, p := range budgetParts(b) {
		if p.part != nil && p.short {
			s += sep + p.label + " " + p.text()
			sep = ", "
		}
	}
	if sep == ": " {
		s += ": not known"
	}
	return s
}

type budgetPart struct {
	label string
	part  *matcher.BudgetPart
	// short is set for what a budget of one line holds.
	short  bool
	tokens bool
}

func (p budgetPart) text() string {
	if p.tokens {
		return grouped(p.part.Value) + " tokens"
	}
	return SizeText(p.part.Value)
}

func budgetParts(b matcher.Budget) []budgetPart {
	return []budgetPart{
		{label: "total", part: b.TotalBytes},
		{label: "free at start", part: b.FreeAtStartBytes},
		{label: "requested", part: b.RequestedBytes, short: true},
		{label: "weights", part: b.WeightsBytes, short: true},
		{label: "peak activation", part: b.PeakActivation},
		{label: "outside PyTorch", part: b.NonTorchBytes},
		{label: "consumed by the profile", part: b.ConsumedBytes},
		{label: "CUDA graphs, estimated", part: b.GraphEstimate},
		{label: "CUDA graphs, actual", part: b.GraphActual},
		{label: "KV cache", part: b.KVCacheBytes, short: true},
		{label: "KV cache", part: b.KVCacheTokens, short: true, tokens: true},
		{label: "outside the budget", part: b.OutsideBytes},
	}
}

// load is the last known load in words; empty where nothing is known.
func (v viewer) load(k *matcher.KVCache) string {
	if k == nil {
		return ""
	}
	s, sep := "", ""
	add := func(text string) {
		s += sep + text
		sep = ", "
	}
	if k.UsagePct != nil {
		add("KV cache usage " + strconv.FormatFloat(*k.UsagePct, 'f', 1, 64) + " %")
	}
	if k.Running != nil {
		add(strconv.Itoa(*k.Running) + " running")
	}
	if k.Waiting != nil {
		add(strconv.Itoa(*k.Waiting) + " waiting")
	}
	if k.Preemptions != nil {
		add(strconv.Itoa(*k.Preemptions) + " preemptions")
	}
	if s == "" {
		return ""
	}
	if k.AgeSeconds != nil {
		add(strconv.Itoa(*k.AgeSeconds) + " s before the failure")
	}
	return withRef(s, v.names.Ref(k.At))
}
