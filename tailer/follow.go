package tailer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Handler takes what a Follower reads. The calls for one path come from one
// goroutine, in order; different paths call at the same time. A call that
// blocks holds up its path only: the file is the buffer.
type Handler interface {
	// Line is called for every line, complete unless l.Unterminated. A line
	// that began in one generation and ended in the next is one line and
	// carries the ref of the first, and so do lines that a writer adds to a
	// file after it was rotated: they can come after Rotated.
	Line(ref SourceRef, l Line)
	// Tail shows what stands after the last "\n" and has not grown for
	// Options.TailAfter. It is not consumed: it can be shown again, longer,
	// and the Line with the same Offset replaces it.
	Tail(ref SourceRef, l Line)
	// Rotated tells that the path goes on in another generation. The text goes
	// on as well: a record may begin in old and end in next.
	Rotated(old, next SourceRef, kind RotationKind)
	// Idle is called about once in Options.IdleEvery while nothing arrives.
	Idle(ref SourceRef, now time.Time)
	// Gone tells that the source has ended for good: its container was
	// replaced or removed, its pipe closed. A later ref of the path is another
	// run.
	Gone(ref SourceRef)
}

// SourceRef names the generation that a line comes from. It is comparable.
type SourceRef struct {
	// Path is the name under which the source is followed: a path as given or
	// found, a container's folder with "*.log", "journal:UNIT", or "-".
	Path string
	// Gen numbers the generations that one Follower meets; it means nothing to
	// another.
	Gen uint64
	// Name is the file that was opened.
	Name string
	// Device and Inode are those of the file; zero for a journal or a pipe.
	Device, Inode uint64
	// Head is the SHA-256, in hex, of the first HeadLen bytes as they were
	// when the generation was opened.
	Head    string
	HeadLen int
	Meta    Meta
}

// Meta is what the place of a log tells about its writer. What is unknown is
// empty.
type Meta struct {
	Pod, Namespace, Container string
	// Restart counts the restarts of a Kubernetes container, from 0.
	Restart int
	// Unit, Host and PID are those of the journal.
	Unit, Host string
	PID        int
}

// Options of a Follower. A zero duration or size means its default.
type Options struct {
	// Paths are files and globs; "-" is Stdin. What does not exist yet is
	// waited for.
	Paths []string
	// Journals are systemd units.
	Journals []string
	Stdin    io.Reader
	// Store keeps the checkpoints; nil keeps none.
	Store Store
	// FirstStart gives the offset to begin from in a file that has no
	// checkpoint and was there before the Follower was. It must be the start
	// of a line. Nil begins at 0.
	FirstStart func(path string, f *os.File, size int64) int64
	// Starts reports that a line surely begins a line of its own. It is asked
	// where a generation ended without "\n": if it says no, or is nil, the
	// next generation's first line is taken for the rest of that piece.
	Starts func(line []byte) bool
	// Warn is told what went wrong without ending anything: a Store that
	// fails, a journal that ended. It may be called from any goroutine.
	Warn func(error)
	// Now is the clock of Idle and Line.ReadAt.
	Now func() time.Time

	// MaxLine is that of ReadOptions.
	MaxLine int
	// Burst is how much unread text, in bytes, is read with Read instead of
	// nxadm/tail. Default 256 KiB.
	Burst int64
	// Carry is how much text that was read but not committed is kept in a
	// checkpoint for each generation, in bytes, in case its file is removed.
	// Default 256 KiB; beyond it nothing is kept, and so it is with -1.
	Carry int64
	// OwnReader never uses nxadm/tail. Memory is then bounded by MaxLine
	// whatever is written; lines wait up to one Tick.
	OwnReader bool
	// JournalCommand replaces "journalctl"; the arguments are appended.
	JournalCommand []string

	Tick       time.Duration // between looks at a path; default 200 ms
	IdleTick   time.Duration // the same once nothing came for IdleAfter; 1 s
	IdleAfter  time.Duration // 10 s
	Scan       time.Duration // between expansions of the globs; 2 s
	Settle     time.Duration // wait for a writer to leave a renamed file; 30 ms
	Grace      time.Duration // a rotated file is read until quiet for this long; 5 s
	TailAfter  time.Duration // 2 s
	StallAfter time.Duration // silence of nxadm/tail over unread lines; 2 s
	IdleEvery  time.Duration // 1 s
	SaveEvery  time.Duration // 1 s
	// Keep is how long the checkpoint of a path that is no longer followed is
	// kept; default 7 days.
	Keep time.Duration
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&o.Tick, 200 * time.Millisecond},
		{&o.IdleTick, time.Second},
		{&o.IdleAfter, 10 * time.Second},
		{&o.Scan, 2 * time.Second},
		{&o.Settle, 30 * time.Millisecond},
		{&o.Grace, 5 * time.Second},
		{&o.TailAfter, 2 * time.Second},
		{&o.StallAfter, 2 * time.Second},
		{&o.IdleEvery, time.Second},
		{&o.SaveEvery, time.Second},
		{&o.Keep, 7 * 24 * time.Hour},
	} {
		if *d.value <= 0 {
			*d.value = d.def
		}
	}
	if o.MaxLine <= 0 {
		o.MaxLine = defaultMaxLine
	}
	if o.Burst <= 0 {
		o.Burst = 256 << 10
	}
	if o.Carry == 0 {
		o.Carry = 256 << 10
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
	if len(o.JournalCommand) == 0 {
		o.JournalCommand = []string{"journalctl"}
	}
	return o
}

// feeder is one followed path, journal or pipe.
type feeder interface {
	run(ctx context.Context)
	commit(gen uint64, offset, line int64)
	// checkpoint is empty where there is nothing to resume from.
	checkpoint() Checkpoint
	state() SourceState
}

// Follower follows logs and hands their lines to a Handler. It is used once.
type Follower struct {
	opt      Options
	handler  Handler
	counters Counters
	boot     string
	lastGen  atomic.Uint64

	mu      sync.Mutex
	paths   []string
	feeders map[string]*running
	claims  map[fileID]*source    // who follows which file
	saved   map[string]Checkpoint // as loaded, and of sources that ended
	scanned bool                  // the first expansion of the globs is over
	wake    chan struct{}         // the paths have changed
	saving  sync.Mutex            // one Save at a time
	last    map[string]Checkpoint // what was saved last
	glob    globCache
}

type running struct {
	feeder
	cancel context.CancelFunc
	done   chan struct{}
}

// NewFollower makes a Follower; Run starts it.
func NewFollower(opt Options, h Handler) (*Follower, error) {
	if h == nil {
		return nil, errors.New("follow: no handler")
	}
	f := &Follower{
		opt:     opt.withDefaults(),
		handler: h,
		boot:    bootID(),
		paths:   slices.Clone(opt.Paths),
		feeders: map[string]*running{},
		claims:  map[fileID]*source{},
		saved:   map[string]Checkpoint{},
		wake:    make(chan struct{}, 1),
	}
	for _, p := range f.paths {
		if err := checkPattern(p); err != nil {
			return nil, err
		}
		if p == "-" && opt.Stdin == nil {
			return nil, errors.New("follow standard input: there is none")
		}
	}
	return f, nil
}

// Run follows until ctx ends, then saves the checkpoints and returns. All
// goroutines have ended by then, and the Handler is not called again. It
// returns what the last saving failed with.
func (f *Follower) Run(ctx context.Context) error {
	if f.opt.Store != nil {
		saved, err := f.opt.Store.Load()
		if err != nil {
			f.opt.Warn(fmt.Errorf("load checkpoints: %w", err))
		}
		f.mu.Lock()
		for path, c := range saved {
			f.saved[path] = c
		}
		f.mu.Unlock()
	}
	pollOnly := f.opt.OwnReader || !inotifyWorks()
	f.counters.inotify.Store(!pollOnly)

	scan := time.NewTimer(0)
	defer scan.Stop()
	save := time.NewTicker(f.opt.SaveEvery)
	defer save.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-f.wake:
			f.scan(ctx)
		case <-scan.C:
			f.scan(ctx)
			scan.Reset(f.opt.Scan)
		case <-save.C:
			if err := f.Flush(); err != nil {
				f.opt.Warn(err)
			}
		}
	}
	f.mu.Lock()
	all := make([]*running, 0, len(f.feeders))
	for _, r := range f.feeders {
		all = append(all, r)
	}
	f.mu.Unlock()
	for _, r := range all {
		<-r.done // their context has ended with ctx
	}
	return f.Flush()
}

// SetPaths replaces the files and globs that are followed. What is followed
// already goes on; what is no longer named ends, and its checkpoint is kept.
// A bad glob is an error and changes nothing.
func (f *Follower) SetPaths(paths []string) error {
	for _, p := range paths {
		if err := checkPattern(p); err != nil {
			return err
		}
	}
	f.mu.Lock()
	f.paths = slices.Clone(paths)
	f.glob = globCache{}
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return nil
}

// Commit tells from where a restart must read again: from offset in the
// generation ref, and everything that follows it. line is the number of the
// line that begins there, 0 if unknown. For a source without open records that
// is the Next of the last line, else the Offset of the oldest line still
// needed. Commit may go back as long as the generation is still kept, that is,
// until a commit lies in a later one. A ref that is no longer known is ignored.
func (f *Follower) Commit(ref SourceRef, offset, line int64) {
	f.mu.Lock()
	r := f.feeders[ref.Path]
	f.mu.Unlock()
	if r != nil {
		r.commit(ref.Gen, offset, line)
	}
}

// Flush saves the checkpoints now, if one has changed. It may be called from
// the Handler.
func (f *Follower) Flush() error {
	if f.opt.Store == nil {
		return nil
	}
	f.saving.Lock()
	defer f.saving.Unlock()
	all := f.snapshot()
	if sameCheckpoints(all, f.last) {
		return nil
	}
	if err := f.opt.Store.Save(all); err != nil {
		return fmt.Errorf("save checkpoints: %w", err)
	}
	f.last = all
	f.counters.saved.Store(f.opt.Now().UnixNano())
	return nil
}

// snapshot collects the checkpoints of what is followed and of what was.
func (f *Follower) snapshot() map[string]Checkpoint {
	now := f.opt.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]Checkpoint{}
	for path, c := range f.saved {
		if now.Sub(c.Saved) < f.opt.Keep {
			all[path] = c
		}
	}
	for path, r := range f.feeders {
		if c := r.checkpoint(); !c.isZero() {
			c.Path, c.Boot, c.Saved = path, f.boot, now
			all[path] = c
		}
	}
	return all
}

// scan starts what the patterns name now and ends what they no longer name.
func (f *Follower) scan(ctx context.Context) {
	f.mu.Lock()
	paths := f.paths
	first := !f.scanned
	f.mu.Unlock()
	wanted := f.glob.expand(paths)

	f.end(wanted)
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, t := range wanted {
		if _, ok := f.feeders[key]; ok {
			continue
		}
		if key == "-" {
			if first && f.opt.Stdin != nil {
				f.start(ctx, key, newPipe(f, f.opt.Stdin))
			}
			continue
		}
		f.start(ctx, key, newSource(f, t, f.saved[key], t.literal || first))
	}
	if first {
		for _, unit := range f.opt.Journals {
			key := journalPrefix + unit
			f.start(ctx, key, newJournal(f, unit, f.saved[key]))
		}
	}
	f.scanned = true
}

// end stops what is no longer wanted and forgets what ended by itself. It waits
// without the lock, since a Handler may be in a call that needs it.
func (f *Follower) end(wanted map[string]target) {
	ended := map[string]*running{}
	f.mu.Lock()
	for key, r := range f.feeders {
		select {
		case <-r.done: // a container that is gone
			ended[key] = r
			continue
		default:
		}
		if _, ok := wanted[key]; !ok && !strings.HasPrefix(key, journalPrefix) && !f.keeps(key) {
			ended[key] = r
		}
	}
	f.mu.Unlock()
	for key, r := range ended {
		r.cancel()
		<-r.done
		f.mu.Lock()
		f.forget(key, r)
		f.mu.Unlock()
	}
}

// keeps tells whether a source that no pattern yields any more goes on: its
// file is missing, but it matched a glob that is still there.
func (f *Follower) keeps(key string) bool {
	if key == "-" {
		return true
	}
	r, ok := f.feeders[key].feeder.(*source)
	return ok && r.target.pattern != "" && slices.Contains(f.paths, r.target.pattern) && !r.abandoned()
}

func (f *Follower) start(ctx context.Context, key string, one feeder) {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{feeder: one, cancel: cancel, done: make(chan struct{})}
	f.feeders[key] = r
	go func() {
		defer close(r.done)
		one.run(ctx)
	}()
}

// forget keeps the last checkpoint of a feeder that has ended.
func (f *Follower) forget(key string, r *running) {
	if c := r.checkpoint(); !c.isZero() {
		c.Path, c.Boot, c.Saved = key, f.boot, f.opt.Now()
		f.saved[key] = c
	}
	delete(f.feeders, key)
}

// claim gives a file to one source, so that two names of it are not followed
// twice (and nxadm/tail never watches one file twice).
func (f *Follower) claim(id fileID, s *source) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if owner, ok := f.claims[id]; ok && owner != s {
		return false
	}
	f.claims[id] = s
	return true
}

func (f *Follower) release(s *source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, owner := range f.claims {
		if owner == s && !s.holds(id) {
			delete(f.claims, id)
		}
	}
}

func (f *Follower) nextGen() uint64 { return f.lastGen.Add(1) }

// bootID is empty where the system has none to tell.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
