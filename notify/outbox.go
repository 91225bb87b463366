package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/time/rate"
)

// The outbox's bounds where Options leaves them open.
const (
	defaultMaxNotices = 1000
	defaultMaxAge     = 72 * time.Hour
	// defaultKeepState is how long a sink's memory of an incident lives after
	// its last notice; later news of it is told afresh.
	defaultKeepState = 90 * 24 * time.Hour
	// sendTimeout bounds one call of Send, over the client's own limit.
	sendTimeout = 30 * time.Second
	// delayShown is the wait from which a notice says that it was delayed.
	delayShown = time.Minute
	// maxRefusals is how often one notice may be refused before it is dropped.
	maxRefusals = 5
)

// Sink is a notifier in the outbox.
type Sink struct {
	Notifier
	// Every is the least time between two steps on average; 1 s when zero, as
	// Slack asks for, none when negative.
	Every time.Duration
	// Burst is how many steps may follow each other at once; 3 when zero.
	Burst int
}

// Options configures an Outbox. The zero value is usable.
type Options struct {
	// Router decides which sinks a notice goes to; nil means all.
	Router *Router
	// MaxNotices bounds the notices that wait for one sink, MaxAge their age.
	MaxNotices int
	MaxAge     time.Duration
	KeepState  time.Duration
	Logger     *slog.Logger
	Now        func() time.Time
	// Observe is called for each attempt and drop, for metrics; may be nil.
	Observe func(Outcome)
}

// Outcome is what became of one attempt to deliver.
type Outcome struct {
	Sink string
	// Result is delivered, failed, or dropped.
	Result string
	// Reason says why it failed; for a drop also overflow, expired or muted.
	Reason Reason
}

// The results in Outcome, and the reasons of a drop that are no failures.
const (
	ResultDelivered = "delivered"
	ResultFailed    = "failed"
	ResultDropped   = "dropped"

	Overflow Reason = "overflow"
	Expired  Reason = "expired"
	Muted    Reason = "muted"
)

// Outbox holds notices on disk until each of their sinks has them. All methods
// are safe for concurrent use.
type Outbox struct {
	o       Options
	store   store
	senders []*sender
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	mu      sync.Mutex
	closed  bool
	pruned  time.Time
}

// ErrClosed is returned by Enqueue after Close.
var ErrClosed = errors.New("outbox is closed")

// NewOutbox opens the outbox in db, which stays the caller's, and starts one
// goroutine for each sink. What was queued before is sent.
func NewOutbox(db *bolt.DB, sinks []Sink, o Options) (*Outbox, error) {
	o = o.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	b := &Outbox{o: o, store: store{db}, cancel: cancel}
	names := make([]string, 0, len(sinks))
	for _, s := range sinks {
		if s.Name() == "" || slices.Contains(names, s.Name()) {
			cancel()
			return nil, fmt.Errorf("open outbox: sink name %q is empty or used twice", s.Name())
		}
		names = append(names, s.Name())
	}
	err := b.store.verify()
	if err == nil {
		err = b.prune(names)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("open outbox: %w", err)
	}
	for _, s := range sinks {
		sd, err := newSender(s, b)
		if err != nil {
			cancel()
			return nil, fmt.Errorf("open outbox: %w", err)
		}
		b.senders = append(b.senders, sd)
	}
	for _, sd := range b.senders {
		b.wg.Go(func() { sd.run(ctx) })
	}
	return b, nil
}

func (o Options) withDefaults() Options {
	if o.MaxNotices == 0 {
		o.MaxNotices = defaultMaxNotices
	}
	if o.MaxAge == 0 {
		o.MaxAge = defaultMaxAge
	}
	if o.KeepState == 0 {
		o.KeepState = defaultKeepState
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Observe == nil {
		o.Observe = func(Outcome) {}
	}
	return o
}

// Enqueue puts a notice on disk for every sink it is routed to. When it returns
// nil, the notice survives a crash. A notice of a historic incident goes
// nowhere.
func (b *Outbox) Enqueue(n Notice) error {
	if n.Incident.ID == "" || len(n.Incident.ID) > 256 {
		return fmt.Errorf("enqueue notice: incident id of %d bytes", len(n.Incident.ID))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	now := b.o.Now()
	if n.Time.IsZero() {
		n.Time = now
	}
	plan := b.o.Router.Decide(n, b.names(), now)
	if plan.Muted {
		b.o.Observe(Outcome{Result: ResultDropped, Reason: Muted})
	}
	if plan.Muted || plan.Historic {
		return nil
	}
	id := n.Incident.ID
	n = prepare(plan.Apply(n))
	n.Incident.ID = id
	var put []queued
	for _, sd := range b.senders {
		told, err := b.store.knows(sd.name, id)
		if err != nil {
			return fmt.Errorf("enqueue notice: %w", err)
		}
		// Who was told goes on being told, also when a better assessment would
		// be routed elsewhere: its message must not stay wrong.
		if told || slices.Contains(plan.Sinks, sd.name) {
			put = append(put, queued{sd, sd.merge(n, now, plan.HoldUntil)})
		}
	}
	if len(put) == 0 {
		return nil
	}
	// One transaction for all sinks: either all have it or the caller knows.
	if err := b.store.put(put); err != nil {
		return fmt.Errorf("enqueue notice: %w", err)
	}
	for _, q := range put {
		q.to.accept(q.item)
	}
	if now.Sub(b.pruned) > 24*time.Hour {
		if err := b.prune(b.names()); err != nil {
			b.o.Logger.Warn("outbox not pruned", "error", err)
		}
	}
	return nil
}

func (b *Outbox) names() []string {
	out := make([]string, len(b.senders))
	for i, sd := range b.senders {
		out[i] = sd.name
	}
	return out
}

// prune removes what no sink will ask for again. The caller holds mu or is the
// only one.
func (b *Outbox) prune(sinks []string) error {
	now := b.o.Now()
	b.pruned = now
	return b.store.prune(sinks, now.Add(-b.o.KeepState), now.Add(-b.o.MaxAge))
}

// Close stops accepting, sends what is due until ctx ends, and returns when no
// goroutine is left. What was not sent stays on disk for the next start; it is
// no error.
func (b *Outbox) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	for _, sd := range b.senders {
		sd.flush()
	}
	done := make(chan struct{})
	go func() {
		b.wg.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("close outbox: %d notices stay queued: %w", b.Pending(), ctx.Err())
		b.cancel()
		<-done
	}
	b.cancel()
	return err
}

// Pending is the number of notices that wait, over all sinks.
func (b *Outbox) Pending() int {
	n := 0
	for _, sd := range b.senders {
		n += sd.pending()
	}
	return n
}

// limiter is the token bucket of one sink.
func (s Sink) limiter() *rate.Limiter {
	every, burst := s.Every, s.Burst
	if burst == 0 {
		burst = 3
	}
	switch {
	case every < 0:
		return rate.NewLimiter(rate.Inf, burst)
	case every == 0:
		every = time.Second
	}
	return rate.NewLimiter(rate.Every(every), burst)
}
