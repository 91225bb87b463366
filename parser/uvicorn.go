package parser

import (
	"strings"

	"diagnose/parser/framing"
)

// uvicorn takes "INFO:     text".
func (p *Parser) uvicorn(h head, l piece, meta framing.Meta) {
	p.last = nil
	msg := string(h.rest)
	switch {
	case h.level >= Error:
		// The traceback of "Exception in ASGI application" follows without a
		// head.
		l.text = clip(msg)
		p.close(p.set.by[h.slot(true)])
		p.start(&h, l, meta, true)
	case strings.HasPrefix(msg, "Application startup complete"):
		p.one(h, l.at, meta, Ready{})
	case strings.HasPrefix(msg, "Finished server process"):
		p.one(h, l.at, meta, Ended{Text: msg})
	default:
		if status, path, ok := accessLine(msg); ok && status >= 500 {
			p.one(h, l.at, meta, HTTPError{Status: status, Path: path})
		}
	}
}

// accessLine reads `ADDR - "POST /path HTTP/1.1" 500 Internal Server Error`.
// The request line is the client's: only its last quote counts.
func accessLine(msg string) (status int, path string, ok bool) {
	i := strings.LastIndex(msg, `" `)
	j := strings.Index(msg, ` - "`)
	if i < 0 || j < 0 || j+4 > i || len(msg) < i+5 {
		return 0, "", false
	}
	for _, c := range []byte(msg[i+2 : i+5]) {
		if !isDigit(c) {
			return 0, "", false
		}
		status = status*10 + int(c-'0')
	}
	if f := strings.Fields(msg[j+4 : i]); len(f) > 1 {
		path, _, _ = strings.Cut(f[1], "?")
	}
	return status, path, true
}
