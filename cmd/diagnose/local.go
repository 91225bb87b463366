package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"diagnose/notify"
)

// maxLocal bounds the notices that wait for a local file to take them; all of
// them are in the state directory besides.
const maxLocal = 1000

// local are the sinks of this host, the program's own log and the JSON lines
// file. They get every incident at once, historic ones too, and no routing or
// mute window holds them back.
type local struct {
	sinks []notify.Notifier
	log   *slog.Logger

	mu      sync.Mutex
	waiting []notify.Notice
	failing bool
}

// publish writes the notice, after those that a full disk held back.
func (l *local) publish(n notify.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, n)
	if len(l.waiting) > maxLocal {
		l.waiting = l.waiting[1:]
	}
	l.drain()
}

// retry tries again what could not be written.
func (l *local) retry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drain()
}

func (l *local) drain() {
	for len(l.waiting) > 0 {
		if err := l.send(l.waiting[0]); err != nil {
			if !l.failing {
				l.log.Error("incident not written yet, it will be tried again", "error", err.Error())
			}
			l.failing = true
			return
		}
		l.failing = false
		l.waiting = l.waiting[1:]
	}
}

func (l *local) send(n notify.Notice) error {
	for _, s := range l.sinks {
		var state notify.State
		var err error
		for range 4 {
			state, _, err = s.Send(context.Background(), n, state)
			if !errors.Is(err, notify.ErrMore) {
				break
			}
		}
		if err != nil && !errors.Is(err, notify.ErrMore) {
			return err
		}
	}
	return nil
}
