package tailer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/nxadm/tail"
)

// tailer is nxadm/tail v1.4.11 under guard. It tells of lines soon after they
// are written; what it says is compared with the file through our own
// descriptor, and what it leaves out is read there. So nothing depends on it
// but the delay: it may fall silent, skip, repeat or reopen.
type tailer struct {
	t       *tail.Tail
	num     int       // of its last line; it counts from 1 again after reopening
	started time.Time // of this Tail
	hold    time.Time // not to be started before
	backoff time.Duration
}

const (
	maxBackoff = time.Minute
	// hugeUnread is so much text in one tick that it may be one line, which
	// nxadm/tail keeps whole; hugeHold is how long own code reads then.
	hugeUnread = 8 << 20
	hugeHold   = time.Minute
	// stopWait is how long a Tail may take to end. It hangs where fsnotify
	// does; its goroutine is then left behind.
	stopWait = time.Second
)

// inotifyWorks tries to get an inotify instance. Without one nxadm/tail ends
// the process (inotify_tracker.go).
func inotifyWorks() bool {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return false
	}
	return w.Close() == nil
}

func (w *tailer) running() bool { return w.t != nil }

// lines is nil, which blocks, while there is no Tail.
func (w *tailer) lines() <-chan *tail.Line {
	if w.t == nil {
		return nil
	}
	return w.t.Lines
}

// punish makes the next start wait, longer each time.
func (w *tailer) punish(now time.Time, first time.Duration) {
	if !w.started.IsZero() && now.Sub(w.started) > maxBackoff {
		w.backoff = 0
	}
	w.backoff = min(max(2*w.backoff, first), maxBackoff)
	w.hold = now.Add(w.backoff)
}

// forgive begins anew with another file, though not at once: see stopTail.
func (w *tailer) forgive(now time.Time, wait time.Duration) {
	w.backoff = 0
	if soon := now.Add(wait); w.hold.After(soon) {
		w.hold = soon
	}
}

// start follows file from off.
//
// The name given to nxadm/tail is that of our descriptor in /proc, where there
// is one: it means this file whatever happens to its path, so that no other
// file can be opened by mistake, links need no polling, and the stat whose
// failure ends the process (util.Fatal in inotify.go and polling.go) cannot
// fail for the want of permission on a folder.
func (w *tailer) start(file *os.File, path string, off int64, poll bool) error {
	own, err := file.Stat()
	if err != nil {
		return err
	}
	name := fmt.Sprintf("/proc/self/fd/%d", file.Fd())
	if info, err := os.Stat(name); err != nil || !os.SameFile(info, own) {
		name = path
		if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink != 0 {
			poll = true
		}
	}
	t, err := tail.TailFile(name, tail.Config{
		Location:      &tail.SeekInfo{Offset: off, Whence: io.SeekStart},
		Follow:        true,
		MustExist:     true,
		CompleteLines: true,
		Poll:          poll,
		Logger:        tail.DiscardingLogger,
	})
	if err != nil {
		return err
	}
	w.t, w.num, w.started = t, 0, time.Now()
	if info, err := os.Stat(name); err != nil || !os.SameFile(info, own) {
		w.stop()
		return fmt.Errorf("follow %s: another file has the name", path)
	}
	return nil
}

// stop ends the Tail and throws away what it still says. False: it does not
// end.
func (w *tailer) stop() bool {
	if w.t == nil {
		return true
	}
	t := w.t
	w.t = nil
	t.Kill(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range t.Lines { //nolint:revive // it is closed when the Tail ends
		}
		_ = t.Wait()
	}()
	wait := time.NewTimer(stopWait)
	defer wait.Stop()
	select {
	case <-done:
		return true
	case <-wait.C:
		return false
	}
}

// endTail stops the Tail. One that does not end hangs in its tracker, and with
// it every other that uses inotify: fsnotify sends an error while it holds the
// lock that its reader needs (handleEvent in backend_inotify.go: the watch of a
// renamed file is removed after the file is gone). Our own descriptor keeps the
// file, so it should not come to that; if it does, the Tails poll from then on.
func (s *source) endTail() {
	s.setTailing(false)
	if s.watch.stop() {
		return
	}
	if s.f.counters.inotify.CompareAndSwap(true, false) {
		s.f.opt.Warn(errors.New("nxadm/tail hangs in inotify: files are polled from now on"))
	}
}

func (s *source) startTail(now time.Time) {
	if now.Before(s.watch.hold) {
		return
	}
	cur := s.cur()
	if err := s.watch.start(cur.file, s.target.path, cur.off, !s.f.counters.inotify.Load()); err != nil {
		s.watch.punish(now, s.f.opt.Tick)
		return
	}
	s.setTailing(true)
}

func (s *source) setTailing(on bool) {
	s.mu.Lock()
	s.tailing = on
	s.mu.Unlock()
}

// stopTail ends the Tail before its file has ended.
func (s *source) stopTail() {
	if !s.watch.running() {
		return
	}
	s.endTail()
	s.f.counters.TailRestarts.Add(1)
	// A Tail that follows at once can lose its watch to the end of this one
	// (removeWatch in inotify_tracker.go closes the channel that both share).
	if soon := time.Now().Add(s.f.opt.Tick); s.watch.hold.Before(soon) {
		s.watch.hold = soon
	}
}

// tailEnded: the file was renamed or removed, or the Tail met an error.
func (s *source) tailEnded() {
	s.endTail()
	s.watch.punish(time.Now(), s.f.opt.Tick)
	s.hurry = 3 // two looks that agree, and one to read on
}

// fromTail takes a line that nxadm/tail gives, if it is the next one of the
// file.
func (s *source) fromTail(ctx context.Context, line *tail.Line) {
	cur := s.cur()
	n, end := int64(len(line.Text)), line.SeekInfo.Offset
	next := line.Num == s.watch.num+1 && end == cur.off+n+1 && (cur.off > 0 || cur.intact())
	s.watch.num = line.Num
	if next && n <= int64(min(smallRead, s.f.opt.MaxLine)) {
		before := len(cur.before())
		if need := before + int(n) + 1; cap(s.scratch) < need {
			s.scratch = make([]byte, max(need, 4096))
		}
		buf := s.scratch[:before+int(n)+1]
		if _, err := cur.file.ReadAt(buf, cur.off-int64(before)); err == nil &&
			bytes.Equal(buf[:before], cur.before()) &&
			string(buf[before:before+int(n)]) == line.Text && buf[len(buf)-1] == '\n' {
			s.scratch = nil // a Handler may come here again
			s.take(ctx, cur, Line{
				Data: buf[before : len(buf)-1 : len(buf)-1], Offset: cur.off, Next: end, Number: cur.line,
			})
			s.scratch = buf[:cap(buf)]
			return
		}
	}
	// Too long, out of order, or not what the file says: own code reads on.
	if info, err := cur.file.Stat(); err == nil && (info.Size() < cur.off || !cur.intact()) {
		s.truncated(ctx)
		return
	}
	s.stopTail()
	s.drainOrTruncate(ctx)
}

// salvage takes the lines that nxadm/tail had read when the file was
// truncated: without a copy they exist nowhere else. They are only trusted
// while the file is shorter than their end, so that they must be old.
func (s *source) salvage(ctx context.Context) {
	if !s.watch.running() || s.findCopy(s.cur()) != nil {
		return
	}
	cur := s.cur()
	wait := time.NewTimer(s.f.opt.Settle)
	defer wait.Stop()
	for {
		select {
		case line, ok := <-s.watch.lines():
			if !ok {
				s.endTail()
				return
			}
			n, end := int64(len(line.Text)), line.SeekInfo.Offset
			info, err := cur.file.Stat()
			if err != nil || line.Num != s.watch.num+1 || end != cur.off+n+1 || info.Size() >= end {
				return
			}
			s.watch.num = line.Num
			s.take(ctx, cur, Line{Data: []byte(line.Text), Offset: cur.off, Next: end, Number: cur.line})
		case <-wait.C:
			return
		}
	}
}
