package tailer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"time"
)

const (
	journalPrefix = "journal:"
	// maxCursors bounds the places that can be committed. Beyond it every
	// second one is dropped, and a commit goes back to the one before.
	maxCursors = 4096
)

// journal follows one systemd unit through journalctl. A line's Number and
// Offset count from the first entry of the unit's start, as far as it was read,
// also over restarts of this process; resumed is from the cursor of an entry.
type journal struct {
	f    *Follower
	unit string

	ref        SourceRef
	invocation string
	offset     int64
	number     int64
	read       string // cursor of the last entry read

	mu      sync.Mutex
	status  Status
	err     error
	beat    time.Time
	kept    cursorAt // to resume after
	cursors []cursorAt
}

// cursorAt is the end of an entry of the generation gen.
type cursorAt struct {
	gen uint64
	JournalPosition
	cursor string
}

func newJournal(f *Follower, unit string, saved Checkpoint) *journal {
	j := &journal{
		f: f, unit: unit, number: 1, read: saved.Cursor, kept: cursorAt{cursor: saved.Cursor},
		status: StatusWaiting, beat: time.Now(),
	}
	if at := saved.Journal; at != nil && at.Line > 0 {
		j.kept.JournalPosition = *at
		j.invocation, j.offset, j.number = at.Invocation, at.Offset, at.Line
	}
	return j
}

// run keeps a journalctl running: it ends when journald is restarted, and when
// the journal is rotated under it on some versions.
func (j *journal) run(ctx context.Context) {
	wait := j.f.opt.Tick
	for ctx.Err() == nil {
		began := time.Now()
		err := j.once(ctx)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > time.Minute {
			wait = j.f.opt.Tick
		}
		if err != nil {
			j.f.opt.Warn(err)
		}
		j.set(StatusWaiting, err)
		j.f.counters.JournalRestarts.Add(1)
		j.pause(ctx, wait)
		wait = min(2*wait, time.Minute)
	}
	j.set(StatusEnded, nil)
}

// pause waits, and keeps the settling timers of the Handler going.
func (j *journal) pause(ctx context.Context, d time.Duration) {
	end := time.NewTimer(d)
	defer end.Stop()
	idle := time.NewTicker(j.f.opt.IdleEvery)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			return
		case <-idle.C:
			j.idle()
		}
	}
}

func (j *journal) set(status Status, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.status, j.err = status, err
}

func (j *journal) idle() {
	j.mu.Lock()
	j.beat = time.Now()
	j.mu.Unlock()
	if j.ref.Gen != 0 {
		j.f.handler.Idle(j.ref, j.f.opt.Now())
	}
}

// arguments of journalctl. --all gives fields of more than 4 KiB instead of
// null. Without a cursor the unit's current boot is read.
func (j *journal) arguments(follow bool) []string {
	args := []string{"--output=json", "--all", "--no-pager", "--quiet", "--unit=" + j.unit}
	if follow {
		args = append(args, "--follow", "--no-tail")
	}
	if j.read != "" {
		return append(args, "--after-cursor="+j.read)
	}
	return append(args, "--boot")
}

// once reads until journalctl ends. --follow implies --boot (seen in systemd
// 252), so what came after the cursor before the host was started again is read
// without it first.
func (j *journal) once(ctx context.Context) error {
	if j.read != "" {
		if err := j.journalctl(ctx, false); err != nil {
			return err
		}
	}
	return j.journalctl(ctx, true)
}

// journalctl runs it until it ends.
func (j *journal) journalctl(ctx context.Context, follow bool) error {
	command := j.f.opt.JournalCommand
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], append(slices.Clone(command[1:]), j.arguments(follow)...)...)
	cmd.WaitDelay = time.Second
	said := &tailBuffer{max: 1024}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("journal of %s: %w", j.unit, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("journal of %s: %w", j.unit, err)
	}
	if follow {
		j.set(StatusFollowing, nil)
	} else {
		j.set(StatusReading, nil)
	}
	h := newHandoff()
	ended := make(chan error, 1)
	go func() {
		_, _, err := Read(ctx, out, ReadOptions{MaxLine: j.maxEntry()}, func(l Line) error { return h.give(ctx, l) })
		ended <- err
	}()
	err = j.pump(ctx, h, ended)
	if follow || err != nil {
		cancel()
	}
	failed := cmd.Wait()
	if said := bytes.TrimSpace(said.b); failed != nil && len(said) > 0 {
		failed = fmt.Errorf("%w: %s", failed, said)
	}
	if err == nil {
		err = failed
	}
	if err == nil && !follow {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF // --follow does not end
	}
	return fmt.Errorf("journal of %s: journalctl ended: %w", j.unit, err)
}

// maxEntry is for a message of MaxLine as an array of numbers, and the other
// fields.
func (j *journal) maxEntry() int { return 5*j.f.opt.MaxLine + 64<<10 }

func (j *journal) pump(ctx context.Context, h handoff, ended <-chan error) error {
	idle := time.NewTicker(j.f.opt.IdleEvery)
	defer idle.Stop()
	quiet := true
	for {
		select {
		case <-ctx.Done():
			<-ended
			return ctx.Err()
		case err := <-ended:
			return err
		case l := <-h.lines:
			quiet = false
			j.entry(l)
			h.took <- struct{}{}
		case <-idle.C:
			if quiet {
				j.idle()
			}
			quiet = true
		}
	}
}

// entry hands on the lines of one journal entry.
func (j *journal) entry(l Line) {
	e, err := parseJournalEntry(l.Data)
	if err != nil || l.Cut > 0 {
		j.f.counters.JournalSkipped.Add(1)
		return
	}
	j.turn(e)
	var lines [][]byte
	if !e.absent {
		lines = bytes.Split(bytes.TrimSuffix(e.message, []byte("\n")), []byte("\n"))
	}
	end := JournalPosition{Invocation: j.invocation, Offset: j.offset, Line: j.number + int64(len(lines))}
	for _, data := range lines {
		end.Offset += int64(len(data)) + 1
	}
	// Known before the lines are handed on, so that the Handler can commit.
	j.mu.Lock()
	j.cursors = append(j.cursors, cursorAt{j.ref.Gen, end, e.cursor})
	if len(j.cursors) > maxCursors {
		j.thin()
	}
	j.mu.Unlock()
	for _, data := range lines {
		j.line(data)
	}
	j.read = e.cursor
}

func (j *journal) line(data []byte) {
	maxLine := j.f.opt.MaxLine
	l := Line{Data: data, Offset: j.offset, Next: j.offset + int64(len(data)) + 1, Number: j.number, ReadAt: j.f.opt.Now()}
	if len(data) > maxLine {
		l.Cut = int64(len(data) - maxLine)
		l.Data = cutMiddle(data, maxLine/4, maxLine)
		j.f.counters.CutLines.Add(1)
	}
	j.f.handler.Line(j.ref, l)
	j.f.counters.Lines.Add(1)
	j.f.counters.Bytes.Add(l.Next - l.Offset)
	j.offset = l.Next
	j.number++
}

// turn begins a new ref where the unit was started anew.
func (j *journal) turn(e journalEntry) {
	if j.ref.Gen != 0 && (e.invocation == j.invocation || e.invocation == "") {
		return
	}
	if j.ref.Gen != 0 && j.invocation == "" {
		j.invocation = e.invocation // it was not known yet
		return
	}
	if j.ref.Gen != 0 {
		j.f.handler.Gone(j.ref)
	}
	if j.ref.Gen != 0 || j.invocation != "" && e.invocation != "" && j.invocation != e.invocation {
		j.offset, j.number = 0, 1
	}
	if j.ref.Gen != 0 || e.invocation != "" {
		j.invocation = e.invocation
	}
	unit := e.unit
	if unit == "" {
		unit = j.unit
	}
	j.ref = SourceRef{
		Path: journalPrefix + j.unit, Gen: j.f.nextGen(), Name: journalPrefix + j.unit,
		Meta: Meta{Unit: unit, Host: e.host, PID: e.pid},
	}
}

// thin drops every second cursor, but not the last.
func (j *journal) thin() {
	kept := j.cursors[:0]
	for i, c := range j.cursors {
		if i%2 == 0 || i == len(j.cursors)-1 {
			kept = append(kept, c)
		}
	}
	j.cursors = kept
}

// commit goes to the last entry that ends at or before offset.
func (j *journal) commit(gen uint64, offset, _ int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := len(j.cursors)
	for i > 0 && (j.cursors[i-1].gen > gen || j.cursors[i-1].gen == gen && j.cursors[i-1].Offset > offset) {
		i--
	}
	if i == 0 {
		return
	}
	j.kept = j.cursors[i-1]
	j.cursors = append(j.cursors[:0], j.cursors[i:]...)
}

// checkpoint resumes after the entry that was committed. Where all that was
// read is committed that is the last one.
func (j *journal) checkpoint() Checkpoint {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.kept.cursor == "" {
		return Checkpoint{}
	}
	at := j.kept.JournalPosition
	return Checkpoint{Cursor: j.kept.cursor, Journal: &at}
}

func (j *journal) state() SourceState {
	j.mu.Lock()
	defer j.mu.Unlock()
	return SourceState{Status: j.status, Err: j.err, Beat: j.beat, Ref: SourceRef{Path: journalPrefix + j.unit}}
}

// tailBuffer keeps the end of what a command says.
type tailBuffer struct {
	max int
	b   []byte
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if n := len(t.b) - t.max; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}
