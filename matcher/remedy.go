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
	c := Compare(w.out, Start{Version: next.version, Flags: flags})
	if !next.hasArgs {
		c.Missing = []string{} // the flags of the next start are not known, or not yet
	}
	w.out.Restarted = &Restarted{At: w.at(next.start), ChangesMade: c.Made, ChangesMissing: c.Missing, StepTaken: c.Step}
}

// Comparison is what a later start made of the advice.
type Comparison struct {
	Made, Missing []string
	// Step is the rank of the first step that was taken whole, nil if none was.
	Step *int
}

// Compare tells which of the recommended changes a later start made, and what is
// missing: of the step that was begun, else of the first one. Nothing is missing
// where a step was taken whole, unless its values are a part of a better one:
// then nobody can tell which of the two was meant.
func Compare(in Incident, next Start) Comparison {
	out := Comparison{Made: []string{}, Missing: []string{}}
	wanted := map[string]bool{}
	for _, r := range in.Remedies {
		for flag := range r.Set {
			wanted[flag] = true
		}
	}
	changed := map[string]bool{}
	for flag := range wanted {
		if old, now := before(in, flag), after(next, flag); old != now {
			changed[flag] = true
			out.Made = append(out.Made, fmt.Sprintf("%s %s -> %s", flag, old, now))
		}
	}
	sortStrings(out.Made)
	if was := in.Engine.Version; next.Version != "" && was != nil && *was != next.Version {
		out.Made = append(out.Made, fmt.Sprintf("vLLM %s -> %s", *was, next.Version))
	}

	var whole, begun *Remedy
	for i := range in.Remedies {
		r := &in.Remedies[i]
		left := notSet(*r, next)
		switch {
		case len(r.Set) > 0 && len(left) == 0, r.UpgradeTo != nil && next.Version == *r.UpgradeTo:
			if whole == nil {
				whole = r
			}
		case begun == nil && begins(*r, next, changed):
			begun = r
		}
	}
	if whole != nil {
		rank := whole.Rank
		out.Step = &rank
	}
	switch {
	case whole == nil && begun == nil && len(in.Remedies) > 0:
		out.Missing = notSet(in.Remedies[0], next)
	case begun != nil && (whole == nil || begun.Rank < whole.Rank && shares(*begun, *whole)):
		out.Missing = notSet(*begun, next)
	}
	return out
}

// before and after give a flag's value in the failed and in the later run.
func before(in Incident, flag string) string {
	if f, ok := in.Engine.Flags[strings.TrimLeft(flag, "-")]; ok && f.Basis == "arguments" {
		return f.Value
	}
	return "default"
}

func after(next Start, flag string) string {
	if v, ok := next.Flags[strings.TrimLeft(flag, "-")]; ok {
		return v
	}
	return "default"
}

// notSet lists what a step asks for and a start does not have.
func notSet(r Remedy, next Start) []string {
	left := []string{}
	for flag, value := range r.Set {
		if now, ok := next.Flags[strings.TrimLeft(flag, "-")]; !ok || !atLeast(flag, now, value) {
			left = append(left, flag+" "+value)
		}
	}
	sortStrings(left)
	return left
}

// begins tells whether a part of a step was changed as it asks.
func begins(r Remedy, next Start, changed map[string]bool) bool {
	for flag, value := range r.Set {
		if changed[flag] && atLeast(flag, after(next, flag), value) {
			return true
		}
	}
	return false
}

// shares tells whether two steps ask for the same value of a flag.
func shares(a, b Remedy) bool {
	for flag, value := range a.Set {
		if b.Set[flag] == value {
			return true
		}
	}
	return false
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
