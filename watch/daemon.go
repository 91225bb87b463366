package watch

import (
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
	// Publish hands a notice on, durably; an error is warned of and the notice
	// is published again at the next start.
	Publish func(notify.Notice) error
	// Commit is the follower's.
	Commit func(ref tailer.SourceRef, offset, line int64)
	Warn   func(error)
	Host   string
	Now    func() time.Time

	// Gather is how long the first telling waits at most for the other ranks;
	// Quiet is the silence after which it need not wait longer, and open
	// records are read as they stand.
	Gather, Quiet time.Duration
	// Settle is the silence after which an incident is closed, CloseAfter the
	// longest time that it stays open.
	Settle, CloseAfter time.Duration
	// Historic is the age from which an incident is recorded and not notified.
	Historic time.Duration
	// HeldAfter is how long an applied advice must hold to be called held.
	HeldAfter time.Duration
}

func (o *Options) defaults() {
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&o.Gather, 3 * time.Second}, {&o.Quiet, time.Second}, {&o.Settle, 5 * time.Second}, {&o.CloseAfter, time.Minute},
		{&o.Historic, time.Hour}, {&o.HeldAfter, 7 * 24 * time.Hour},
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

// Daemon takes followed lines and tells incidents. It implements
// tailer.Handler.
type Daemon struct {
	opt     Options
	metrics Metrics

	mu      sync.Mutex
	streams map[string]*stream
	records map[string][]Record // by path, read at start
}

// New reads the incidents that this host knows. Records that cannot be read
// are warned of and left alone.
func New(opt Options) (*Daemon, error) {
	opt.defaults()
	d := &Daemon{opt: opt, streams: map[string]*stream{}, records: map[string][]Record{}}
	d.metrics.init()
	list, err := opt.Store.Incidents()
	if err != nil {
		opt.Warn(err)
	}
	for _, r := range list {
		d.records[r.Path] = append(d.records[r.Path], r)
	}
	return d, nil
}

// SetCommit gives the follower's Commit, which exists only after the daemon.
func (d *Daemon) SetCommit(c func(ref tailer.SourceRef, offset, line int64)) { d.opt.Commit = c }

// Resume publishes again what an earlier life recorded and could not publish.
func (d *Daemon) Resume() {
	for _, list := range d.records {
		for _, r := range list {
			if r.Published != "" {
				continue
			}
			n := notify.Notice{Event: notify.EventOpened, Incident: r.Incident, Time: r.Opened, Sources: r.Sources}
			if err := d.opt.Publish(n); err != nil {
				d.warn(err)
				continue
			}
			r.Published = notify.EventOpened
			if err := d.opt.Store.Put(r); err != nil {
				d.warn(err)
			}
		}
	}
}

func (d *Daemon) recordsOf(path string) []Record { return d.records[path] }

func (d *Daemon) warn(err error) { d.opt.Warn(err) }

func (d *Daemon) stream(path string) *stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.streams[path]
	if s == nil {
		s = newStream(d, path)
		d.streams[path] = s
	}
	return s
}

// Line implements tailer.Handler.
func (d *Daemon) Line(ref tailer.SourceRef, l tailer.Line) { d.stream(ref.Path).line(ref, l) }

// Tail implements tailer.Handler.
func (d *Daemon) Tail(ref tailer.SourceRef, l tailer.Line) { d.stream(ref.Path).tail(ref, l) }

// Rotated implements tailer.Handler. The text goes on, so nothing is ended.
func (d *Daemon) Rotated(tailer.SourceRef, tailer.SourceRef, tailer.RotationKind) {}

// Idle implements tailer.Handler.
func (d *Daemon) Idle(ref tailer.SourceRef, now time.Time) { d.stream(ref.Path).idle(now) }

// Gone implements tailer.Handler.
func (d *Daemon) Gone(ref tailer.SourceRef) { d.stream(ref.Path).gone(d.opt.Now()) }

// Metrics gives the counters.
func (d *Daemon) Metrics() *Metrics { return &d.metrics }
