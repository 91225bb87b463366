package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/matcher"
	"diagnose/notify"
)

// stopped is a context that has ended.
func stopped() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// aQueue is the file of a queue in which notices wait.
func aQueue(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	db, err := openBolt(filepath.Join(dir, "outbox.db"))
	if err != nil {
		t.Fatal(err)
	}
	box, err := notify.NewOutbox(db, []notify.Sink{{Notifier: &fakeSink{name: "s", fail: os.ErrDeadlineExceeded}}}, notify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		n := notify.Notice{Event: notify.EventOpened, Incident: matcher.Incident{ID: fmt.Sprintf("%012x", i)}}
		n.Incident.Root.Text = strings.Repeat("x", 500*i)
		if err := box.Enqueue(n); err != nil {
			t.Fatal(err)
		}
	}
	_ = box.Close(stopped()) // what waits stays
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "outbox.db"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Whatever has become of the queue, the daemon starts, takes notices, and keeps
// what was there.
func TestDamagedQueue(t *testing.T) {
	whole := aQueue(t)
	random := rand.New(rand.NewPCG(1, 2))
	damages := map[string]func(b []byte) []byte{
		"empty":          func([]byte) []byte { return nil },
		"half":           func(b []byte) []byte { return b[:len(b)/2] },
		"a byte short":   func(b []byte) []byte { return b[:len(b)-1] },
		"no end, sparse": func(b []byte) []byte { clear(b[len(b)/2:]); return b },
	}
	for at := 0; at < len(whole); at += 4096 {
		damages[fmt.Sprintf("cut at %d", at)] = func(b []byte) []byte { return b[:at] }
		damages[fmt.Sprintf("page at %d", at)] = func(b []byte) []byte {
			for i := range b[at:min(len(b), at+4096)] {
				b[at+i] = byte(random.Uint32())
			}
			return b
		}
		damages[fmt.Sprintf("header at %d", at)] = func(b []byte) []byte {
			for i := range b[at : at+64] {
				b[at+i] ^= byte(random.Uint32())
			}
			return b
		}
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			spoiled := damage([]byte(string(whole)))
			if err := os.WriteFile(filepath.Join(dir, "outbox.db"), spoiled, 0o600); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			s := &service{cat: &matcher.Catalog{}, cfg: config{StateDir: dir, Notify: notify.Config{Sinks: []notify.SinkConfig{{Name: "s", Log: &notify.LogConfig{}}}}}, log: slog.New(slog.NewTextHandler(&said, nil))}
			done := make(chan error, 1)
			go func() {
				err := s.openDB()
				if err == nil {
					err = s.buildOutbox()
				}
				if err == nil {
					err = s.outbox.Enqueue(notify.Notice{Event: notify.EventOpened, Incident: matcher.Incident{ID: "0123456789ab"}})
				}
				if err == nil {
					_ = s.outbox.Close(stopped()) // what waits stays
					err = s.db.Close()
				}
				done <- err
			}()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it hangs")
			}
			files, err := filepath.Glob(filepath.Join(dir, "outbox.db.bad-*"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(said.String(), "moved aside") != (len(files) == 1) {
				t.Errorf("%v: %s", files, said.String())
			}
			if len(files) == 1 {
				if kept, err := os.ReadFile(files[0]); err != nil || (len(kept) != len(spoiled)) {
					t.Errorf("%d of %d bytes kept, %v", len(kept), len(spoiled), err)
				}
			} else if len(spoiled) < len(whole)/2 {
				t.Error("not told")
			}
		})
	}
}
