package matcher

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"diagnose/parser"
)

// maxKernel bounds the kernel lines that are kept.
const maxKernel = 1024

// kernelWindow is how far a kernel line's time may lie from the failure's to
// be bound by time alone.
const kernelWindow = 2 * time.Minute

// takeKernel keeps a line of a kernel log that a mechanism knows.
func (t *Tracker) takeKernel(e parser.Event) {
	n, ok := e.Body.(parser.Notice)
	if !ok || len(t.kernel) >= maxKernel {
		return
	}
	text := n.Record.First()
	for _, entry := range t.cat.Entries {
		if entry.Role == "explain" || entry.Role == "benign" {
			continue
		}
		for i := range entry.Match.Signatures {
			s := &entry.Match.Signatures[i]
			if (s.On == "kernel" || s.On == "any" || s.On == "raw") && s.textMatches(text) {
				t.kernel = append(t.kernel, &lineHit{ev: e, rec: n.Record, entry: entry, sig: s, text: text, n: 1, last: e.At, vars: s.capture(text)})
				return
			}
		}
	}
}

var kernelPid = regexp.MustCompile(`(?:[Kk]illed process |pid=|pid )(\d+)`)

// binding says how sure it is that a kernel line speaks of a run.
type binding struct {
	sure float64 // 1 by pid, less by time and name, 0 not at all
	why  string
}

// bind holds a kernel line against a run: by the pid that it names, else by
// the process's name and the time. In a container the kernel's pids are the
// host's, so a pid that does not match proves nothing.
func (r *run) bind(l *lineHit) binding {
	for _, m := range kernelPid.FindAllStringSubmatch(l.text, 4) {
		pid, err := strconv.Atoi(m[1])
		if _, known := r.names[pid]; err == nil && known && pid > 1 {
			return binding{1, fmt.Sprintf("it names pid %d, which is %s of this run", pid, r.names[pid])}
		}
	}
	named := strings.Contains(l.text, "VLLM::") || strings.Contains(l.text, "(vllm")
	apart, known := r.apart(l)
	switch {
	case named && known && apart <= kernelWindow:
		return binding{0.75, fmt.Sprintf("it names a vLLM process and stands %s from the failure; the pid is the host's and cannot be compared", apart.Round(time.Second))}
	case known && apart <= kernelWindow:
		return binding{0.6, fmt.Sprintf("it stands %s from the failure; nothing else binds it to this run", apart.Round(time.Second))}
	case named && !known:
		return binding{0.5, "it names a vLLM process; its time cannot be compared with the log's"}
	}
	return binding{}
}

// apart gives the time between a kernel line and the run's failure; ok is false
// where one of the two has no date, or the year or zone is not known.
func (r *run) apart(l *lineHit) (time.Duration, bool) {
	at, err := time.Parse(time.RFC3339, l.ev.Meta.Time)
	if err != nil {
		return 0, false
	}
	if when, err := time.Parse(time.RFC3339, r.meta.Time); err == nil {
		return at.Sub(when).Abs(), true
	}
	if r.lastTime == "" {
		return 0, false
	}
	// The log's clock has no zone: the kernel line's own is taken, and UTC.
	least := time.Duration(1<<63 - 1)
	for _, zone := range []*time.Location{at.Location(), time.UTC} {
		if when, ok := stamp(r.lastTime, at.Year(), zone); ok {
			least = min(least, at.Sub(when).Abs())
		}
	}
	return least, least < time.Duration(1<<63-1)
}

// kernelCandidates are the kernel's lines that are bound to the run.
func (t *Tracker) kernelCandidates(r *run) []candidate {
	var out []candidate
	for _, l := range t.kernel {
		if l.entry.Role != "failure" {
			continue
		}
		b := r.bind(l)
		if b.sure == 0 || !r.died() && len(r.lines) == 0 {
			continue
		}
		bound := *l
		bound.bound = b.why
		out = append(out, candidate{
			line: &bound, at: l.ev.At, order: orderKernel, proc: r.kernelVictim(l),
			hit: hit{entry: l.entry, sig: l.sig, confidence: l.sig.Confidence * b.sure, vars: l.vars},
		})
	}
	return out
}

// kernelVictim gives the process that a kernel line speaks of.
func (r *run) kernelVictim(l *lineHit) parser.Process {
	for _, m := range kernelPid.FindAllStringSubmatch(l.text, 4) {
		if pid, err := strconv.Atoi(m[1]); err == nil && r.names[pid] != "" {
			return parser.Process{Name: r.names[pid], PID: pid}
		}
	}
	if strings.Contains(l.text, "Worker") {
		return parser.Process{Name: "Worker"}
	}
	return r.core()
}
