package notify

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"diagnose/notify/slacktest"
)

func TestDeliverRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{Pace: true}
		f.SetFault(func(c *slacktest.Call) *slacktest.Fault {
			if c.N < 2 {
				return &slacktest.Fault{Status: 503}
			}
			return nil
		})
		_, err := Deliver(context.Background(), newTestBot(t, f), sampleNotice(EventOpened), nil)
		if err != nil || len(f.Messages) != 4 || len(f.Refusals) != 0 {
			t.Errorf("%v, %d messages", err, len(f.Messages))
		}
	})
}

func TestDeliverGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{Fault: func(*slacktest.Call) *slacktest.Fault { return &slacktest.Fault{Status: 503} }}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := Deliver(ctx, newTestBot(t, f), sampleNotice(EventOpened), nil); err == nil || time.Duration(len(f.Calls)) > 10 {
			t.Errorf("%v after %d calls", err, len(f.Calls))
		}
	})
}

func TestDeliverAllCollects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := func(name string, r Reason) Notifier {
			return &stubSink{name: name, answer: func(Notice, State, int) (State, bool, error) { return nil, false, &Error{Sink: name, Reason: r} }}
		}
		good := &stubSink{name: "good"}
		err := DeliverAll(context.Background(), []Notifier{bad("a", Auth), good, bad("b", NotFound)}, sampleNotice(EventOpened))
		if err == nil || err.Error() != "a: auth\nb: not_found" || len(good.sent) != 1 {
			t.Errorf("%v", err)
		}
		if err := DeliverAll(context.Background(), []Notifier{good}, sampleNotice(EventOpened)); err != nil {
			t.Error(err)
		}
	})
}

func TestEverySinkTestsHarmlessly(t *testing.T) {
	f, r := &slacktest.Server{}, &recorder{}
	var log bytes.Buffer
	for _, sink := range []Notifier{
		newTestBot(t, f), newTestHook(t, f), mustFile(t, t.TempDir()+"/f"),
		NewWebhook(WebhookOptions{Name: "w", URL: "https://w.example", Transport: r}),
		NewAlertmanager(AlertmanagerOptions{Name: "a", URL: "https://a.example", Transport: r}),
		NewLog("l", slog.New(slog.NewTextHandler(&log, nil))),
	} {
		answer, err := Test(context.Background(), sink, sampleTool, sampleTime)
		if err != nil || !strings.HasPrefix(answer, "accepted") {
			t.Errorf("%s: %q %v", sink.Name(), answer, err)
		}
	}
	if len(f.Messages) != 2 || len(f.Paged) != 0 || len(r.bodies) != 2 || !strings.Contains(log.String(), "level=INFO") {
		t.Errorf("%d messages, %d bodies, %s", len(f.Messages), len(r.bodies), log.String())
	}
	for _, s := range append(r.bodies, f.Messages[0].Blocks, f.Messages[1].Text) {
		if !strings.Contains(strings.ToLower(s), "test") {
			t.Errorf("does not say that it is a test: %s", s)
		}
	}
}

func TestPanicsStayInside(t *testing.T) {
	bot := newTestBot(t, &slacktest.Server{}, func(o *SlackBotOptions) {
		o.Render = func(Notice) string { panic("sk-TOPSECRET1234 in a panic") }
	})
	_, err := Deliver(context.Background(), bot, sampleNotice(EventOpened), nil)
	if err == nil || strings.Contains(err.Error(), "TOPSECRET") {
		t.Errorf("%v", err)
	}
}
