package tailer

import (
	"context"
	"io"
	"sync"
	"time"
)

// handoff passes lines from a goroutine that blocks in a read to the one that
// calls the Handler. The bytes of a line are not copied: the reader waits
// until the line has been handled.
type handoff struct {
	lines chan Line
	took  chan struct{}
}

func newHandoff() handoff { return handoff{make(chan Line), make(chan struct{})} }

func (h handoff) give(ctx context.Context, l Line) error {
	select {
	case h.lines <- l:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-h.took
	return nil
}

// pipe reads a stream that cannot be read twice: standard input. It has no
// checkpoint, and a last piece without "\n" is shown when the stream ends.
type pipe struct {
	f   *Follower
	in  io.Reader
	ref SourceRef

	mu     sync.Mutex
	status Status
	err    error
	offset int64
	beat   time.Time
}

func newPipe(f *Follower, in io.Reader) *pipe {
	return &pipe{
		f: f, in: in, ref: SourceRef{Path: "-", Gen: f.nextGen(), Name: "-"},
		status: StatusFollowing, beat: time.Now(),
	}
}

func (p *pipe) run(ctx context.Context) {
	h := newHandoff()
	ended := make(chan error, 1)
	go func() {
		_, _, err := Read(ctx, p.in, ReadOptions{StartLine: 1, MaxLine: p.f.opt.MaxLine, Final: true},
			func(l Line) error { return h.give(ctx, l) })
		ended <- err
	}()
	idle := time.NewTicker(p.f.opt.IdleEvery)
	defer idle.Stop()
	quiet := true
	for {
		select {
		case <-ctx.Done():
			// A blocked read ends only with the stream.
			if c, ok := p.in.(io.Closer); ok {
				_ = c.Close()
			}
			p.end(nil)
			return
		case l := <-h.lines:
			quiet = false
			l.ReadAt = p.f.opt.Now()
			p.f.handler.Line(p.ref, l)
			p.f.counters.Lines.Add(1)
			p.f.counters.Bytes.Add(l.Next - l.Offset)
			if l.Cut > 0 {
				p.f.counters.CutLines.Add(1)
			}
			p.mu.Lock()
			p.offset = l.Next
			p.mu.Unlock()
			h.took <- struct{}{}
		case err := <-ended:
			if ctx.Err() == nil {
				p.f.handler.Gone(p.ref)
			}
			p.end(err) // who sees it ended may rely on what Gone has done
			return
		case now := <-idle.C:
			p.mu.Lock()
			p.beat = now
			p.mu.Unlock()
			if quiet {
				p.f.handler.Idle(p.ref, p.f.opt.Now())
			}
			quiet = true
		}
	}
}

func (p *pipe) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.err = StatusEnded, err
}

func (p *pipe) commit(uint64, int64, int64) {}

func (p *pipe) checkpoint() Checkpoint { return Checkpoint{} }

func (p *pipe) state() SourceState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return SourceState{Status: p.status, Err: p.err, Ref: p.ref, Offset: p.offset, Beat: p.beat}
}
