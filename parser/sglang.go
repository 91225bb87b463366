package parser

import (
	"bytes"
	"strings"

	"diagnose/parser/framing"
)

// SGLang's logger writes "[2025-12-12 12:00:00 TP0] message"; its scheduler's
// statistics are "Decode batch, ..." and "Prefill batch, ..." with the usage of
// the token pool as a fraction (sglang/srt/managers/scheduler_metrics_mixin.py,
// as seen in public logs).
func sglangHead(b []byte) (h head, ok bool) {
	const stamp = len("[2025-12-12 12:00:00")
	if len(b) < stamp+2 || b[0] != '[' || b[5] != '-' || b[8] != '-' || b[11] != ' ' || b[14] != ':' || b[17] != ':' || !isTime(b[6:]) {
		return h, false
	}
	end := bytes.IndexByte(b[:min(len(b), stamp+40)], ']')
	if end < stamp {
		return h, false
	}
	h.time = string(b[6:20])
	h.level = Info
	h.proc = Process{Name: "Scheduler"}
	if rank := strings.TrimSpace(string(b[stamp:end])); rank != "" {
		h.proc.Name = "Scheduler " + rank
	}
	h.rest = bytes.TrimLeft(b[end+1:], " ")
	return h, true
}

// sglang takes a line of SGLang's logger. Its levels are not printed; a
// message that begins a traceback is a record of errors.
func (p *Parser) sglang(h head, at Pos, meta framing.Meta) {
	p.engine = true
	msg := clip(h.rest)
	switch {
	case strings.HasPrefix(msg, "Decode batch"), strings.HasPrefix(msg, "Prefill batch"):
		p.last = nil
		s := Stats{Engine: "sglang", Running: -1, Waiting: -1, Preemptions: -1, KVUsagePct: -1}
		number := func(words string) float64 {
			if i := strings.Index(msg, words); i >= 0 {
				if v, _, n := leadingNumber(msg[i+len(words):]); n > 0 {
					return v
				}
			}
			return -1
		}
		s.Running = int(number("#running-req: "))
		s.Waiting = int(number("#queue-req: "))
		if u := number("token usage: "); u >= 0 {
			s.KVUsagePct = u * 100
		}
		p.one(h, at, meta, s)
	case strings.Contains(msg, tracebackHead), strings.Contains(msg, "exception"):
		h.level = Error
		p.start(h, msg, false, at, meta)
		p.open[h.proc.PID].add(tracebackHead, at, false, p.seq)
	default:
		h.level = Warning
		p.one(h, at, meta, Notice{Record: &Record{Proc: h.proc, Level: Warning, Time: h.time, Lines: []TextLine{{At: at, Text: msg}}}})
	}
}
