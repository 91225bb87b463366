package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// ownOutput finds what would make the daemon read what it writes: each notice
// of a crash would be another crash. The fields are those of the configuration.
func (c config) ownOutput(bad func(field, format string, args ...any)) {
	type file struct{ field, path string }
	written := []file{{"jsonl", c.JSONL}}
	for i, s := range c.Notify.Sinks {
		if s.File != nil {
			written = append(written, file{fmt.Sprintf("notify.sinks[%d].file.path", i), s.File.Path})
		}
	}
	for _, w := range written {
		for _, p := range c.Paths {
			if w.path != "" && follows(p, w.path) {
				bad(w.field, "%q is followed as %q: the daemon would read what it writes", w.path, p)
				break
			}
		}
	}
	if c.StateDir == "" {
		return
	}
	for i, p := range c.Paths {
		if name := inState(p, c.StateDir); name != "" {
			bad(fmt.Sprintf("paths[%d]", i), "%q takes in the daemon's own %s: it would read what it writes", p, name)
		}
	}
}

// follows tells whether a path or pattern takes in a file, which need not exist.
func follows(pattern, name string) bool {
	if a, err := os.Stat(pattern); err == nil {
		if b, err := os.Stat(name); err == nil && os.SameFile(a, b) {
			return true
		}
	}
	for _, p := range namesOf(pattern) {
		for _, n := range namesOf(name) {
			if ok, err := filepath.Match(p, n); err == nil && ok || p == n {
				return true
			}
		}
	}
	return false
}

// inState gives a file of the daemon's own that a path or pattern takes in.
func inState(pattern, dir string) string {
	parts := []string{"incidents", "streams"}
	for _, name := range []string{
		"outbox.db", "checkpoints.json",
		filepath.Join(parts[0], "0123456789ab.json"), filepath.Join(parts[1], "0123456789abcdef01234567.json"),
	} {
		if name = filepath.Join(dir, name); follows(pattern, name) {
			return name
		}
	}
	found, err := filepath.Glob(pattern)
	if err != nil {
		return "" // told as a pattern
	}
	// Many matches lie in few folders.
	ours := map[string]bool{}
	for _, name := range found {
		in := filepath.Dir(name)
		is, known := ours[in]
		if !known {
			for _, part := range parts {
				is = is || same(in, filepath.Join(dir, part))
			}
			ours[in] = is
		}
		if is {
			return name
		}
	}
	return ""
}

func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// namesOf gives the absolute names of a file or pattern: as it is called, and
// with the links of its folder resolved.
func namesOf(name string) []string {
	abs, err := filepath.Abs(name)
	if err != nil {
		return []string{name}
	}
	names := []string{abs}
	// The folder of a file to come may not be there yet either.
	for dir, rest := filepath.Dir(abs), filepath.Base(abs); ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return append(names, filepath.Join(real, rest))
		}
		if dir == filepath.Dir(dir) {
			return names
		}
	}
}
