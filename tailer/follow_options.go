package tailer

import (
	"io"
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
	// Excerpt: only the start of the run is read from it, and that never again.
	// There is nothing to commit in it.
	Excerpt bool
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
	// Runs finds where to begin in a log that has no checkpoint and was there
	// before the Follower was. Nil begins with the first byte of its file.
	Runs RunFinder
	// Back is how much text, in bytes, is read for that. Default 64 MiB.
	Back int64
	// Starts reports that a line surely begins a line of its own. It is asked
	// where a generation ended without "\n": if it says no, or is nil, the
	// next generation's first line is taken for the rest of that piece.
	Starts func(line []byte) bool
	// Warn is told what went wrong without ending anything: a Store that
	// fails, a journal that ended. It may be called from any goroutine.
	Warn func(error)
	// Pulse is called once in SaveEvery.
	Pulse func()
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
	// Poll makes nxadm/tail poll, for file systems where inotify does not see
	// what other hosts write.
	Poll bool
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
	if o.Back <= 0 {
		o.Back = defaultBack
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
	if o.Pulse == nil {
		o.Pulse = func() {}
	}
	if len(o.JournalCommand) == 0 {
		o.JournalCommand = []string{"journalctl"}
	}
	return o
}
