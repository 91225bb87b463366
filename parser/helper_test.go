package parser

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/parser/pyrepr"
)

// fixtureLogs gives the logs under fixtures by name.
func fixtureLogs(t testing.TB, patterns ...string) map[string][]byte {
	t.Helper()
	if len(patterns) == 0 {
		patterns = []string{"vllm-h200/*.log", "seed/*.log", "hostile/*.log", "reports/*.log", "signatures/*.log", "startup/*.log", "torch-2.11-h200/*.txt"}
	}
	out := map[string][]byte{}
	for _, p := range patterns {
		files, err := filepath.Glob(filepath.Join("..", "fixtures", p))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.Base(f)] = b
		}
	}
	if len(out) == 0 {
		t.Skip("no fixtures here")
	}
	return out
}

// lines cuts a log into positioned lines.
func lines(log []byte) []Line {
	var out []Line
	off := int64(0)
	for len(log) > 0 {
		data, rest, _ := bytes.Cut(log, []byte("\n"))
		out = append(out, Line{At: Pos{Line: int64(len(out) + 1), Offset: off}, Data: data})
		off += int64(len(log) - len(rest))
		log = rest
	}
	return out
}

func linesOf(text ...string) []Line { return lines([]byte(strings.Join(text, "\n") + "\n")) }

// run parses lines to the end.
func run(ls []Line) []Event {
	var out []Event
	p := New(func(e Event) { out = append(out, e) })
	feed(p, ls)
	p.Flush()
	return out
}

func feed(p *Parser, ls []Line) {
	for _, l := range ls {
		p.Line(l)
	}
}

func parse(text ...string) []Event { return run(linesOf(text...)) }

// show gives all that an event says.
func show(e Event) string {
	var body string
	switch b := e.Body.(type) {
	case Failure:
		body = fmt.Sprintf("failure %+v %+v", *b.Record, b.Exceptions)
	case Notice:
		body = fmt.Sprintf("notice %+v", *b.Record)
	default:
		body = fmt.Sprintf("%T %+v", b, b)
	}
	return fmt.Sprintf("%d:%d %v %q %+v %s", e.At.Line, e.At.Offset, e.Proc, e.Time, e.Meta, body)
}

func showAll(es []Event) []string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = show(e)
	}
	return out
}

// sorted gives events in the order of their first lines.
func sorted(es []Event) []string {
	es = slices.Clone(es)
	slices.SortStableFunc(es, func(a, b Event) int { return int(a.At.Offset - b.At.Offset) })
	return showAll(es)
}

// diff tells the first difference of two lists, "" if there is none.
func diff(want, got []string) string {
	for i := range max(len(want), len(got)) {
		w, g := "(nothing)", "(nothing)"
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w != g {
			return fmt.Sprintf("event %d:\nwant %.1500s\ngot  %.1500s", i, w, g)
		}
	}
	return ""
}

func failures(es []Event) []Event {
	var out []Event
	for _, e := range es {
		if _, ok := e.Body.(Failure); ok {
			out = append(out, e)
		}
	}
	return out
}

// short gives an event without positions, for tables: one line.
func short(e Event) string {
	who := e.Proc.Name
	if e.Proc.PID != 0 {
		who += fmt.Sprintf("/%d", e.Proc.PID)
	}
	return who + ": " + shortBody(e.Body)
}

func shortBody(b Body) string {
	switch b := b.(type) {
	case Failure:
		var x []string
		for _, e := range b.Exceptions {
			s := e.Class + "|" + e.Text
			for _, f := range e.Frames {
				s += " @" + f.Func
				if f.Code != "" {
					s += "{" + f.Code + "}"
				}
			}
			if e.Copies > 0 {
				s += fmt.Sprintf(" x%d", e.Copies+1)
			}
			x = append(x, s)
		}
		return "failure " + strings.Join(x, " <- ")
	case Notice:
		return fmt.Sprintf("notice %v %s", b.Record.Level, texts(b.Record))
	case Facts:
		var x []string
		for _, f := range b.List {
			x = append(x, shortFact(f))
		}
		return "facts " + strings.Join(x, " ")
	case Args:
		return fmt.Sprintf("args full=%v %s", b.Full, shortValues(b.Values))
	case Config:
		return fmt.Sprintf("config %s dump=%v %s", b.Version, b.Dump, shortStrings(b.Values))
	case Banner:
		return strings.TrimSpace("banner " + b.Version + " " + b.Model)
	case Stats:
		return fmt.Sprintf("stats %q run=%d wait=%d pre=%d kv=%g", b.Engine, b.Running, b.Waiting, b.Preemptions, b.KVUsagePct)
	case Dump:
		return fmt.Sprintf("dump %s sched=%d run=%d wait=%d kv=%g plp=%d ptok=%d", b.Kind, b.ScheduledTotal, b.Running, b.Waiting, b.KVUsagePct, b.PromptLogprobs, b.PromptTokens)
	case HTTPError:
		return fmt.Sprintf("http %d %s", b.Status, b.Path)
	case Stop:
		return "stop " + b.Text
	case Ended:
		return "ended " + b.Text
	case Ready:
		return "ready"
	}
	return fmt.Sprintf("%T", b)
}

func texts(r *Record) string {
	var x []string
	for _, l := range r.Lines {
		x = append(x, l.Text)
	}
	return strings.Join(x, "/")
}

func shortFact(f Fact) string {
	if f.Text != "" {
		return f.Name + "=" + f.Text
	}
	v := fmt.Sprintf("%g", f.Number)
	if strings.HasSuffix(f.Name, "_bytes") && f.Precision > 0 {
		v = fmt.Sprintf("%gGiB", f.Number/gib)
	}
	return f.Name + "=" + v
}

func shortValues(m map[string]pyrepr.Value) string {
	s := map[string]string{}
	for k, v := range m {
		s[k] = v.Text()
	}
	return shortStrings(s)
}

func shortStrings(m map[string]string) string {
	var x []string
	for k, v := range m {
		x = append(x, k+"="+v)
	}
	slices.Sort(x)
	return strings.Join(x, " ")
}

func shorts(es []Event) []string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = short(e)
	}
	return out
}

// expect compares the events of some lines, in their short form, in the order
// of their first lines.
func expect(t *testing.T, text []string, want ...string) {
	t.Helper()
	es := parse(text...)
	slices.SortStableFunc(es, func(a, b Event) int { return int(a.At.Offset - b.At.Offset) })
	if d := diff(want, shorts(es)); d != "" {
		t.Errorf("%s\nof\n%s", d, strings.Join(text, "\n"))
	}
}

// record writes a log record as vLLM does: every line with the head, all but
// the last with "\r".
func record(head string, cr bool, text string) []string {
	ls := strings.Split(text, "\n")
	out := make([]string, len(ls))
	for i, l := range ls {
		out[i] = head + l
		if cr && i < len(ls)-1 {
			out[i] += "\r"
		}
	}
	return out
}

// prefixed writes raw output of a process.
func prefixed(prefix, text string) []string { return record(prefix, false, text) }
