package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // a static binary on a host without zone files

	"diagnose/matcher"
	"diagnose/notify"
	"diagnose/parser"
	"diagnose/report"
	"diagnose/tailer"

	"github.com/spf13/pflag"
)

// oneshot is a post-mortem: the flags of `diagnose FILE...`.
type oneshot struct {
	all        bool
	format     string
	output     string
	join       bool
	noSiblings bool
	since      string
	until      string
	year       int
	zone       string
	kvUsage    string
	set        []string
	redact     bool
	notify     string
	width      int
	verbose    bool
}

func (o *oneshot) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.all, "all", false, "every incident of every run, oldest first")
	f.StringVar(&o.format, "format", "text", "text, json, markdown, html or slack")
	f.StringVarP(&o.output, "output", "o", "", "write to this file instead of standard output")
	f.BoolVar(&o.join, "join", false, "all files are one server (one file a process)")
	f.BoolVar(&o.noSiblings, "no-siblings", false, "do not read older generations beside a log that lacks its start")
	f.StringVar(&o.since, "since", "", "only failures from this time on (RFC 3339, or MM-DD HH:MM:SS as in the log)")
	f.StringVar(&o.until, "until", "", "only failures up to this time")
	f.IntVar(&o.year, "year", 0, "the year of the log's times, which have none")
	f.StringVar(&o.zone, "tz", "", "the time zone of the log's times (Europe/Berlin, UTC)")
	f.StringVar(&o.kvUsage, "kv-usage", "", "KV cache usage at the crash in percent, where the log has none")
	f.StringArrayVar(&o.set, "set", nil, "a flag of the server that the log lacks, as FLAG=VALUE (repeatable)")
	f.BoolVar(&o.redact, "redact", false, "take secrets, home directories and addresses of clients out, as for notices")
	f.StringVar(&o.notify, "notify", "", "also send the result to the sinks of this configuration")
	f.IntVar(&o.width, "width", 0, "columns of the text report (default: the terminal's, at most 120)")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show every line of every list")
}

func (o *oneshot) run(ctx context.Context, a *app, names []string) error {
	opt, err := o.options()
	if err != nil {
		return err
	}
	window, err := newWindow(o.since, o.until)
	if err != nil {
		return err
	}
	write, err := o.writer()
	if err != nil {
		return err
	}
	cat, err := matcher.EmbeddedCatalog()
	if err != nil {
		return fmt.Errorf("load catalogue: %w", err)
	}
	inputs, err := o.inputs(names)
	if err != nil {
		return err
	}
	doc, err := postmortem(ctx, a, cat, opt, inputs, o.all)
	if err != nil {
		return err
	}
	doc.Incidents = window.keep(doc.Incidents)
	if o.redact {
		for i := range doc.Inputs {
			doc.Inputs[i].Name = notify.RedactText(doc.Inputs[i].Name)
		}
		for i := range doc.Incidents {
			doc.Incidents[i] = notify.Redact(doc.Incidents[i])
		}
		for i := range doc.Observations {
			doc.Observations[i] = notify.Redact(doc.Observations[i])
		}
	}
	if err := o.print(a, doc, write, titles(cat)); err != nil {
		return err
	}
	if o.notify != "" && len(doc.Incidents) > 0 {
		if err := post(ctx, a, o.notify, doc); err != nil {
			return err
		}
	}
	if a.status != exitUsage {
		a.status = exitOf(doc)
	}
	return nil
}

// exitOf gives the status of a document.
func exitOf(d matcher.Document) int {
	status := exitHealthy
	for _, in := range d.Incidents {
		if in.Verdict.Family == "unknown" {
			return exitUnknown
		}
		status = exitFailure
	}
	return status
}

func (o *oneshot) options() (matcher.Options, error) {
	opt := matcher.Options{Year: o.year, Zone: o.zone, Set: map[string]string{}}
	for _, s := range o.set {
		name, value, ok := strings.Cut(s, "=")
		if !ok || strings.Trim(name, "-") == "" {
			return opt, withHint(fmt.Errorf("--set %q is not FLAG=VALUE", s), "as in --set gpu-memory-utilization=0.9")
		}
		opt.Set[strings.TrimLeft(name, "-")] = value
	}
	if o.kvUsage != "" {
		v, err := parsePercent(o.kvUsage)
		if err != nil {
			return opt, err
		}
		opt.KVUsagePct = &v
	}
	if _, err := time.LoadLocation(o.zone); err != nil {
		return opt, withHint(fmt.Errorf("--tz %q is not a time zone", o.zone), "as in --tz Europe/Berlin or --tz UTC")
	}
	if (o.year == 0) != (o.zone == "") {
		return opt, fmt.Errorf("--year and --tz belong together: a time needs both")
	}
	return opt, nil
}

type writeFunc func(io.Writer, matcher.Document, report.Options) error

func (o *oneshot) writer() (writeFunc, error) {
	switch o.format {
	case "text":
		return report.Text, nil
	case "markdown":
		return report.Markdown, nil
	case "html":
		return report.HTML, nil
	case "slack":
		return slackFormat, nil
	case "json":
		return func(w io.Writer, d matcher.Document, _ report.Options) error { return report.JSON(w, d) }, nil
	}
	return nil, fmt.Errorf("--format %q is none of text, json, markdown, html, slack", o.format)
}

// titles names the mechanisms for a reader.
func titles(cat *matcher.Catalog) map[string]string {
	t := make(map[string]string, len(cat.Entries))
	for _, e := range cat.Entries {
		t[e.ID] = e.Title
	}
	return t
}

func (o *oneshot) print(a *app, doc matcher.Document, write writeFunc, titles map[string]string) error {
	width, color := look(a.out)
	if o.width > 0 {
		width = o.width
	}
	opt := report.Options{Width: width, Color: color, Verbose: o.verbose, Titles: titles}
	if o.output == "" {
		w := bufio.NewWriter(a.out)
		if err := write(w, doc, opt); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
		return w.Flush()
	}
	opt.Color = false
	var b bytes.Buffer
	if err := write(&b, doc, opt); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.WriteFile(o.output, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// postmortem reads all inputs through parser and matcher.
func postmortem(ctx context.Context, a *app, cat *matcher.Catalog, opt matcher.Options, inputs []server, all bool) (matcher.Document, error) {
	doc := matcher.Document{
		Schema: matcher.Schema, Tool: matcher.Tool{Version: version(), Catalog: cat.Revision},
		Inputs: []matcher.Input{}, Observations: []matcher.Incident{}, Incidents: []matcher.Incident{},
	}
	opt.Kernel = map[int]bool{}
	for i, s := range inputs {
		for range s.files {
			if s.kernel {
				opt.Kernel[len(opt.Servers)] = true
			}
			opt.Servers = append(opt.Servers, i)
		}
	}
	t := matcher.NewTracker(cat, opt)
	bar := newProgress(a.err, inputs)
	defer bar.done()
	index := 0
	var broken error
	for _, s := range inputs {
		if s.separate {
			list, err := readMerged(ctx, a, t, s.files, index, bar)
			if err != nil {
				return doc, err
			}
			doc.Inputs = append(doc.Inputs, list...)
			index += len(list)
			continue
		}
		saw := false
		p := parser.New(t.Add)
		for _, name := range s.files {
			in, err := readInput(ctx, a, p, name, index, bar)
			if err != nil && in.Bytes == 0 {
				return doc, err
			}
			if err != nil {
				// What could be read is diagnosed; the rest is told.
				broken = err
				a.status = exitUsage
			}
			index++
			in.Framing = p.Framing()
			doc.Inputs = append(doc.Inputs, in)
			saw = saw || p.SawEngine()
		}
		p.Flush()
		if !saw && !s.kernel && !t.Failed(index-1) {
			return doc, noEngine(s, doc.Inputs[len(doc.Inputs)-1])
		}
	}
	bar.done()
	if all {
		doc.Incidents, doc.Observations = t.Incidents()
	} else {
		doc.Incidents, doc.Observations = t.LastFailed()
	}
	if broken != nil && len(doc.Incidents) == 0 {
		return doc, broken // a log that ends too early is not a healthy server's
	}
	if broken != nil {
		printError(a.err, broken)
	}
	if doc.Incidents == nil {
		doc.Incidents = []matcher.Incident{}
	}
	if doc.Observations == nil {
		doc.Observations = []matcher.Incident{}
	}
	return doc, nil
}

func noEngine(s server, last matcher.Input) error {
	if last.Bytes == 0 {
		return withHint(fmt.Errorf("%s: the file is empty", last.Name), "give the log of the server; with systemd: journalctl -u UNIT -b --no-pager | diagnose -")
	}
	return withHint(fmt.Errorf("%s: no line of a vLLM server in it", strings.Join(s.files, ", ")),
		"diagnose reads the server's own output (stdout and stderr), not an access log or metrics")
}

func readInput(ctx context.Context, a *app, p *parser.Parser, name string, index int, bar *progress) (matcher.Input, error) {
	in := matcher.Input{Name: name, Skipped: []matcher.Skipped{}}
	src, err := tailer.Open(name, a.in)
	if err != nil {
		return in, openError(name, err)
	}
	defer src.Close()
	bar.start(src)
	next, nextLine, err := tailer.Read(ctx, src, tailer.ReadOptions{StartLine: 1, Final: true}, func(l tailer.Line) error {
		p.Line(parser.Line{At: parser.Pos{Source: index, Line: l.Number, Offset: l.Offset}, Data: l.Data, Cut: l.Cut})
		if l.Cut > 0 {
			in.Skipped = append(in.Skipped, matcher.Skipped{Offset: l.Offset, Bytes: l.Cut, Why: "the middle of a very long line"})
		}
		bar.tick()
		return nil
	})
	in.Bytes = next
	lines := nextLine - 1
	in.Lines = &lines
	if err != nil {
		return in, fmt.Errorf("read %s: %w", name, err)
	}
	return in, nil
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
