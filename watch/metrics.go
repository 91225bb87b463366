package watch

import (
	"sync"
	"sync/atomic"

	"diagnose/matcher"
)

// Metrics counts what the daemon has read and found.
type Metrics struct {
	lines, bytes, cut atomic.Int64

	mu sync.Mutex
	// byFamily counts incidents; unclassified those without a mechanism.
	byFamily     map[string]int64
	unclassified int64
}

func (m *Metrics) init() { m.byFamily = map[string]int64{} }

func (m *Metrics) line(n int, cut bool) {
	m.lines.Add(1)
	m.bytes.Add(int64(n) + 1)
	if cut {
		m.cut.Add(1)
	}
}

func (m *Metrics) incident(in matcher.Incident) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byFamily[in.Verdict.Family]++
	if in.Verdict.Mechanism == nil {
		m.unclassified++
	}
}

// Lines, Bytes and Truncated count what was read: lines, bytes with their
// newlines, and lines whose middle was left out.
func (m *Metrics) Lines() int64     { return m.lines.Load() }
func (m *Metrics) Bytes() int64     { return m.bytes.Load() }
func (m *Metrics) Truncated() int64 { return m.cut.Load() }

// Incidents gives the incidents by family, and how many no mechanism explains.
func (m *Metrics) Incidents() (byFamily map[string]int64, unclassified int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	byFamily = make(map[string]int64, len(m.byFamily))
	for k, v := range m.byFamily {
		byFamily[k] = v
	}
	return byFamily, m.unclassified
}
