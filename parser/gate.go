package parser

import "bytes"

// skippable tells by a few bytes that a line says nothing to a diagnosis: an
// access line that is no server error, or an INFO or DEBUG record whose
// message begins like none that is read. It is the gate in front of everything
// else; most of a log does not pass it. A line that continues a record is
// never skippable, because records are opened by WARNING and worse only.
func skippable(b []byte) bool {
	i := 0
	if len(b) > 0 && b[0] == '(' {
		i = bytes.IndexByte(b[:min(len(b), 64)], ')')
		if i < 0 || i+2 > len(b) {
			return false
		}
		i += 2
	}
	if i >= len(b) {
		return false
	}
	b = b[i:]
	var after []byte
	switch {
	case len(b) > 5 && string(b[:4]) == "INFO":
		after = b[4:]
	case len(b) > 6 && string(b[:5]) == "DEBUG":
		after = b[5:]
	default:
		return false
	}
	if after[0] == ':' {
		return skippableAccess(after)
	}
	if after[0] != ' ' || !isTime(after[1:]) {
		return false
	}
	end := bytes.Index(after[:min(len(after), 160)], []byte("] "))
	if end < 0 {
		return false
	}
	msg := after[end+2:]
	if len(msg) < 4 {
		return false
	}
	return !wanted[[4]byte(msg)] && msg[0] < 0x80 && msg[0] != ' ' && !isDigit(msg[0])
}

func skippableAccess(b []byte) bool {
	if !bytes.Contains(b[:min(len(b), 80)], []byte(` - "`)) {
		return false
	}
	i := bytes.LastIndex(b, []byte(`" `))
	return i >= 0 && i+2 < len(b) && b[i+2] != '5'
}

// wanted holds the first four bytes of every message that is read at INFO or
// DEBUG.
var wanted = func() map[[4]byte]bool {
	m := map[[4]byte]bool{}
	add := func(s string) {
		if len(s) >= 4 {
			m[[4]byte([]byte(s[:4]))] = true
		}
	}
	for _, l := range startupLines {
		add(l.begin)
	}
	for _, s := range []string{
		"non-default args", "args: Namespace", "Initializing a", "vLLM API server", "vLLM server version",
		"[shutdown] ", "Engine 000", "Avg prompt", "GPU KV cache", "CPU KV cache", "XPU KV cache",
		"No available shared memory broadcast block", "Dumping ", "SchedulerOutput", "SchedulerStats", "Using ", "model weights take", "the current vLLM",
	} {
		add(s)
	}
	return m
}()
