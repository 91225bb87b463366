package matcher

import (
	"strings"

	"diagnose/parser"
)

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

func framePos(f *parser.Frame) parser.Pos {
	if f == nil {
		return parser.Pos{Offset: -1}
	}
	if f.Code != "" {
		return f.CodeAt
	}
	return f.At
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

func (w *wording) isRank(f *failure) bool {
	for _, rf := range w.in.ranks {
		if rf.f == f {
			return true
		}
	}
	return false
}
