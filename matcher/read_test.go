package matcher

import (
	"bytes"
	"testing"

	"diagnose/parser"
)

// diagnosePair reads a server's log and a kernel log beside it.
func diagnosePair(t *testing.T, server, kernel []byte) []Incident {
	t.Helper()
	tr := NewTracker(embedded(t), Options{Kernel: map[int]bool{1: true}})
	for source, log := range [][]byte{server, kernel} {
		p := parser.New(tr.Add)
		offset := int64(0)
		for n, line := range bytes.Split(bytes.TrimSuffix(log, []byte("\n")), []byte("\n")) {
			p.Line(parser.Line{At: parser.Pos{Source: source, Line: int64(n + 1), Offset: offset}, Data: line})
			offset += int64(len(line)) + 1
		}
		p.Flush()
	}
	incidents, _ := tr.Incidents()
	return incidents
}
