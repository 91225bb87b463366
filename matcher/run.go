package matcher

import (
	"strings"

	"diagnose/parser"
	"diagnose/parser/framing"
	"diagnose/parser/version"
)

// Bounds of what a run remembers, so that a daemon's memory does not grow with
// the length of a log or the number of its errors.
const (
	maxFailures = 256
	maxLines    = 256
	maxStats    = 128
	// What a log names is no proof that it is there: any client can make a
	// server print a process or a setting.
	maxProcesses = 1024
	maxSettings  = 1024
)

// room tells whether a map may take a key.
func room[K comparable, V any](m map[K]V, key K, most int) bool {
	_, ok := m[key]
	return ok || len(m) < most
}

// run is one life of a server: from its start banner to its end or the next
// banner.
type run struct {
	source  int
	seq     int // order of runs in one reading
	start   parser.Pos
	banner  bool // the start was seen
	version string
	verAt   parser.Pos
	model   string
	modelAt parser.Pos
	args    map[string]fact
	argsAt  parser.Pos
	hasArgs bool
	config  map[string]fact
	// configBy holds where each process printed its configuration.
	configBy map[int]parser.Pos
	apiPID   int
	names    map[int]string     // newest name of each pid
	lastBy   map[int]parser.Pos // where each pid was last heard of
	lastAt   parser.Pos         // where any process of the run was

	facts  map[string]fact
	byProc map[int]map[string]fact
	stats  []statsAt
	dump   map[string]dumpAt // "output", "stats"
	// warnW is the last warning W of each device.
	warnW map[int]warnAt

	ready, stop, ended *parser.Pos
	stopText           string

	failures []*failure
	lines    []*lineHit
	consq    consequences
	lastTime string
	firstTim string
	meta     framing.Meta
	engine   string
	dropped  int
	// changed counts what could change the diagnosis, and repeats what of that
	// only added to a number; startTime is the printed time of the first line.
	changed   int
	repeats   int
	startTime string
	// live is the name that a daemon knows the run by; see Tracker.key.
	live string
	// dying is set by the head of a fatal record whose exception is not there.
	dying bool
	// startFailed is set where a process reports that the start came to nothing.
	startFailed bool
	repeated    bool // "[repeated Nx across cluster]": Ray left copies out
	suppress    bool // journald: "Suppressed N messages"
	stdout      bool
	stderr      bool
}

// known is how much is known of a failure, but for the numbers.
type known struct{ failures, lines, kinds int }

func (r *run) known() known { return known{len(r.failures), len(r.lines), len(r.consq.by)} }

// changes counts a change since then; counted tells that it was a consequence
// and no more.
func (r *run) changes(then known, counted bool) {
	r.changed++
	if counted && r.known() == then {
		r.repeats++
	}
}

type statsAt struct {
	parser.Stats
	at   parser.Pos
	time string
}

type dumpAt struct {
	parser.Dump
	at parser.Pos
}

// warnAt is the last warning W of torch 2.13 and later: a failed attempt, not
// a crash.
type warnAt struct {
	device      int
	tried, free int64
	total       int64
	at          parser.Pos
}

// nowhere is the position of what has not been seen.
var nowhere = parser.Pos{Source: -1, Offset: -1}

func newRun(source, seq int, at parser.Pos) *run {
	return &run{
		source: source, seq: seq, start: at, verAt: nowhere, argsAt: nowhere, modelAt: nowhere, names: map[int]string{}, lastBy: map[int]parser.Pos{}, args: map[string]fact{},
		config: map[string]fact{}, configBy: map[int]parser.Pos{}, facts: map[string]fact{},
		byProc: map[int]map[string]fact{}, dump: map[string]dumpAt{}, engine: "vllm",
		consq: consequences{}, warnW: map[int]warnAt{},
	}
}

// over tells whether the run can have no more life: it ended, was told to
// stop, or its engine died.
func (r *run) over() bool {
	return r.ended != nil || r.stop != nil || r.consq.count("engine_dead") > 0 || r.fatal()
}

func (r *run) fatal() bool {
	for _, f := range r.failures {
		if f.fatal {
			return true
		}
	}
	return false
}

// name gives the newest printed name of a process.
func (r *run) name(p parser.Process) string {
	if n := r.names[p.PID]; n != "" && p.PID != 0 {
		return n
	}
	return p.Name
}

// core gives the engine process of the run under its newest name.
func (r *run) core() parser.Process {
	best := parser.Process{Name: "EngineCore"}
	for pid, n := range r.names {
		if strings.HasPrefix(n, "EngineCore") && (best.PID == 0 || pid > best.PID) {
			best = parser.Process{Name: n, PID: pid}
		}
	}
	return best
}

func (r *run) setFact(f parser.Fact, proc parser.Process) {
	v := fact{Value: Num(f.Number), at: []parser.Pos{f.At}, grade: Established, eps: f.Precision, basis: "log"}
	if f.Text != "" {
		v.Value = Text(f.Text)
	}
	if f.Name == "kv_pinned" || f.Name == "engine_ready" {
		v.Value = Truth(true)
	}
	name := f.Name
	if name == "total_bytes" {
		name = "total_at_start_bytes"
	}
	r.facts[name] = v
	if proc.PID != 0 && room(r.byProc, proc.PID, maxProcesses) {
		m := r.byProc[proc.PID]
		if m == nil {
			m = map[string]fact{}
			r.byProc[proc.PID] = m
		}
		m[name] = v
	}
}

func (r *run) addStats(s parser.Stats, at parser.Pos, time string) {
	r.stats = append(r.stats, statsAt{s, at, time})
	if len(r.stats) > maxStats {
		r.stats = append(r.stats[:0], r.stats[len(r.stats)-maxStats/2:]...)
	}
}

// parsedVersion gives the run's version; ok is false for none and for builds
// that name none ("0.1.dev1").
func (r *run) parsedVersion() (version.Version, bool) {
	v, ok := version.Parse(r.version)
	return v, ok && v.Known()
}
