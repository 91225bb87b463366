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

// errBehind says that a part has refused an earlier notice of the incident.
var errBehind = errors.New("waits for the notice before it")

// publish hands on what waits of one incident, oldest first, and gives an error
// for each notice that a part refused. Those are to be published again, and only
// who refused them is asked. Each part gets them in their order: one that
// refuses holds back none of the others.
func (f *fanout) publish(list []notify.Notice) []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	failed := make([]error, len(list))
	for _, p := range f.parts {
		f.bring(p.Name(), list, failed, func(n notify.Notice) error { return deliver(p, n) })
	}
	f.bring("", list, failed, f.enqueue)
	for i, n := range list {
		if failed[i] == nil {
			delete(f.have, keyOf(n))
		}
	}
	return failed
}

// bring hands one part what it does not have yet.
func (f *fanout) bring(name string, list []notify.Notice, failed []error, send func(notify.Notice) error) {
	var behind error
	for i, n := range list {
		key := keyOf(n)
		if f.have[key][name] {
			continue
		}
		err := behind
		if err == nil {
			err = send(n)
		}
		if err != nil {
			failed[i] = errors.Join(failed[i], err)
			behind = errBehind
			continue
		}
		if f.have == nil || len(f.have) >= 1000 {
			f.have = map[string]map[string]bool{}
		}
		if f.have[key] == nil {
			f.have[key] = map[string]bool{}
		}
		f.have[key][name] = true
	}
}

// keyOf tells one notice from another over attempts.
func keyOf(n notify.Notice) string {
	return fmt.Sprintf("%s %s %d", n.Incident.ID, n.Event, n.Time.UnixNano())
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
