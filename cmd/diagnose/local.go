package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"diagnose/notify"
)

// fanout hands a notice to the sinks of this host (the program's own log, the
// JSON lines file) and to the queue of the others. The sinks of this host get
// every incident at once, historic ones too, and no routing or mute window
// holds them back.
type fanout struct {
	parts  []notify.Notifier
	outbox func(notify.Notice) error

	mu sync.Mutex
	// have tells of notices that are published again which parts took them
	// before.
	have map[string]map[string]bool
}

// publish gives an error if any part refused the notice; it is then to be
// called again with the same one, and only those that refused it are asked.
func (f *fanout) publish(n notify.Notice) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := fmt.Sprintf("%s %s %d", n.Incident.ID, n.Event, n.Time.UnixNano())
	have := f.have[key]
	if have == nil {
		have = map[string]bool{}
	}
	var failed error
	try := func(name string, send func() error) {
		if have[name] {
			return
		}
		if err := send(); err != nil {
			failed = errors.Join(failed, err)
			return
		}
		have[name] = true
	}
	for _, p := range f.parts {
		try(p.Name(), func() error { return deliver(p, n) })
	}
	try("", func() error { return f.enqueue(n) })
	if failed == nil {
		delete(f.have, key)
		return nil
	}
	if f.have == nil || len(f.have) >= 1000 {
		f.have = map[string]map[string]bool{}
	}
	f.have[key] = have
	return failed
}

// deliver brings a local sink to the notice's state.
func deliver(p notify.Notifier, n notify.Notice) error {
	var state notify.State
	var err error
	for range 4 {
		if state, _, err = p.Send(context.Background(), n, state); !errors.Is(err, notify.ErrMore) {
			return err
		}
	}
	return nil
}

// enqueue queues a notice for the other sinks. The end of a crash's record is
// news for this host alone.
func (f *fanout) enqueue(n notify.Notice) error {
	if n.Event == notify.EventClosed {
		return nil
	}
	return f.outbox(n)
}

// deliveries counts what became of notices.
type deliveries struct {
	mu sync.Mutex
	n  map[notify.Outcome]int64
}

func (o *deliveries) observe(what notify.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == nil {
		o.n = map[notify.Outcome]int64{}
	}
	o.n[what]++
}

func (o *deliveries) each(f func(what notify.Outcome, n int64)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for what, n := range o.n {
		f(what, n)
	}
}
