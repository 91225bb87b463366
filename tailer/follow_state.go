package tailer

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// RotationKind tells how a path came to another generation.
type RotationKind string

// The kinds of rotation.
const (
	// RotatedRename: the file was renamed, maybe compressed since.
	RotatedRename RotationKind = "rename"
	// RotatedCopy: the file was copied, then truncated; the copy was found and
	// what was unread taken from it.
	RotatedCopy RotationKind = "copytruncate"
	// RotatedTruncate: truncated, and no copy was found. What was unread is
	// lost.
	RotatedTruncate RotationKind = "truncate"
	// RotatedDelete: the file was removed and another created.
	RotatedDelete RotationKind = "delete"
	// RotatedSymlink: the path is a link and points elsewhere.
	RotatedSymlink RotationKind = "symlink"
	// RotatedReplaced: another file has the name, for a reason unknown; a
	// folder was exchanged, or the file was moved away.
	RotatedReplaced RotationKind = "replaced"
	// RotatedOffline: it happened while nobody followed.
	RotatedOffline RotationKind = "offline"
)

// RotationKinds lists the kinds, in the order of Counters.rotations.
func RotationKinds() []RotationKind {
	return []RotationKind{
		RotatedRename, RotatedCopy, RotatedTruncate, RotatedDelete,
		RotatedSymlink, RotatedReplaced, RotatedOffline,
	}
}

// Counters count since the start of a Follower. They can be read at any time.
type Counters struct {
	Bytes, Lines atomic.Int64
	// CutLines counts lines that were longer than MaxLine.
	CutLines atomic.Int64
	// TailRestarts counts how often nxadm/tail was ended before its file was:
	// for a burst, a stall, or an answer that did not match the file.
	TailRestarts atomic.Int64
	// Stalls are those of them where it was silent over unread lines.
	Stalls atomic.Int64
	// LostBytes counts bytes known to be lost: unread when their file was
	// truncated or removed. What a rotator destroyed unseen is not in it.
	LostBytes atomic.Int64
	// LostGenerations counts checkpoints whose file was found nowhere.
	LostGenerations atomic.Int64
	// JournalRestarts counts how often journalctl was started again.
	JournalRestarts atomic.Int64
	// JournalSkipped counts journal entries that could not be read.
	JournalSkipped atomic.Int64

	rotations [7]atomic.Int64
	inotify   atomic.Bool
	saved     atomic.Int64
}

// Rotations counts the rotations of one kind.
func (c *Counters) Rotations(kind RotationKind) int64 {
	if i := slices.Index(RotationKinds(), kind); i >= 0 {
		return c.rotations[i].Load()
	}
	return 0
}

// Inotify tells whether nxadm/tail may use inotify; without it lines wait for
// the next tick.
func (c *Counters) Inotify() bool { return c.inotify.Load() }

// Saved is when checkpoints were last saved; zero before that.
func (c *Counters) Saved() time.Time {
	if n := c.saved.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

func (c *Counters) rotated(kind RotationKind) {
	if i := slices.Index(RotationKinds(), kind); i >= 0 {
		c.rotations[i].Add(1)
	}
}

// Status is what a source is doing.
type Status string

// The states of a source.
const (
	StatusWaiting   Status = "waiting"   // the path does not exist
	StatusDenied    Status = "denied"    // no permission
	StatusUnfit     Status = "unfit"     // a folder, a device, a broken disk: see Err
	StatusDuplicate Status = "duplicate" // the file is followed under another name
	StatusReading   Status = "reading"   // behind: older text is being read
	StatusFollowing Status = "following"
	StatusEnded     Status = "ended"
)

// SourceState shows one source.
type SourceState struct {
	Path   string
	Status Status
	// Err says why a source is not followed.
	Err error
	// Ref is the generation that is read; zero before the first.
	Ref SourceRef
	// Offset is the byte after the last line that was read, Lag what stood
	// unread behind it at the last look.
	Offset, Lag int64
	// Beat is when the source's loop last went round. A source whose Handler
	// blocks stands still.
	Beat time.Time
}

// State shows every source, in the order of the paths.
func (f *Follower) State() []SourceState {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]SourceState, 0, len(f.feeders))
	for path, r := range f.feeders {
		s := r.state()
		s.Path = path
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b SourceState) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// Counters gives the live counters.
func (f *Follower) Counters() *Counters { return &f.counters }

// Lag is the unread text of all sources, in bytes, at their last look.
func (f *Follower) Lag() int64 {
	var sum int64
	for _, s := range f.State() {
		sum += s.Lag
	}
	return sum
}

// Beat is when the slowest loop last went round; zero without a source. A
// watchdog is fed while it is recent.
func (f *Follower) Beat() time.Time {
	var oldest time.Time
	for _, s := range f.State() {
		if s.Status != StatusEnded && (oldest.IsZero() || s.Beat.Before(oldest)) {
			oldest = s.Beat
		}
	}
	return oldest
}
