package matcher

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"sort"
	"strconv"
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

// Incidents gives the failures of every run so far, oldest first, and what is
// wrong without having failed. It may be called at any time; it changes
// nothing.
func (t *Tracker) Incidents() (incidents, observations []Incident) {
	for i, r := range t.runs {
		var next *run
		for _, n := range t.runs[i+1:] {
			if n.restartOf(r) {
				next = n
				break
			}
		}
		found := t.incidentsOf(r)
		for _, in := range found {
			incidents = append(incidents, t.word(in, next))
		}
		observations = append(observations, t.observe(r, len(found) > 0)...)
	}
	markRecurring(incidents)
	return incidents, observations
}

// Failed tells whether a failure was found in the server of an input.
func (t *Tracker) Failed(input int) bool {
	src := t.server(input)
	for _, r := range t.runs {
		if r.source == src && len(t.incidentsOf(r)) > 0 {
			return true
		}
	}
	return false
}

// LastFailed keeps the incidents of the last failed run of each source.
func (t *Tracker) LastFailed() (incidents, observations []Incident) {
	last := map[int]*run{}
	for _, r := range t.runs {
		if len(t.incidentsOf(r)) > 0 {
			last[r.source] = r
		}
	}
	for i, r := range t.runs {
		var next *run
		for _, n := range t.runs[i+1:] {
			if n.restartOf(r) {
				next = n
				break
			}
		}
		if last[r.source] == r {
			for _, in := range t.incidentsOf(r) {
				incidents = append(incidents, t.word(in, next))
			}
		}
		if last[r.source] == r || next == nil {
			observations = append(observations, t.observe(r, last[r.source] == r)...)
		}
	}
	return incidents, observations
}

// restartOf tells whether a run is the next life of the same server: it came
// later in the same log and serves at the same port. Another port is another
// server that writes into the same file.
func (r *run) restartOf(old *run) bool {
	port := func(r *run) string { return orWords(r.args["port"].text, "8000") }
	return r.source == old.source && r.banner && (!r.hasArgs || !old.hasArgs || port(r) == port(old))
}

// markRecurring links a failure to an earlier one of the same kind in the same
// reading.
func markRecurring(list []Incident) {
	first := map[string]*Incident{}
	for i := range list {
		in := &list[i]
		if in.Verdict.Mechanism == nil {
			continue
		}
		k := *in.Verdict.Mechanism
		if f := first[k]; f != nil && f.ID != in.ID {
			id := f.ID
			in.Status, in.RecurrenceOf = StatusRecurring, &id
			f.Occurrences++
			in.Occurrences = f.Occurrences
		} else if f == nil {
			first[k] = in
		}
	}
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
		w.capUnreleased()
		if w.s.facts["masked"].yes && FamilyOf(w.entry.Class) == "workspace_driven" {
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

// capUnreleased keeps builds between releases at medium: what is known of the
// base release need not hold for them.
func (w *wording) capUnreleased() {
	if v, known := w.r.parsedVersion(); known && !v.Exact() && len(w.entry.Versions) > 0 {
		w.score = math.Min(w.score, highFrom-0.01)
	}
}

func (w *wording) unknown() {
	w.entry, w.hit = nil, hit{}
	w.s.deriveArithmetic(&Entry{})
	v := Verdict{Family: "unknown", Class: "unknown", Confidence: "low"}
	switch {
	case w.in.root == nil:
		v.Summary = "The engine died, and this log holds no cause: it only has lines that report the death of another process."
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

func framePos(f *parser.Frame) parser.Pos {
	if f == nil {
		return parser.Pos{Offset: -1}
	}
	if f.Code != "" {
		return f.CodeAt
	}
	return f.At
}

// CutRoot begins the text of a root whose traceback stops before its exception.
const CutRoot = "the traceback is cut before its exception"

// root words the cause.
func (w *wording) root() {
	c := w.in.root
	if c == nil {
		w.out.Root = Root{Kind: "unknown", Text: ""}
		if f := w.r.firstFailure(); f != nil {
			w.out.Root.At = w.at(f.ev.At)
		}
		return
	}
	out := Root{At: w.at(c.at)}
	if c.line != nil {
		out.Kind, out.Text = "exception", firstLine(c.line.text)
		switch c.line.entry.Class {
		case "worker_died":
			out.Kind = "process_died"
		case "host_memory":
			out.Kind = "signal"
		case "hardware":
			out.Kind = "kernel_fault"
		case "rpc_timeout":
			out.Kind = "timeout"
		case "nccl":
			if strings.Contains(c.line.text, "timeout") {
				out.Kind = "timeout"
			}
		}
		if c.line.sig.On == "kernel" && out.Kind == "exception" {
			out.Kind = "kernel_fault"
		}
		w.out.Root = out
		return
	}
	i := c.f.own
	if c.hit.entry != nil && c.hit.sig.Root == "matched" {
		i = c.hit.exception
	}
	x := c.f.exs[i]
	out.Text = x.Text
	if x.Class != "" && !c.f.relay {
		out.Text = x.Class
		if x.Text != "" {
			out.Text += ": " + x.Text
		}
	}
	out.At = w.at(x.At)
	if x.Class == "" {
		out.Text = CutRoot
		if n := len(x.Frames); n > 0 {
			out.Text += "; its last frame is " + x.Frames[n-1].Func
			out.At = w.at(x.Frames[n-1].At)
		}
	}
	switch m := c.f.ooms[i]; {
	case m != nil && m.Masked:
		out.Kind = "masked_oom"
	case m != nil:
		out.Kind = "oom"
	case w.in.phase == "startup" && lastName(x.Class) == "ValueError":
		out.Kind = "startup_refused"
	case lastName(x.Class) == "TimeoutError":
		out.Kind = "timeout"
	default:
		out.Kind = "exception"
	}
	if c.hit.frameName != "" {
		out.Frame = &c.hit.frameName
	} else if n := len(x.Frames); n > 0 && x.Frames[n-1].Func != "" {
		out.Frame = &x.Frames[n-1].Func
	}
	w.out.Root = out
}

func (r *run) firstFailure() *failure {
	if len(r.failures) == 0 {
		return nil
	}
	return r.failures[0]
}

func firstLine(s string) string {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[:i]
	}
	return s
}

func (w *wording) ranks() {
	for _, rf := range w.in.ranks {
		rank := Rank{Process: rf.proc.Name, At: w.at(rf.at)}
		if rf.proc.PID != 0 {
			pid := rf.proc.PID
			rank.PID = &pid
		}
		if rf.oom != nil && rf.oom.GPU != nil {
			rank.GPU = rf.oom.GPU
		}
		if rank.Process == "" {
			rank.Process = "unknown"
		}
		w.out.Ranks = append(w.out.Ranks, rank)
	}
}

// at converts a position; nil for one that stands nowhere.
func (w *wording) at(p parser.Pos) *At { return atOf(p) }

func atOf(p parser.Pos) *At {
	if p.Offset < 0 && p.Line == 0 {
		return nil
	}
	a := &At{Source: p.Source}
	if p.Line > 0 {
		n := p.Line
		a.Line = &n
	}
	if p.Offset >= 0 {
		o := p.Offset
		a.Offset = &o
	}
	return a
}

func ats(ps []parser.Pos) []At {
	out := []At{}
	for _, p := range ps {
		if a := atOf(p); a != nil {
			out = append(out, *a)
		}
	}
	return out
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// secretFlags are never shown, in no format.
func secretFlag(name string) bool {
	for _, w := range []string{"api_key", "token", "password", "secret", "credential", "ssl_key", "auth"} {
		if strings.Contains(name, w) && !strings.Contains(name, "tokens") && !strings.Contains(name, "tokenizer") {
			return true
		}
	}
	return false
}

// engine describes the server. Secret-valued flags are left out whole.
func (t *Tracker) engine(r *run, s *scope) Engine {
	e := Engine{Name: r.engine, Version: text(r.version), Model: text(r.model), Flags: map[string]Flag{}}
	add := func(name string, f fact) {
		if secretFlag(name) || len(f.text) > 512 {
			return
		}
		v := f.text
		if v == "" {
			v = formatValue(f.Value, "")
		}
		fl := Flag{Value: v, Basis: f.basis}
		if len(f.at) > 0 {
			fl.At = atOf(f.at[0])
		}
		e.Flags[strings.ReplaceAll(name, "_", "-")] = fl
	}
	for name, f := range r.args {
		if name == "model_tag" {
			continue
		}
		add(name, f)
	}
	for _, name := range []string{
		"gpu_memory_utilization", "max_num_batched_tokens", "max_num_seqs", "max_model_len", "kv_cache_dtype",
		"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "enforce_eager", "quantization",
	} {
		if f, ok := s.facts["flags."+name]; ok && f.Known() {
			if f.basis == "log" {
				f.basis = "config"
			}
			if _, typed := e.Flags[strings.ReplaceAll(name, "_", "-")]; !typed {
				add(name, f)
			}
		}
	}
	for name := range t.opt.Set {
		n := strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
		if f, ok := s.facts["flags."+n]; ok {
			add(n, f)
		}
	}
	return e
}

// incidentID is stable against framing, colour, the file's name and what is
// learnt later: the earliest root record alone decides it.
func incidentID(in *incident) string {
	h := sha256.New()
	write := func(parts ...string) {
		for _, p := range parts {
			h.Write([]byte(p))
			h.Write([]byte{0})
		}
	}
	switch {
	case in.root == nil:
		f := in.run.firstFailure()
		if f == nil {
			write("run", in.run.firstTim)
			break
		}
		x := f.exs[0]
		write(f.ev.Proc.Name, strconv.Itoa(f.ev.Proc.PID), f.ev.Time, x.Class, x.Text)
	case in.root.f != nil:
		f := in.root.f
		x := f.exs[f.own]
		write(in.run.name(f.ev.Proc), strconv.Itoa(f.ev.Proc.PID), f.ev.Time, x.Class, x.Text)
		if f.ev.Time == "" {
			// Raw output has no time; the run's start tells two crashes apart.
			write(in.run.firstTim)
		}
	default:
		l := in.root.line
		write(l.ev.Proc.Name, strconv.Itoa(l.ev.Proc.PID), l.ev.Time, firstLine(l.text))
		if l.ev.Time == "" {
			write(in.run.firstTim)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// consequences lists what only reports the failure.
func (w *wording) consequences() {
	c := w.r.consq.sorted()
	for _, e := range c {
		w.out.Consequences = append(w.out.Consequences, Consequence{Kind: e.kind, What: e.what, Count: e.n, At: w.at(e.at)})
	}
	// The engine's own exception after a worker's is a consequence too.
	if w.in.root == nil {
		return
	}
	seen := map[string]int{}
	for _, c := range w.in.all {
		if c.f == nil || c.f == w.in.root.f || w.isRank(c.f) {
			continue
		}
		kind := "other"
		x := c.f.exs[c.f.own]
		switch {
		case c.f.relay:
			kind = "worker_relay"
		case c.order == orderCore && c.order > w.in.root.order:
			kind = "core_secondary"
		case c.order == orderSecond:
			kind = "shutdown_noise"
		case c.order == orderTimeout:
			kind = "core_secondary"
		}
		what := lastName(x.Class)
		if what == "" {
			what = "traceback"
		}
		what += " in " + orWords(c.proc.Name, "output without a process prefix")
		k := kind + "\x00" + what
		if i, ok := seen[k]; ok {
			w.out.Consequences[i].Count++
			continue
		}
		seen[k] = len(w.out.Consequences)
		w.out.Consequences = append(w.out.Consequences, Consequence{Kind: kind, What: what, Count: 1, At: w.at(c.at)})
	}
	sort.SliceStable(w.out.Consequences, func(i, j int) bool {
		a, b := w.out.Consequences[i].At, w.out.Consequences[j].At
		return a != nil && b != nil && a.Offset != nil && b.Offset != nil && *a.Offset < *b.Offset
	})
}

func (w *wording) isRank(f *failure) bool {
	for _, rf := range w.in.ranks {
		if rf.f == f {
			return true
		}
	}
	return false
}
