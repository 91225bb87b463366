package notify

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"diagnose/matcher"
	"diagnose/notify/slacktest"
)

func TestHookRollsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{}
		hook := newTestHook(t, f)
		n := sampleNotice(EventOpened)
		n.Hints.Mentions = []string{"here"}
		s := sendAll(t, hook, n, nil)
		if len(f.Messages) != 1 || len(f.Paged) != 1 {
			t.Fatalf("%d messages, pages %q", len(f.Messages), f.Paged)
		}
		first := time.Now().UTC().Format("15:04 UTC")

		n.Event, n.Incident.Occurrences = EventUpdated, 13
		next, _, err := hook.Send(context.Background(), n, s)
		var later *Later
		if !errors.As(err, &later) || !later.Until.Equal(time.Now().Add(10*time.Minute)) {
			t.Fatalf("repeat at once: %v", err)
		}
		time.Sleep(10 * time.Minute)
		s = sendAll(t, hook, n, next)
		want := "GPU OOM (workspace) · GLM-5.2-FP8 · node17: 12 more since " + first + ". [9f86d081884c]"
		if got := f.Messages[1].Text; got != want {
			t.Errorf("\nwant %s\ngot  %s", want, got)
		}

		// One recovery, however often it is said, and no page.
		n.Event = EventFollowup
		n.Incident.Followup = &matcher.Followup{HeldSince: ptr("15:10")}
		s = sendAll(t, hook, n, s)
		n.Event = EventClosed
		s = sendAll(t, hook, n, s)
		if len(f.Messages) != 3 || !strings.Contains(f.Messages[2].Text, "Recovered") || len(f.Paged) != 1 {
			t.Errorf("%d messages, pages %q", len(f.Messages), f.Paged)
		}

		// Back again: told after the roll-up time, and so is its recovery.
		time.Sleep(10 * time.Minute)
		n.Event, n.Incident.Followup, n.Incident.Occurrences = EventUpdated, nil, 14
		s = sendAll(t, hook, n, s)
		n.Event, n.Incident.Followup = EventFollowup, &matcher.Followup{HeldSince: ptr("18:00")}
		sendAll(t, hook, n, s)
		if len(f.Messages) != 5 {
			t.Errorf("%d messages", len(f.Messages))
		}
	})
}

func TestHookTellsAWithdrawalAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{}
		hook := newTestHook(t, f)
		n := sampleNotice(EventOpened)
		s := sendAll(t, hook, n, nil)
		n.Event = EventFollowup
		n.Hints.Mentions = []string{"here"}
		n.Incident.Followup = &matcher.Followup{Withdrawn: []string{"it died again"}}
		s = sendAll(t, hook, n, s)
		sendAll(t, hook, n, s)
		if len(f.Messages) != 2 || !strings.Contains(f.Messages[1].Text, "Advice withdrawn") || len(f.Paged) != 1 {
			t.Errorf("%d messages, pages %q", len(f.Messages), f.Paged)
		}
	})
}

func TestHookTellsAChangedAssessment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{}
		hook := newTestHook(t, f)
		n := sampleNotice(EventOpened)
		s := sendAll(t, hook, n, nil)
		n.Event, n.Incident.Verdict.Class = EventUpdated, "fragmentation"
		_, _, err := hook.Send(context.Background(), n, s)
		var later *Later
		if !errors.As(err, &later) {
			t.Fatalf("at once: %v", err)
		}
		time.Sleep(time.Minute)
		sendAll(t, hook, n, s)
		if len(f.Messages) != 2 || !strings.Contains(f.Messages[1].Text, "fragmentation") {
			t.Errorf("%d messages", len(f.Messages))
		}
	})
}

func TestHookFallsBackToPlainText(t *testing.T) {
	f := &slacktest.Server{Fault: func(c *slacktest.Call) *slacktest.Fault {
		if c.Form.Get("blocks") != "" {
			return &slacktest.Fault{Status: 400, Body: "invalid_blocks"}
		}
		return nil
	}}
	sendAll(t, newTestHook(t, f), sampleNotice(EventOpened), nil)
	if len(f.Messages) != 1 || !strings.Contains(f.Messages[0].Text, "9f86d081884c") {
		t.Errorf("%d messages", len(f.Messages))
	}
}

func TestHookPreview(t *testing.T) {
	hook := newTestHook(t, &slacktest.Server{})
	raw, err := hook.Preview(sampleNotice(EventOpened))
	if err != nil || Validate(raw) != nil {
		t.Errorf("%v %v", err, Validate(raw))
	}
}

// TestHookTellsTheReturnOnce: a webhook has no thread, so the return of the
// server is one short message with what was changed, and the later word that it
// has held is none.
func TestHookTellsTheReturnOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{}
		hook := newTestHook(t, f)
		n := sampleNotice(EventOpened)
		s := sendAll(t, hook, n, nil)
		time.Sleep(time.Hour)
		n.Event = EventClosed
		n.Incident.Followup = &matcher.Followup{RestartedAt: ptr("14:10"), ChangesMade: []string{"--max-num-batched-tokens 32768 -> 16384"}}
		s = sendAll(t, hook, n, s)
		want := "GPU OOM (workspace) · GLM-5.2-FP8 · node17: Restarted (14:10). Applied: --max-num-batched-tokens 32768 -&gt; 16384. [9f86d081884c]"
		if len(f.Messages) != 2 || f.Messages[1].Text != want {
			t.Errorf("%d messages, the last %q", len(f.Messages), f.Messages[len(f.Messages)-1].Text)
		}
		time.Sleep(time.Hour)
		n.Event, n.Incident.Followup.HeldSince = EventFollowup, ptr("14:10")
		s = sendAll(t, hook, n, s)
		n.Event = EventUpdated
		sendAll(t, hook, n, s)
		if len(f.Messages) != 2 || len(f.Paged) != 0 {
			t.Errorf("%d messages, paged %q", len(f.Messages), f.Paged)
		}
	})
}
