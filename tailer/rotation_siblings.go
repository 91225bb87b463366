package tailer

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// candidate is a file that may hold an older generation of a log.
type candidate struct {
	name       string
	id         fileID
	size       int64 // on disk
	modified   time.Time
	compressed bool
	head       []byte // decompressed
}

// candidates lists what stands beside the given names, and the names
// themselves where they are not the log, in the order of their writing.
func (s *source) candidates(names ...string) []*candidate {
	var all []*candidate
	add := func(name string) {
		if slices.ContainsFunc(all, func(c *candidate) bool { return c.name == name }) {
			return
		}
		if c := newCandidate(name); c != nil {
			all = append(all, c)
		}
	}
	asked := map[string]bool{}
	for _, name := range names {
		if name == "" || asked[name] {
			continue
		}
		asked[name] = true
		older := []string{}
		for _, n := range []string{name, realName(name)} {
			if found, err := Siblings(n); err == nil {
				older = append(older, found...)
			}
		}
		for _, n := range older {
			add(n)
		}
		if name != s.target.path {
			add(name)
		}
	}
	return inOrder(all)
}

// newCandidate is nil for what is not there, or cannot be read.
func newCandidate(name string) *candidate {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	src, err := Open(name, nil)
	if err != nil {
		return nil
	}
	defer func() { _ = src.Close() }()
	c := &candidate{
		name: name, id: idOf(info), size: info.Size(), modified: info.ModTime(),
		compressed: src.Compression != "",
	}
	head := make([]byte, headMax)
	n, err := io.ReadFull(src, head)
	if c.compressed && err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil // not complete yet
	}
	c.head = head[:n]
	return c
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
	slices.SortStableFunc(all, func(a, b *candidate) int { return a.modified.Compare(b.modified) })
	return all
}

// holds tells whether the text of c has want before off.
func (c *candidate) holds(off int64, want []byte) bool {
	src, err := Open(c.name, nil)
	if err != nil {
		return false
	}
	defer func() { _ = src.Close() }()
	if err := src.SkipTo(off - int64(len(want))); err != nil {
		return false
	}
	got := make([]byte, len(want))
	_, err = io.ReadFull(src, got)
	return err == nil && bytes.Equal(got, want)
}

// copyOf tells whether c is a copy of the beginning of l, as while a rotator
// copies before it truncates.
func (c *candidate) copyOf(l *life) bool {
	if c.compressed || l.file == nil || c.size == 0 {
		return false
	}
	if front := readSome(l.file, 0, int64(len(c.head))); !bytes.Equal(front, c.head) {
		return false
	}
	file, info, err := openRegular(c.name)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	n := min(info.Size(), beforeMax)
	from := info.Size() - n
	return bytes.Equal(readSome(file, from, n), readSome(l.file, from, n))
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
