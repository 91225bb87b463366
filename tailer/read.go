package tailer

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

const (
	// defaultMaxLine keeps the longest tracebacks and scheduler dumps whole.
	defaultMaxLine = 1 << 20
	// chunkSize is what one read asks for: beyond 256 KiB nothing is gained.
	chunkSize = 256 << 10
	// maxEmptyReads is how often a reader may answer (0, nil) in a row.
	maxEmptyReads = 100
)

// ReadOptions bound one reading.
type ReadOptions struct {
	// Start is the offset, in the decompressed source, of the first byte that
	// the reader yields.
	Start int64
	// StartLine is the number of the first line, counted from 1. With 0 it is
	// unknown and the Number of every line stays 0.
	StartLine int64
	// MaxLine is the longest line, in bytes, that is kept whole; 0 means 1 MiB.
	// A longer one keeps its first MaxLine/4 bytes and as much of its end as
	// fits; the bytes between are dropped and counted in Line.Cut.
	MaxLine int
	// Final delivers a last piece without "\n" as Unterminated. Without it the
	// piece is left for the next reading.
	Final bool
}

// Read splits r into lines and calls fn for each, in order. The Data of a line
// is valid only during the call. A "\r" before the "\n" and NUL bytes are kept.
//
// It returns where reading resumes: the offset of the byte after the last line
// that fn took, and the number of the line that begins there (0 if unknown).
// After an Unterminated line that number is still the line's own, since its
// rest may follow.
//
// The end of r is no error, and r can be read on when it has grown. An error
// of fn ends the reading and is returned as it is, and so is one of r; the line
// that fn refused does not count as taken. When r fails, what it gave before is
// delivered first, as at its end. ctx is looked at before each read of r, a
// read that blocks is not interrupted.
//
// Memory depends on MaxLine alone: the buffer never exceeds MaxLine + 256 KiB.
func Read(ctx context.Context, r io.Reader, opt ReadOptions, fn func(Line) error) (next int64, nextLine int64, err error) {
	s := newSplitter(opt, chunkSize)
	err = s.run(ctx, r, fn)
	return s.offset, s.number, err
}

// splitter holds the bytes from the start of the line that is being read.
type splitter struct {
	chunk   int
	maxLine int
	final   bool

	buf    []byte // buf[:fill] is read and not yet delivered
	fill   int
	head   int   // bytes of a long line that are kept from its front
	cut    int64 // bytes of the current line dropped after buf[:head]
	offset int64 // of buf[0]
	number int64 // of the line that buf[0] begins
}

func newSplitter(opt ReadOptions, chunk int) *splitter {
	s := &splitter{
		chunk:   chunk,
		maxLine: opt.MaxLine,
		final:   opt.Final,
		offset:  opt.Start,
		number:  opt.StartLine,
	}
	if s.maxLine <= 0 {
		s.maxLine = defaultMaxLine
	}
	s.head = s.maxLine / 4
	s.buf = make([]byte, chunk)
	return s
}

func (s *splitter) run(ctx context.Context, r io.Reader, fn func(Line) error) error {
	empty := 0
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.makeRoom()
		room := s.buf[s.fill:]
		n, readErr := r.Read(room)
		if n < 0 || n > len(room) {
			return fmt.Errorf("read lines: the reader claims %d bytes of %d", n, len(room))
		}
		if err := s.deliver(n, fn); err != nil {
			return err
		}
		switch {
		case readErr != nil:
			if err := s.finish(fn); err != nil {
				return err
			}
			if readErr == io.EOF { // as io.Reader has it: never wrapped
				return nil
			}
			return readErr
		case n > 0:
			empty = 0
		default:
			if empty++; empty >= maxEmptyReads {
				return io.ErrNoProgress
			}
		}
	}
}

// makeRoom leaves at least a quarter of a chunk free behind the current line,
// so that reads stay large. The buffer grows to maxLine + chunk, then the
// middle of the line goes.
func (s *splitter) makeRoom() {
	limit := s.maxLine + s.chunk
	for len(s.buf)-s.fill <= s.chunk/4 {
		if len(s.buf) == limit {
			s.trim()
			return
		}
		grown := make([]byte, min(2*len(s.buf), limit))
		copy(grown, s.buf[:s.fill])
		s.buf = grown
	}
}

// trim drops the middle of the current line where it is longer than maxLine.
// What is kept does not depend on when trim is called: always the first head
// bytes of the line and the last maxLine - head of what has been read of it.
func (s *splitter) trim() {
	if excess := s.fill - s.maxLine; excess > 0 {
		copy(s.buf[s.head:], s.buf[s.head+excess:s.fill])
		s.fill -= excess
		s.cut += int64(excess)
	}
}

// deliver takes the n bytes just read behind buf[:fill] and hands on every line
// that they end.
func (s *splitter) deliver(n int, fn func(Line) error) error {
	end := s.fill + n
	begin, from := 0, s.fill // a "\n" can only stand in the new bytes
	for {
		i := bytes.IndexByte(s.buf[from:end], '\n')
		if i < 0 {
			break
		}
		stop := from + i
		line := s.buf[begin:stop:stop] // an append by fn must not reach the next line
		length := int64(len(line)) + s.cut
		next := s.offset + length + 1
		cut := s.cut
		if len(line) > s.maxLine {
			line, cut = cutMiddle(line, s.head, s.maxLine), cut+int64(len(line)-s.maxLine)
		}
		if err := fn(Line{Data: line, Offset: s.offset, Next: next, Number: s.number, Cut: cut}); err != nil {
			return err
		}
		s.offset, s.cut = next, 0
		if s.number > 0 {
			s.number++
		}
		begin, from = stop+1, stop+1
	}
	if begin > 0 {
		copy(s.buf, s.buf[begin:end])
	}
	s.fill = end - begin
	return nil
}

// cutMiddle shortens line, in place, to its first head bytes and its end.
func cutMiddle(line []byte, head, maxLine int) []byte {
	copy(line[head:], line[len(line)-(maxLine-head):])
	return line[:maxLine]
}

// finish delivers the piece behind the last "\n", if the options ask for it.
func (s *splitter) finish(fn func(Line) error) error {
	if !s.final || s.fill == 0 {
		return nil
	}
	next := s.offset + int64(s.fill) + s.cut
	s.trim()
	err := fn(Line{
		Data: s.buf[:s.fill:s.fill], Offset: s.offset, Next: next, Number: s.number,
		Cut: s.cut, Unterminated: true,
	})
	if err == nil {
		s.offset, s.fill, s.cut = next, 0, 0
	}
	return err
}
