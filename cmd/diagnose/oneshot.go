package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // a static binary on a host without zone files

	"diagnose/matcher"
	"diagnose/matcher/catalog"
	"diagnose/notify"
	"diagnose/report"

	"github.com/hashicorp/go-multierror"
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
	catalog    string
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
	overlayFlag(f, &o.catalog)
}

func (o *oneshot) run(ctx context.Context, a *app, names []string) error {
	opt, err := o.options()
	if err != nil {
		return err
	}
	window, err := newWindow(o.since, o.until)
	if err == nil {
		err = window.check(o.year, o.zone)
	}
	if err != nil {
		return err
	}
	write, err := o.writer()
	if err != nil {
		return err
	}
	cat, err := a.knowledge(o.catalog)
	if err != nil {
		return err
	}
	inputs, err := o.inputs(once(names, a.in))
	if err != nil {
		return err
	}
	if err := o.keepInputs(a, inputs); err != nil {
		return err
	}
	o.unused(a, opt.Set)
	doc, err := postmortem(ctx, a, cat, opt, inputs, o.all)
	if err != nil {
		return err
	}
	doc.Incidents = window.cut(a, doc.Incidents)
	o.overruled(a, opt.Set, doc)
	o.usageOverruled(a, opt.KVUsagePct, doc)
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
	// A report that cannot be shown is still sent.
	var all *multierror.Error
	if err := o.print(a, doc, write, titles(cat)); err != nil {
		all = multierror.Append(all, err)
	}
	if o.notify != "" && len(doc.Incidents) > 0 {
		if err := post(ctx, a, o.notify, doc); err != nil {
			all = multierror.Append(all, err)
		}
	}
	if err := linesOf(all); err != nil {
		return err
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
	var bad *multierror.Error
	var flags map[string]flagKind
	if len(o.set) > 0 {
		flags = usedFlags()
	}
	for _, s := range o.set {
		name, value, err := parseSetting(s, flags)
		if err != nil {
			bad = multierror.Append(bad, err)
			continue
		}
		opt.Set[name] = value
	}
	if err := linesOf(bad); err != nil {
		return opt, err
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

// flagKind is what the value of a flag may be.
type flagKind int

const (
	textFlag  flagKind = iota
	truthFlag          // true or false
	ratioFlag          // above 0, at most 1
	countFlag          // 1 to 2^31-1
	bytesFlag          // 1 to 2^63-1
)

// flagKinds are the flags that matcher reads by name (facts.go, and the words
// of its vocabulary that are flags), and those of the catalogue that are no text.
var flagKinds = map[string]flagKind{
	"gpu_memory_utilization":     ratioFlag,
	"max_num_batched_tokens":     countFlag,
	"max_num_seqs":               countFlag,
	"max_model_len":              countFlag,
	"tensor_parallel_size":       countFlag,
	"pipeline_parallel_size":     countFlag,
	"data_parallel_size":         countFlag,
	"block_size":                 countFlag,
	"num_gpu_blocks_override":    countFlag,
	"max_cudagraph_capture_size": countFlag,
	"kv_cache_memory_bytes":      bytesFlag,
	"enforce_eager":              truthFlag,
	"enable_expert_parallel":     truthFlag,
	"enable_sleep_mode":          truthFlag,
	"attention_backend":          textFlag,
	"kv_cache_dtype":             textFlag,
	"model":                      textFlag,
}

// catalogFlag is how an expression of the catalogue asks for a flag.
var catalogFlag = regexp.MustCompile(`\bflags\.([a-z0-9_]+)`)

// usedFlags gives the flags of which a diagnosis makes use.
func usedFlags() map[string]flagKind {
	used := maps.Clone(flagKinds)
	names, _ := fs.Glob(catalog.FS, "*.yaml") // the pattern is good, the files are embedded
	for _, name := range names {
		data, _ := fs.ReadFile(catalog.FS, name)
		for _, m := range catalogFlag.FindAllSubmatch(data, -1) {
			if _, ok := used[string(m[1])]; !ok {
				used[string(m[1])] = textFlag
			}
		}
	}
	return used
}

// parseSetting reads FLAG=VALUE, with or without leading dashes; the name comes
// back with underscores.
func parseSetting(s string, flags map[string]flagKind) (name, value string, err error) {
	name, value, ok := strings.Cut(s, "=")
	name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
	if !ok || strings.Trim(name, "_") == "" {
		return "", "", withHint(fmt.Errorf("--set %q is not FLAG=VALUE", s), "as in --set gpu-memory-utilization=0.9")
	}
	if name == "device_memory_utilization" {
		name = "gpu_memory_utilization" // its second name from 0.31.0
	}
	kind, used := flags[name]
	if !used {
		if _, err := matcher.Compile(name); err == nil {
			// A name of the catalogue's vocabulary would pass for a line of the log.
			return "", "", fmt.Errorf("--set %s: not a flag of the server but a figure of its log, which cannot be given", dashed(name))
		}
		return name, value, nil
	}
	if want := kind.refuses(value); want != "" {
		return "", "", fmt.Errorf("--set %s: %q is not %s", dashed(name), value, want)
	}
	return name, value, nil
}

func dashed(name string) string { return strings.ReplaceAll(name, "_", "-") }

// refuses says what a value would have to be; empty if it is that.
func (k flagKind) refuses(value string) string {
	switch k {
	case textFlag:
		if value == "" {
			return "a value"
		}
	case truthFlag:
		if !slices.Contains([]string{"true", "false", "True", "False"}, value) {
			return "true or false"
		}
	case ratioFlag:
		if v, err := strconv.ParseFloat(value, 64); err != nil || !(v > 0 && v <= 1) { // NaN is neither
			return "a number above 0 and at most 1"
		}
	case countFlag:
		if v, err := strconv.ParseInt(value, 10, 32); err != nil || v < 1 {
			return "a whole number from 1 to 2147483647"
		}
	case bytesFlag:
		if v, err := strconv.ParseInt(value, 10, 64); err != nil || v < 1 {
			return "a whole number of bytes from 1 to 9223372036854775807"
		}
	}
	return ""
}

// unused tells of each flag given by hand that no diagnosis asks for.
func (*oneshot) unused(a *app, set map[string]string) {
	if len(set) == 0 {
		return
	}
	flags := usedFlags()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if _, ok := flags[name]; !ok {
			printWarning(a.err, "--set %s: not one of the flags that a diagnosis uses; shown, but changes nothing", dashed(name))
		}
	}
}

// overruled tells of each flag given by hand that the log itself states
// otherwise. The log's value is the one that was used.
func (o *oneshot) overruled(a *app, set map[string]string, doc matcher.Document) {
	said := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		for _, in := range slices.Concat(doc.Incidents, doc.Observations) {
			f, ok := in.Engine.Flags[dashed(name)]
			if !ok || f.Basis != "arguments" && f.Basis != "config" || sameValue(f.Value, set[name]) {
				continue
			}
			value := f.Value
			if o.redact {
				value = notify.RedactText(value)
			}
			text := fmt.Sprintf("--set %s is not used: the log says %s", dashed(name), value)
			if f.At != nil && f.At.Line != nil {
				text += fmt.Sprintf(" (line %d)", *f.At.Line)
			}
			if !said[text] {
				said[text] = true
				printWarning(a.err, "%s", text)
			}
		}
	}
}

// usageOverruled tells of a KV usage given by hand that the log states itself.
func (*oneshot) usageOverruled(a *app, given *float64, doc matcher.Document) {
	if given == nil {
		return
	}
	said := map[string]bool{}
	for _, in := range slices.Concat(doc.Incidents, doc.Observations) {
		kv := in.KVCache
		if kv == nil || kv.UsagePct == nil || kv.At == nil || *kv.UsagePct == *given {
			continue // one that was given stands nowhere
		}
		text := fmt.Sprintf("--kv-usage is not used: the log says %s %%", strconv.FormatFloat(*kv.UsagePct, 'f', -1, 64))
		if kv.At.Line != nil {
			text += fmt.Sprintf(" (line %d)", *kv.At.Line)
		}
		if !said[text] {
			said[text] = true
			printWarning(a.err, "%s", text)
		}
	}
}

func sameValue(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil {
		return x == y
	}
	return strings.EqualFold(a, b)
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
	opt := report.Options{Width: width, Color: color && o.output == "", Verbose: o.verbose, Titles: titles, EarlierFailed: a.earlier}
	var b bytes.Buffer
	if err := write(&b, doc, opt); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	var err error
	if o.output == "" {
		_, err = a.out.Write(b.Bytes())
	} else {
		err = replaceFile(o.output, b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// keepInputs refuses an output that is one of the logs, by whatever name.
func (o *oneshot) keepInputs(a *app, inputs []server) error {
	out, err := outputFile(a.out)
	if o.output != "" {
		out, err = os.Stat(o.output)
	}
	if err != nil || !out.Mode().IsRegular() {
		return nil // nothing there to lose
	}
	for _, s := range inputs {
		for _, name := range s.files {
			in, err := statInput(name, a.in)
			switch {
			case err != nil || !os.SameFile(in, out):
			case o.output != "":
				return withHint(fmt.Errorf("-o %s would overwrite the log %s", o.output, name), "give the report a name of its own")
			default:
				return fmt.Errorf("%s: the input is also standard output: the report would be written into the log", name)
			}
		}
	}
	return nil
}

// outputFile describes standard output where it is a file.
func outputFile(w io.Writer) (os.FileInfo, error) {
	if o, ok := w.(*output); ok {
		w = o.to
	}
	if f, ok := w.(*os.File); ok {
		return f.Stat()
	}
	return nil, os.ErrInvalid
}

// replaceFile writes a file whole or not at all: an older one stays as it is
// until the new one is on the disk. What is no regular file is written in
// place, and so is a file whose folder allows no other file or no rename.
func replaceFile(path string, data []byte) error {
	target := path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		target = real
	}
	old, err := os.Lstat(target)
	if err == nil && !old.Mode().IsRegular() {
		return os.WriteFile(path, data, 0o644)
	}
	if err == nil {
		// A rename would pass over the file's own permissions.
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return asPath(err, path)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	tmp := filepath.Join(filepath.Dir(target), ".diagnose-"+strconv.FormatUint(rand.Uint64(), 36)+".tmp")
	err = writeNew(tmp, data, old)
	if err == nil {
		err = os.Rename(tmp, target)
	}
	if err == nil {
		return nil
	}
	if rm := os.Remove(tmp); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
		err = errors.Join(err, rm)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EBUSY) {
		return os.WriteFile(path, data, 0o644)
	}
	return asPath(err, path)
}

// writeNew writes a file that does not exist yet, with the owner and mode of an
// old one if there is one.
func writeNew(path string, data []byte, old fs.FileInfo) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if old != nil {
		if st, ok := old.Sys().(*syscall.Stat_t); ok {
			_ = f.Chown(int(st.Uid), int(st.Gid)) // only root may give a file away
		}
		err = f.Chmod(old.Mode().Perm())
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// asPath names the file that was asked for in place of a temporary one.
func asPath(err error, path string) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return &fs.PathError{Op: p.Op, Path: path, Err: p.Err}
	case errors.As(err, &l):
		return &fs.PathError{Op: l.Op, Path: path, Err: l.Err}
	}
	return err
}
