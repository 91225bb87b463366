package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// sender brings one sink what waits for it, one step at a time. Its goroutine
// is the only one that sends; Enqueue adds from outside.
type sender struct {
	name    string
	sink    Sink
	o       Options
	store   store
	limiter *rate.Limiter
	wake    chan struct{} // holds one: something changed

	mu       sync.Mutex
	items    map[string]item // by incident id, without notices
	seq      uint64
	flushing bool
	health   health
}

func newSender(s Sink, b *Outbox) (*sender, error) {
	items, err := b.store.load(s.Name())
	if err != nil {
		return nil, err
	}
	sd := &sender{
		name: s.Name(), sink: s, o: b.o, store: b.store, limiter: s.limiter(),
		wake: make(chan struct{}, 1), items: items, health: newHealth(),
	}
	for _, it := range items {
		sd.seq = max(sd.seq, it.Seq)
	}
	return sd, nil
}

// merge makes the item that replaces what waits about the same incident: the
// newest notice, the oldest time. A hold is not shortened by a repeat.
func (s *sender) merge(n Notice, now, hold time.Time) item {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	it := item{Seq: s.seq, Notice: n, Since: now, Queued: now, NotBefore: hold}
	old, ok := s.items[n.Incident.ID]
	if !ok {
		return it
	}
	it.Since = old.Since
	// A roll-up in progress goes on: what comes meanwhile goes into it. But what
	// a sink held back may be the wrong thing to hold for another event.
	if n.Event == EventUpdated && old.Planned && old.NotBefore.After(it.NotBefore) {
		it.NotBefore, it.Planned = old.NotBefore, true
	}
	if strongerEvent(old.Notice.Event, n.Event) {
		it.Notice.Event = old.Notice.Event
	}
	return it
}

// strongerEvent tells whether the event that waits must not be hidden by a
// newer one: an opening, a follow-up or an end is not made a mere update.
func strongerEvent(waiting, newer string) bool {
	return newer == EventUpdated && (waiting == EventOpened || waiting == EventFollowup || waiting == EventClosed)
}

// accept takes an item that is on disk, and drops the oldest ones beyond the
// bound.
func (s *sender) accept(it item) {
	id := it.Notice.Incident.ID
	it.Notice = Notice{Event: it.Notice.Event}
	s.mu.Lock()
	s.items[id] = it
	var over []string
	for len(s.items)-len(over) > s.o.MaxNotices {
		over = append(over, s.oldest(over, id))
	}
	gone := s.seqs(over)
	s.mu.Unlock()
	for id, seq := range gone {
		s.drop(id, seq, Overflow)
	}
	s.poke()
}

// oldest is the id that waits longest, but for those in skip and for keep.
func (s *sender) oldest(skip []string, keep string) string {
	best := keep
	for id, it := range s.items {
		if id == keep || slices.Contains(skip, id) {
			continue
		}
		if best == keep || it.Since.Before(s.items[best].Since) {
			best = id
		}
	}
	return best
}

// seqs gives the seq of each id, by which it can be dropped later. The caller
// holds mu.
func (s *sender) seqs(ids []string) map[string]uint64 {
	out := make(map[string]uint64, len(ids))
	for _, id := range ids {
		out[id] = s.items[id].Seq
	}
	return out
}

// drop gives a notice up, but not a newer one that has taken its place.
func (s *sender) drop(id string, seq uint64, why Reason) {
	s.mu.Lock()
	stays, err := s.store.settle(s.name, id, seq, nil, nil, s.o.Now())
	s.remember(id, stays)
	s.health.dropped[why]++
	s.mu.Unlock()
	if err != nil {
		s.o.Logger.Error("notice not removed", "sink", s.name, "incident", id, "error", err)
	}
	s.o.Observe(Outcome{Sink: s.name, Result: ResultDropped, Reason: why})
	s.o.Logger.Warn("notice dropped", "sink", s.name, "incident", id, "reason", string(why))
}

// remember keeps in memory what stays on disk. The caller holds mu.
func (s *sender) remember(id string, it *item) {
	if it == nil {
		delete(s.items, id)
		return
	}
	short := *it
	short.Notice = Notice{Event: it.Notice.Event}
	s.items[id] = short
}

func (s *sender) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *sender) flush() {
	s.mu.Lock()
	s.flushing = true
	s.mu.Unlock()
	s.poke()
}

func (s *sender) pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}

func (s *sender) run(ctx context.Context) {
	for ctx.Err() == nil {
		id, wait, stop := s.pick()
		if stop {
			return
		}
		if id != "" {
			if s.limiter.Wait(ctx) == nil {
				s.step(ctx, id)
			}
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// idle is how long a sender sleeps without work; it is woken for new work.
const idle = time.Hour

// pick chooses what is sent next: what is under way, then the oldest that is
// due. Without any it says how long to wait, or to stop when flushing.
func (s *sender) pick() (id string, wait time.Duration, stop bool) {
	s.mu.Lock()
	now := s.o.Now()
	expired := s.seqs(s.expired(now))
	wait = idle
	var best item
	for k, it := range s.items {
		if due := it.NotBefore; due.After(now) {
			wait = min(wait, due.Sub(now))
			continue
		}
		if id == "" || it.before(best) {
			id, best = k, it
		}
	}
	if gate := s.health.gate; gate.After(now) {
		id, wait = "", gate.Sub(now)
	}
	stop = id == "" && s.flushing
	s.mu.Unlock()
	for k, seq := range expired {
		s.drop(k, seq, Expired)
	}
	return id, max(wait, time.Millisecond), stop
}

// expired lists what is too old to wait any longer for a sink that fails. The
// caller holds mu.
func (s *sender) expired(now time.Time) []string {
	var out []string
	for id, it := range s.items {
		if now.Sub(it.Since) > s.o.MaxAge && !it.NotBefore.After(now) && s.health.failing() {
			out = append(out, id)
		}
	}
	return out
}

func (it item) before(other item) bool {
	if (it.Steps > 0) != (other.Steps > 0) {
		return it.Steps > 0
	}
	if !it.Since.Equal(other.Since) {
		return it.Since.Before(other.Since)
	}
	return it.Seq < other.Seq
}

// step makes one call of the sink and puts what came of it on disk.
func (s *sender) step(ctx context.Context, id string) {
	it, st, err := s.store.get(s.name, id)
	if err != nil {
		s.o.Logger.Error("notice unreadable", "sink", s.name, "incident", id, "error", err)
		s.mu.Lock()
		seq := s.items[id].Seq
		s.mu.Unlock()
		s.drop(id, seq, Storage)
		return
	}
	n := it.Notice
	if waited := s.o.Now().Sub(it.Since); waited >= delayShown && !it.Planned {
		n.Delayed = waited
	}
	callCtx, cancel := context.WithTimeout(ctx, sendTimeout)
	next, retry, err := send(callCtx, s.sink, n, st)
	cancel()
	if ctx.Err() != nil && err != nil && !errors.Is(err, ErrMore) {
		return // stopped in the middle: the item is as it was
	}
	s.settle(ctx, id, it, next, retry, err)
}

// settle works out what is left of an item after a call.
func (s *sender) settle(ctx context.Context, id string, it item, next State, retry bool, err error) {
	now := s.o.Now()
	var later *Later
	left := &it
	it.Planned = false
	switch {
	case err == nil:
		left = nil
	case errors.Is(err, ErrMore) && it.Steps < maxSteps:
		it.Steps++
	case errors.As(err, &later):
		it.NotBefore, it.Planned, it.Steps = maxTime(later.Until, now.Add(100*time.Millisecond)), true, 0
		it.Since = it.NotBefore // a wait on purpose is no delay
	default:
		if s.failed(&it, retry, err, now) {
			s.drop(id, it.Seq, InvalidPayload)
			return
		}
	}
	s.commit(ctx, id, it.Seq, next, left, now)
	if err == nil || errors.Is(err, ErrMore) {
		s.recovered(now, err == nil)
	}
}

// commit writes memory and rest. It goes on until it succeeds or ctx ends:
// without that memory the same message would be sent again and again.
func (s *sender) commit(ctx context.Context, id string, seq uint64, next State, left *item, now time.Time) {
	wait := newBackOff()
	wait.Reset()
	for first := true; ; first = false {
		s.mu.Lock()
		stays, err := s.store.settle(s.name, id, seq, next, left, now)
		if err == nil {
			s.remember(id, stays)
		}
		s.mu.Unlock()
		if err == nil {
			return
		}
		if first {
			s.o.Logger.Error("delivery not recorded", "sink", s.name, "incident", id, "error", err)
		}
		timer := time.NewTimer(wait.NextBackOff())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// failed records a failure and sets when to try again. It reports true when the
// notice was refused too often.
func (s *sender) failed(it *item, retry bool, err error, now time.Time) bool {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Sink: s.name, Reason: Server, Detail: conceal(err.Error(), nil)}
		if errors.Is(err, ErrMore) {
			e = &Error{Sink: s.name, Reason: InvalidPayload, Detail: fmt.Sprintf("more than %d steps", maxSteps)}
		}
	}
	s.mu.Lock()
	changed := s.health.fail(e, retry, now)
	s.mu.Unlock()
	s.o.Observe(Outcome{Sink: s.name, Result: ResultFailed, Reason: e.Reason})
	if changed {
		s.o.Logger.Warn("notice not delivered", "sink", s.name, "reason", string(e.Reason), "code", e.Code, "detail", e.Detail, "retry", retry)
	}
	if e.Reason == InvalidPayload {
		it.Refusals++
		it.Steps = 0
		it.NotBefore = now.Add(time.Minute << min(it.Refusals, 6))
	}
	return it.Refusals >= maxRefusals
}

func (s *sender) recovered(now time.Time, whole bool) {
	s.mu.Lock()
	was := s.health.succeed(now, whole)
	s.mu.Unlock()
	if whole {
		s.o.Observe(Outcome{Sink: s.name, Result: ResultDelivered})
	}
	if was {
		s.o.Logger.Info("sink works again", "sink", s.name)
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
