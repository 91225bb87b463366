package parser

import (
	"bytes"
	"strings"

	"diagnose/parser/framing"
)

// sglangHead reads the head of SGLang's logger, "[2025-12-12 12:00:00 TP0]
// message"; its scheduler's statistics are "Decode batch, ..." and "Prefill
// batch, ..." with the usage of the token pool as a fraction
// (sglang/srt/managers/scheduler_metrics_mixin.py, as seen in public logs).
func (p *Parser) sglangHead(b []byte) (h head, ok bool) {
	const stamp = len("[2025-12-12 12:00:00")
	if len(b) < stamp+2 || b[0] != '[' || b[5] != '-' || !isTime(b[6:]) {
		return h, false
	}
	end := bytes.IndexByte(b[:min(len(b), stamp+40)], ']')
	if end < stamp {
		return h, false
	}
	h.time = b[6:20]
	h.level = Info
	h.proc = Process{Name: "Scheduler"}
	if rank := bytes.TrimSpace(b[stamp:end]); len(rank) > 0 {
		h.proc.Name = p.names.get(append([]byte("Scheduler "), rank...))
	}
	h.rest = bytes.TrimLeft(b[end+1:], " ")
	return h, true
}

// sglang takes a line of SGLang's logger. Its levels are not printed; a
// message that begins a traceback is a record of errors, whose lines follow
// without head or prefix.
func (p *Parser) sglang(h head, at Pos, meta framing.Meta) {
	p.engine = true
	p.last = nil
	msg := string(h.rest)
	switch {
	case strings.HasPrefix(msg, "Decode batch"), strings.HasPrefix(msg, "Prefill batch"):
		p.one(h, at, meta, sglangStats(msg))
	case isSGLangError(msg):
		h.level = Error
		p.close(p.set.by[h.slot(true)])
		p.loose = p.start(&h, piece{text: clip(msg), at: at}, meta, true)
	default:
		h.level = Warning
		p.notice(h, at, meta, clip(msg))
	}
}

// isSGLangError tells whether a message begins a record. Messages can quote a
// request, so only their own words count.
func isSGLangError(msg string) bool {
	if isTraceHead(msg) {
		return true
	}
	own := msg[:min(len(msg), 64)]
	if i := strings.IndexAny(own, `'"=(`); i >= 0 {
		own = own[:i]
	}
	return strings.Contains(own, "exception")
}

func sglangStats(msg string) Stats {
	s := Stats{Engine: "sglang", Preemptions: -1, KVUsagePct: -1}
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
	return s
}
