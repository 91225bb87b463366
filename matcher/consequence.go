package matcher

import (
	"slices"
	"sort"
	"strings"

	"diagnose/parser"
)

// consequenceTexts are what vLLM's processes say when another one failed. They
// are the protocol of the engine (v1/engine, v1/executor), not knowledge of a
// mechanism, so they stand here and not in the catalogue. None is ever a cause.
var consequenceTexts = []struct {
	class string // the exception's last name; "" for any
	text  string // a literal in the text; "" for any
	kind  string
}{
	{"EngineDeadError", "", "engine_dead"},
	{"MQEngineDeadError", "", "engine_dead"},
	{"AsyncEngineDeadError", "", "engine_dead"},
	{"EngineGenerateError", "", "engine_dead"},
	{"", "Engine core initialization failed. See root cause above", "engine_dead"},
	{"", "Frontend process failed during engine core initialization", "engine_dead"},
	{"", "Engine process failed to start. See stack trace for the root cause", "engine_dead"},
	{"RuntimeError", "Engine process (pid", "engine_dead"},
	{"", "Engine loop is not running", "engine_dead"},
	{"", "WorkerProc initialization failed due to an exception in a background process", "worker_relay"},
	{"RuntimeError", "cancelled", "core_secondary"},
	{"RuntimeError", "Executor failed.", "core_secondary"},
	{"CancelledError", "", "shutdown_noise"},
	{"KeyboardInterrupt", "", "shutdown_noise"},
	{"SystemExit", "", "shutdown_noise"},
	{"", "Connection closed by peer", "peer_lost"},
	{"", "Connection reset by peer", "peer_lost"},
	{"", "NCCL communicator was aborted", "peer_lost"},
	{"DistNetworkError", "Connection", "peer_lost"},
	{"DistNetworkError", "timed out", "peer_lost"},
	{"", "died with exit code", "engine_dead"},
	{"", "recvValue failed", "peer_lost"},
	{"BrokenPipeError", "", "peer_lost"},
	{"ConnectionResetError", "", "peer_lost"},
	{"EOFError", "", "peer_lost"},
}

// consequenceOf gives the kind of an exception that only reports another
// failure, "" for one of its own.
func consequenceOf(e parser.Exception) string {
	class := lastName(e.Class)
	for _, c := range consequenceTexts {
		if c.class != "" && c.class != class {
			continue
		}
		if c.class == "RuntimeError" && c.text == "cancelled" && e.Text != "cancelled" {
			continue
		}
		if c.text == "" || strings.Contains(e.Text, c.text) {
			return c.kind
		}
	}
	return ""
}

// relayed gives the worker's error that the core quotes: "Worker failed with
// error '...', please check the stack trace above for the root cause".
func relayed(text string) (string, bool) {
	const head = "Worker failed with error '"
	i := strings.Index(text, head)
	if i < 0 {
		return "", false
	}
	t := text[i+len(head):]
	if j := strings.LastIndex(t, "', please check"); j >= 0 {
		t = t[:j]
	}
	return t, true
}

func lastName(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// consequences counts records by kind and words.
type consequences struct {
	by map[string]*counted
	// recent are the records counted last, to tell one that is shown again: a
	// daemon sees a record while it grows.
	recent []shown
}

type counted struct {
	kind, what string
	n          int
	at         parser.Pos
}

type shown struct {
	at  parser.Pos
	key string
}

// Limits of what is counted apart, and of the records that are known again:
// more are never open at a time, but for an attack.
const (
	maxConsequences = 64
	maxShown        = 128
)

func (c *consequences) add(kind, what string, at parser.Pos) {
	k := kind + "\x00" + what
	for _, s := range c.recent {
		if s.at == at && s.key == k {
			return
		}
	}
	c.forget(at)
	e := c.by[k]
	if e == nil {
		if len(c.by) >= maxConsequences {
			return
		}
		if c.by == nil {
			c.by = map[string]*counted{}
		}
		e = &counted{kind: kind, what: what, at: at}
		c.by[k] = e
	}
	if len(c.recent) == maxShown {
		c.recent = append(c.recent[:0], c.recent[maxShown/2:]...)
	}
	c.recent = append(c.recent, shown{at, k})
	e.n++
	if at.Before(e.at) {
		e.at = at
	}
}

// forget takes back what a record counted for before it was whole.
func (c *consequences) forget(at parser.Pos) {
	i := slices.IndexFunc(c.recent, func(s shown) bool { return s.at == at })
	if i < 0 {
		return
	}
	if e := c.by[c.recent[i].key]; e.n > 1 {
		e.n--
	} else {
		delete(c.by, c.recent[i].key)
	}
	c.recent = slices.Delete(c.recent, i, i+1)
}

func (c *consequences) count(kind string) int {
	n := 0
	for _, e := range c.by {
		if e.kind == kind {
			n += e.n
		}
	}
	return n
}

func (c *consequences) sorted() []*counted {
	out := make([]*counted, 0, len(c.by))
	for _, e := range c.by {
		out = append(out, e)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].at.Before(out[j].at) })
	return out
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
		if a == nil || b == nil || a.Offset == nil || b.Offset == nil {
			return false
		}
		return a.Source < b.Source || a.Source == b.Source && *a.Offset < *b.Offset
	})
}
