package notify

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"diagnose/notify/slacktest"

	bolt "go.etcd.io/bbolt"
)

// snapshot copies the database as a kill would leave it: what was committed.
func snapshot(t testing.TB, db *bolt.DB, to string) {
	t.Helper()
	if err := db.View(func(tx *bolt.Tx) error { return tx.CopyFile(to, 0o600) }); err != nil {
		t.Error(err)
	}
}

// TestKilledAtEveryPoint kills the daemon at each request, before Slack sees it
// and after Slack accepted it, and starts it again on what was on disk. Every
// incident must arrive; what arrives twice is what Slack accepted and could not
// say so.
func TestKilledAtEveryPoint(t *testing.T) {
	const incidents = 3
	whole := incidents * 4 // a message and three replies each
	for call := range whole {
		for _, accepted := range []bool{false, true} {
			t.Run(fmt.Sprintf("call %d accepted %v", call, accepted), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					dir := t.TempDir()
					db := openDB(t, dir+"/first")
					f := &slacktest.Server{}
					killed, ready := make(chan struct{}), make(chan struct{})
					f.SetFault(func(c *slacktest.Call) *slacktest.Fault {
						if c.N != call {
							return nil
						}
						// The connection hangs from here on; the process dies in it.
						return &slacktest.Fault{Accept: accepted, Hang: true, Before: func() {
							<-ready
							snapshot(t, db, dir+"/second")
							close(killed)
						}}
					})
					box, err := NewOutbox(db, []Sink{{Notifier: newTestBot(t, f)}}, Options{})
					if err != nil {
						t.Fatal(err)
					}
					for i := range incidents {
						enqueue(t, box, noticeOf(fmt.Sprint("incident-", i)))
					}
					close(ready)
					<-killed
					stop(box)
					f.SetFault(nil)

					box, err = NewOutbox(openDB(t, dir+"/second"), []Sink{{Notifier: newTestBot(t, f)}}, Options{})
					if err != nil {
						t.Fatal(err)
					}
					defer stop(box)
					sleep(time.Hour)

					seen := map[string]int{}
					for _, m := range f.Messages {
						seen[m.Text]++
					}
					twice := 0
					for text, n := range seen {
						if n > 2 || !strings.Contains(text, "incident-") {
							t.Errorf("%d times %q", n, text)
						}
						twice += n - 1
					}
					if want := map[bool]int{true: 1}[accepted]; len(seen) != whole || twice != want {
						t.Errorf("%d of %d messages, %d twice, want %d", len(seen), whole, twice, want)
					}
					if box.Pending() != 0 {
						t.Errorf("%d left", box.Pending())
					}
				})
			})
		}
	}
}

// TestKilledBetweenAnswerAndDisk: the memory of an accepted step was not
// written. The step comes again, and only it.
func TestKilledBetweenAnswerAndDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		db := openDB(t, dir+"/first")
		f := &slacktest.Server{}
		box, err := NewOutbox(db, []Sink{{Notifier: &afterSend{newTestBot(t, f), func() { snapshot(t, db, dir+"/second") }}}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t, box, noticeOf("a"))
		synctest.Wait()
		stop(box)
		told := len(f.Messages)
		box, err = NewOutbox(openDB(t, dir+"/second"), []Sink{{Notifier: newTestBot(t, f)}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer stop(box)
		sleep(time.Minute)
		if got := len(f.Messages); got != 4+1 || told == 0 {
			t.Errorf("%d messages", got)
		}
	})
}

type afterSend struct {
	Notifier
	after func()
}

func (a *afterSend) Send(ctx context.Context, n Notice, s State) (State, bool, error) {
	next, retry, err := a.Notifier.Send(ctx, n, s)
	a.after()
	return next, retry, err
}

// TestSlackDownForADay: 40 incidents with repeats while Slack answers in every
// bad way. Each arrives once, and says that it is late.
func TestSlackDownForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{Pace: true}
		faults := []slacktest.Fault{
			{Status: 503, Body: "<html>down</html>"},
			{Hang: true},
			{Cut: true},
			{Status: 429, Header: map[string]string{"Retry-After": "120"}},
			{Status: 200, Body: `{"ok":false,"error":"internal_error"}`},
			{Status: 200, Body: "<html>portal</html>"},
			{Status: 429},
		}
		f.SetFault(func(c *slacktest.Call) *slacktest.Fault { return &faults[c.N%len(faults)] })
		box := newBox(t, Options{}, Sink{Notifier: newTestBot(t, f, func(o *SlackBotOptions) {
			o.Render = func(n Notice) string { return "whole diagnosis of " + n.Incident.ID }
		})})
		start := time.Now()
		for i := range 40 {
			id := fmt.Sprintf("incident-%02d", i)
			for k := 1; k <= 5; k++ {
				enqueue(t, box, noticeOf(id, occurrences(k)))
				sleep(7 * time.Minute)
			}
		}
		if time.Since(start) < 23*time.Hour || len(f.Messages) != 0 {
			t.Fatal("not a day without Slack")
		}
		tries := len(f.Calls)
		f.SetFault(nil)
		sleep(time.Hour)

		if len(f.Messages) != 80 || len(f.Refusals) != 0 || box.Pending() != 0 {
			t.Errorf("%d messages, %d refused, %d left", len(f.Messages), len(f.Refusals), box.Pending())
		}
		seen := map[string]int{}
		for _, m := range f.Roots() {
			seen[m.Text]++
			if !strings.Contains(m.Blocks, "5 occurrences") || !strings.Contains(m.Blocks, "this notice was delayed") {
				t.Errorf("%s", m.Blocks)
			}
		}
		if len(seen) != 40 {
			t.Errorf("%d of 40 incidents", len(seen))
		}
		if tries > 600 {
			t.Errorf("%d tries in a day", tries)
		}
		for _, c := range f.Calls[tries:] {
			if c.Form == nil {
				t.Error("odd call")
			}
		}
		if st := box.Status()[0]; st.Failed[RateLimited] == 0 || st.Dropped[Expired] != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestAnswerLost: Slack accepted the message and the connection was cut. It is
// posted again, with the same id.
func TestAnswerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{}
		f.SetFault(func(c *slacktest.Call) *slacktest.Fault {
			if c.N == 0 {
				return &slacktest.Fault{Accept: true, Cut: true}
			}
			return nil
		})
		box := newBox(t, Options{}, Sink{Notifier: newTestHook(t, f)})
		enqueue(t, box, noticeOf("a-1"))
		sleep(time.Minute)
		if len(f.Messages) != 2 || !strings.Contains(f.Messages[0].Text, "[a-1]") || !strings.Contains(f.Messages[1].Text, "[a-1]") {
			t.Errorf("%d messages", len(f.Messages))
		}
	})
}

// TestUnwritableDatabase: a memory that cannot be written stops this sink, and does not
// make it repeat itself.
func TestUnwritableDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir() + "/db"
		db := openDB(t, path)
		f := &slacktest.Server{}
		f.SetFault(func(c *slacktest.Call) *slacktest.Fault {
			if c.N == 0 {
				return &slacktest.Fault{Accept: true, Before: func() { db.Close() }, Status: 200}
			}
			return nil
		})
		box, err := NewOutbox(db, []Sink{{Notifier: newTestBot(t, f)}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t, box, noticeOf("a"))
		sleep(time.Hour)
		if len(f.Calls) != 1 {
			t.Errorf("%d calls", len(f.Calls))
		}
		stop(box)
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	})
}
