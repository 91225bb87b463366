package matcher

import (
	"fmt"
	"strconv"
	"strings"
)

// remedies renders the mechanism's steps, in its order. A step whose values
// cannot be computed is not printed; missing then says which input lacks.
func (w *wording) remedies() {
	if w.entry == nil {
		w.genericSteps()
		return
	}
	for _, spec := range w.entry.Remedies {
		r, ok := w.remedy(w.t.cat.remedy(spec))
		if ok {
			r.Rank = len(w.out.Remedies) + 1
			w.out.Remedies = append(w.out.Remedies, r)
		}
	}
	for _, spec := range w.entry.DoNot {
		spec = w.t.cat.doNot(spec)
		if !spec.When.holds(w.s) {
			continue
		}
		change, ok := spec.Change.Render(w.s)
		because, ok2 := spec.Because.Render(w.s)
		if ok && ok2 {
			w.out.DoNot = append(w.out.DoNot, DoNot{Change: change, Because: because})
		}
	}
	for _, v := range w.entry.Verify {
		if said, ok := v.Render(w.s); ok {
			w.out.Verify = append(w.out.Verify, said)
		}
	}
	w.out.References = append(w.out.References, w.entry.Refs...)
}

func (w *wording) remedy(spec RemedySpec) (Remedy, bool) {
	r := Remedy{Set: map[string]string{}, Unset: append([]string{}, spec.Unset...), Grade: orWords(spec.Grade, "inferred"), Refs: append([]string{}, spec.Refs...)}
	if !spec.When.holds(w.s) {
		return r, false
	}
	for flag, fig := range spec.Set {
		v := fig.Eval(w.s)
		if !v.Known() {
			return r, false
		}
		text := setValue(flag, v)
		if text == "" && v.kind == numberKind {
			return r, false
		}
		r.Set[flag] = text
		for _, n := range fig.Names() {
			if w.s.facts[n].grade == Inferred && r.Grade == "computed" {
				r.Grade = "inferred"
			}
		}
	}
	var ok bool
	if r.Title, ok = spec.Title.Render(w.s); !ok {
		return r, false
	}
	r.Why, _ = spec.Why.Render(w.s)
	r.Expect, _ = spec.Expect.Render(w.s)
	r.Costs, _ = spec.Costs.Render(w.s)
	r.UpgradeTo = text(spec.UpgradeTo)
	return r, true
}

// setValue prints a value as it is typed: sizes and counts as whole numbers
// rounded down, a utilisation with two decimals rounded down.
func setValue(flag string, v Value) string {
	switch v.kind {
	case textKind:
		return v.text
	case boolKind:
		return ""
	}
	if strings.Contains(flag, "utilization") {
		return strconv.FormatFloat(floor2(v.num), 'f', 2, 64)
	}
	if v.num < 1 {
		return ""
	}
	return strconv.FormatInt(int64(v.num), 10)
}

// genericSteps is what can be said of an OOM whose cause is not known: it moves
// no memory in a direction that could be wrong, and asks for the evidence.
func (w *wording) genericSteps() {
	if _, ok := w.s.num("tried"); !ok || w.in.phase != "runtime" {
		return
	}
	if u, ok := w.s.num("util_fit"); ok {
		now, _ := w.s.num("gpu_memory_utilization")
		missing, _ := w.s.num("missing")
		margin, _ := w.s.num("margin")
		w.out.Remedies = append(w.out.Remedies, Remedy{
			Rank: 1, Title: "Leave more memory outside vLLM's budget", Set: map[string]string{"--gpu-memory-utilization": setValue("utilization", Num(u))},
			Unset: []string{}, Refs: []string{}, Grade: "inferred",
			Why:    fmt.Sprintf("%s were missing; with a margin of %s that is %.4f of the GPU below %.2f", SizeText(int64(missing)), SizeText(int64(margin)), (missing+margin)/w.total(), now),
			Expect: "a smaller KV cache, and room for a request of this size; not proof against a larger one",
			Costs:  fmt.Sprintf("about %s of KV cache a GPU", SizeText(int64((now-u)*w.total()))),
		})
	}
	w.out.DoNot = append(w.out.DoNot, DoNot{
		Change:  "raise --gpu-memory-utilization",
		Because: "more utilisation goes to the KV cache and is taken from everything that allocates at run time",
	})
}

func (w *wording) total() float64 {
	if v, ok := w.s.capacity(); ok && v > 0 {
		return v
	}
	return 1
}

// restart compares the run with the next one of the same log.
func (w *wording) restart(next *run) {
	if next == nil {
		return
	}
	at := next.start
	out := &Restarted{At: w.at(at), ChangesMade: []string{}, ChangesMissing: []string{}}
	wanted := map[string]bool{}
	done := false
	for _, r := range w.out.Remedies {
		all := len(r.Set) > 0
		for flag, value := range r.Set {
			wanted[flag] = true
			now, ok := next.args[argName(flag)]
			all = all && ok && atLeast(flag, now, value)
		}
		done = done || all
	}
	for flag := range wanted {
		name := argName(flag)
		old, had := w.r.args[name]
		now, has := next.args[name]
		if had == has && old.text == now.text {
			continue
		}
		out.ChangesMade = append(out.ChangesMade, fmt.Sprintf("%s: %s -> %s", flag, orWords(old.text, "default"), orWords(now.text, "default")))
	}
	sortStrings(out.ChangesMade)
	if !done && len(w.out.Remedies) > 0 {
		for flag, value := range w.out.Remedies[0].Set {
			if now, ok := next.args[argName(flag)]; !ok || !atLeast(flag, now, value) {
				out.ChangesMissing = append(out.ChangesMissing, flag+" "+value)
			}
		}
		sortStrings(out.ChangesMissing)
	}
	if next.version != "" && next.version != w.r.version {
		out.ChangesMade = append(out.ChangesMade, fmt.Sprintf("vLLM %s -> %s", orWords(w.r.version, "unknown"), next.version))
	}
	w.out.Restarted = out
}

func argName(flag string) string {
	return strings.ReplaceAll(strings.TrimLeft(flag, "-"), "-", "_")
}

// atLeast tells whether a flag was moved as far as the step asks or further:
// all of the computed values bound a size from above.
func atLeast(flag string, now fact, value string) bool {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || now.kind != numberKind {
		return now.text == value
	}
	if strings.Contains(flag, "tensor-parallel") || strings.Contains(flag, "pipeline-parallel") {
		return now.num >= v
	}
	return now.num <= v*1.0001
}
