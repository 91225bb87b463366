package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"diagnose/matcher"
	"diagnose/parser"
	"diagnose/tailer"

	"github.com/hashicorp/go-multierror"
)

// mergeBatch is how many lines a file's reader hands over at once; it bounds
// what is held of each file.
const mergeBatch = 256

// timedLine is a line with the time that orders it among several files.
type timedLine struct {
	line tailer.Line
	key  string
}

// merged reads files of one server, one a process, in the order of their
// printed times. A line without a time, as in a traceback, follows the line
// before it in its file.
func (r *reading) merged(ctx context.Context, names []string) (saw, unread bool) {
	inputs := make([]matcher.Input, len(names))
	errs := make([]error, len(names))
	feeds := make([]chan []timedLine, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		feeds[i] = make(chan []timedLine, 2)
		group.Go(func() {
			defer close(feeds[i])
			inputs[i], errs[i] = feedLines(ctx, r.a.in, name, feeds[i])
		})
	}
	parsers := merge(r.tracker, feeds, len(r.inputs))
	group.Wait()
	for i, p := range parsers {
		inputs[i].Framing = p.Framing()
		saw = saw || p.SawEngine()
		if errs[i] != nil {
			r.broken = multierror.Append(r.broken, errs[i])
			unread = true
		}
	}
	r.inputs = append(r.inputs, inputs...)
	return saw, unread
}

func feedLines(ctx context.Context, stdin io.Reader, name string, to chan<- []timedLine) (matcher.Input, error) {
	in := matcher.Input{Name: name, Skipped: []matcher.Skipped{}, Lines: new(int64)}
	src, err := tailer.Open(name, stdin)
	if err != nil {
		return in, openError(name, err)
	}
	defer src.Close()
	var batch []timedLine
	key := ""
	send := func() error {
		select {
		case to <- batch:
			batch = nil
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	next, nextLine, err := tailer.Read(ctx, src, tailer.ReadOptions{StartLine: 1, Final: true}, func(l tailer.Line) error {
		if k := printedTime(l.Data); k != "" {
			key = k
		}
		l.Data = bytes.Clone(l.Data)
		in.Skipped = appendSkipped(in.Skipped, l)
		if batch = append(batch, timedLine{l, key}); len(batch) >= mergeBatch {
			return send()
		}
		return nil
	})
	in.Bytes, *in.Lines = next, nextLine-1
	if err != nil {
		return in, fmt.Errorf("read %s: %w", name, err)
	}
	if len(batch) > 0 {
		return in, send()
	}
	return in, nil
}

// merge takes the earliest line of all files, again and again, and gives each
// to its file's parser.
func merge(t *matcher.Tracker, feeds []chan []timedLine, first int) []*parser.Parser {
	parsers := make([]*parser.Parser, len(feeds))
	heads := make([][]timedLine, len(feeds))
	for i := range feeds {
		parsers[i] = parser.New(t.Add)
		heads[i] = <-feeds[i]
	}
	for order := int64(1); ; order++ {
		best := -1
		for i, h := range heads {
			if len(h) > 0 && (best < 0 || h[0].key < heads[best][0].key) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		l := heads[best][0].line
		parsers[best].Line(parser.Line{At: parser.Pos{Source: first + best, Line: l.Number, Offset: l.Offset, Order: order}, Data: l.Data, Cut: l.Cut})
		if heads[best] = heads[best][1:]; len(heads[best]) == 0 {
			heads[best] = <-feeds[best]
		}
	}
	for _, p := range parsers {
		p.Flush()
	}
	return parsers
}

// printedTime finds "MM-DD HH:MM:SS" near the front of a line.
func printedTime(line []byte) string {
	const shape = "dd-dd dd:dd:dd"
	limit := min(len(line), 160) - len(shape)
	for i := 0; i <= limit; i++ {
		if line[i+2] != '-' || line[i+5] != ' ' || line[i+8] != ':' || line[i+11] != ':' {
			continue
		}
		ok := true
		for j := range len(shape) {
			if shape[j] == 'd' && (line[i+j] < '0' || line[i+j] > '9') {
				ok = false
				break
			}
		}
		if ok {
			return string(line[i : i+len(shape)])
		}
	}
	return ""
}
