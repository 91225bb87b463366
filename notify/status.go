package notify

import (
	"fmt"
	"maps"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// health is what a sender knows of its sink.
type health struct {
	// gate is the time before which nothing is sent: an outage, a Retry-After,
	// or an open breaker.
	gate time.Time
	// last is the failure since the last success, nil after one.
	last *Error
	// since is when that failure began, delivered the last success.
	since, delivered time.Time
	open             bool
	outage           *backoff.ExponentialBackOff
	breaker          *backoff.ExponentialBackOff

	sent    int
	failed  map[Reason]int
	dropped map[Reason]int
}

func newHealth() health {
	h := health{
		outage: newBackOff(),
		// A permanent error heals only when a person acts; a probe now and then
		// finds that without a restart.
		breaker: &backoff.ExponentialBackOff{
			InitialInterval: time.Minute, Multiplier: 2, RandomizationFactor: 0.1, MaxInterval: time.Hour,
		},
		failed: map[Reason]int{}, dropped: map[Reason]int{},
	}
	h.outage.Reset()
	h.breaker.Reset()
	return h
}

func (h *health) failing() bool { return h.last != nil }

// fail sets the gate and reports whether this failure is another than the last.
func (h *health) fail(e *Error, retry bool, now time.Time) (changed bool) {
	h.failed[e.Reason]++
	changed = h.last == nil || h.last.Reason != e.Reason || h.last.Code != e.Code
	if h.last == nil {
		h.since = now
	}
	h.last = e
	switch {
	case retry:
		h.gate = now.Add(max(h.outage.NextBackOff(), e.RetryAfter))
	case e.Reason == InvalidPayload:
		// One message's fault: it waits alone, but it is shown.
		h.open = true
	default:
		h.open = true
		h.gate = now.Add(max(h.breaker.NextBackOff(), e.RetryAfter))
	}
	return changed
}

// succeed closes the breaker and reports whether the sink had been failing.
func (h *health) succeed(now time.Time, whole bool) bool {
	was := h.last != nil
	h.last, h.open, h.gate, h.since = nil, false, time.Time{}, time.Time{}
	h.outage.Reset()
	h.breaker.Reset()
	if whole {
		h.sent++
		h.delivered = now
	}
	return was
}

// SinkStatus is the state of one sink, for health checks, metrics and people.
// It holds no secrets.
type SinkStatus struct {
	Name    string `json:"name"`
	Pending int    `json:"pending"`
	// Oldest is when the oldest waiting news was queued; zero without any.
	Oldest time.Time `json:"oldest,omitzero"`
	// Open is set after a permanent error: the sink needs a person.
	Open   bool   `json:"open"`
	Reason Reason `json:"reason,omitempty"`
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
	// FailingSince and NextTry are zero while the sink works.
	FailingSince time.Time      `json:"failing_since,omitzero"`
	NextTry      time.Time      `json:"next_try,omitzero"`
	Delivered    int            `json:"delivered"`
	DeliveredAt  time.Time      `json:"delivered_at,omitzero"`
	Failed       map[Reason]int `json:"failed"`
	Dropped      map[Reason]int `json:"dropped"`
}

// Status gives the state of every sink, in the order of the configuration.
func (b *Outbox) Status() []SinkStatus {
	out := make([]SinkStatus, len(b.senders))
	for i, s := range b.senders {
		out[i] = s.status()
	}
	return out
}

func (s *sender) status() SinkStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.health
	st := SinkStatus{
		Name: s.name, Pending: len(s.items), Open: h.open, FailingSince: h.since, NextTry: h.gate,
		Delivered: h.sent, DeliveredAt: h.delivered, Failed: maps.Clone(h.failed), Dropped: maps.Clone(h.dropped),
	}
	if h.last != nil {
		st.Reason, st.Code, st.Detail = h.last.Reason, h.last.Code, h.last.Detail
	}
	for _, it := range s.items {
		if st.Oldest.IsZero() || it.Since.Before(st.Oldest) {
			st.Oldest = it.Since
		}
	}
	return st
}

// Ready returns nil unless a sink is in a permanent error; then one line each.
func (b *Outbox) Ready() error {
	var p problems
	for _, s := range b.Status() {
		if s.Open {
			p.add(fmt.Errorf("sink %s: %s since %s: %s", s.Name, s.Reason, s.FailingSince.UTC().Format(time.RFC3339), oneLine(s.Code+" "+s.Detail)))
		}
	}
	return p.err()
}
