package tailer

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// candidate is a file that may hold an older generation of a log. It is open:
// names change while a rotator works.
type candidate struct {
	name       string
	file       *os.File
	info       os.FileInfo
	id         fileID
	size       int64 // on disk
	modified   time.Time
	compressed bool
	head       []byte // decompressed
}

// maxTries bounds how often a folder is looked at that changes meanwhile.
const maxTries = 10

// candidates lists what stands beside the given names, and the names
// themselves where they are not the log, in the order of their writing. The
// caller closes them.
func (s *source) candidates(names ...string) []*candidate {
	for try := 0; ; try++ {
		wanted := s.candidateNames(names)
		all := openCandidates(wanted)
		if try == maxTries || stillThere(all) && slices.Equal(wanted, s.candidateNames(names)) {
			return s.target.inOrder(all)
		}
		closeCandidates(all) // a rotator is at work: one may be missing
		time.Sleep(time.Duration(try) * time.Millisecond)
	}
}

func (s *source) candidateNames(names []string) []string {
	var all []string
	add := func(name string) {
		if name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	asked := map[string]bool{}
	for _, name := range names {
		for _, n := range []string{name, realName(name)} {
			if asked[n] || n == "" {
				continue
			}
			asked[n] = true
			if older, err := Siblings(n); err == nil {
				for _, o := range older {
					add(o)
				}
			}
		}
		if name != s.target.path {
			add(name)
		}
	}
	return all
}

func openCandidates(names []string) []*candidate {
	var all []*candidate
	for _, name := range names {
		c := newCandidate(name)
		if c == nil {
			continue
		}
		if slices.ContainsFunc(all, func(o *candidate) bool { return o.id == c.id }) {
			closeCandidates([]*candidate{c})
			continue
		}
		all = append(all, c)
	}
	// Being compressed: one text under two names.
	twins := map[string]bool{}
	for _, c := range all {
		twins[c.name+".gz"], twins[c.name+".zst"] = true, true
	}
	return slices.DeleteFunc(all, func(c *candidate) bool {
		if twins[c.name] {
			closeCandidates([]*candidate{c})
		}
		return twins[c.name]
	})
}

func stillThere(all []*candidate) bool {
	return !slices.ContainsFunc(all, func(c *candidate) bool {
		info, err := os.Stat(c.name)
		return err != nil || idOf(info) != c.id
	})
}

func closeCandidates(all []*candidate) {
	for _, c := range all {
		if c.file != nil {
			_ = c.file.Close()
			c.file = nil
		}
	}
}

// newCandidate is nil for what is not there, or cannot be read.
func newCandidate(name string) *candidate {
	file, info, err := openRegular(name)
	if err != nil {
		return nil
	}
	c := candidateOf(name, file, info)
	if c == nil {
		_ = file.Close() // compressed and not complete yet, for one
	}
	return c
}

// candidateOf is nil for what cannot be read.
func candidateOf(name string, file *os.File, info os.FileInfo) *candidate {
	c := &candidate{name: name, file: file, info: info, id: idOf(info), size: info.Size(), modified: info.ModTime()}
	head := make([]byte, headMax)
	src, err := c.open()
	if err == nil {
		var n int
		n, err = io.ReadFull(src, head)
		c.compressed, c.head = src.Compression != "", head[:n]
		_ = src.Close()
	}
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil
	}
	return c
}

// open reads the candidate from its start, decompressed.
func (c *candidate) open() (*Source, error) { return openFrom(c.file) }

// openFrom reads an open file from its start, wherever that stands.
func openFrom(file *os.File) (*Source, error) {
	return Open("-", io.NewSectionReader(file, 0, 1<<62))
}

// inOrder sorts by the time of the last writing. Where times are equal the
// names decide: they count down (x.2 before x.1) unless the times of the
// others say that they count up.
func inOrder(all []*candidate) []*candidate {
	down, up := 0, 0
	for i := 1; i < len(all); i++ {
		switch d := all[i].modified.Compare(all[i-1].modified); {
		case d > 0:
			down++
		case d < 0:
			up++
		}
	}
	if up > down {
		slices.Reverse(all)
	}
	written := writtenBy(all)
	slices.SortStableFunc(all, func(a, b *candidate) int { return written[a].Compare(written[b]) })
	return all
}

// writtenBy gives the time by which each was complete. The kubelet compresses
// without keeping the file's time, but a log and its dated names tell their
// order: no text was written after that of a later name.
func writtenBy(all []*candidate) map[*candidate]time.Time {
	written := map[*candidate]time.Time{}
	type dated struct {
		c    *candidate
		when string
	}
	logs := map[string][]dated{}
	for _, c := range all {
		written[c] = c.modified
		switch g := parseGeneration(c.name); {
		case g.when != "":
			logs[g.stem] = append(logs[g.stem], dated{c, g.when})
		case g.isBare():
			logs[g.stem] = append(logs[g.stem], dated{c, "~"}) // after every date
		}
	}
	for _, log := range logs {
		slices.SortStableFunc(log, func(a, b dated) int { return cmp.Compare(b.when, a.when) })
		for i := 1; i < len(log); i++ {
			if next := written[log[i-1].c]; !written[log[i].c].Before(next) {
				written[log[i].c] = next.Add(-1)
			}
		}
	}
	return written
}

// inOrder also takes the runs of a container by their numbers.
func (t *target) inOrder(all []*candidate) []*candidate {
	all = inOrder(all)
	if t.successor {
		slices.SortStableFunc(all, func(a, b *candidate) int {
			x, okX := runOf(a.name)
			y, okY := runOf(b.name)
			if !okX || !okY {
				return 0 // the runtime's own names: the times decide
			}
			return cmp.Compare(x, y)
		})
	}
	return all
}

// holds tells whether the text of c has want before off.
func (c *candidate) holds(off int64, want []byte) bool {
	got, ok := c.before(off, len(want))
	return ok && bytes.Equal(got, want)
}

// before gives the n bytes of the text before off.
func (c *candidate) before(off int64, n int) ([]byte, bool) {
	from := off - int64(n)
	if from < 0 {
		return nil, false
	}
	if !c.compressed {
		got := readSome(c.file, from, int64(n))
		return got, len(got) == n && c.size >= off
	}
	src, err := c.open()
	if err != nil {
		return nil, false
	}
	defer func() { _ = src.Close() }()
	if src.SkipTo(from) != nil {
		return nil, false
	}
	got := make([]byte, n)
	_, err = io.ReadFull(src, got)
	return got, err == nil
}

// copyOf tells whether c is a copy of the beginning of file, as while a
// rotator copies before it truncates.
func (c *candidate) copyOf(file *os.File) bool {
	if c.compressed || file == nil || c.size == 0 {
		return false
	}
	if front := readSome(file, 0, int64(len(c.head))); !bytes.Equal(front, c.head) {
		return false
	}
	info, err := c.file.Stat() // it grows
	if err != nil {
		return false
	}
	n := min(info.Size(), beforeMax)
	from := info.Size() - n
	return bytes.Equal(readSome(c.file, from, n), readSome(file, from, n))
}

// packs tells whether c is file, compressed.
func (c *candidate) packs(file *os.File) bool {
	if !c.compressed || file == nil || len(c.head) == 0 {
		return false
	}
	return bytes.Equal(readSome(file, 0, int64(len(c.head))), c.head)
}

// between gives the files whose names lie between those of the followed life
// and of next, which differ in one number: 0.log, 1.log, 2.log.
func (s *source) between(next *life) []string {
	cur := s.cur()
	if cur == nil {
		return nil
	}
	return namesBetween(cur.name, next.name)
}

// maxBetween bounds how many numbers are tried.
const maxBetween = 1000

func namesBetween(from, to string) []string {
	dir := filepath.Dir(from)
	if dir != filepath.Dir(to) {
		return nil
	}
	a, b := filepath.Base(from), filepath.Base(to)
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	for i > 0 && isDigit(a[i-1]) {
		i--
	}
	first, restA := cutNumber(a[i:])
	last, restB := cutNumber(b[i:])
	if first == "" || last == "" || restA != restB || len(first) > 9 || len(last) > 9 {
		return nil
	}
	lo, _ := strconv.Atoi(first)
	hi, _ := strconv.Atoi(last)
	var names []string
	for n := lo + 1; n < hi && len(names) < maxBetween; n++ {
		digits := strconv.Itoa(n)
		if len(first) == len(last) { // counted with leading zeros, maybe
			digits = strings.Repeat("0", max(0, len(first)-len(digits))) + digits
		}
		names = append(names, filepath.Join(dir, a[:i]+digits+restA))
	}
	return names
}

func cutNumber(s string) (digits, rest string) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return s[:i], s[i:]
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
