package parser

import "bytes"

// head is what stands before the message of a line.
type head struct {
	proc Process
	// outer is the process whose prefix stands in front of that of another
	// one which is not its child; zero if there is none.
	outer Process
	level Level
	time  []byte // "11-30 02:27:33"
	file  []byte
	// line is the number after the file, as printed; a part of the record's key.
	line []byte
	rest []byte
	// uvicorn marks "INFO:     text", which carries no time.
	uvicorn bool
	// free marks a head that was found behind the free text of
	// VLLM_LOGGING_PREFIX.
	free bool
}

func (h *head) slot(raw bool) slot {
	if h.proc.PID != 0 {
		return slot{pid: h.proc.PID, raw: raw}
	}
	return slot{name: h.proc.Name, raw: raw}
}

var levelWords = [...]struct {
	word  string
	level Level
}{
	{"INFO", Info},
	{"ERROR", Error},
	{"WARNING", Warning},
	{"DEBUG", Debug},
	{"CRITICAL", Critical},
	{"TRACE", Debug},
}

// readHead reads the process prefixes and the log head of a line that is
// already free of framing and ANSI. What is not a head stays in rest.
func (p *Parser) readHead(b []byte) head {
	var h head
	for {
		name, pid, rest, ok := readPrefix(b)
		if !ok {
			break
		}
		proc := Process{Name: p.names.get(name), PID: pid}
		h.outer = Process{}
		if strangers(h.proc, proc) {
			h.outer = h.proc
		}
		h.proc, b = proc, rest
	}
	h.rest = b
	if !readLevel(&h, b) {
		readPyHead(&h, b)
	}
	return h
}

// strangers tells whether two prefixes on one line are of processes that wrote
// at the same time. A wrapper that stacks prefixes puts the parent's in front
// of the child's: EngineCore's before a forked worker's, Ray's before all.
func strangers(outer, inner Process) bool {
	if outer.PID == 0 || inner.PID == 0 || outer.PID == inner.PID {
		return false
	}
	o, i := []byte(outer.Name), []byte(inner.Name)
	ray := bytes.HasPrefix(i, []byte("Ray")) || bytes.HasPrefix(o, []byte("Ray")) || bytes.HasPrefix(o, []byte("MapWorker"))
	forked := bytes.HasPrefix(o, []byte("EngineCore")) && !bytes.HasPrefix(i, []byte("EngineCore")) || bytes.HasPrefix(o, []byte("MainProcess"))
	return !ray && !forked && outer.Name != ""
}

// maxPrefix is the longest "(name pid=N)" that is read.
const maxPrefix = 160

// readPrefix reads "(name pid=N[, ip=A]) ". The name may contain parentheses
// (Ray Data: "MapWorker(MapBatches(x))"). vllm/utils/system_utils.py; from
// 0.31.0 vllm/logger.py.
func readPrefix(b []byte) (name []byte, pid int, rest []byte, ok bool) {
	if len(b) < len("(pid=1)") || b[0] != '(' {
		return nil, 0, b, false
	}
	w := b[:min(len(b), maxPrefix)]
	// The name ends before " pid="; its own parentheses are closed there.
	i, depth := 1, 0
	for ; i < len(w) && depth >= 0; i++ {
		switch c := w[i]; {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c < ' ':
			return nil, 0, b, false
		case c == 'p' && depth == 0 && (i == 1 || w[i-1] == ' ') && bytes.HasPrefix(w[i:], []byte("pid=")):
			return readPID(b, i)
		}
	}
	if depth < 0 {
		// "(raylet) " and "(autoscaler +5s) " have no pid.
		if name := w[1 : i-1]; i < len(w) && w[i] == ' ' && (string(name) == "raylet" || bytes.HasPrefix(name, []byte("autoscaler"))) {
			return name, 0, b[i+1:], true
		}
	}
	return nil, 0, b, false
}

// readPID reads "pid=N[, ip=A]) " at i.
func readPID(b []byte, i int) (name []byte, pid int, rest []byte, ok bool) {
	j := i + len("pid=")
	for j < len(b) && isDigit(b[j]) && pid < 1<<31 {
		pid = pid*10 + int(b[j]-'0')
		j++
	}
	if j == i+len("pid=") {
		return nil, 0, b, false
	}
	if bytes.HasPrefix(b[j:], []byte(", ip=")) {
		k := bytes.IndexByte(b[j:min(len(b), j+64)], ')')
		if k < 0 {
			return nil, 0, b, false
		}
		j += k
	}
	if j >= len(b) || b[j] != ')' {
		return nil, 0, b, false
	}
	if i > 1 {
		name = b[1 : i-1]
	}
	rest = b[j+1:]
	if len(rest) > 0 && rest[0] == ' ' {
		rest = rest[1:]
	}
	return name, pid, rest, true
}

// readLevel reads "LEVEL MM-DD HH:MM:SS [file:line] ", the older form without
// the "[", and uvicorn's "LEVEL:     ".
func readLevel(h *head, b []byte) bool {
	if len(b) == 0 || b[0] < 'A' || b[0] > 'Z' {
		return false
	}
	for i := range levelWords {
		w := &levelWords[i]
		if len(b) <= len(w.word) || string(b[:len(w.word)]) != w.word {
			continue
		}
		after := b[len(w.word):]
		if after[0] == ':' {
			// Padded so that the text starts at column 10.
			if n := countSpaces(after[1:]); n >= 2 {
				h.level, h.uvicorn, h.rest = w.level, true, after[1+n:]
			}
			return h.uvicorn
		}
		if after[0] != ' ' {
			return false
		}
		after = after[1:]
		if !isTime(after) {
			// Some collectors drop the time; a known first word keeps it a record.
			if bytes.HasPrefix(after, []byte("WorkerProc ")) || bytes.HasPrefix(after, []byte("EngineCore ")) {
				h.level, h.rest = w.level, after
			}
			return h.level != Raw
		}
		h.level, h.time, h.rest = w.level, after[:14], after[14:]
		readFile(h)
		return true
	}
	return false
}

// readPyHead reads the head that a logging configuration of one's own
// (VLLM_LOGGING_CONFIG_PATH) mostly has, "%(asctime)s - %(name)s - %(levelname)s - "
// as Python's documentation shows it; the logger has to be one of vLLM's:
// "2026-11-30 02:27:33,315 - vllm.v1.engine.core - ERROR - text" (vllm#23517).
func readPyHead(h *head, b []byte) bool {
	const stamp, logger = len("2026-11-30 02:27:33,315"), " - vllm."
	if len(b) < stamp+len(logger) || b[4] != '-' || b[stamp-4] != ',' || string(b[stamp:stamp+len(logger)]) != logger {
		return false
	}
	if !isDigit(b[0]) || !isDigit(b[3]) || !isTime(b[5:]) {
		return false
	}
	name, rest, ok := bytes.Cut(b[stamp+len(" - "):], []byte(" - "))
	if !ok || len(name) > maxPlace || bytes.IndexByte(name, ' ') >= 0 {
		return false
	}
	word, text, ok := bytes.Cut(rest, []byte(" - "))
	if !ok {
		return false
	}
	for i := range levelWords {
		if string(word) == levelWords[i].word {
			h.level, h.time, h.file, h.rest = levelWords[i].level, b[5:19], name, text
			return true
		}
	}
	return false
}

// isTime tells whether b begins with "MM-DD HH:MM:SS".
func isTime(b []byte) bool {
	if len(b) < 14 || b[2] != '-' || b[5] != ' ' || b[8] != ':' || b[11] != ':' {
		return false
	}
	b = b[:14]
	return isDigit(b[0]) && isDigit(b[1]) && isDigit(b[3]) && isDigit(b[4]) && isDigit(b[6]) && isDigit(b[7]) &&
		isDigit(b[9]) && isDigit(b[10]) && isDigit(b[12]) && isDigit(b[13])
}

// maxPlace bounds "[file:line]".
const maxPlace = 120

func readFile(h *head) {
	b := h.rest
	if len(b) == 0 || b[0] != ' ' {
		return
	}
	b = b[1:]
	if len(b) > 0 && b[0] == '[' {
		b = b[1:]
	}
	end := bytes.IndexByte(b[:min(len(b), maxPlace)], ']')
	if end < 0 || bytes.IndexByte(b[:end], ' ') >= 0 {
		return
	}
	h.file = b[:end]
	if c := bytes.LastIndexByte(b[:end], ':'); c > 0 {
		h.file, h.line = b[:c], b[c+1:end]
	}
	b = b[end+1:]
	if len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	h.rest = b
}

func countSpaces(b []byte) int {
	n := 0
	for n < len(b) && b[n] == ' ' {
		n++
	}
	return n
}

// nameCache keeps the names of processes, so that a line costs no allocation
// for its prefix.
type nameCache map[string]string

const maxNames = 1024

func (c *nameCache) get(b []byte) string {
	if s, ok := (*c)[string(b)]; ok {
		return s
	}
	if *c == nil || len(*c) >= maxNames {
		*c = nameCache{}
	}
	s := string(b)
	(*c)[s] = s
	return s
}
