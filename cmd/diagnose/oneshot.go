package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // a static binary on a host without zone files

	"diagnose/matcher"
	"diagnose/notify"
	"diagnose/report"

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
	doc.Incidents = window.cut(a, doc.Incidents)
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
