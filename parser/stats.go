package parser

import "strings"

// readStats reads a line of the periodic statistics (v1/metrics/loggers.py,
// V0's metrics.py). The word before "KV cache usage" is the device's from
// 0.30.0 on.
func readStats(msg string) (Stats, bool) {
	s := Stats{Running: -1, Waiting: -1, Preemptions: -1, KVUsagePct: -1}
	i := strings.Index(msg[:min(len(msg), 64)], "Avg prompt t")
	if i < 0 || i > 0 && !isEngine(msg[:i]) || !strings.HasPrefix(msg[i:], "Avg prompt throughput: ") && !strings.HasPrefix(msg[i:], "Avg prompt tput: ") {
		return s, false
	}
	s.Engine = strings.TrimSuffix(msg[:i], ": ")
	count := func(words string, into *int) {
		if i := strings.Index(msg, words); i >= 0 {
			if v, _, n := leadingNumber(msg[i+len(words):]); n > 0 {
				*into = int(v)
			}
		}
	}
	count("Running: ", &s.Running)
	count("Waiting: ", &s.Waiting)
	count("Pending: ", &s.Waiting)
	count("Preemptions: ", &s.Preemptions)
	for _, words := range []string{" KV cache usage: ", " KV cache used: "} {
		if i := strings.Index(msg, words); i >= 0 {
			if v, _, n := leadingNumber(msg[i+len(words):]); n > 0 {
				s.KVUsagePct = v
			}
			break
		}
	}
	return s, true
}

// isEngine tells whether s is "Engine 000: " or "2 Engines Aggregated: ". What
// a client chose, a request's id, stands before other words.
func isEngine(s string) bool {
	n, ok := strings.CutPrefix(s, "Engine ")
	if ok {
		n, ok = strings.CutSuffix(n, ": ")
	} else {
		n, ok = strings.CutSuffix(s, " Engines Aggregated: ")
	}
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}
