package tailer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// target is what one source follows.
type target struct {
	key     string // SourceRef.Path
	path    string // the file; of a container, the one that is written now
	pattern string // the glob that yielded it; "" for a path given as such
	literal bool
	meta    Meta
	// successor: key is a container's folder whose files follow each other.
	successor bool
	// ends: when the file is missing for long, the source has ended.
	ends bool
}

// checkPattern refuses what can never match.
func checkPattern(p string) error {
	if p == "" {
		return fmt.Errorf("follow: empty path")
	}
	if _, err := filepath.Match(p, ""); err != nil {
		return fmt.Errorf("follow %q: %w", p, err)
	}
	return nil
}

func isGlob(p string) bool { return strings.ContainsAny(p, "*?[") }

// globCache spares the search for rotated files while nothing has changed.
type globCache struct {
	matches map[string][]string // of a pattern
	targets map[string][]target
}

// expand gives the targets of all patterns by key. A path that exists is
// never a glob, whatever it is called.
func (g *globCache) expand(patterns []string) map[string]target {
	if g.matches == nil {
		g.matches, g.targets = map[string][]string{}, map[string][]target{}
	}
	all := map[string]target{}
	for _, p := range patterns {
		if p == "-" {
			all[p] = target{key: p, path: p, literal: true}
			continue
		}
		if !isGlob(p) || exists(p) {
			t := targetOf(p)
			t.literal, t.ends = true, t.successor
			all[t.key] = t
			continue
		}
		matches, err := filepath.Glob(p)
		if err != nil {
			continue // checked before
		}
		if !slices.Equal(matches, g.matches[p]) || g.targets[p] == nil {
			g.matches[p] = matches
			g.targets[p] = live(p, matches)
		}
		for _, t := range g.targets[p] {
			if _, ok := all[t.key]; !ok {
				all[t.key] = t
			}
		}
	}
	return all
}

// live leaves out what is an older generation of another match, and folders.
func live(pattern string, matches []string) []target {
	older := map[string]bool{}
	for _, group := range Group(matches) {
		for _, name := range group[:len(group)-1] {
			older[name] = true
		}
	}
	targets := []target{}
	for _, m := range matches {
		if older[m] || isPacked(m) {
			continue
		}
		if info, err := os.Stat(m); err == nil && info.IsDir() {
			continue
		}
		t := targetOf(m)
		t.pattern = pattern
		t.ends = t.meta.Container != ""
		targets = append(targets, t)
	}
	return targets
}

// isPacked: a compressed file is never written to.
func isPacked(name string) bool {
	return strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".zst")
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// livePath is the file to look at now.
func (s *source) livePath(now time.Time) (string, error) {
	t := &s.target
	if !t.successor {
		return t.path, nil
	}
	if now.Sub(s.looked) >= min(s.f.opt.Scan, time.Second) || !exists(t.path) {
		s.looked = now
		path, err := newestRestart(filepath.Dir(t.path))
		if err != nil {
			return t.path, err
		}
		t.path = path
	}
	return t.path, nil
}
