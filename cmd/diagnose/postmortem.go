package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"diagnose/matcher"
	"diagnose/parser"
	"diagnose/tailer"

	"github.com/hashicorp/go-multierror"
)

// reading is one pass over all inputs of a post-mortem.
type reading struct {
	a       *app
	tracker *matcher.Tracker
	bar     *progress
	inputs  []matcher.Input
	// broken holds what could not be read. One bad file costs no other its
	// diagnosis.
	broken *multierror.Error
}

// postmortem reads all inputs through parser and matcher. What could be read is
// diagnosed and the rest is told on stderr; where no incident was found the
// rest is the error, for an unread log is not a healthy server's.
func postmortem(ctx context.Context, a *app, cat *matcher.Catalog, opt matcher.Options, servers []server, all bool) (matcher.Document, error) {
	doc := matcher.Document{
		Schema: matcher.Schema, Tool: matcher.Tool{Version: version(), Catalog: cat.Revision},
		Inputs: []matcher.Input{}, Observations: []matcher.Incident{}, Incidents: []matcher.Incident{},
	}
	opt.Kernel = map[int]bool{}
	for i, s := range servers {
		for range s.files {
			if s.kernel {
				opt.Kernel[len(opt.Servers)] = true
			}
			opt.Servers = append(opt.Servers, i)
		}
	}
	r := &reading{a: a, tracker: matcher.NewTracker(cat, opt), bar: newProgress(a.err, servers)}
	defer r.bar.done()
	for _, s := range servers {
		r.server(ctx, s)
		if err := ctx.Err(); err != nil {
			return doc, err
		}
	}
	r.bar.done()
	for i, in := range r.inputs {
		r.tracker.End(i, *in.Lines)
	}

	doc.Inputs = append(doc.Inputs, r.inputs...)
	incidents, observations := r.tracker.LastFailed()
	if all {
		incidents, observations = r.tracker.Incidents()
	} else {
		a.earlier = earlierFailed(r.tracker, incidents)
	}
	doc.Incidents = append(doc.Incidents, incidents...)
	doc.Observations = append(doc.Observations, observations...)
	if err := linesOf(r.broken); err != nil {
		if len(doc.Incidents) == 0 {
			return doc, err
		}
		a.status = exitUsage
		printError(a.err, err)
	}
	return doc, nil
}

// earlierFailed counts the failed runs of which nothing is told.
func earlierFailed(t *matcher.Tracker, told []matcher.Incident) int {
	type key struct {
		id     string
		source int
		offset int64
	}
	keyOf := func(in matcher.Incident) key {
		k := key{id: in.ID}
		if at := in.Root.At; at != nil {
			k.source = at.Source
			if at.Offset != nil {
				k.offset = *at.Offset
			}
		}
		return k
	}
	left := map[key]int{}
	for _, in := range told {
		left[keyOf(in)]++
	}
	n := 0
	for _, run := range t.Live(func(l matcher.Live) bool { return l.Failed }) {
		found := false
		for _, in := range run.Incidents {
			if k := keyOf(in); left[k] > 0 {
				left[k]--
				found = true
			}
		}
		if len(run.Incidents) > 0 && !found {
			n++
		}
	}
	return n
}

// server reads the files of one server.
func (r *reading) server(ctx context.Context, s server) {
	first := len(r.inputs)
	var saw, unread bool
	if s.separate {
		saw, unread = r.merged(ctx, s.files)
	} else {
		saw, unread = r.generations(ctx, s.files)
	}
	if saw || unread || s.kernel {
		return
	}
	for i := range s.files {
		if r.tracker.Failed(first + i) {
			return
		}
	}
	r.broken = multierror.Append(r.broken, noEngine(s, r.inputs[len(r.inputs)-1]))
}

// generations reads files one after the other as one log.
func (r *reading) generations(ctx context.Context, names []string) (saw, unread bool) {
	p := parser.New(r.tracker.Add)
	for _, name := range names {
		in, err := r.file(ctx, p, name)
		if err != nil {
			r.broken = multierror.Append(r.broken, err)
			unread = true
		}
		in.Framing = p.Framing()
		r.inputs = append(r.inputs, in)
	}
	p.Flush()
	return p.SawEngine(), unread
}

func (r *reading) file(ctx context.Context, p *parser.Parser, name string) (matcher.Input, error) {
	in := matcher.Input{Name: name, Skipped: []matcher.Skipped{}, Lines: new(int64)}
	src, err := tailer.Open(name, r.a.in)
	if err != nil {
		return in, openError(name, err)
	}
	defer src.Close()
	r.bar.start(src)
	next, nextLine, err := tailer.Read(ctx, src, tailer.ReadOptions{StartLine: 1, Final: true}, func(l tailer.Line) error {
		p.Line(parser.Line{At: parser.Pos{Source: len(r.inputs), Line: l.Number, Offset: l.Offset}, Data: l.Data, Cut: l.Cut})
		in.Skipped = appendSkipped(in.Skipped, l)
		r.bar.tick()
		return nil
	})
	in.Bytes = next
	*in.Lines = nextLine - 1
	if err != nil {
		return in, fmt.Errorf("read %s: %w", name, err)
	}
	return in, nil
}

func appendSkipped(list []matcher.Skipped, l tailer.Line) []matcher.Skipped {
	if l.Cut == 0 {
		return list
	}
	return append(list, matcher.Skipped{Offset: l.Offset, Bytes: l.Cut, Why: "the middle of a very long line"})
}

func noEngine(s server, last matcher.Input) error {
	if last.Bytes == 0 {
		return withHint(fmt.Errorf("%s: the file is empty", last.Name), "give the log of the server; with systemd: journalctl -u UNIT -b --no-pager | diagnose -")
	}
	return withHint(fmt.Errorf("%s: no line of a vLLM server in it", strings.Join(s.files, ", ")),
		"diagnose reads the server's own output (stdout and stderr), not an access log or metrics")
}

func openError(name string, err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return withHint(err, "run as a user that may read it, or with sudo")
	case errors.Is(err, os.ErrNotExist) && strings.ContainsAny(name, "*?["):
		return withHint(err, "the pattern matched nothing; quotes keep the shell from expanding it")
	}
	return err
}
