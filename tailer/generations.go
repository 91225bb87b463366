package tailer

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Group puts together the paths that are generations of one log, in the order
// in which they were written:
//
//	x.3.gz  x.2.zst  x.1  x                        numbered
//	x-20261128.gz  x-20261129  x-20261130-1764460800  x   dated (logrotate's dateext)
//	x-2026113014  x                                the same, hourly
//	x.20261130-140311.gz  x                        as the kubelet rotates
//
// Only names count, so nothing has to exist. Numbered ones come before dated
// ones, and the bare name last. Groups stand in the order of their first path,
// a path named twice is taken once.
//
// What looks like a number but is none stays alone: a port (x.8000), a version
// (x-0.24.1 without an x-0.24), and the files of parallel processes, known by
// an x.0 without an x. Parallel files that count from 1 cannot be told apart
// from generations.
func Group(paths []string) [][]string {
	var groups [][]string
	for _, g := range generations(paths) {
		var names []string
		for _, one := range g {
			names = append(names, one.given)
		}
		groups = append(groups, names)
	}
	return groups
}

// Siblings lists the generations of path that are older than path itself and
// stand beside it, oldest first, by the names that Group knows. Only regular
// files count, links do not. Where a generation is there plain and compressed,
// as while it is being compressed, the plain one is listed.
func Siblings(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	own := filepath.Clean(path)
	paths := []string{own}
	for _, e := range entries {
		if e.Type().IsRegular() {
			paths = append(paths, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	group := generations(paths)[0] // the group of the first path comes first
	end := slices.IndexFunc(group, func(g generation) bool { return g.path == own })
	var older []string
	for i, g := range group[:end] {
		// group[:end] has a twin's compressed form right before the plain one.
		if i+1 < len(group) && g.compressed && g.sameAge(group[i+1]) {
			continue
		}
		older = append(older, g.path)
	}
	return older, nil
}

// generation is one path, taken apart.
type generation struct {
	given      string
	path       string // given, cleaned
	stem       string // path of the log that it is a generation of
	number     int    // -1 if it has none
	when       string // date as written, "" if it has none
	compressed bool
	doubtful   bool // the number may be the end of a version or an address
}

// bare makes g the newest generation of a log of its own name.
func (g generation) bare() generation {
	return generation{given: g.given, path: g.path, stem: g.path, number: -1}
}

func (g generation) isBare() bool { return g.number < 0 && g.when == "" }

// age orders from old to new.
func (g generation) age(h generation) int {
	return cmp.Or(
		cmp.Compare(g.rank(), h.rank()),
		-cmp.Compare(g.number, h.number),
		cmp.Compare(g.when, h.when), // digits of one form, a longer form later
	)
}

func (g generation) rank() int {
	switch {
	case g.number >= 0:
		return 0
	case g.when != "":
		return 1
	}
	return 2
}

func (g generation) sameAge(h generation) bool { return g.age(h) == 0 }

// generations groups and orders paths.
func generations(paths []string) [][]generation {
	all := parseAll(paths)
	index := map[string]int{}
	var groups [][]generation
	for _, g := range all {
		i, ok := index[g.stem]
		if !ok {
			i = len(groups)
			index[g.stem] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], g)
	}
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b generation) int {
			// The compressed twin first: it is the one that may be incomplete.
			return cmp.Or(a.age(b), compareBool(b.compressed, a.compressed), cmp.Compare(a.path, b.path))
		})
	}
	return groups
}

// parseAll takes paths apart, without repetitions, and settles what one name
// alone cannot tell.
func parseAll(paths []string) []generation {
	var all []generation
	seen := map[string]bool{}
	stems := map[string]bool{}  // of which there are generations
	ranked := map[string]bool{} // of which there is a number 0
	for _, p := range paths {
		g := parseGeneration(p)
		if seen[g.path] {
			continue
		}
		seen[g.path] = true
		all = append(all, g)
		if !g.isBare() {
			stems[g.stem] = true
			ranked[g.stem] = ranked[g.stem] || g.number == 0
		}
	}
	for i, g := range all {
		switch {
		case stems[g.path]: // run-20261130 beside run-20261130.1
			all[i] = g.bare()
		case (g.doubtful || ranked[g.stem]) && g.number >= 0 && !seen[g.stem]:
			all[i] = g.bare()
		}
	}
	return all
}

// parseGeneration takes one path apart; what is no generation by its name is
// bare.
func parseGeneration(path string) generation {
	g := generation{given: path, path: filepath.Clean(path)}.bare()
	dir, name := filepath.Split(g.path)
	for _, ext := range []string{".gz", ".zst"} {
		if rest, ok := strings.CutSuffix(name, ext); ok {
			name, g.compressed = rest, true
			break
		}
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		stem, end := name[:i], name[i+1:]
		if n, ok := generationNumber(end); ok {
			g.stem, g.number, g.doubtful = dir+stem, n, endsInNumber(stem)
			return g
		}
		if isStamp(end, "20060102-150405") {
			g.stem, g.when = dir+stem, end
			return g
		}
	}
	if stem, when, ok := cutDate(name); ok {
		g.stem, g.when = dir+stem, when
		return g
	}
	return g.bare()
}

// generationNumber reads the number of a generation. It has up to three
// digits: logrotate counts from 1 and rarely keeps more, while ports have four
// or five.
func generationNumber(digits string) (int, bool) {
	if len(digits) > 3 || !allDigits(digits) || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil
}

// endsInNumber tells whether stem ends like the front of a version or of an
// address. Eight digits are a date.
func endsInNumber(stem string) bool {
	last := stem[strings.LastIndexAny(stem, ".-")+1:]
	return allDigits(last) && len(last) < 8
}

// cutDate splits a name in the forms of logrotate's dateext: the default
// -%Y%m%d, with hours (hourly rotation), and with -%s behind either.
func cutDate(name string) (stem, when string, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 {
		return "", "", false
	}
	if isSeconds(name[i+1:]) {
		if j := strings.LastIndexByte(name[:i], '-'); j > 0 && isDate(name[j+1:i]) {
			return name[:j], name[j+1:], true
		}
	}
	if isDate(name[i+1:]) {
		return name[:i], name[i+1:], true
	}
	return "", "", false
}

func isDate(s string) bool { return isStamp(s, "20060102") || isStamp(s, "2006010215") }

// isStamp tells whether s is a time of the given layout. The year keeps other
// numbers of eight digits out.
func isStamp(s, layout string) bool {
	if len(s) != len(layout) {
		return false
	}
	t, err := time.Parse(layout, s)
	return err == nil && t.Year() >= 1970 && t.Year() < 2200
}

// isSeconds tells whether s can be seconds since 1970, from 2001 on.
func isSeconds(s string) bool { return len(s) == 10 && s[0] != '0' && allDigits(s) }

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
