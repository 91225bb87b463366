package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"diagnose/matcher"
)

// maxSteps bounds the requests for one notice: a message, its thread, and what
// happened since. More means that a sink goes round in circles.
const maxSteps = 200

// Deliver sends one notice to one sink at once, with retries until ctx ends: a
// post-mortem by hand has no outbox. It returns the sink's last memory.
func Deliver(ctx context.Context, sink Notifier, n Notice, s State) (State, error) {
	wait := newBackOff()
	wait.Reset()
	for range maxSteps {
		next, retry, err := send(ctx, sink, n, s)
		if next != nil {
			s = next
		}
		var later *Later
		pause := time.Second // Slack's one message a second and channel
		switch {
		case err == nil:
			return s, nil
		case errors.As(err, &later):
			pause = time.Until(later.Until)
		case !errors.Is(err, ErrMore):
			if !retry || ctx.Err() != nil {
				return s, err
			}
			pause = max(wait.NextBackOff(), askedFor(err))
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return s, fmt.Errorf("%s: gave up: %w", sink.Name(), errors.Join(ctx.Err(), err))
		case <-timer.C:
		}
	}
	return s, fmt.Errorf("%s: more than %d steps", sink.Name(), maxSteps)
}

// DeliverAll sends one notice to several sinks at the same time. Its error has
// one line per sink that failed.
func DeliverAll(ctx context.Context, sinks []Notifier, n Notice) error {
	errs := make([]error, len(sinks))
	var wg sync.WaitGroup
	for i, sink := range sinks {
		wg.Go(func() { _, errs[i] = Deliver(ctx, sink, n, nil) })
	}
	wg.Wait()
	var p problems
	for _, err := range errs {
		p.add(err)
	}
	return p.err()
}

// Test sends a harmless notice to a sink once and returns what it answered.
func Test(ctx context.Context, sink Notifier, tool matcher.Tool, now time.Time) (answer string, err error) {
	s, _, err := send(ctx, sink, TestNotice(tool, now), nil)
	if err != nil && !errors.Is(err, ErrMore) {
		return "", err
	}
	st := decodeState[slackBotState](s)
	if st.TS != "" {
		return fmt.Sprintf("accepted: channel %s, ts %s", st.Channel, st.TS), nil
	}
	return "accepted", nil
}

// TestNotice is a notice that says that it is a test.
func TestNotice(tool matcher.Tool, now time.Time) Notice {
	return Notice{Event: EventTest, Time: now, Incident: matcher.Incident{
		ID: "test", Status: matcher.StatusNew, Occurrences: 1, Phase: "unknown",
		Verdict: matcher.Verdict{
			Family: "unknown", Class: "test notice", Confidence: "high",
			Summary: "This is a test of diagnose " + tool.Version + ". Nothing has failed.",
		},
	}}
}

// send calls a sink and turns a panic in it, or in the renderer it was given,
// into a permanent error: one odd incident must not end the daemon.
func send(ctx context.Context, sink Notifier, n Notice, s State) (next State, retry bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			next, retry = s, false
			err = &Error{Sink: sink.Name(), Reason: InvalidPayload, Code: "panic", Detail: conceal(fmt.Sprint(r), nil)}
		}
	}()
	return sink.Send(ctx, n, s)
}

// newBackOff doubles from one second to five minutes, with jitter.
func newBackOff() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval: time.Second, Multiplier: 2, RandomizationFactor: 0.3, MaxInterval: 5 * time.Minute,
	}
}

func askedFor(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}
