package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"diagnose/tailer"
)

// sourceLog tells of each log that cannot be read, once until it can, and once
// of each path or pattern that is not there yet, and when it is.
type sourceLog struct {
	log    *slog.Logger
	barred map[string]bool
	waited map[string]bool
	// found are those of waited that came.
	found map[string]bool
}

// census is how the followed sources stand.
type census struct {
	following, waiting int
	// barred says of each path that cannot be read why.
	barred []string
}

// look counts the sources and tells what has changed since the last look.
func (l *sourceLog) look(all []tailer.SourceState, patterns []string) census {
	if l.waited == nil {
		l.waited, l.found = map[string]bool{}, map[string]bool{}
	}
	var c census
	barred := map[string]bool{}
	no := func(path, why string) {
		barred[path] = true
		c.barred = append(c.barred, path+": "+why)
		if !l.barred[path] {
			l.log.Warn("log cannot be read", "path", path, "error", why)
		}
	}
	wait := func(path string) {
		c.waiting++
		if !l.waited[path] && !strings.HasPrefix(path, "journal:") { // journalctl is started again
			l.waited[path] = true
			l.log.Info("waiting for what is not there yet", "path", path)
		}
	}
	for _, st := range all {
		switch st.Status {
		case tailer.StatusDenied, tailer.StatusUnfit:
			no(st.Path, whyBarred(st))
			l.found[st.Path] = l.waited[st.Path] // it is told when it can be read
		case tailer.StatusWaiting:
			wait(st.Path)
		case tailer.StatusReading, tailer.StatusFollowing:
			c.following++
			if l.barred[st.Path] {
				l.log.Info("log can be read now", "path", st.Path)
			}
			l.came(st.Path, patterns)
		}
	}
	for _, p := range emptyPatterns(patterns) {
		if err := deniedFolder(p); err != nil {
			no(p, err.Error())
		} else if !slices.ContainsFunc(all, func(st tailer.SourceState) bool { ok, _ := filepath.Match(p, st.Path); return ok }) {
			wait(p) // and not for a file that was there before
		}
	}
	l.barred = barred
	return c
}

// came tells once that a log is there that was waited for, by its name or by a
// pattern.
func (l *sourceLog) came(path string, patterns []string) {
	if l.waited[path] && !l.found[path] {
		l.found[path] = true
		l.log.Info("log found", "path", path)
	}
	for _, p := range patterns {
		if ok, err := filepath.Match(p, path); p != path && ok && err == nil && l.waited[p] && !l.found[p] {
			l.found[p] = true
			l.log.Info("log found", "path", path, "pattern", p)
		}
	}
}

func (c census) String() string {
	s := fmt.Sprintf("following %d sources, %d waited for", c.following, c.waiting)
	if n := len(c.barred); n > 0 {
		s += fmt.Sprintf(", %d not readable (%s", n, c.barred[0])
		if n > 1 {
			s += ", …"
		}
		s += ")"
	}
	return s
}

// whyBarred says in words why a source is denied or unfit.
func whyBarred(st tailer.SourceState) string {
	var p *fs.PathError
	switch {
	case errors.As(st.Err, &p):
		return p.Err.Error() // the path is said beside it
	case st.Err != nil:
		return st.Err.Error()
	case st.Status == tailer.StatusDenied: // it is being looked at anew
		return fs.ErrPermission.Error()
	}
	return string(st.Status)
}

// emptyPatterns gives the patterns that match nothing now; no source stands for
// them.
func emptyPatterns(patterns []string) []string {
	var out []string
	for _, p := range patterns {
		if !strings.ContainsAny(p, "*?[") {
			continue
		}
		if _, err := os.Lstat(p); err == nil {
			continue // a file that is called so
		}
		if found, err := filepath.Glob(p); err == nil && len(found) == 0 {
			out = append(out, p)
		}
	}
	return out
}

// deniedFolder says which folder on the way to a pattern's files cannot be
// searched, nil if all can.
func deniedFolder(pattern string) error {
	for dir := pattern; dir != filepath.Dir(dir); {
		name := filepath.Base(dir)
		dir = filepath.Dir(dir)
		above, _ := filepath.Glob(dir) // the pattern is known to be one
		for _, a := range above {
			var err error
			if strings.ContainsAny(name, "*?[") {
				var f *os.File
				if f, err = os.Open(a); err == nil {
					_ = f.Close() // it was opened for reading only
				}
			} else {
				_, err = os.Lstat(filepath.Join(a, name))
			}
			if errors.Is(err, fs.ErrPermission) {
				return err
			}
		}
	}
	return nil
}
