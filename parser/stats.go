package parser

import "strings"

// readStats reads a line of the periodic statistics (v1/metrics/loggers.py,
// V0's metrics.py). The word before "KV cache usage" is the device's from
// 0.30.0 on.
func readStats(msg string) (Stats, bool) {
	s := Stats{Running: -1, Waiting: -1, Preemptions: -1, KVUsagePct: -1}
	if i := strings.Index(msg, "Avg prompt throughput: "); i >= 0 && i < 48 {
		s.Engine = strings.TrimSuffix(strings.TrimSpace(msg[:i]), ":")
	} else if i := strings.Index(msg, "Avg prompt tput: "); i < 0 || i > 48 {
		return s, false
	}
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
