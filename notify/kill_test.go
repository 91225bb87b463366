package notify

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"diagnose/matcher"

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
					f := &fakeSlack{}
					killed, ready := make(chan struct{}), make(chan struct{})
					f.setFault(func(c *slackCall) *slackFault {
						if c.n != call {
							return nil
						}
						// The connection hangs from here on; the process dies in it.
						return &slackFault{accept: accepted, hang: true, before: func() {
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
					f.setFault(nil)

					box, err = NewOutbox(openDB(t, dir+"/second"), []Sink{{Notifier: newTestBot(t, f)}}, Options{})
					if err != nil {
						t.Fatal(err)
					}
					defer stop(box)
					sleep(time.Hour)

					seen := map[string]int{}
					for _, m := range f.messages {
						seen[m.text]++
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
		f := &fakeSlack{}
		box, err := NewOutbox(db, []Sink{{Notifier: &afterSend{newTestBot(t, f), func() { snapshot(t, db, dir+"/second") }}}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t, box, noticeOf("a"))
		synctest.Wait()
		stop(box)
		told := len(f.messages)
		box, err = NewOutbox(openDB(t, dir+"/second"), []Sink{{Notifier: newTestBot(t, f)}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer stop(box)
		sleep(time.Minute)
		if got := len(f.messages); got != 4+1 || told == 0 {
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
		f := &fakeSlack{pace: true}
		faults := []slackFault{
			{status: 503, body: "<html>down</html>"},
			{hang: true},
			{cut: true},
			{status: 429, header: map[string]string{"Retry-After": "120"}},
			{status: 200, body: `{"ok":false,"error":"internal_error"}`},
			{status: 200, body: "<html>portal</html>"},
			{status: 429},
		}
		f.setFault(func(c *slackCall) *slackFault { return &faults[c.n%len(faults)] })
		box := newBox(t, Options{}, Sink{Notifier: newTestBot(t, f, func(o *SlackBotOptions) {
			o.Render = func(i matcher.Incident) string { return "whole diagnosis of " + i.ID }
		})})
		start := time.Now()
		for i := range 40 {
			id := fmt.Sprintf("incident-%02d", i)
			for k := 1; k <= 5; k++ {
				enqueue(t, box, noticeOf(id, occurrences(k)))
				sleep(7 * time.Minute)
			}
		}
		if time.Since(start) < 23*time.Hour || len(f.messages) != 0 {
			t.Fatal("not a day without Slack")
		}
		tries := len(f.calls)
		f.setFault(nil)
		sleep(time.Hour)

		if len(f.messages) != 80 || len(f.refusals) != 0 || box.Pending() != 0 {
			t.Errorf("%d messages, %d refused, %d left", len(f.messages), len(f.refusals), box.Pending())
		}
		seen := map[string]int{}
		for _, m := range f.roots() {
			seen[m.text]++
			if !strings.Contains(m.blocks, "5 occurrences") || !strings.Contains(m.blocks, "this notice was delayed") {
				t.Errorf("%s", m.blocks)
			}
		}
		if len(seen) != 40 {
			t.Errorf("%d of 40 incidents", len(seen))
		}
		if tries > 600 {
			t.Errorf("%d tries in a day", tries)
		}
		for _, c := range f.calls[tries:] {
			if c.form == nil {
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
		f := &fakeSlack{}
		f.setFault(func(c *slackCall) *slackFault {
			if c.n == 0 {
				return &slackFault{accept: true, cut: true}
			}
			return nil
		})
		box := newBox(t, Options{}, Sink{Notifier: newTestHook(t, f)})
		enqueue(t, box, noticeOf("a-1"))
		sleep(time.Minute)
		if len(f.messages) != 2 || !strings.Contains(f.messages[0].text, "[a-1]") || !strings.Contains(f.messages[1].text, "[a-1]") {
			t.Errorf("%d messages", len(f.messages))
		}
	})
}

// TestUnwritableDatabase: a memory that cannot be written stops this sink, and does not
// make it repeat itself.
func TestUnwritableDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir() + "/db"
		db := openDB(t, path)
		f := &fakeSlack{}
		f.setFault(func(c *slackCall) *slackFault {
			if c.n == 0 {
				return &slackFault{accept: true, before: func() { go db.Close() }, status: 200}
			}
			return nil
		})
		box, err := NewOutbox(db, []Sink{{Notifier: newTestBot(t, f)}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t, box, noticeOf("a"))
		sleep(time.Hour)
		if len(f.calls) != 1 {
			t.Errorf("%d calls", len(f.calls))
		}
		stop(box)
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	})
}
