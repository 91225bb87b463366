package matcher

import (
	"fmt"
	"math"
	"strings"

	"diagnose/parser"
)

// Confidence is a score; these are the words for it.
const (
	highFrom   = 0.85
	mediumFrom = 0.6
	lowFrom    = 0.4
)

func confidenceWord(score float64) string {
	switch {
	case score >= highFrom:
		return "high"
	case score >= mediumFrom:
		return "medium"
	}
	return "low"
}

// word turns an incident into a diagnosis.
func (t *Tracker) word(in *incident, next *run) Incident {
	r := in.run
	var fs []*failure
	var root *failure
	if in.root != nil {
		root = in.root.f
	}
	for _, rf := range in.ranks {
		if rf.f != nil {
			fs = append(fs, rf.f)
		}
	}
	s := t.facts(r, fs, root, in.phase)
	w := &wording{t: t, in: in, r: r, s: s}
	w.out = Incident{
		Status: StatusNew, Occurrences: 1, Phase: in.phase,
		Host: text(r.meta.Host), Unit: text(r.meta.Unit), Pod: text(r.meta.Pod), Container: text(r.meta.Container),
		Time: r.time(t.opt, in.root), Engine: t.engine(r, s),
	}
	w.decide()
	w.root()
	w.ranks()
	w.numbers()
	w.evidence()
	w.exclusions()
	w.consequences()
	w.remedies()
	w.restart(next)
	w.missing()
	w.out.ID = incidentID(in)
	if in.root != nil && in.root.f != nil {
		w.out.printed = in.root.f.ev.Time
	} else if in.root != nil {
		w.out.printed = in.root.line.ev.Time
	}
	w.out.failed = in.run.firstPrinted()
	return w.out
}

// wording holds one diagnosis while it is written.
type wording struct {
	t     *Tracker
	in    *incident
	r     *run
	s     *scope
	entry *Entry
	hit   hit
	score float64
	state *VersionState
	out   Incident
}

// decide settles class, mechanism and confidence.
func (w *wording) decide() {
	if w.in.root != nil {
		w.hit = w.in.root.hit
		w.entry, w.score = w.hit.entry, w.hit.confidence
	}
	if w.entry != nil {
		for name, v := range w.hit.vars {
			w.s.facts[name] = fact{Value: v, grade: Established, at: []parser.Pos{w.in.root.at}}
		}
		if w.hit.frameName != "" {
			w.s.set("frame", Text(w.hit.frameName), Established, framePos(w.hit.frame))
		}
		w.s.deriveArithmetic(w.entry)
		w.gate()
		if w.s.facts["demand_matches"].yes && w.hit.frame != nil {
			w.score = math.Max(w.score, 0.97)
		}
		w.cap()
		if f := FamilyOf(w.entry.Class); w.s.facts["masked"].yes && (f == "workspace_driven" || f == "capacity") {
			w.score = math.Min(w.score, highFrom-0.01)
		}
	}
	if w.entry == nil || w.score < lowFrom {
		w.unknown()
		return
	}
	w.out.Verdict = Verdict{
		Family: FamilyOf(w.entry.Class), Class: w.entry.Class, Mechanism: &w.entry.ID,
		Confidence: confidenceWord(w.score),
	}
	summary, ok := w.entry.Summary.Render(w.s)
	if !ok {
		summary = w.entry.Title + "."
	}
	w.out.Verdict.Summary = summary
}

// gate holds the release against the entry's versions: a fix is a set of
// releases and can be lost again.
func (w *wording) gate() {
	if len(w.entry.Versions) == 0 {
		return
	}
	v, known := w.r.parsedVersion()
	if !known {
		return
	}
	for i := range w.entry.Versions {
		st := &w.entry.Versions[i]
		if !st.Range.Contains(v) {
			continue
		}
		w.state = st
		fixed := st.State == "fixed"
		w.s.facts["fixed"] = fact{Value: Truth(fixed), grade: Established, at: []parser.Pos{w.r.verAt}}
		w.s.facts["affected"] = fact{Value: Truth(!fixed), grade: Established, at: []parser.Pos{w.r.verAt}}
		if fixed && !w.s.facts["demand_matches"].yes {
			w.score -= 0.4
		}
		break
	}
}

// cap keeps the confidence below what the evidence carries.
func (w *wording) cap() {
	medium := func() { w.score = math.Min(w.score, highFrom-0.01) }
	v, known := w.r.parsedVersion()
	switch {
	case len(w.entry.Versions) == 0 || w.r.version == "":
	case !known || w.state == nil, !v.Exact(), w.s.facts["fixed"].yes:
		// What is known of other releases need not hold for this one.
		medium()
	}
	if w.unsized() {
		medium() // the frame is there, the size is another one's
	}
	if l := w.in.root.line; l != nil && l.sig.On == "kernel" && !w.r.died() {
		medium() // that the server died of it is not in the log
	}
	if _, foreign := w.foreign(); foreign {
		w.score = math.Min(w.score, mediumFrom-0.01)
	}
}

// unsized tells whether the size asked for could be held against the
// mechanism's formula and is no part of it, at the step's own tokens if a dump
// tells them, else at any step up to the budget.
func (w *wording) unsized() bool {
	d, f := w.entry.Demand, w.s.facts
	if d == nil || f["demand_matches"].yes || !f["demand"].Known() || !f["tried"].Known() {
		return false
	}
	return !f["demand_part"].Known() || f["step_tokens"].grade == Established
}

// foreign gives the run's own engine process if the root was written by one
// that the run does not know, while its own went on: another server's record,
// or a crash that somebody pasted.
func (w *wording) foreign() (own int, ok bool) {
	if w.in.root == nil {
		return 0, false
	}
	p, at := w.in.root.proc, w.in.root.at
	if _, ours := w.r.configBy[p.PID]; ours || p.PID == 0 || !strings.HasPrefix(p.Name, "EngineCore") {
		return 0, false
	}
	wentOn := w.r.aliveAfter(at) || w.r.stop != nil && at.Before(*w.r.stop)
	for pid := range w.r.configBy {
		if strings.HasPrefix(w.r.names[pid], "EngineCore") && (wentOn || at.Before(w.r.lastBy[pid])) {
			return pid, true
		}
	}
	return 0, false
}

func (w *wording) unknown() {
	w.entry, w.hit = nil, hit{}
	w.s.deriveArithmetic(&Entry{})
	v := Verdict{Family: "unknown", Class: "unknown", Confidence: "low"}
	switch {
	case w.in.root == nil && w.r.consq.count("engine_dead") > 0:
		v.Summary = "The engine died, and this log holds no cause: it only has lines that report the death of another process."
	case w.in.root == nil:
		v.Summary = "The engine failed, and this log holds no cause: the record that would name it is not there, or says nothing of its own."
	case w.s.facts["oom_form"].kind == textKind && !w.s.facts["masked"].yes:
		v.Summary = "The GPU ran out of memory. The log does not show which code asked for it, so what drove it is not decided."
	case w.s.facts["oom_form"].kind == textKind:
		v.Summary = "Memory ran out outside of PyTorch's own report: the text carries no numbers and no frame that is known, so what drove it is not decided."
	default:
		x := w.in.root.f
		if x != nil && x.exs[x.own].Class != "" {
			v.Summary = fmt.Sprintf("%s died of %s, which no known mechanism explains.", orWords(w.in.root.proc.Name, "A process"), lastName(x.exs[x.own].Class))
		} else if x != nil {
			v.Summary = "A process failed, but the log stops before the exception that says why."
		} else {
			v.Summary = "The server failed, and what the log holds does not tell why."
		}
	}
	w.out.Verdict = v
}

func orWords(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
