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
		if ok && flagsExist(w.s, r.Set) && !foreignFlag(w.s, r.Title) {
			r.Costs = strings.TrimSpace(r.Costs + " " + flagNote(w.s, r.Set))
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
		if ok && ok2 && !foreignFlag(w.s, change) {
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
	flags := map[string]string{}
	for name, f := range next.args {
		flags[argFlag(name)] = f.text
	}
	made, missing := Compare(w.out, Start{Version: next.version, Flags: flags})
	if !next.hasArgs {
		missing = []string{} // the flags of the next start are not known, or not yet
	}
	w.out.Restarted = &Restarted{At: w.at(next.start), ChangesMade: made, ChangesMissing: missing}
}

// Compare tells which of the recommended changes a later start made, and which
// of the first step are missing if no step was taken whole.
func Compare(in Incident, next Start) (made, missing []string) {
	made, missing = []string{}, []string{}
	wanted := map[string]bool{}
	done := false
	for _, r := range in.Remedies {
		all := len(r.Set) > 0
		for flag, value := range r.Set {
			wanted[flag] = true
			now, ok := next.Flags[strings.TrimLeft(flag, "-")]
			all = all && ok && atLeast(flag, now, value)
		}
		done = done || all
		if r.UpgradeTo != nil && next.Version == *r.UpgradeTo {
			done = true
		}
	}
	for flag := range wanted {
		name := strings.TrimLeft(flag, "-")
		old, now := "default", "default"
		if f, ok := in.Engine.Flags[name]; ok && f.Basis == "arguments" {
			old = f.Value
		}
		if v, ok := next.Flags[name]; ok {
			now = v
		}
		if old != now {
			made = append(made, fmt.Sprintf("%s %s -> %s", flag, old, now))
		}
	}
	sortStrings(made)
	if !done && len(in.Remedies) > 0 {
		for flag, value := range in.Remedies[0].Set {
			if now, ok := next.Flags[strings.TrimLeft(flag, "-")]; !ok || !atLeast(flag, now, value) {
				missing = append(missing, flag+" "+value)
			}
		}
		sortStrings(missing)
	}
	if was := in.Engine.Version; next.Version != "" && was != nil && *was != next.Version {
		made = append(made, fmt.Sprintf("vLLM %s -> %s", *was, next.Version))
	}
	return made, missing
}

// argFlag turns an argument's name into a flag's without dashes in front.
func argFlag(name string) string { return strings.ReplaceAll(name, "_", "-") }

// atLeast tells whether a flag was moved as far as the step asks or further:
// all of the computed values bound a size from above, but for the number of
// GPUs to spread over.
func atLeast(flag, now, value string) bool {
	want, err := strconv.ParseFloat(value, 64)
	is, err2 := strconv.ParseFloat(now, 64)
	if err != nil || err2 != nil {
		return now == value
	}
	if strings.Contains(flag, "-parallel-size") {
		return is >= want
	}
	return is <= want*1.0001
}
