package main

import (
	"bytes"
	"context"
	"fmt"

	"diagnose/matcher"
	"diagnose/parser"
	"diagnose/tailer"

	"golang.org/x/sync/errgroup"
)

// mergeBatch is how many lines a file's reader hands over at once; it bounds
// what is held of each file.
const mergeBatch = 256

// timedLine is a line with the time that orders it among several files.
type timedLine struct {
	line tailer.Line
	key  string
}

// readMerged reads files of one server, one a process, in the order of their
// printed times. A line without a time, as in a traceback, follows the line
// before it in its file.
func readMerged(ctx context.Context, a *app, t *matcher.Tracker, names []string, first int, bar *progress) ([]matcher.Input, error) {
	inputs := make([]matcher.Input, len(names))
	feeds := make([]chan []timedLine, len(names))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		feeds[i] = make(chan []timedLine, 2)
		src, err := tailer.Open(name, a.in)
		if err != nil {
			return nil, openError(name, err)
		}
		defer src.Close()
		group.Go(func() error {
			defer close(feeds[i])
			var err error
			inputs[i], err = feedLines(ctx, src, name, feeds[i])
			return err
		})
	}
	saw := merge(t, feeds, first)
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range inputs {
		inputs[i].Framing = saw[i].Framing()
	}
	for i := range names {
		if saw[i].SawEngine() || t.Failed(first+i) {
			return inputs, nil
		}
	}
	return nil, noEngine(server{files: names}, inputs[len(inputs)-1])
}

func feedLines(ctx context.Context, src *tailer.Source, name string, to chan<- []timedLine) (matcher.Input, error) {
	in := matcher.Input{Name: name, Skipped: []matcher.Skipped{}}
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
		if l.Cut > 0 {
			in.Skipped = append(in.Skipped, matcher.Skipped{Offset: l.Offset, Bytes: l.Cut, Why: "the middle of a very long line"})
		}
		if batch = append(batch, timedLine{l, key}); len(batch) >= mergeBatch {
			return send()
		}
		return nil
	})
	lines := nextLine - 1
	in.Bytes, in.Lines = next, &lines
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
