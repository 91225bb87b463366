package matcher

import (
	"slices"
	"strings"

	"diagnose/parser"
	"diagnose/parser/oom"
)

// Options are facts that a person gives because the log lacks them, and how to
// read its times.
type Options struct {
	// Set gives flags by name ("max-num-seqs"), as typed.
	Set map[string]string
	// KVUsagePct is the KV usage at the crash in percent where the log has none,
	// nil if not given.
	KVUsagePct *float64
	// Year and Zone complete the log's times; 0 and "" leave them incomplete.
	Year int
	Zone string
	// Single takes everything for one server: the live stream of one path.
	Single bool
	// Kernel names the inputs that are kernel logs: their lines belong to the
	// servers' runs, bound by pid and time.
	Kernel map[int]bool
	// Servers tells for each input which server it belongs to; inputs that it
	// does not name are a server each.
	Servers []int
}

// Tracker turns the events of a reading into runs and incidents. It is the
// same for a finished log and for a live one. It is not safe for concurrent
// use.
type Tracker struct {
	cat    *Catalog
	opt    Options
	runs   []*run
	kernel []*lineHit
	// begun counts runs, those forgotten included.
	begun int
	cur   map[int]*run         // the newest run of a source
	pids  map[int]map[int]*run // the run of a process, by source and pid
	// ends holds how many lines a finished input has.
	ends map[int]int64
	// continued is the name of the run that the reading begins in.
	continued string
}

// NewTracker returns a tracker that knows the mechanisms of cat.
func NewTracker(cat *Catalog, opt Options) *Tracker {
	return &Tracker{cat: cat, opt: opt, cur: map[int]*run{}, pids: map[int]map[int]*run{}, ends: map[int]int64{}}
}

// Add takes the next event. An event of a record that was added before, and
// has grown since, replaces it.
func (t *Tracker) Add(e parser.Event) {
	if t.opt.Kernel[e.At.Source] {
		t.takeKernel(e)
		return
	}
	src := t.server(e.At.Source)
	if t.begins(src, e) {
		t.begin(src, e)
	}
	if r := t.runOf(src, e); r != nil {
		t.take(r, e)
	}
}

func (t *Tracker) server(input int) int {
	if t.opt.Single {
		return 0
	}
	if input < len(t.opt.Servers) {
		return t.opt.Servers[input]
	}
	return input
}

// Runs counts the runs that have begun.
func (t *Tracker) Runs() int { return t.begun }

// begins tells whether an event starts a new run of its source.
func (t *Tracker) begins(src int, e parser.Event) bool {
	cur := t.cur[src]
	switch b := e.Body.(type) {
	case parser.Banner:
		return b.Version != "" && (cur == nil || cur.verAt != e.At && (cur.version != "" || cur.hasArgs || cur.over() || !cur.banner))
	case parser.Args:
		return cur == nil || cur.argsAt != e.At && (cur.hasArgs || cur.over() || !cur.banner)
	case parser.Config:
		if b.Dump {
			return false
		}
		at, again := pos(cur, e.Proc.PID)
		return cur == nil || at != e.At && (again || cur.over())
	}
	return false
}

// pos gives where a process of a run printed its configuration. A line that is
// read again, because it was shown before its end came, starts nothing.
func pos(r *run, pid int) (parser.Pos, bool) {
	if r == nil {
		return parser.Pos{}, false
	}
	at, ok := r.configBy[pid]
	return at, ok
}

func (t *Tracker) begin(src int, e parser.Event) {
	old := t.cur[src]
	r := newRun(src, t.begun, e.At)
	t.begun++
	r.banner, r.apiPID, r.startTime = true, e.Proc.PID, e.Time
	t.runs = append(t.runs, r)
	t.cur[src] = r
	pids := t.pids[src]
	if pids == nil {
		pids = map[int]*run{}
		t.pids[src] = pids
	}
	for pid, other := range pids {
		// A server that is over, or whose own process starts again, is gone;
		// its pids may come again. Another one may live on beside the new run.
		if other.over() || other.apiPID == e.Proc.PID || !other.banner || old == nil {
			delete(pids, pid)
		}
	}
	delete(pids, e.Proc.PID)
}

func (t *Tracker) runOf(src int, e parser.Event) *run {
	r := t.cur[src]
	if r == nil {
		r = newRun(src, t.begun, e.At)
		r.startTime = e.Time
		t.begun++
		t.runs = append(t.runs, r)
		t.cur[src] = r
		t.pids[src] = map[int]*run{}
	}
	if e.Proc.PID != 0 {
		if of := t.pids[src][e.Proc.PID]; of != nil {
			r = of
		} else if !e.At.Before(r.start) {
			r = t.parent(src, r, e)
			if room(t.pids[src], e.Proc.PID, 4*maxProcesses) {
				t.pids[src][e.Proc.PID] = r
			}
		}
	}
	if e.At.Before(r.start) {
		// A record of the run before, which ended only now: nothing of its
		// process came after it.
		if old := t.runAt(src, e.At, e.Proc.PID); old != nil {
			return old
		}
		if t.begun > len(t.runs) {
			return nil // its run is told and forgotten
		}
	}
	return r
}

// parent gives the run that a process which is heard of for the first time
// belongs to, where several servers write into one log: the only one that serves
// the model that the process names, else the one whose youngest older process
// has the nearest pid, for a child is born after its parent.
func (t *Tracker) parent(src int, newest *run, e parser.Event) *run {
	var live []*run
	for _, r := range t.runs {
		if r.source == src && r.banner && !r.over() {
			live = append(live, r)
		}
	}
	if len(live) < 2 || strings.HasPrefix(e.Proc.Name, "APIServer") {
		return newest
	}
	if c, ok := e.Body.(parser.Config); ok {
		model := strings.Trim(c.Values["model"], `'"`)
		var same []*run
		for _, r := range live {
			if model != "" && r.model == model {
				same = append(same, r)
			}
		}
		if len(same) == 1 {
			return same[0]
		}
	}
	best, nearest := newest, 0
	for _, r := range live {
		for pid := range r.names {
			if pid < e.Proc.PID && pid > nearest {
				best, nearest = r, pid
			}
		}
	}
	return best
}

// End tells that an input is finished, and with how many lines. A log that may
// go on must not be ended.
func (t *Tracker) End(input int, lines int64) { t.ends[input] = lines }

// OldestStart is where the oldest run begins that the tracker still holds.
func (t *Tracker) OldestStart() (parser.Pos, bool) {
	if len(t.runs) == 0 {
		return parser.Pos{}, false
	}
	return t.runs[0].start, true
}

// runAt gives the run of a source that was current at a position; of several,
// the one that knows the process.
func (t *Tracker) runAt(src int, at parser.Pos, pid int) *run {
	var best *run
	for i := len(t.runs) - 1; i >= 0; i-- {
		r := t.runs[i]
		if r.source != src || at.Before(r.start) {
			continue
		}
		if _, knows := r.names[pid]; knows {
			return r
		}
		if best == nil {
			best = r
		}
	}
	return best
}

func (t *Tracker) take(r *run, e parser.Event) {
	if e.Proc.PID != 0 && e.Proc.Name != "" && room(r.names, e.Proc.PID, maxProcesses) {
		r.names[e.Proc.PID] = e.Proc.Name
		r.lastBy[e.Proc.PID], r.lastAt = e.At, e.At
	}
	if e.Time != "" {
		if r.firstTim == "" {
			r.firstTim = e.Time
		}
		r.lastTime = e.Time
	}
	if e.Meta.Unit+e.Meta.Pod+e.Meta.Container+e.Meta.Host+e.Meta.Time != "" {
		r.meta = e.Meta
	}
	switch e.Meta.Stream {
	case "stdout":
		r.stdout = true
	case "stderr":
		r.stderr = true
	}
	switch b := e.Body.(type) {
	case parser.Banner:
		if b.Version != "" {
			r.version, r.verAt = b.Version, e.At
		}
		if b.Model != "" {
			r.model, r.modelAt = b.Model, e.At
		}
	case parser.Args:
		t.takeArgs(r, e, b)
	case parser.Config:
		t.takeConfig(r, e, b)
	case parser.Facts:
		for _, f := range b.List {
			r.setFact(f, e.Proc)
		}
	case parser.Stats:
		if b.Engine == "sglang" {
			r.engine = "sglang"
		}
		r.addStats(b, e.At, e.Time)
	case parser.Dump:
		r.dump[b.Kind] = dumpAt{b, e.At}
		r.changed++
	case parser.Ready:
		if r.ready == nil {
			at := e.At
			r.ready = &at
		}
	case parser.Stop:
		if r.stop == nil {
			at := e.At
			r.stop, r.stopText = &at, b.Text
		}
	case parser.Ended:
		at := e.At
		r.ended = &at
	case parser.HTTPError:
		if b.Status == 500 {
			known := r.known()
			r.consq.add("http_500", "HTTP 500 answers", e.At)
			r.changes(known, true)
		}
	case parser.Failure:
		known := r.known()
		counted := t.takeFailure(r, e, b)
		r.changes(known, counted)
	case parser.Notice:
		t.takeNotice(r, e, b.Record)
	}
}

func (t *Tracker) takeArgs(r *run, e parser.Event, a parser.Args) {
	r.hasArgs, r.argsAt = true, e.At
	for name, v := range a.Values {
		name = strings.ReplaceAll(name, "-", "_")
		text := v.Text()
		if name == "device_memory_utilization" {
			name = "gpu_memory_utilization" // its second name from 0.31.0
		}
		val := textValue(text)
		if !val.Known() || !room(r.args, name, maxSettings) {
			continue
		}
		f := fact{Value: val, at: []parser.Pos{e.At}, grade: Established, basis: "arguments"}
		f.text = text
		r.args[name] = f
	}
	if m, ok := r.args["model"]; ok && r.model == "" {
		r.model, r.modelAt = m.text, e.At
	}
}

func (t *Tracker) takeConfig(r *run, e parser.Event, c parser.Config) {
	if !c.Dump {
		if room(r.configBy, e.Proc.PID, maxProcesses) {
			r.configBy[e.Proc.PID] = e.At
		}
	} else {
		r.dump["config"] = dumpAt{parser.Dump{ScheduledTotal: -1, Running: -1, Waiting: -1, KVUsagePct: -1, PromptLogprobs: -1, PromptTokens: -1}, e.At}
		r.changed++
	}
	if r.version == "" {
		r.version, r.verAt = c.Version, e.At
	}
	for name, raw := range c.Values {
		if _, ok := r.config[name]; ok && c.Dump {
			continue
		}
		text := strings.Trim(raw, `'"`)
		if v := textValue(text); v.Known() && len(text) < 200 && room(r.config, name, maxSettings) {
			f := fact{Value: v, at: []parser.Pos{e.At}, grade: Established, basis: "config"}
			f.text = text
			r.config[name] = f
		}
	}
	if m, ok := r.config["model"]; ok && r.model == "" {
		r.model, r.modelAt = m.text, e.At
	}
}

// failure is a record with an exception.
type failure struct {
	ev   parser.Event
	rec  *parser.Record
	exs  []parser.Exception
	ooms []*oom.Message // one an exception, nil where it is none
	// own indexes the first exception that is a failure of its own, -1 if the
	// record only reports another one.
	own int
	// relay marks an own that is quoted from a worker by the core.
	relay bool
	// lent marks a cut traceback whose exception is the core's quotation.
	lent  bool
	kind  string // of a consequence
	fatal bool   // the process or the engine dies of it
}

// fatalHeads begin records after which the engine is dead.
var fatalHeads = []string{
	"EngineCore encountered a fatal error", "EngineCore failed to start", "EngineCore hit an exception",
	"WorkerProc failed to start", "WorkerProc failed", "RayWorkerProc failed", "Engine background task failed",
}

func (t *Tracker) takeFailure(r *run, e parser.Event, b parser.Failure) (counted bool) {
	f := &failure{ev: e, rec: b.Record, exs: b.Exceptions, own: -1}
	f.ooms = make([]*oom.Message, len(f.exs))
	for i := range f.exs {
		x := &f.exs[i]
		if q, ok := relayed(x.Text); ok {
			x.Text = q
			f.relay = true
		}
		if m, ok := parseOOM(*x); ok {
			f.ooms[i] = &m
		}
		r.startFailed = r.startFailed || startReport(x.Text)
		if f.own < 0 {
			if k := consequenceOf(*x); k == "" {
				f.own = i
			} else if f.kind == "" {
				f.kind = k
			}
		}
	}
	first := b.Record.First()
	for _, h := range fatalHeads {
		f.fatal = f.fatal || strings.HasPrefix(first, h)
	}
	if f.own >= 0 && f.exs[f.own].Class == "" && len(f.exs[f.own].Frames) > 0 && onlyClientFrames(f.exs[f.own]) {
		// A front end's traceback that was cut: the output handler waiting for
		// a core that is gone.
		f.own, f.kind = -1, "engine_dead"
	}
	if f.own < 0 {
		r.consq.add(f.kind, consequenceName(f, r), e.At)
	} else {
		r.consq.forget(e.At)
	}
	for i, old := range r.failures {
		if old.rec.At() == b.Record.At() {
			r.failures[i] = f
			return f.own < 0 && old.own < 0
		}
	}
	if f.own < 0 && f.kind == "engine_dead" && r.consq.count("engine_dead") > 8 {
		return true // hundreds of them say the same
	}
	if len(r.failures) < maxFailures {
		r.failures = append(r.failures, f)
	} else {
		r.dropped++
	}
	return f.own < 0
}

// startReport tells whether an exception's text says that another process could
// not be started.
func startReport(text string) bool {
	return containsAny(text, []string{
		"Engine core initialization failed", "Frontend process failed during engine core initialization",
		"Engine process failed to start", "WorkerProc initialization failed",
	})
}

// quoting are exceptions whose text quotes what a client sent; an
// out-of-memory is never raised as one.
var quoting = map[string]bool{
	"ValueError": true, "TypeError": true, "KeyError": true, "ValidationError": true, "HTTPException": true,
	"JSONDecodeError": true, "BadRequestError": true, "UnicodeDecodeError": true, "VLLMValidationError": true,
}

// parseOOM reads an out-of-memory from an exception, joining a text that a
// terminal broke.
func parseOOM(x parser.Exception) (oom.Message, bool) {
	if quoting[lastName(x.Class)] {
		return oom.Message{}, false
	}
	text := x.Text
	if x.Class != "" {
		text = x.Class + ": " + x.Text
	}
	if strings.Contains(x.Text, "\n") {
		if m, ok := oom.Parse(text); ok && m.Unallocated != nil {
			return m, true
		}
		if m, ok := oom.Parse(oom.Unwrap(strings.Split(text, "\n"))); ok {
			return m, true
		}
	}
	return oom.Parse(text)
}

// onlyClientFrames tells whether a traceback stays in the front end.
func onlyClientFrames(x parser.Exception) bool {
	for _, f := range x.Frames {
		if strings.Contains(f.File, "/async_llm.py") || strings.Contains(f.File, "/core_client.py") {
			return true
		}
	}
	return false
}

func consequenceName(f *failure, r *run) string {
	class := "error"
	for _, x := range f.exs {
		if consequenceOf(x) == f.kind && x.Class != "" {
			class = lastName(x.Class)
		}
	}
	name := r.name(f.ev.Proc)
	if name == "" {
		name = "output without a process prefix"
	}
	return class + " in " + name
}

// lineHit is a line without an exception that a mechanism knows.
type lineHit struct {
	ev    parser.Event
	rec   *parser.Record
	entry *Entry
	sig   *Signature
	text  string
	n     int // how many such lines
	last  parser.Pos
	vars  map[string]Value
	// bound says what binds a kernel line to the run.
	bound string
}

func (t *Tracker) takeNotice(r *run, e parser.Event, rec *parser.Record) {
	text := rec.First()
	if len(rec.Lines) > 1 {
		var b strings.Builder
		for i, l := range rec.Lines {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(l.Text)
		}
		text = b.String()
	}
	r.repeated = r.repeated || strings.Contains(text, "x across cluster]")
	r.suppress = r.suppress || rec.Level == parser.Raw && strings.HasPrefix(text, "Suppressed ") && strings.HasSuffix(strings.TrimSpace(text), "unit")
	if rec.Level >= parser.Error {
		for _, h := range fatalHeads {
			if strings.HasPrefix(text, h) {
				r.changed, r.dying = r.changed+1, true
			}
		}
	}
	if rec.Level == parser.Raw {
		if d, tried, free, total, _, ok := oom.ParseWarningW(text); ok {
			if !room(r.warnW, d, maxProcesses) {
				return
			}
			r.warnW[d] = warnAt{device: d, tried: tried, free: free, total: total, at: e.At}
			return
		}
	}
	for _, m := range t.linesKnown(rec.Level, text) {
		t.takeLine(r, e, rec, m.entry, m.sig, text)
	}
}

// knownLine is a signature that matches a line.
type knownLine struct {
	entry *Entry
	sig   *Signature
}

// linesKnown gives the signatures that match a line, an entry's best one each.
// A line that is surely benign is nothing else, unless an entry asks for it
// several times over.
func (t *Tracker) linesKnown(level parser.Level, text string) []knownLine {
	var out []knownLine
	benign := 0.0
	for _, entry := range t.cat.Entries {
		if entry.Role == "explain" {
			continue
		}
		best := knownLine{}
		for i := range entry.Match.Signatures {
			s := &entry.Match.Signatures[i]
			if s.onLine(level) && s.textMatches(text) && s.kernelWords(text) && (best.sig == nil || s.Confidence > best.sig.Confidence) {
				best = knownLine{entry, s}
			}
		}
		switch {
		case best.sig == nil:
		case entry.Role == "benign":
			benign = max(benign, best.sig.Confidence)
		default:
			out = append(out, best)
		}
	}
	if benign == 0 {
		return out
	}
	return slices.DeleteFunc(out, func(m knownLine) bool { return m.sig.Confidence <= benign && m.sig.MinCount < 2 })
}

func (t *Tracker) takeLine(r *run, e parser.Event, rec *parser.Record, entry *Entry, s *Signature, text string) {
	for _, l := range r.lines {
		if l.entry == entry && l.sig == s && !l.ev.At.Before(r.start) {
			if l.ev.At != e.At && l.last.Before(e.At) {
				l.n, l.last = l.n+1, e.At
			}
			return
		}
	}
	if len(r.lines) < maxLines {
		r.lines = append(r.lines, &lineHit{ev: e, rec: rec, entry: entry, sig: s, text: text, n: 1, last: e.At, vars: s.capture(text)})
		r.changed++
	}
}
