package tailer

import (
	"bytes"
	"fmt"
	"io"
)

// backChunk is what one step of a backward search reads.
const backChunk = 1 << 20

// LastLineContaining gives the offset of the first byte of the last line that
// contains any of the literals, in the first size bytes of f. It reads from the
// end backwards, so that its time depends on how far back the line stands and
// not on the size. Only lines that begin within the last limit bytes are
// looked at; 0 is no limit. A last line without "\n" counts.
//
// Empty literals, and those with a "\n", are in no line. A file that has become
// shorter than size is io.ErrUnexpectedEOF. Memory is 1 MiB and the longest
// literal.
func LastLineContaining(f io.ReaderAt, size, limit int64, literals [][]byte) (offset int64, ok bool, err error) {
	b := backward{f: f, chunk: backChunk}
	if limit > 0 {
		b.limit = max(0, size-limit)
	}
	return b.find(size, literals)
}

// backward searches a file from its end. Nothing before limit is a result.
type backward struct {
	f     io.ReaderAt
	chunk int
	limit int64
}

func (b backward) find(size int64, literals [][]byte) (int64, bool, error) {
	literals, longest := usable(literals)
	if len(literals) == 0 || size <= b.limit {
		return 0, false, nil
	}
	// What a chunk may share with the one after it: all but one byte of a
	// literal.
	overlap := longest - 1
	buf := make([]byte, b.chunk+overlap)
	for end := size; end > b.limit; {
		begin := max(b.limit, end-int64(b.chunk))
		part := buf[:min(end+int64(overlap), size)-begin]
		if err := readFull(b.f, part, begin); err != nil {
			return 0, false, err
		}
		if i := lastOfAny(part, literals); i >= 0 {
			return b.lineStart(buf, begin+int64(i))
		}
		end = begin
	}
	return 0, false, nil
}

// lineStart gives the start of the line that holds the byte at pos. It is not
// found if it stands before the limit.
func (b backward) lineStart(buf []byte, pos int64) (int64, bool, error) {
	// The byte before the limit tells whether a line begins at the limit.
	floor := max(0, b.limit-1)
	for end := pos; end > floor; {
		begin := max(floor, end-int64(len(buf)))
		part := buf[:end-begin]
		if err := readFull(b.f, part, begin); err != nil {
			return 0, false, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return begin + int64(i) + 1, true, nil
		}
		end = begin
	}
	return 0, b.limit == 0, nil
}

// usable leaves out the literals that no line can contain.
func usable(literals [][]byte) (kept [][]byte, longest int) {
	for _, l := range literals {
		if len(l) > 0 && bytes.IndexByte(l, '\n') < 0 {
			kept = append(kept, l)
			longest = max(longest, len(l))
		}
	}
	return kept, longest
}

// lastOfAny gives the index of the last occurrence that any literal has in b,
// or -1. bytes.Contains goes forwards but is several times faster than
// bytes.LastIndex, and most chunks hold nothing.
func lastOfAny(b []byte, literals [][]byte) int {
	last := -1
	for _, l := range literals {
		rest := b[last+1:]
		if bytes.Contains(rest, l) {
			last += 1 + bytes.LastIndex(rest, l)
		}
	}
	return last
}

// readFull fills p from offset.
func readFull(f io.ReaderAt, p []byte, offset int64) error {
	n, err := f.ReadAt(p, offset)
	switch {
	case n == len(p):
		return nil // a full read may come with io.EOF
	case err == nil || err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(p), offset, err)
}
