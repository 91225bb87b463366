package parser

import "bytes"

// head is what stands before the message of a line.
type head struct {
	proc  Process
	level Level
	time  string // "11-30 02:27:33"
	file  string
	// line is the number after the file, as printed; a part of the record's key.
	line string
	rest []byte
	// uvicorn marks "INFO:     text", which carries no time.
	uvicorn bool
}

var levelWords = []struct {
	word  string
	level Level
}{
	{"INFO", Info}, {"ERROR", Error}, {"WARNING", Warning}, {"DEBUG", Debug},
	{"CRITICAL", Critical}, {"TRACE", Debug},
}

// readHead reads the process prefixes and the log head of a line that is
// already free of framing and ANSI. What is not a head stays in rest.
func readHead(b []byte) head {
	var h head
	for {
		p, rest, ok := readPrefix(b)
		if !ok {
			break
		}
		h.proc, b = p, rest
	}
	h.rest = b
	readLevel(&h, b)
	return h
}

// readPrefix reads "(name pid=N[, ip=A]) ". The name may contain parentheses
// (Ray Data: "MapWorker(MapBatches(x))"). vllm/utils/system_utils.py.
func readPrefix(b []byte) (Process, []byte, bool) {
	if len(b) < 8 || b[0] != '(' {
		return Process{}, b, false
	}
	limit := min(len(b), 160)
	i := bytes.Index(b[:limit], []byte("pid="))
	if i < 0 || (i > 1 && b[i-1] != ' ') {
		if bytes.HasPrefix(b, []byte("(raylet) ")) {
			return Process{Name: "raylet"}, b[len("(raylet) "):], true
		}
		return Process{}, b, false
	}
	j, pid := i+4, 0
	for j < len(b) && b[j] >= '0' && b[j] <= '9' && pid < 1<<31 {
		pid = pid*10 + int(b[j]-'0')
		j++
	}
	if j == i+4 {
		return Process{}, b, false
	}
	if bytes.HasPrefix(b[j:], []byte(", ip=")) {
		k := bytes.IndexByte(b[j:min(len(b), j+64)], ')')
		if k < 0 {
			return Process{}, b, false
		}
		j += k
	}
	if j >= len(b) || b[j] != ')' {
		return Process{}, b, false
	}
	name := ""
	if i > 1 {
		name = string(b[1 : i-1])
	}
	rest := b[j+1:]
	if len(rest) > 0 && rest[0] == ' ' {
		rest = rest[1:]
	}
	return Process{Name: name, PID: pid}, rest, true
}

// readLevel reads "LEVEL MM-DD HH:MM:SS [file:line] ", the older form without
// the "[", and uvicorn's "LEVEL:     ".
func readLevel(h *head, b []byte) {
	if len(b) == 0 || b[0] < 'A' || b[0] > 'Z' {
		return
	}
	for _, w := range levelWords {
		if len(b) <= len(w.word) || string(b[:len(w.word)]) != w.word {
			continue
		}
		after := b[len(w.word):]
		if after[0] == ':' {
			if n := countSpaces(after[1:]); n >= 2 {
				h.level, h.uvicorn, h.rest = w.level, true, after[1+n:]
			}
			return
		}
		if after[0] != ' ' {
			return
		}
		after = after[1:]
		if !isTime(after) {
			// Some collectors drop the time; a known first word keeps it a record.
			if bytes.HasPrefix(after, []byte("WorkerProc ")) || bytes.HasPrefix(after, []byte("EngineCore ")) {
				h.level, h.rest = w.level, after
			}
			return
		}
		h.level, h.time, h.rest = w.level, string(after[:14]), after[14:]
		readFile(h)
		return
	}
}

// isTime tells whether b begins with "MM-DD HH:MM:SS".
func isTime(b []byte) bool {
	if len(b) < 14 {
		return false
	}
	for i, c := range []byte("dd-dd dd:dd:dd") {
		if c == 'd' {
			if b[i] < '0' || b[i] > '9' {
				return false
			}
		} else if b[i] != c {
			return false
		}
	}
	return true
}

func readFile(h *head) {
	b := h.rest
	if len(b) == 0 || b[0] != ' ' {
		return
	}
	b = b[1:]
	if len(b) > 0 && b[0] == '[' {
		b = b[1:]
	}
	end := bytes.IndexByte(b[:min(len(b), 120)], ']')
	if end < 0 || bytes.IndexByte(b[:end], ' ') >= 0 {
		return
	}
	h.file = string(b[:end])
	if c := bytes.LastIndexByte(b[:end], ':'); c > 0 {
		h.file, h.line = string(b[:c]), string(b[c+1:end])
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

// afterProgress returns the part of a line that follows a progress bar:
// tqdm rewrites its line with "\r" and ends it without "\n", so another
// process's record is glued behind it. Text before the last "\r" was
// overwritten on a terminal and is dropped.
func afterProgress(b []byte) []byte {
	if i := bytes.LastIndexByte(b, '\r'); i >= 0 {
		b = b[i+1:]
	}
	for _, mark := range []string{"it/s](", "s/it](", "it/s, ?](", "B/s]("} {
		if i := bytes.Index(b, []byte(mark)); i >= 0 {
			rest := b[i+len(mark)-1:]
			if _, _, ok := readPrefix(rest); ok {
				return rest
			}
		}
	}
	return b
}
