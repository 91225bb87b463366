package tailer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

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
	born     time.Time
	lastGen  atomic.Uint64

	mu      sync.Mutex
	paths   []string
	feeders map[string]*running
	claims  map[fileID]*source    // who follows which file
	saved   map[string]Checkpoint // as loaded, and of sources that ended
	scanned bool                  // the first expansion of the globs is over
	wake    chan struct{}         // the paths have changed
	fresh   chan struct{}         // there is something new to checkpoint
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
		born:    time.Now(),
		paths:   slices.Clone(opt.Paths),
		feeders: map[string]*running{},
		claims:  map[fileID]*source{},
		saved:   map[string]Checkpoint{},
		wake:    make(chan struct{}, 1),
		fresh:   make(chan struct{}, 1),
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
	f.counters.inotify.Store(!f.opt.OwnReader && !f.opt.Poll && inotifyWorks())

	scan := time.NewTimer(0)
	defer scan.Stop()
	save := time.NewTimer(f.until(f.opt.SaveEvery))
	defer save.Stop()
	failed := ""
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-f.wake:
			f.scan(ctx)
		case <-scan.C:
			f.scan(ctx)
			scan.Reset(f.until(f.opt.Scan))
		case <-f.fresh:
			f.save(&failed)
		case <-save.C:
			f.save(&failed)
			f.opt.Pulse()
			save.Reset(f.until(f.opt.SaveEvery))
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

// until is the time to the next multiple of d since the start. What is done
// every so often is done at the same moments, so that a quiet process wakes up
// once for all of it.
func (f *Follower) until(d time.Duration) time.Duration { return d - time.Since(f.born)%d }

// save warns of what fails, once until it fails in another way.
func (f *Follower) save(failed *string) {
	text := ""
	if err := f.Flush(); err != nil {
		if text = err.Error(); text != *failed {
			f.opt.Warn(err)
		}
	}
	*failed = text
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
		if key == "-" {
			continue // it does not come back, and State goes on telling that it ended
		}
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

// saveSoon asks for a checkpoint: without one of this generation, a restart
// would not know which of the files beside the log are new.
func (f *Follower) saveSoon() {
	select {
	case f.fresh <- struct{}{}:
	default:
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
