package tailer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// source follows one path. Its goroutine runs loop; only what stands below mu
// is touched by others.
type source struct {
	f      *Follower
	target target
	saved  Checkpoint
	// old: the file may have been there before the Follower, so that a first
	// start is not the birth of the log.
	old bool
	ctx context.Context

	lives  []*life // in the order of the text; the last one is followed
	known  []known // what has been read, to tell it among the siblings
	watch  tailer
	misses int // looks in a row at which the path was another file
	hurry  int // looks to come that do not wait a whole tick
	tries  int // to begin while a rotator was at work

	scratch   []byte
	looked    time.Time // last look at the container's folder
	lastLine  time.Time
	lastIdle  time.Time
	grew      time.Time // when the text after off last changed
	grewSize  int64
	progress  time.Time // when off last moved, or nothing was unread
	progOff   int64
	lastKnown int64
	folder    time.Time // when the log's folder last changed, as far as was seen

	mu     sync.Mutex
	status Status
	err    error
	beat   time.Time
	needed []*life // lives to read again after a restart, oldest first
	done   *Position
	ended  bool
	missed time.Time // since when the path has been missing
	size   int64     // of the followed file at the last look
	// tailing: nxadm/tail runs.
	tailing bool
}

func newSource(f *Follower, t target, saved Checkpoint, old bool) *source {
	return &source{f: f, target: t, saved: saved, old: old, status: StatusWaiting, beat: time.Now()}
}

func (s *source) run(ctx context.Context) {
	s.ctx = ctx
	defer s.close()
	now := time.Now()
	s.lastLine, s.lastIdle, s.progress, s.grew = now, now, now, now
	s.resume(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case line, ok := <-s.watch.lines():
			before := s.interval()
			if ok {
				s.fromTail(ctx, line)
			} else {
				s.tailEnded()
			}
			if s.interval() < before {
				timer.Reset(s.untilTick())
			}
		case <-timer.C:
			if s.tick(ctx) {
				return
			}
			timer.Reset(s.untilTick())
		}
	}
}

// untilTick is the time to the next look.
func (s *source) untilTick() time.Duration {
	d := s.interval()
	if s.hurry > 0 {
		return d
	}
	return s.f.until(d)
}

func (s *source) close() {
	s.endTail()
	for _, l := range s.lives {
		l.discard()
	}
	s.mu.Lock()
	s.ended, s.status = true, StatusEnded
	s.mu.Unlock()
	s.f.release(s)
}

// interval is the time between two looks.
func (s *source) interval() time.Duration {
	opt := &s.f.opt
	if s.hurry > 0 {
		return min(opt.Settle, opt.Tick)
	}
	busy := s.misses > 0 && s.cur() != nil && s.pathExists()
	if !busy && time.Since(s.lastLine) > opt.IdleAfter && time.Since(s.grew) > opt.IdleAfter {
		return max(opt.IdleTick, opt.Tick)
	}
	return opt.Tick
}

func (s *source) pathExists() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missed.IsZero()
}

// cur is the life that is followed, nil before the first.
func (s *source) cur() *life {
	if len(s.lives) == 0 {
		return nil
	}
	return s.lives[len(s.lives)-1]
}

// tick looks at the path and at the files that are open. It tells whether the
// source has ended for good.
func (s *source) tick(ctx context.Context) (ended bool) {
	now := time.Now()
	if s.hurry > 0 {
		s.hurry--
	}
	s.mu.Lock()
	s.beat = now
	s.mu.Unlock()

	path, err := s.livePath(now)
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(path)
	}
	s.seen(err, now)
	cur := s.cur()
	if cur == nil || cur.file == nil {
		if err == nil {
			s.open(ctx, path)
		}
	} else {
		s.look(ctx, path, info, err)
	}
	s.late(ctx, now)
	s.partial(now)
	s.idle(now)
	return s.target.ends && s.vanished(ctx, now)
}

// seen keeps what the path is like for State.
func (s *source) seen(err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	switch {
	case err == nil:
		s.missed = time.Time{}
		return
	case s.missed.IsZero():
		s.missed = now
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.status = StatusWaiting
		// What comes now is new, unless a rotator was just at work.
		s.old = s.old && (len(s.lives) > 0 || now.Sub(s.missed) < s.f.opt.Grace)
		s.err = nil
	case errors.Is(err, fs.ErrPermission):
		s.status = StatusDenied
	default:
		s.status = StatusUnfit
	}
}

func (s *source) setStatus(status Status, err error) {
	s.mu.Lock()
	s.status, s.err = status, err
	s.mu.Unlock()
}

// openLive opens what the path is now, under its real name. Nil means not yet;
// State says why.
func (s *source) openLive(path string) (file *os.File, info os.FileInfo, name string) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		// Opening a device or a FIFO can have effects.
		s.setStatus(StatusUnfit, &os.PathError{Op: "follow", Path: path, Err: errors.New("not a regular file")})
		return nil, nil, ""
	}
	name = realName(path)
	file, info, err := openRegular(name)
	if err != nil {
		s.seen(err, time.Now())
		return nil, nil, ""
	}
	if !s.f.claim(idOf(info), s) {
		_ = file.Close()
		s.setStatus(StatusDuplicate, nil)
		return nil, nil, ""
	}
	return file, info, name
}

// open begins the first life of the path, or goes on with the next where the
// last one is no longer open.
func (s *source) open(ctx context.Context, path string) {
	if s.cur() == nil {
		s.resume(ctx) // it may have found nothing before the path was there
	}
	cur := s.cur()
	if cur != nil && cur.file != nil {
		return
	}
	back := cur == nil && s.old && s.f.opt.Runs != nil
	var newest Position
	if cur == nil && !back {
		// Looked at before the file is opened: what comes beside it later is new.
		newest = s.learnSiblings(path)
	}
	file, info, name := s.openLive(path)
	switch {
	case file == nil:
	case cur != nil:
		s.setStatus(StatusFollowing, nil)
		s.enter(ctx, s.newLife(file, info, name, 0, 0), RotatedOffline)
	case back:
		if !s.beginBack(ctx, path, file, info, name) {
			_ = file.Close()
			s.hurry = 1
		}
	default:
		s.beginAt(s.newLife(file, info, name, 0, 0), newest)
	}
}

// beginAt makes l the first life; all up to newest needs no reading.
func (s *source) beginAt(l *life, newest Position) {
	s.setStatus(StatusFollowing, nil)
	s.mu.Lock()
	s.done = &newest
	s.mu.Unlock()
	s.begin(l)
}

// begin makes l the first life, or the first of another run.
func (s *source) begin(l *life) {
	s.lives = append(s.lives, l)
	s.need(l)
}

// need puts lives into the checkpoint, those that are not yet in it.
func (s *source) need(lives ...*life) {
	s.mu.Lock()
	for _, l := range lives {
		if !slices.Contains(s.needed, l) {
			s.needed = append(s.needed, l)
		}
	}
	s.mu.Unlock()
	s.f.saveSoon()
}

// look compares the followed life with its file and with the path.
func (s *source) look(ctx context.Context, path string, info os.FileInfo, pathErr error) {
	cur := s.cur()
	own, err := cur.file.Stat()
	if err != nil {
		s.setStatus(StatusUnfit, err)
		return
	}
	if own.Size() < cur.off || (own.Size() != s.lastKnown && !cur.intact()) {
		s.truncated(ctx)
		return
	}
	s.lastKnown = own.Size()
	s.noteLook(cur, own)
	if pathErr != nil || !os.SameFile(own, info) {
		s.misses++
	} else {
		s.misses = 0
	}
	if s.misses >= 2 && pathErr == nil {
		s.rotate(ctx, path)
		return
	}
	if pathErr == nil {
		s.setStatus(StatusFollowing, nil)
	}
	s.watchFolder(ctx, cur)
	s.pump(ctx, own.Size())
}

// pump gets the unread text read, by nxadm/tail where it works well.
func (s *source) pump(ctx context.Context, size int64) {
	cur, now := s.cur(), time.Now()
	unread := size - cur.off
	if cur.off != s.progOff || unread == 0 {
		s.progress, s.progOff = now, cur.off
	}
	cur.size = size
	if s.watch.running() {
		stalled := now.Sub(s.progress) > s.f.opt.StallAfter && cur.hasNewline()
		if unread <= s.f.opt.Burst && !stalled {
			return
		}
		if stalled {
			s.f.counters.Stalls.Add(1)
			s.watch.punish(now, s.f.opt.Tick)
		}
		s.stopTail()
		if unread > hugeUnread {
			// nxadm/tail may hold three times that; it is not wanted back soon.
			s.watch.hold = now.Add(hugeHold)
			debug.FreeOSMemory()
		}
		s.drainOrTruncate(ctx)
		return
	}
	if !s.drainOrTruncate(ctx) {
		return
	}
	cur = s.cur()
	if s.f.opt.OwnReader || cur.file == nil || cur.size-cur.off > s.f.opt.Burst || s.misses > 0 {
		return
	}
	s.startTail(now)
}

// drainOrTruncate reads the followed life to its end. False: it was truncated,
// or the disk fails.
func (s *source) drainOrTruncate(ctx context.Context) bool {
	err := s.drain(ctx, s.cur())
	switch {
	case err == nil:
		return true
	case errors.Is(err, errReplaced):
		s.truncated(ctx)
	case ctx.Err() == nil:
		s.setStatus(StatusUnfit, err)
	}
	return false
}

func (s *source) idle(now time.Time) {
	cur := s.cur()
	if cur == nil || now.Sub(s.lastLine) < s.f.opt.IdleEvery || now.Sub(s.lastIdle) < s.f.opt.IdleEvery {
		return
	}
	s.lastIdle = now
	s.f.handler.Idle(cur.ref, s.f.opt.Now())
}

// vanished ends a source whose container has been removed.
func (s *source) vanished(ctx context.Context, now time.Time) bool {
	s.mu.Lock()
	since := s.missed
	s.mu.Unlock()
	if since.IsZero() || now.Sub(since) < s.f.opt.Grace || s.cur() == nil {
		return false
	}
	s.stopTail()
	_ = s.drain(ctx, s.cur())
	s.surrender(s.lives)
	s.f.handler.Gone(s.cur().ref)
	return true
}

// abandoned tells whether a path that its glob no longer yields has nothing
// left to read.
func (s *source) abandoned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.missed.IsZero() && time.Since(s.missed) > max(time.Minute, 2*s.f.opt.Grace)
}

func (s *source) holds(id fileID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	for _, l := range s.needed {
		if l.id == id {
			return true
		}
	}
	return false
}

func (s *source) state() SourceState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := SourceState{Status: s.status, Err: s.err, Beat: s.beat}
	if n := len(s.needed); n > 0 {
		l := s.needed[n-1]
		st.Ref, st.Offset, st.Lag = l.ref, l.off, max(0, s.size-l.off)
	}
	return st
}

// realName is what a path stands for, with its links followed.
func realName(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
