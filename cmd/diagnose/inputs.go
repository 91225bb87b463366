package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"diagnose/matcher"
	"diagnose/tailer"
)

// server is the input of one server: its log's generations, oldest first, or
// (separate) one file a process, which are merged by time.
type server struct {
	files    []string
	separate bool
	// kernel marks a kernel log, which belongs to the other inputs.
	kernel bool
}

// once leaves out an input that is named again, by whatever name: a pipe can be
// read only once, and a file that is read twice is not two servers.
func once(names []string, stdin io.Reader) []string {
	var out []string
	var seen []os.FileInfo
	paths := map[string]bool{}
next:
	for _, name := range names {
		path := filepath.Clean(name)
		if paths[path] {
			continue
		}
		paths[path] = true
		if info, err := statInput(name, stdin); err == nil && !info.IsDir() {
			for _, other := range seen {
				if os.SameFile(info, other) {
					continue next
				}
			}
			seen = append(seen, info)
		}
		out = append(out, name)
	}
	return out
}

// statInput describes an input; standard input is described where it is a file.
func statInput(name string, stdin io.Reader) (os.FileInfo, error) {
	if name != "-" {
		return os.Stat(name)
	}
	if f, ok := stdin.(*os.File); ok {
		return f.Stat()
	}
	return nil, os.ErrInvalid
}

// rereadable tells whether an input may be looked at before it is read.
func rereadable(name string) bool {
	info, err := os.Stat(name)
	return name != "-" && err == nil && info.Mode().IsRegular()
}

// inputs groups the named files into servers and adds the older generations of
// a log that lacks its start.
func (o *oneshot) inputs(names []string) ([]server, error) {
	if o.join {
		return []server{{files: names, separate: true}}, nil
	}
	var out []server
	for _, group := range tailer.Group(names) {
		if !o.noSiblings && rereadable(group[0]) {
			older, err := readBack(group[0])
			if err != nil {
				return nil, err
			}
			group = append(older, group...)
		}
		out = append(out, server{files: group, kernel: len(names) > 1 && isKernelLog(group[0])})
	}
	servers := 0
	for _, s := range out {
		if !s.kernel {
			servers++
		}
	}
	if servers == 0 {
		for i := range out {
			out[i].kernel = false // alone it is read for its own sake
		}
	}
	return out, nil
}

// isKernelLog recognises dmesg and journalctl -k by their first lines.
func isKernelLog(name string) bool {
	if !rereadable(name) {
		return false
	}
	src, err := tailer.Open(name, nil)
	if err != nil {
		return false // told when it is read
	}
	defer src.Close()
	buf := make([]byte, 64<<10)
	n, _ := io.ReadFull(src, buf)
	kernel, other := 0, 0
	for _, line := range bytes.Split(buf[:n], []byte("\n")) {
		switch {
		case len(line) == 0:
		case kernelLine.Match(line):
			kernel++
		default:
			other++
		}
	}
	return kernel > 0 && kernel > 4*other
}

// kernelLine is a line of dmesg ("[12345.678] "), of dmesg -T, or one that the
// journal or syslog marks with "kernel:".
var kernelLine = regexp.MustCompile(`^(<\d+>)?(\[ *\d+\.\d{6}\] |\[[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]+ \d{4}\] |\S.{0,60} kernel: )`)

// startMarks are literals of a start banner, one of which every release prints
// (vllm/entrypoints, v1/engine/core.py).
var startMarks = slices.Concat(argsMarks, versionMarks, [][]byte{
	// In full: the dump of a crash also names the engine and its version.
	[]byte("Initializing an LLM engine (v"), []byte("Initializing a V0 LLM engine (v"), []byte("Initializing a V1 LLM engine (v"),
})

// readBack gives the older generations that are needed to see the start of the
// run in which a log begins.
func readBack(name string) ([]string, error) {
	if has, err := hasStart(name); err != nil || has {
		return nil, nil // an unreadable file is told about when it is read
	}
	older, err := tailer.Siblings(name)
	if err != nil {
		return nil, fmt.Errorf("look for older generations of %s: %w", name, err)
	}
	var take []string
	for i := len(older) - 1; i >= 0; i-- {
		take = append([]string{older[i]}, take...)
		has, err := hasStart(older[i])
		if err != nil {
			break
		}
		if has {
			return take, nil
		}
	}
	return nil, nil // none has it: reading them would only cost time
}

func hasStart(name string) (bool, error) {
	src, err := tailer.Open(name, nil)
	if err != nil {
		return false, err
	}
	defer src.Close()
	buf := make([]byte, 256<<10)
	keep := 0
	for {
		n, err := src.Read(buf[keep:])
		chunk := buf[:keep+n]
		if containsAny(chunk, startMarks) {
			return true, nil
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		keep = copy(buf, chunk[max(0, len(chunk)-64):])
	}
}

func parsePercent(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(s, "%")), 64)
	if err != nil || !(v >= 0 && v <= 100) { // NaN is neither
		return 0, fmt.Errorf("--kv-usage %q is not a percentage from 0 to 100", s)
	}
	return v, nil
}

// window keeps incidents by the time of their root.
type window struct{ since, until bound }

type bound struct {
	set     bool
	full    time.Time // RFC 3339
	printed string    // MM-DD HH:MM:SS
}

func newWindow(since, until string) (window, error) {
	a, err := parseBound("--since", since)
	if err != nil {
		return window{}, err
	}
	b, err := parseBound("--until", until)
	return window{a, b}, err
}

func parseBound(flag, s string) (bound, error) {
	if s == "" {
		return bound{}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return bound{set: true, full: t}, nil
	}
	if _, err := time.Parse("01-02 15:04:05", s); err == nil {
		return bound{set: true, printed: s}, nil
	}
	return bound{}, withHint(fmt.Errorf("%s %q is not a time", flag, s), "as in 2026-11-30T02:27:33Z, or 11-30 02:27:33 as the log prints it")
}

// check refuses a window that nothing can lie in, as far as its bounds can be
// compared.
func (w window) check(year int, zone string) error {
	if !w.since.set || !w.until.set {
		return nil
	}
	inverted := w.since.printed > w.until.printed
	if w.since.printed == "" || w.until.printed == "" {
		since, okSince := w.since.moment(year, zone)
		until, okUntil := w.until.moment(year, zone)
		inverted = okSince && okUntil && since.After(until)
	}
	if inverted {
		return withHint(fmt.Errorf("--since is later than --until: nothing lies between"), "over the turn of a year, give both as in 2026-12-31T22:00:00Z, with --year and --tz")
	}
	return nil
}

// moment completes a bound that is as the log prints it.
func (b bound) moment(year int, zone string) (time.Time, bool) {
	if b.printed == "" {
		return b.full, true
	}
	loc, err := time.LoadLocation(zone)
	if year == 0 || err != nil {
		return time.Time{}, false
	}
	t, err := time.ParseInLocation("2006-01-02 15:04:05", fmt.Sprintf("%04d-%s", year, b.printed), loc)
	return t, err == nil
}

// compare gives -1, 0 or 1 of an incident's time against the bound; ok is false
// where the two cannot be compared.
func (b bound) compare(in matcher.Incident) (int, bool) {
	if !b.full.IsZero() {
		if in.Time.First == nil {
			return 0, false
		}
		t, err := time.Parse(time.RFC3339, *in.Time.First)
		return t.Compare(b.full), err == nil
	}
	if in.PrintedTime() == "" {
		return 0, false
	}
	return strings.Compare(in.PrintedTime(), b.printed), true
}

// cut keeps the incidents of the window and tells of what it left out or could
// not judge: a window that hides the only failure must not look like health.
func (w window) cut(a *app, list []matcher.Incident) []matcher.Incident {
	kept, unsure := w.keep(list)
	if n := len(list) - len(kept); n > 0 {
		printWarning(a.err, "%s outside --since and --until", countOf(n, "failure lies", "failures lie"))
	}
	if unsure > 0 {
		printWarning(a.err, "%s kept, for the log's times have no year or zone to compare: give --year and --tz, or a bound as the log prints it",
			countOf(unsure, "failure is", "failures are"))
	}
	return kept
}

// keep gives the incidents of the window, and how many of them are in it only
// because their times cannot be compared with a bound.
func (w window) keep(list []matcher.Incident) (kept []matcher.Incident, unsure int) {
	kept = []matcher.Incident{}
	for _, in := range list {
		after, okSince := w.since.compare(in)
		before, okUntil := w.until.compare(in)
		if w.since.set && okSince && after < 0 || w.until.set && okUntil && before > 0 {
			continue
		}
		if w.since.set && !okSince || w.until.set && !okUntil {
			unsure++
		}
		kept = append(kept, in)
	}
	return kept, unsure
}

func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
