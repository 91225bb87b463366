package parser

import (
	"strings"

	"diagnose/parser/framing"
	"diagnose/parser/pyrepr"
)

// message reads the messages that are whole in one line, whatever the level.
// It tells whether msg was one.
func (p *Parser) message(h head, msg string, at Pos, meta framing.Meta) bool {
	if msg == "" || msg[0] == ' ' && h.level > Info {
		return false // most of a traceback
	}
	switch {
	case strings.HasPrefix(msg, "non-default args: {"):
		v, _, _ := pyrepr.ParseDict(msg[len("non-default args: "):])
		p.closeWhole()
		p.one(h, at, meta, Args{Values: v})
	case strings.HasPrefix(msg, "args: Namespace("):
		p.closeWhole()
		p.one(h, at, meta, Args{Values: namespace(msg[len("args: "):]), Full: true})
	case strings.HasPrefix(msg, dumpConfig):
		p.config(h, at, meta, msg[len(dumpConfig):], true)
	case strings.HasPrefix(msg, oldDumpConfig):
		p.config(h, at, meta, msg[len(oldDumpConfig):], true)
	case strings.HasPrefix(msg, "Initializing a"):
		i := strings.Index(msg, " LLM engine (v")
		if i < 0 || i > 24 {
			return false
		}
		p.config(h, at, meta, msg[i+len(" LLM engine (v"):], false)
	case strings.HasPrefix(msg, "vLLM API server version "):
		p.banner(h, at, meta, Banner{Version: firstWord(msg[len("vLLM API server version "):])})
	case strings.HasPrefix(msg, "vLLM server version "):
		b := Banner{Version: firstWord(msg[len("vLLM server version "):])}
		if i := strings.Index(msg, "serving model "); i >= 0 {
			b.Model = firstWord(msg[i+len("serving model "):])
		}
		p.banner(h, at, meta, b)
	case strings.HasPrefix(msg, "[shutdown] "):
		if !strings.Contains(msg, "shutdown triggered") && !strings.Contains(msg, "trigger received signal=") {
			return h.level <= Info
		}
		p.one(h, at, meta, Stop{Text: msg})
	case h.level <= Info && isStop(msg):
		p.one(h, at, meta, Stop{Text: msg})
	case h.level <= Info && isBannerArt(msg):
		if b := bannerLine(msg); b != (Banner{}) {
			p.banner(h, at, meta, b)
		}
	default:
		if d, ok := readDump(msg); ok {
			p.one(h, at, meta, d)
			return true
		}
		if s, ok := readStats(msg); ok && h.level <= Info {
			p.one(h, at, meta, s)
			return true
		}
		f := readFacts(msg, string(h.file), at)
		if len(f) == 0 {
			return false
		}
		p.one(h, at, meta, Facts{List: f})
	}
	return true
}

func (p *Parser) banner(h head, at Pos, meta framing.Meta, b Banner) {
	if b.Version != "" {
		p.closeWhole()
	}
	p.one(h, at, meta, b)
}

// isStop knows how releases before the tagged shutdown lines of 0.24 said that
// they were told to stop (vllm/entrypoints/launcher.py).
func isStop(msg string) bool {
	return strings.HasPrefix(msg, "Shutting down FastAPI HTTP server") || strings.HasPrefix(msg, "Shutdown initiated (timeout=")
}

func (p *Parser) config(h head, at Pos, meta framing.Meta, s string, dump bool) {
	end := strings.IndexByte(s, ')')
	if end < 0 {
		return
	}
	c := Config{Version: s[:end], Dump: dump}
	if i := strings.Index(s, "with config: "); i >= 0 {
		c.Values, _ = pyrepr.ParseKV(s[i+len("with config: "):])
	}
	p.one(h, at, meta, c)
}

func namespace(s string) map[string]pyrepr.Value {
	out := map[string]pyrepr.Value{}
	v, _, _ := pyrepr.Parse(s)
	for _, e := range v.Entries {
		out[e.Key.Text()] = e.Value
	}
	return out
}

func firstWord(s string) string {
	if f := strings.Fields(s); len(f) > 0 {
		return strings.TrimRight(f[0], ",")
	}
	return ""
}

// The lines of the start-up banner (from 0.15 on) that say something end in
// "█  version V" and "█  model   M"; what stands before is drawing.
const (
	bannerVersion = "█  version "
	bannerModel   = "█  model "
	drawing       = " ▄█▀▐▌"
)

// isBannerArt tells whether a line is of the start-up banner.
func isBannerArt(msg string) bool {
	if msg[0] != ' ' && msg[0] < 0x80 {
		return false
	}
	return strings.Trim(msg, drawing) == "" || bannerLine(msg) != (Banner{})
}

func bannerLine(msg string) Banner {
	if art, v, ok := strings.Cut(msg, bannerVersion); ok && strings.Trim(art, drawing) == "" {
		return Banner{Version: firstWord(v)}
	}
	if art, m, ok := strings.Cut(msg, bannerModel); ok && strings.Trim(art, drawing) == "" {
		return Banner{Model: strings.TrimSpace(m)}
	}
	return Banner{}
}
