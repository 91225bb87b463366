package tailer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

const (
	// headMax is how much of the front of a file tells it from others. A
	// server's first kilobyte holds its start time and pid.
	headMax = 1024
	// beforeMax is how much text before an offset has to be what it was.
	beforeMax = 1024
	// smallRead is what is read and split without a splitter of its own.
	smallRead = 64 << 10
)

// errReplaced: the text before the offset is no longer what was read there, so
// the file was truncated, and maybe written again.
var errReplaced = errors.New("file was truncated or rewritten")

// fileID tells files apart while they exist; inode numbers are used again.
type fileID struct{ device, inode uint64 }

func idOf(info os.FileInfo) fileID {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fileID{uint64(st.Dev), st.Ino} //nolint:unconvert // Dev is int32 on some systems
	}
	return fileID{}
}

// links is the number of names that a file has, 1 where that is unknown.
func links(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // uint16 on some systems
	}
	return 1
}

// life is one generation: one file from when it got the name of the log until
// it lost it or was truncated.
//
// The goroutine of the source owns it. Fields below mu are also read and
// written by Commit and checkpoints, under the source's lock.
type life struct {
	ref  SourceRef
	name string
	// file is the own descriptor; nil once closed, or if compressed. It
	// changes under mu of the source.
	file *os.File
	// packed is the compressed file until it has been read.
	packed *os.File
	// start is where reading began, fresh that no line has been taken since.
	start int64
	fresh bool
	// sought: what came unseen before it has been looked for.
	sought bool
	// scanned is up to where the text after off is known to hold no "\n".
	scanned int64
	// rest is the unterminated end of a life whose file is closed or was
	// compressed; otherwise the file is asked.
	rest  piece
	shown int64 // up to where Tail has shown the text after off
	quiet time.Time
	size  int64 // at the last look

	// mu of the source:
	unread bool // compressed, and not read to its end
	late   bool // rotated away, still read for the grace period
	id     fileID
	// recent are the bytes before recentEnd as they were read. That is off, or
	// the end of the line in the Handler's hands.
	recent    []byte
	recentEnd int64
	modified  time.Time // at the last look
	off       int64     // the byte after the last line that was taken
	line      int64     // the number of the line at off, 0 if unknown
	head      []byte
	turned    int64 // off when the life ended; -1 before
	commit    mark
	text      []byte // what was last carried from textOff on
	textOff   int64
	// joined is where the line ended that began with the rest of this life.
	joined *joint
}

// mark is a place to read again from.
type mark struct {
	off, line int64
	before    []byte // the bytes before off, nil if not known
}

// joint: the line that began before at ended in another life, before off.
type joint struct {
	at        int64
	to        *life
	off, line int64
}

// piece is text without its "\n".
type piece struct {
	data []byte
	cut  int64
}

func (p piece) size() int64 { return int64(len(p.data)) + p.cut }

// openRegular opens a regular file without waiting, as a FIFO would make it.
func openRegular(name string) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "follow", Path: name, Err: errors.New("not a regular file")}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// newLife begins a life of file at off. The text before off is taken as it
// stands there.
func (s *source) newLife(file *os.File, info os.FileInfo, name string, off, line int64) *life {
	l := &life{
		file: file, name: name, start: off, fresh: true, scanned: off, shown: off,
		id: idOf(info), off: off, line: line, turned: -1, size: info.Size(),
		modified: info.ModTime(),
	}
	if off > 0 {
		l.head = readSome(file, 0, min(headMax, off))
		l.recent = readSome(file, max(0, off-beforeMax), min(beforeMax, off))
	} else if l.line == 0 {
		l.line = 1
	}
	l.recentEnd = off
	l.commit = mark{off: off, line: l.line, before: bytes.Clone(l.recent)}
	first := readSome(file, 0, headMax)
	l.ref = SourceRef{
		Path: s.target.key, Gen: s.f.nextGen(), Name: name,
		Device: l.id.device, Inode: l.id.inode,
		Head: hash(first), HeadLen: len(first), Meta: s.target.metaOf(name),
	}
	return l
}

// readSome gives up to n bytes at off, what can be had.
func readSome(r io.ReaderAt, off, n int64) []byte {
	buf := make([]byte, n)
	got, _ := r.ReadAt(buf, off)
	return buf[:got]
}

// hash is empty for nothing.
func hash(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// noteLook keeps what a look at the followed file tells: its size, and its
// front, also of what is not read yet.
func (s *source) noteLook(l *life, info os.FileInfo) {
	front := l.head
	if len(front) < headMax && info.Size() > int64(len(front)) && l.turned < 0 {
		front = readSome(l.file, 0, headMax)
		if !bytes.HasPrefix(front, l.head) {
			return // truncated just now
		}
	}
	s.mu.Lock()
	l.head, l.modified, s.size = front, info.ModTime(), info.Size()
	s.mu.Unlock()
}

// front gives the first bytes of a life that is complete.
func (l *life) front() []byte {
	if len(l.head) >= headMax {
		return l.head
	}
	if l.file != nil {
		return readSome(l.file, 0, headMax)
	}
	return l.head
}

// before gives the text that must stand before off for the life to be intact.
func (l *life) before() []byte {
	return l.recent[len(l.recent)-min(len(l.recent), beforeMax):]
}

// remember keeps the front of what was read, and the end.
func (l *life) remember(line Line) {
	if n := int64(len(l.head)); n < headMax && n >= line.Offset && n < line.Next && line.Cut == 0 {
		l.head = append(l.head[:line.Offset:line.Offset], line.Data...)
		l.head = append(l.head, '\n')
		l.head = l.head[:min(len(l.head), headMax)]
	}
	if line.Cut > 0 {
		// Only the kept end of the line is whole, and that is more than half.
		n := len(line.Data)
		l.recent = append(l.recent[:0], line.Data[n-min(n/2, beforeMax):]...)
	} else {
		data := line.Data[len(line.Data)-min(len(line.Data), beforeMax):]
		if len(data) == beforeMax {
			l.recent = l.recent[:0]
		}
		l.recent = append(l.recent, data...)
	}
	if !line.Unterminated {
		l.recent = append(l.recent, '\n')
	}
	l.recentEnd = line.Next
	if n := len(l.recent); n > 4*beforeMax {
		l.recent = append(l.recent[:0], l.recent[n-beforeMax:]...)
	}
}

// intact compares the text before off with what was read there; where nothing
// was read, the front with what was seen.
func (l *life) intact() bool {
	if l.off == 0 {
		return bytes.Equal(readSome(l.file, 0, int64(len(l.head))), l.head)
	}
	want := l.before()
	got := readSome(l.file, l.off-int64(len(want)), int64(len(want)))
	return bytes.Equal(got, want)
}

// markAt makes a place to read again from. The text before it comes from
// memory where possible: the file may have been truncated in the meantime.
func (l *life) markAt(off, line int64) mark {
	off = min(off, max(l.off, l.recentEnd))
	m := mark{off: off, line: line}
	if have := l.recentEnd - off; have >= 0 && have < int64(len(l.recent)) {
		end := int64(len(l.recent)) - have
		m.before = bytes.Clone(l.recent[max(0, end-beforeMax):end])
		if len(m.before) >= beforeMax/4 || int64(len(m.before)) == off {
			return m
		}
	}
	if n := min(off, beforeMax); l.file != nil && n > 0 {
		if b := readSome(l.file, off-n, n); int64(len(b)) == n {
			m.before = b
		}
	}
	return m
}

// verified reads a life from pos and checks with each read that the bytes
// before still stand there, in the same system call: a truncation between a
// check and a read would go unseen.
type verified struct {
	file *os.File
	pos  int64
	last []byte
	buf  []byte
}

func (l *life) reader() *verified {
	return &verified{file: l.file, pos: l.off, last: bytes.Clone(l.before())}
}

func (v *verified) Read(p []byte) (int, error) {
	n := len(v.last)
	if need := n + len(p); cap(v.buf) < need {
		v.buf = make([]byte, need)
	}
	buf := v.buf[:n+len(p)]
	m, err := v.file.ReadAt(buf, v.pos-int64(n))
	if m < n || !bytes.Equal(buf[:n], v.last) {
		if err != nil && err != io.EOF {
			return 0, err
		}
		return 0, errReplaced
	}
	copy(p, buf[n:m])
	v.pos += int64(m - n)
	v.last = append(v.last[:0], buf[m-min(m, beforeMax):m]...)
	if m > n && err == io.EOF {
		err = nil
	}
	return m - n, err
}

// hasNewline looks for a "\n" after off without looking twice at the same
// text. With none in sight there is nothing to take.
func (l *life) hasNewline() bool {
	buf := make([]byte, smallRead)
	pos := max(l.scanned, l.off)
	for {
		n, err := l.file.ReadAt(buf, pos)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			l.scanned = pos + int64(i)
			return true
		}
		pos += int64(n)
		l.scanned = pos
		if err != nil || n == 0 {
			return false
		}
	}
}

// remainder is the unterminated text after off, bounded by maxLine.
func (l *life) remainder(maxLine int) piece {
	if l.file == nil {
		return l.rest
	}
	info, err := l.file.Stat()
	if err != nil || info.Size() <= l.off {
		return piece{}
	}
	n := info.Size() - l.off
	if n <= int64(maxLine) {
		return piece{data: readSome(l.file, l.off, n)}
	}
	head := int64(maxLine / 4)
	data := readSome(l.file, l.off, head)
	tail := int64(maxLine) - head
	return piece{append(data, readSome(l.file, info.Size()-tail, tail)...), n - int64(maxLine)}
}

// discard closes what is open.
func (l *life) discard() {
	for _, file := range []*os.File{l.file, l.packed} {
		if file != nil {
			_ = file.Close()
		}
	}
}

// closeFile gives the descriptor back and keeps what may still be joined to
// the next life.
func (s *source) closeFile(l *life) {
	rest := piece{}
	if l.joined == nil {
		rest = l.remainder(s.f.opt.MaxLine)
	}
	s.mu.Lock()
	file := l.file
	l.file, l.rest, l.late = nil, rest, false
	s.mu.Unlock()
	_ = file.Close()
}

// drain takes every complete line that the file of l holds. It returns
// errReplaced if the file is not what it was; other errors are those of the
// disk.
func (s *source) drain(ctx context.Context, l *life) error {
	if l.file == nil {
		return nil
	}
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if l.off == 0 && !l.intact() {
		return errReplaced
	}
	l.size = info.Size()
	unread := l.size - l.off
	if unread == 0 {
		return nil
	}
	if unread < 0 {
		return errReplaced
	}
	if unread <= int64(min(smallRead, s.f.opt.MaxLine)) {
		return s.drainSmall(l, unread)
	}
	if !l.hasNewline() {
		if !l.intact() {
			return errReplaced
		}
		return nil
	}
	s.setStatus(StatusReading, nil)
	r := l.reader()
	opt := ReadOptions{Start: l.off, StartLine: l.line, MaxLine: s.f.opt.MaxLine}
	_, _, err = Read(ctx, r, opt, func(line Line) error {
		s.take(ctx, l, line)
		return nil
	})
	s.setStatus(StatusFollowing, nil)
	return err
}

// drainSmall splits a short piece of a file, without the buffers of Read.
func (s *source) drainSmall(l *life, unread int64) error {
	before := len(l.before())
	if need := before + int(unread); cap(s.scratch) < need {
		s.scratch = make([]byte, max(need, 4096))
	}
	buf := s.scratch[:before+int(unread)]
	n, err := l.file.ReadAt(buf, l.off-int64(before))
	if seen := l.head[:min(len(l.head), n)]; l.off == 0 && !bytes.HasPrefix(buf, seen) {
		return errReplaced
	}
	if n < before || !bytes.Equal(buf[:before], l.before()) {
		if err != nil && err != io.EOF {
			return err
		}
		return errReplaced
	}
	s.scratch = nil // a Handler may, through Rotated, come here again
	text := buf[before:n]
	for {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			break
		}
		s.take(s.ctx, l, Line{
			Data: text[:i:i], Offset: l.off, Next: l.off + int64(i) + 1, Number: l.line,
		})
		text = text[i+1:]
	}
	s.scratch = buf[:cap(buf)]
	return nil
}
