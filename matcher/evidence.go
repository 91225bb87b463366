package matcher

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"diagnose/parser"
)

func (w *wording) say(g Grade, at []parser.Pos, formula, format string, args ...any) {
	e := Evidence{Grade: g, Statement: fmt.Sprintf(format, args...), At: ats(at)}
	if formula != "" {
		e.Formula = &formula
	}
	w.out.Evidence = append(w.out.Evidence, e)
}

// evidence states what is known, surest and nearest to the cause first: what
// failed and where, the mechanism's own statements, then the general figures.
func (w *wording) evidence() {
	w.sayRoot()
	w.sayForeign()
	if w.entry != nil {
		for _, st := range w.entry.Evidence {
			w.statement(st)
		}
	}
	w.sayMemory()
	w.sayLoad()
	w.sayVersion()
	w.sayGiven()
	w.conflicts()
}

// sayGiven marks what a person gave by hand.
func (w *wording) sayGiven() {
	for _, name := range slices.Sorted(maps.Keys(w.s.facts)) {
		flag, ok := strings.CutPrefix(name, "flags.")
		if f := w.s.facts[name]; ok && f.basis == "given" && !secretFlag(flag) {
			w.say(Inferred, nil, "", "%s = %s was given by hand; the log does not show it", strings.ReplaceAll(flag, "_", "-"), f.text)
		}
	}
	if w.s.facts["kv_usage_pct"].basis == "given" {
		w.say(Inferred, nil, "", "the KV cache usage of %s was given by hand; the log does not show it", formatValue(w.s.facts["kv_usage_pct"].Value, "pct"))
	}
}

func (w *wording) statement(st Statement) {
	if !st.When.holds(w.s) {
		return
	}
	said, ok := st.Say.Render(w.s)
	if !ok {
		return
	}
	names := append(st.Say.Names(), st.Formula.Names()...)
	e := Evidence{Grade: st.Grade, Statement: said, At: ats(w.s.positions(names))}
	if e.Grade == Established && len(e.At) == 0 {
		// The log cannot have established what stands on no line of it.
		e.Grade = Inferred
	}
	for _, n := range names {
		if w.s.facts[n].grade == Inferred {
			e.Grade = Inferred
		}
	}
	if f, ok := st.Formula.Render(w.s); ok && f != "" {
		e.Formula = &f
	}
	w.out.Evidence = append(w.out.Evidence, e)
}

func (w *wording) sayForeign() {
	if own, ok := w.foreign(); ok {
		w.say(Inferred, []parser.Pos{w.in.root.at, w.r.configBy[own]}, "",
			"pid %d is no process of this server, whose engine has pid %d and went on: another server's record, or text that somebody pasted",
			w.in.root.proc.PID, own)
	}
}

func (w *wording) sayRoot() {
	c := w.in.root
	if c == nil {
		if n := w.r.consq.count("engine_dead"); n > 0 {
			for _, e := range w.r.consq.sorted() {
				if e.kind == "engine_dead" {
					w.say(Established, []parser.Pos{e.at}, "", "%s (%d): it only reports that the engine was dead", e.what, e.n)
					break
				}
			}
		}
		return
	}
	who := orWords(c.proc.Name, "a process without a prefix")
	if c.line != nil {
		times := ""
		if c.line.n > 1 {
			times = fmt.Sprintf(" (%d such lines)", c.line.n)
		}
		if c.line.bound != "" {
			w.say(Established, []parser.Pos{c.at}, "", "the kernel log says what happened to the process")
			w.say(Inferred, []parser.Pos{c.at}, "", "that this line belongs to this run: %s", c.line.bound)
			return
		}
		if c.line.ev.Meta.Unit == "kernel" {
			w.say(Established, []parser.Pos{c.at}, "", "the first sign is a line of the kernel%s", times)
			return
		}
		w.say(Established, []parser.Pos{c.at}, "", "the first sign is a line of %s%s", orWords(w.r.proc(c.line.ev).Name, "a library, without a process prefix"), times)
		return
	}
	x := c.f.exs[c.f.own]
	where := ""
	at := []parser.Pos{c.at}
	if c.hit.frameName != "" {
		where = " in " + c.hit.frameName
		at = append(at, framePos(c.hit.frame))
	}
	class := orWords(x.Class, "an exception that the log does not show")
	if c.f.relay {
		w.say(Established, at, "", "%s quotes the error of a worker whose own record is not in this log", who)
	} else {
		w.say(Established, at, "", "%s raised %s%s", who, class, where)
	}
	if n := len(w.in.ranks); n > 1 {
		var names []string
		var lines []parser.Pos
		for _, rf := range w.in.ranks {
			names = append(names, rf.proc.Name)
			lines = append(lines, rf.at)
		}
		w.say(Established, lines, "", "%d ranks failed alike (one incident): %s", n, strings.Join(names, ", "))
	}
}

// sayMemory does the sums of the allocator's message.
func (w *wording) sayMemory() {
	s := w.s
	tried, ok := s.num("tried")
	free, ok2 := s.num("free")
	total, ok3 := s.num("total")
	if !ok {
		return
	}
	at := s.facts["tried"].at
	if s.facts["masked"].yes {
		w.say(Inferred, at, "", "the exception carries no numbers; the last failed attempt that PyTorch warned of before it asked for %s with %s free of %s (such a warning is printed for recovered attempts too)", SizeText(int64(tried)), SizeText(int64(free)), SizeText(int64(total)))
		return
	}
	if !ok2 || !ok3 {
		w.say(Established, at, "", "%s were asked for; the text stops before the other figures", SizeText(int64(tried)))
		return
	}
	w.say(Established, at, "", "%s were asked for with %s free of %s", SizeText(int64(tried)), SizeText(int64(free)), SizeText(int64(total)))
	if tried <= free {
		w.say(Computed, at, "", "more was free than was asked for when the message was made: another process or thread had freed memory by then, or the last few MiB of a full device cannot be used")
	}
	if x, ok := s.num("unexplained"); ok {
		if o, _ := s.num("others"); o == 0 && x < math.Max(minMargin, 0.02*total) {
			self, _ := s.num("this_process")
			w.say(Computed, at, fmt.Sprintf("%s - %s - %s = %s", gibs(total), gibs(free), gibs(self), gibs(x)),
				"nobody else holds memory on this GPU: total less free less this process leaves %s", w.s.difference(x, "total", "free"))
		}
	}
	if n, ok := s.num("non_pytorch"); ok && n >= math.Max(3*minMargin, 0.05*total) {
		w.say(Computed, at, "", "%s of this process lie outside PyTorch (CUDA context, NCCL, graphs, kernel libraries)", SizeText(int64(n)))
	}
}

// difference prints what was computed from printed sizes no finer than they
// were: two decimals of a GiB say nothing about single MiB.
func (s *scope) difference(v float64, from ...string) string {
	for _, name := range from {
		if s.facts[name].eps >= 1<<20 {
			return fmt.Sprintf("%.2f GiB", v/(1<<30))
		}
	}
	return SizeText(int64(v))
}

func gibs(v float64) string { return fmt.Sprintf("%.2f", v/(1<<30)) }

func (w *wording) sayLoad() {
	s := w.s
	if w.in.phase != "runtime" || w.s.facts["kv_usage_pct"].basis == "given" {
		return
	}
	hi, ok := s.num("kv_usage_max_pct")
	lo, ok2 := s.num("kv_usage_min_pct")
	if !ok {
		return
	}
	at := s.positions([]string{"kv_usage_pct", "kv_usage_max_pct", "kv_usage_min_pct"})
	span := pct(hi)
	if ok2 && lo < hi {
		span = strings.TrimSuffix(pct(lo), " %") + " to " + pct(hi)
	}
	requests := ""
	if n, ok := s.num("running_max"); ok {
		requests = fmt.Sprintf(", at most %d requests running", int(n))
	}
	if n, ok := s.num("waiting"); ok {
		requests += fmt.Sprintf(", %d waiting in the last line", int(n))
	}
	when := "before the failure"
	if w.entry != nil && w.entry.Role == "observation" {
		when = "in the last minutes"
	}
	w.say(Established, at, "", "KV cache usage %s: %s%s", when, span, requests)
}

func pct(v float64) string { return formatValue(Num(v), "pct") }

func (w *wording) sayVersion() {
	if w.entry == nil || len(w.entry.Versions) == 0 {
		return
	}
	if w.state == nil {
		w.say(Inferred, nil, "", "whether this release has the fault is not known (%s)", orWords(w.r.version, "the log names no version"))
		return
	}
	by, base := "", ""
	if w.state.By != "" {
		by = ", " + w.state.By
	}
	if v, ok := w.r.parsedVersion(); ok && !v.Exact() {
		base = ", judged by its base release " + v.Base()
	}
	w.say(Inferred, []parser.Pos{w.r.verAt}, "", "vLLM %s is listed as %s (%s%s)%s: %s", w.r.version, w.state.State, w.state.Range.Text, by, base, w.state.Certainty)
}

// exclusions says what was considered and is not the answer, and what made it
// worse.
func (w *wording) exclusions() {
	class := w.out.Verdict.Class
	rule := func(c string, at []parser.Pos, format string, args ...any) {
		// What the mechanism itself says about a class goes before.
		if c != class && !w.saidRuledOut(c) {
			w.out.RuledOut = append(w.out.RuledOut, RuledOut{Class: c, Because: fmt.Sprintf(format, args...), At: ats(at)})
		}
	}
	if w.entry != nil {
		for _, x := range w.entry.RuledOut {
			if said, ok := x.Say.Render(w.s); ok && x.When.holds(w.s) {
				w.out.RuledOut = append(w.out.RuledOut, RuledOut{Class: x.Class, Because: said, At: ats(w.s.positions(x.Say.Names()))})
			}
		}
		for _, x := range w.entry.Contributing {
			if said, ok := x.Say.Render(w.s); ok && x.When.holds(w.s) {
				w.out.Contributing = append(w.out.Contributing, Contributing{Class: x.Class, Statement: said, At: ats(w.s.positions(x.Say.Names()))})
			}
		}
	}
	w.otherFaults()
	if _, isOOM := w.s.num("tried"); isOOM || w.s.facts["masked"].yes {
		w.excludeKV(rule)
		w.excludeOthers(rule)
		w.fragmentation(rule)
		w.nonPyTorch()
		if w.in.phase == "runtime" && w.r.ready != nil {
			rule("weights", []parser.Pos{*w.r.ready}, "the start-up was over: the server took requests")
		}
	}
}

func (w *wording) saidRuledOut(class string) bool {
	for _, r := range w.out.RuledOut {
		if r.Class == class {
			return true
		}
	}
	return false
}

// contribute adds what made it worse, unless the mechanism has said it.
func (w *wording) contribute(class string, at []parser.Pos, format string, args ...any) {
	for _, c := range w.out.Contributing {
		if c.Class == class {
			return
		}
	}
	if class != w.out.Verdict.Class {
		w.out.Contributing = append(w.out.Contributing, Contributing{Class: class, Statement: fmt.Sprintf(format, args...), At: ats(at)})
	}
}

type ruleFunc func(class string, at []parser.Pos, format string, args ...any)

// excludeKV holds the KV usage against the limits of the notes: below 70 % with
// nothing waiting it is ruled out, at 95 % and more it is said to coincide.
func (w *wording) excludeKV(rule ruleFunc) {
	s := w.s
	usage, ok := s.num("kv_usage_pct")
	if !ok || w.in.phase != "runtime" {
		return
	}
	hi := usage
	if v, ok := s.num("kv_usage_max_pct"); ok {
		hi = v
	}
	at := s.positions([]string{"kv_usage_pct", "kv_usage_max_pct", "running_max", "waiting"})
	waiting, _ := s.num("waiting")
	preempted, _ := s.num("preemptions")
	switch {
	case hi < 70 && waiting == 0 && preempted == 0:
		requests := ""
		if n, ok := s.num("running_max"); ok {
			requests = fmt.Sprintf(", at most %d requests were running", int(n))
		}
		rule("kv_pressure", at, "the KV cache was at most %s full%s and nothing waited; it is allocated once at start, and a full one preempts requests, it does not raise an OOM. No preemption was printed (which proves little: the default log level shows none)", pct(hi), requests)
	case usage >= 95:
		w.contribute("kv_pressure", at, "the KV cache was %s full at the same time; a full cache preempts and does not raise an OOM, but high load fills batches", pct(usage))
	}
}

func (w *wording) excludeOthers(rule ruleFunc) {
	s := w.s
	x, ok := s.num("unexplained")
	others, ok2 := s.num("others")
	total, ok3 := s.num("total")
	if !ok || !ok2 || !ok3 {
		return
	}
	at := s.facts["tried"].at
	if others == 0 && x < math.Max(minMargin, 0.02*total) {
		rule("other_process", at, "total less free less this process leaves %s: there is no room for another process", s.difference(x, "total", "free"))
	} else if others >= math.Max(minMargin/2, 0.01*total) {
		w.contribute("other_process", at, "other processes hold %s on this GPU", SizeText(int64(others)))
	} else if x >= math.Max(minMargin, 0.02*total) {
		w.contribute("other_process", at, "%s of this GPU are in use and belong to no process that the message names: a display, another container, a process that ended badly, or what the driver keeps", SizeText(int64(x)))
	}
}

// fragmentation is a flag more often than a class: the free blocks would have
// covered the rest in 12 of 17 public texts, and were the cause in one.
func (w *wording) fragmentation(rule ruleFunc) {
	s := w.s
	u, ok := s.num("unallocated")
	short, ok2 := s.num("shortfall")
	if !ok || !ok2 || short == 0 {
		return
	}
	at := s.facts["tried"].at
	if u < short {
		rule("fragmentation", at, "%s were reserved but unallocated, less than the missing %s: perfect packing would not have helped", SizeText(int64(u)), s.difference(short, "tried", "free"))
		return
	}
	w.contribute("fragmentation", at, "%s were reserved by PyTorch but unallocated: in one piece they would have covered the missing %s. They remained after the allocator had given back what it could, so they lie between live tensors; it is an upper bound of what better packing could recover, and this holds in most out-of-memory messages without being the cause",
		SizeText(int64(u)), s.difference(short, "tried", "free"))
}

func (w *wording) nonPyTorch() {
	n, ok := w.s.num("non_pytorch")
	total, ok2 := w.s.num("total")
	if ok && ok2 && n >= math.Max(3*minMargin, 0.05*total) {
		w.contribute("comm_buffers", w.s.facts["tried"].at, "%s of this process lie outside PyTorch's allocator, which no budget bounds", SizeText(int64(n)))
	}
}
