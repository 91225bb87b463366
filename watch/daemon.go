package watch

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"diagnose/matcher"
	"diagnose/notify"
	"diagnose/tailer"
)

// Options of a Daemon. Zero durations take the defaults.
type Options struct {
	Catalog *matcher.Catalog
	Store   *Store
	// Publish hands on what waits of one incident, oldest first, durably, and
	// gives an error or nil for each. After an error the same notice is published
	// again, by Retry or at the next start.
	Publish func([]notify.Notice) []error
	// Commit is the follower's.
	Commit func(ref tailer.SourceRef, offset, line int64)
	// RunStart finds the start of a run before an offset, as the follower's
	// FirstStart; without it the start of a run that is lost stays so.
	RunStart func(f *os.File, before int64) int64
	// Warn is told what went wrong without ending anything. It may be called
	// from any goroutine, and often with the same error.
	Warn func(error)
	Host string
	Now  func() time.Time

	// Gather is how long the first telling waits at most for the other ranks;
	// Quiet is the silence after which it need not wait longer, and open
	// records are read as they stand.
	Gather, Quiet time.Duration
	// Settle is the silence after which an incident is closed, CloseAfter the
	// longest time that it stays open.
	Settle, CloseAfter time.Duration
	// LookBack is how long what may become a failure is kept in reach of a
	// restart.
	LookBack time.Duration
	// Historic is the age from which an incident that was found in a backlog is
	// recorded and not notified.
	Historic time.Duration
	// HeldAfter is how long an applied advice must hold to be called held.
	HeldAfter time.Duration
}

// Defaults of the durations that limit each other.
const (
	DefaultGather     = 3 * time.Second
	DefaultSettle     = 5 * time.Second
	DefaultCloseAfter = time.Minute
)

func (o *Options) defaults() {
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&o.Gather, DefaultGather},
		{&o.Quiet, time.Second},
		{&o.Settle, DefaultSettle},
		{&o.CloseAfter, DefaultCloseAfter},
		{&o.LookBack, 5 * time.Minute},
		{&o.Historic, time.Hour},
		{&o.HeldAfter, 7 * 24 * time.Hour},
	} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
}

// Bounds of what a daemon keeps in memory. Nothing on disk depends on them.
const (
	// maxLoaded is how many incidents are known after a start, the newest ones.
	maxLoaded = 1000
	// forsaken is the time without any call after which a stream is dropped: its
	// source has ended.
	forsaken = time.Hour
)

// Daemon takes followed lines and tells incidents. It implements
// tailer.Handler.
type Daemon struct {
	opt     Options
	metrics Metrics
	began   time.Time

	mu      sync.Mutex
	streams map[string]*stream
	ledgers map[string]*ledger // by path
	// resumed names by path the checkpoint that the follower goes on from; it is
	// used up by the first line.
	resumed map[string]string
}

// New reads the newest incidents that this host knows. Records that cannot be
// read are warned of and left alone.
func New(opt Options) (*Daemon, error) {
	opt.defaults()
	d := &Daemon{opt: opt, began: opt.Now(), streams: map[string]*stream{}, ledgers: map[string]*ledger{}, resumed: map[string]string{}}
	d.metrics.init()
	list, err := opt.Store.index(maxLoaded)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // OpenStore has told of that
		opt.Warn(err)
	}
	for _, e := range list {
		d.ledger(e.Path).put(e)
	}
	return d, nil
}

// SetCommit gives the follower's Commit, which exists only after the daemon.
func (d *Daemon) SetCommit(c func(ref tailer.SourceRef, offset, line int64)) { d.opt.Commit = c }

// Retry writes and publishes again what failed before, in this life or an
// earlier one, and marks advice that has held. It is to be called at the start
// and every few seconds.
func (d *Daemon) Retry() {
	now := d.opt.Now()
	d.mu.Lock()
	for path, l := range d.ledgers {
		if l.waits() {
			d.streamLocked(path)
		}
	}
	all := make([]*stream, 0, len(d.streams))
	for _, s := range d.streams {
		all = append(all, s)
	}
	d.mu.Unlock()
	for _, s := range all {
		s.retry(now)
		if s.forsaken(now) {
			d.drop(s)
		}
	}
}

// ledger is that of a path. The caller holds mu, or is alone.
func (d *Daemon) ledger(path string) *ledger {
	l := d.ledgers[path]
	if l == nil {
		l = &ledger{}
		d.ledgers[path] = l
	}
	return l
}

func (d *Daemon) warn(err error) {
	d.opt.Warn(err)
}

func (d *Daemon) stream(path string) *stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.streamLocked(path)
}

func (d *Daemon) streamLocked(path string) *stream {
	s := d.streams[path]
	if s == nil {
		s = newStream(d, path, d.ledger(path))
		s.called = d.opt.Now()
		d.streams[path] = s
	}
	return s
}

// existing gives a stream that has been made, nil if there is none.
func (d *Daemon) existing(path string) *stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.streams[path]
}

// drop forgets a stream whose source has ended. If it comes back, it goes on
// from its last checkpoint.
func (d *Daemon) drop(s *stream) {
	key := s.safeKey()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.streams[s.path] == s {
		delete(d.streams, s.path)
		if key != "" {
			d.resumed[s.path] = key
		}
	}
}

// Line implements tailer.Handler.
func (d *Daemon) Line(ref tailer.SourceRef, l tailer.Line) { d.stream(ref.Path).line(ref, l) }

// Tail implements tailer.Handler.
func (d *Daemon) Tail(ref tailer.SourceRef, l tailer.Line) { d.stream(ref.Path).tail(ref, l) }

// Rotated implements tailer.Handler. The text goes on, so nothing is ended.
func (d *Daemon) Rotated(tailer.SourceRef, tailer.SourceRef, tailer.RotationKind) {}

// Idle implements tailer.Handler.
func (d *Daemon) Idle(ref tailer.SourceRef, now time.Time) { d.stream(ref.Path).idle(ref, now) }

// Gone implements tailer.Handler. What comes later under the same path is
// another server's, so the stream ends with its container.
func (d *Daemon) Gone(ref tailer.SourceRef) {
	s := d.existing(ref.Path)
	if s == nil {
		return
	}
	s.gone(d.opt.Now())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.streams[ref.Path] == s {
		delete(d.streams, ref.Path)
	}
	delete(d.resumed, ref.Path)
}

// Metrics gives the counters.
func (d *Daemon) Metrics() *Metrics { return &d.metrics }
