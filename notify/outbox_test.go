package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"diagnose/matcher"
	"diagnose/notify/slacktest"

	bolt "go.etcd.io/bbolt"
)

func openDB(t testing.TB, path string) *bolt.DB {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// stubSink records what it is sent and answers as told.
type stubSink struct {
	name string
	mu   sync.Mutex
	sent []Notice
	at   []time.Time
	// answer may be nil: everything is accepted.
	answer func(n Notice, s State, call int) (State, bool, error)
}

func (s *stubSink) Name() string { return s.name }

func (s *stubSink) Send(_ context.Context, n Notice, st State) (State, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.at = append(s.sent, n), append(s.at, time.Now())
	if s.answer == nil {
		return State(`1`), false, nil
	}
	return s.answer(n, st, len(s.sent))
}

func (s *stubSink) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, n := range s.sent {
		out = append(out, n.Incident.ID)
	}
	return out
}

func noticeOf(id string, change ...func(*Notice)) Notice {
	n := sampleNotice(EventOpened)
	n.Incident.ID, n.Time = id, time.Now()
	for _, c := range change {
		c(&n)
	}
	return n
}

func occurrences(k int) func(*Notice) {
	return func(n *Notice) { n.Event, n.Incident.Occurrences = EventUpdated, k }
}

// sleep passes time in a synctest bubble and waits until all is quiet again.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// newBox opens an outbox on a fresh database; it is closed with the test.
func newBox(t testing.TB, o Options, sinks ...Sink) *Outbox {
	t.Helper()
	box, err := NewOutbox(openDB(t, t.TempDir()+"/db"), sinks, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(box) })
	return box
}

// stop ends an outbox as a kill would: nothing is flushed.
func stop(b *Outbox) {
	b.cancel()
	b.wg.Wait()
}

func enqueue(t testing.TB, b *Outbox, list ...Notice) {
	t.Helper()
	for _, n := range list {
		if err := b.Enqueue(n); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOutboxPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubSink{name: "s"}
		box := newBox(t, Options{}, Sink{Notifier: s})
		start := time.Now()
		for i := range 6 {
			enqueue(t, box, noticeOf(fmt.Sprint("i", i)))
		}
		sleep(time.Minute)
		var got []time.Duration
		for _, at := range s.at {
			got = append(got, at.Sub(start).Round(time.Millisecond))
		}
		want := []time.Duration{0, 0, 0, time.Second, 2 * time.Second, 3 * time.Second}
		if !slices.Equal(got, want) {
			t.Errorf("want %v, got %v", want, got)
		}
		if !slices.Equal(s.ids(), []string{"i0", "i1", "i2", "i3", "i4", "i5"}) {
			t.Errorf("order %v", s.ids())
		}
	})
}

func TestOutboxNewestStateWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubSink{name: "s", answer: func(_ Notice, _ State, call int) (State, bool, error) {
			if call == 1 {
				return nil, true, &Error{Reason: RateLimited, RetryAfter: 10 * time.Minute}
			}
			return State(`1`), false, nil
		}}
		box := newBox(t, Options{}, Sink{Notifier: s})
		enqueue(t, box, noticeOf("a"))
		sleep(time.Minute)
		for k := 2; k <= 9; k++ {
			enqueue(t, box, noticeOf("a", occurrences(k)))
		}
		sleep(20 * time.Minute)
		if len(s.sent) != 2 || s.sent[1].Incident.Occurrences != 9 || s.sent[1].Event != EventOpened {
			t.Fatalf("%d sent, last %+v", len(s.sent), s.sent[len(s.sent)-1].Event)
		}
		if got := s.sent[1].Delayed; got != 10*time.Minute {
			t.Errorf("delayed %v", got)
		}
		if got := s.at[1].Sub(s.at[0]); got < 10*time.Minute {
			t.Errorf("Retry-After not honoured: %v", got)
		}
	})
}

func TestOutboxKeepsANoticeThatComesDuringASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var box *Outbox
		s := &stubSink{name: "s"}
		s.answer = func(n Notice, _ State, call int) (State, bool, error) {
			if call == 1 {
				if err := box.Enqueue(noticeOf("a", occurrences(2))); err != nil {
					t.Error(err)
				}
			}
			return State(fmt.Sprint(call)), false, nil
		}
		box = newBox(t, Options{}, Sink{Notifier: s})
		enqueue(t, box, noticeOf("a"))
		sleep(time.Minute)
		if len(s.sent) != 2 || s.sent[1].Incident.Occurrences != 2 || s.sent[1].Delayed != 0 {
			t.Errorf("%d sent", len(s.sent))
		}
		if box.Pending() != 0 {
			t.Error("something is left")
		}
	})
}

func TestOutboxBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubSink{name: "s", answer: func(Notice, State, int) (State, bool, error) {
			return nil, true, &Error{Reason: Network}
		}}
		box := newBox(t, Options{}, Sink{Notifier: s})
		enqueue(t, box, noticeOf("a"))
		sleep(time.Hour)
		if n := len(s.at); n < 15 || n > 35 {
			t.Errorf("%d tries in an hour", n)
		}
		for i := 1; i < len(s.at); i++ {
			if gap := s.at[i].Sub(s.at[i-1]); gap < 700*time.Millisecond || gap > 7*time.Minute {
				t.Errorf("try %d after %v", i, gap)
			}
		}
		st := box.Status()[0]
		if st.Open || st.Reason != Network || st.Pending != 1 || box.Ready() != nil {
			t.Errorf("%+v", st)
		}
	})
}

func TestOutboxBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var healed atomic.Bool
		s := &stubSink{name: "s", answer: func(Notice, State, int) (State, bool, error) {
			if !healed.Load() {
				return nil, false, &Error{Sink: "s", Reason: NotFound, Code: "channel_not_found"}
			}
			return State(`1`), false, nil
		}}
		var outcomes []Outcome
		box := newBox(t, Options{Observe: func(o Outcome) { outcomes = append(outcomes, o) }}, Sink{Notifier: s})
		enqueue(t, box, noticeOf("a"), noticeOf("b"))
		sleep(24 * time.Hour)
		if n := len(s.at); n < 24 || n > 40 {
			t.Errorf("%d probes in a day", n)
		}
		err := box.Ready()
		if err == nil || !strings.HasPrefix(err.Error(), "sink s: not_found since 2000-01-01T00:00:00Z: channel_not_found") {
			t.Errorf("Ready: %v", err)
		}
		healed.Store(true)
		sleep(2 * time.Hour)
		if box.Ready() != nil || box.Pending() != 0 {
			t.Errorf("%v, %d left", box.Ready(), box.Pending())
		}
		last := outcomes[len(outcomes)-1]
		if last != (Outcome{Sink: "s", Result: ResultDelivered}) || outcomes[0].Reason != NotFound {
			t.Errorf("%v", outcomes)
		}
	})
}

func TestOutboxOneBadNoticeDoesNotStopOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubSink{name: "s", answer: func(n Notice, _ State, _ int) (State, bool, error) {
			if n.Incident.ID == "bad" {
				return nil, false, &Error{Reason: InvalidPayload}
			}
			if n.Incident.ID == "odd" {
				panic("odd incident")
			}
			return State(`1`), false, nil
		}}
		box := newBox(t, Options{}, Sink{Notifier: s})
		enqueue(t, box, noticeOf("bad"), noticeOf("odd"), noticeOf("good"))
		sleep(10 * time.Second)
		if !slices.Contains(s.ids(), "good") {
			t.Error("the good one waits behind the bad one")
		}
		sleep(6 * time.Hour)
		if st := box.Status()[0]; st.Pending != 0 || st.Dropped[InvalidPayload] != 2 {
			t.Errorf("%+v", st)
		}
	})
}

func TestOutboxDropsNotTheNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var box *Outbox
		s := &stubSink{name: "s"}
		s.answer = func(n Notice, _ State, call int) (State, bool, error) {
			if call == maxRefusals { // the last refusal, and better news meanwhile
				if err := box.Enqueue(noticeOf("a", occurrences(7))); err != nil {
					t.Error(err)
				}
			}
			if call <= maxRefusals {
				return nil, false, &Error{Reason: InvalidPayload}
			}
			return State(`1`), false, nil
		}
		box = newBox(t, Options{}, Sink{Notifier: s})
		enqueue(t, box, noticeOf("a"))
		sleep(24 * time.Hour)
		if len(s.sent) != maxRefusals+1 || s.sent[maxRefusals].Incident.Occurrences != 7 || box.Pending() != 0 {
			t.Errorf("%d sent, %d left", len(s.sent), box.Pending())
		}
	})
}

func TestOutboxADeadSinkDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{Fault: func(*slacktest.Call) *slacktest.Fault { return &slacktest.Fault{Hang: true} }}
		alive := &stubSink{name: "alive"}
		box := newBox(t, Options{}, Sink{Notifier: newTestBot(t, f)}, Sink{Notifier: alive})
		for i := range 3 {
			enqueue(t, box, noticeOf(fmt.Sprint("i", i)))
		}
		sleep(time.Second)
		if len(alive.sent) != 3 {
			t.Errorf("%d of 3", len(alive.sent))
		}
	})
}

func TestOutboxBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		s := &stubSink{name: "s", answer: func(Notice, State, int) (State, bool, error) {
			if !up.Load() {
				return nil, true, &Error{Reason: Server}
			}
			return State(`1`), false, nil
		}}
		box := newBox(t, Options{MaxNotices: 3, MaxAge: time.Hour}, Sink{Notifier: s})
		for i := range 5 {
			enqueue(t, box, noticeOf(fmt.Sprint("i", i)))
			sleep(time.Minute)
		}
		if st := box.Status()[0]; st.Pending != 3 || st.Dropped[Overflow] != 2 {
			t.Errorf("%+v", st)
		}
		sleep(2 * time.Hour)
		up.Store(true)
		enqueue(t, box, noticeOf("new"))
		sleep(time.Hour)
		if st := box.Status()[0]; st.Pending != 0 || st.Dropped[Expired] != 3 || st.Delivered != 1 {
			t.Errorf("%+v", st)
		}
	})
}

func TestOutboxSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubSink{name: "s"}
		s.answer = func(_ Notice, st State, call int) (State, bool, error) {
			if want := fmt.Sprint(call - 1); call > 1 && string(st) != want {
				t.Errorf("call %d gets memory %s", call, st)
			}
			if call < 5 {
				return State(fmt.Sprint(call)), true, ErrMore
			}
			return State(fmt.Sprint(call)), false, nil
		}
		box := newBox(t, Options{}, Sink{Notifier: s})
		enqueue(t, box, noticeOf("a"))
		sleep(time.Minute)
		if len(s.sent) != 5 || box.Pending() != 0 {
			t.Errorf("%d steps, %d left", len(s.sent), box.Pending())
		}
	})
}

func TestOutboxEndlessStepsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubSink{name: "s", answer: func(Notice, State, int) (State, bool, error) { return State(`1`), true, ErrMore }}
		box := newBox(t, Options{}, Sink{Notifier: s, Every: -1})
		enqueue(t, box, noticeOf("a"))
		sleep(24 * time.Hour)
		if len(s.sent) != maxRefusals*(maxSteps+1) || box.Pending() != 0 {
			t.Errorf("%d steps, %d left", len(s.sent), box.Pending())
		}
	})
}

func TestOutboxHeldBackIsNoDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var until time.Time
		s := &stubSink{name: "s"}
		s.answer = func(_ Notice, _ State, call int) (State, bool, error) {
			if time.Now().Before(until) {
				return State(`1`), true, &Later{Until: until}
			}
			return State(`1`), false, nil
		}
		box := newBox(t, Options{}, Sink{Notifier: s})
		until = time.Now().Add(10 * time.Minute)
		enqueue(t, box, noticeOf("a"))
		sleep(time.Minute)
		enqueue(t, box, noticeOf("a", occurrences(2)))
		sleep(20 * time.Minute)
		if len(s.sent) != 2 || s.sent[1].Delayed != 0 || s.sent[1].Incident.Occurrences != 2 {
			t.Errorf("%d sent, delayed %v", len(s.sent), s.sent[len(s.sent)-1].Delayed)
		}
	})
}

func TestOutboxCloseFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubSink{name: "s"}
		dead := &stubSink{name: "dead", answer: func(Notice, State, int) (State, bool, error) { return nil, true, &Error{Reason: Network} }}
		path := t.TempDir() + "/db"
		db := openDB(t, path)
		box, err := NewOutbox(db, []Sink{{Notifier: s}, {Notifier: dead}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			enqueue(t, box, noticeOf(fmt.Sprint("i", i)))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := box.Close(ctx); err != nil {
			t.Error(err)
		}
		if len(s.sent) != 5 {
			t.Errorf("%d of 5 sent before the end", len(s.sent))
		}
		if err := box.Enqueue(noticeOf("late")); !errors.Is(err, ErrClosed) {
			t.Errorf("Enqueue after Close: %v", err)
		}
		_ = db.Close()

		// What was not sent goes out at the next start.
		dead.answer = nil
		dead.sent = nil
		box, err = NewOutbox(openDB(t, path), []Sink{{Notifier: s}, {Notifier: dead}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		sleep(time.Minute)
		stop(box)
		if len(dead.sent) != 5 || len(s.sent) != 5 {
			t.Errorf("%d and %d after the restart", len(dead.sent), len(s.sent))
		}
	})
}

func TestOutboxCloseKeepsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{Fault: func(*slacktest.Call) *slacktest.Fault { return &slacktest.Fault{Hang: true} }}
		box := newBox(t, Options{}, Sink{Notifier: newTestBot(t, f)})
		enqueue(t, box, noticeOf("a"))
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if err := box.Close(ctx); err == nil || time.Since(start) > 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestOutboxHistoricAndRouting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &stubSink{name: "a"}, &stubSink{name: "b"}
		router := &Router{Routes: []Route{{Match: Match{Class: []string{"nccl"}}, Sinks: []string{"b"}}, {Sinks: []string{"a"}}}}
		box := newBox(t, Options{Router: router}, Sink{Notifier: a}, Sink{Notifier: b})
		enqueue(t, box, noticeOf("old", func(n *Notice) { n.Incident.Status = matcher.StatusHistoric }), noticeOf("x"))
		sleep(time.Minute)
		// Assessed anew as another class: who was told hears it too.
		enqueue(t, box, noticeOf("x", func(n *Notice) { n.Event, n.Incident.Verdict.Class = EventUpdated, "nccl" }))
		sleep(time.Minute)
		if !slices.Equal(a.ids(), []string{"x", "x"}) || !slices.Equal(b.ids(), []string{"x"}) {
			t.Errorf("%v %v", a.ids(), b.ids())
		}
	})
}

func TestOutboxMuteHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		s := &stubSink{name: "s"}
		router := &Router{Mutes: []Mute{
			{Since: now, Until: now.Add(8 * time.Hour)},
			{Match: Match{Class: []string{"nccl"}}, Since: now, Until: now.Add(time.Hour), Then: MuteDrop},
		}}
		box := newBox(t, Options{Router: router}, Sink{Notifier: s})
		enqueue(t, box, noticeOf("a"), noticeOf("dropped", func(n *Notice) { n.Incident.Verdict.Class = "nccl" }))
		sleep(7 * time.Hour)
		if len(s.ids()) != 0 {
			t.Error("sent in the night")
		}
		sleep(2 * time.Hour)
		if !slices.Equal(s.ids(), []string{"a"}) || s.sent[0].Delayed != 8*time.Hour {
			t.Errorf("%v", s.ids())
		}
	})
}

func TestOutboxRefusesBadInput(t *testing.T) {
	box := newBox(t, Options{}, Sink{Notifier: &stubSink{name: "s"}})
	if box.Enqueue(noticeOf("")) == nil || box.Enqueue(noticeOf(strings.Repeat("x", 1000))) == nil {
		t.Error("an unusable id is accepted")
	}
	db := openDB(t, t.TempDir()+"/db")
	if _, err := NewOutbox(db, []Sink{{Notifier: &stubSink{name: "s"}}, {Notifier: &stubSink{name: "s"}}}, Options{}); err == nil {
		t.Error("two sinks of one name are accepted")
	}
}

func TestOutboxStoresNoSecret(t *testing.T) {
	path := t.TempDir() + "/db"
	db := openDB(t, path)
	s := &stubSink{name: "s", answer: func(Notice, State, int) (State, bool, error) { return nil, true, &Error{Reason: Network} }}
	box, err := NewOutbox(db, []Sink{{Notifier: s}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, box, noticeOf("a"))
	stop(box)
	var raw strings.Builder
	err = db.View(func(tx *bolt.Tx) error { _, err := tx.WriteTo(io.Writer(&raw)); return err })
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"verysecretkey", "maria"} {
		if strings.Contains(raw.String(), word) {
			t.Errorf("%s is on disk", word)
		}
	}
}

func TestOutboxSkipsDamagedEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir() + "/db"
		db := openDB(t, path)
		if err := db.Update(func(tx *bolt.Tx) error {
			b, _ := tx.CreateBucketIfNotExists([]byte(bucketQueue))
			b, _ = b.CreateBucketIfNotExists([]byte("s"))
			_ = b.Put([]byte("torn"), []byte(`{"seq":1,"notice":{`))
			b, _ = tx.CreateBucketIfNotExists([]byte(bucketState))
			b, _ = b.CreateBucketIfNotExists([]byte("s"))
			return b.Put([]byte("a"), []byte("\x00"))
		}); err != nil {
			t.Fatal(err)
		}
		s := &stubSink{name: "s"}
		box, err := NewOutbox(db, []Sink{{Notifier: s}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer stop(box)
		enqueue(t, box, noticeOf("a"), noticeOf("torn"))
		sleep(time.Minute)
		if !slices.Equal(s.ids(), []string{"a", "torn"}) {
			t.Errorf("%v", s.ids())
		}
	})
}

func TestOutboxPrunes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubSink{name: "s"}
		box := newBox(t, Options{KeepState: 48 * time.Hour}, Sink{Notifier: s})
		enqueue(t, box, noticeOf("a"))
		sleep(72 * time.Hour)
		enqueue(t, box, noticeOf("b"))
		sleep(time.Minute)
		for id, want := range map[string]bool{"a": false, "b": true} {
			if got, err := box.store.knows("s", id); got != want || err != nil {
				t.Errorf("%s: %v %v", id, got, err)
			}
		}
	})
}
