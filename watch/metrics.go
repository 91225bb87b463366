package watch

import (
	"maps"
	"sync"
	"sync/atomic"

	"diagnose/matcher"
)

// Metrics counts what the daemon has read and found in this life.
type Metrics struct {
	lines, bytes, cut          atomic.Int64
	stateErrors, publishErrors atomic.Int64

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

// StateErrors counts records that the disk refused, PublishErrors notices that
// could not be handed on; each attempt counts.
func (m *Metrics) StateErrors() int64   { return m.stateErrors.Load() }
func (m *Metrics) PublishErrors() int64 { return m.publishErrors.Load() }

// Incidents gives the incidents by family, and how many no mechanism explains.
func (m *Metrics) Incidents() (byFamily map[string]int64, unclassified int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.byFamily), m.unclassified
}
