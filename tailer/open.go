package tailer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// What Source.Read can fail with, beside the errors of the disk. Each comes
// wrapped, with the name of the source and the decompressed offset.
var (
	// ErrTruncated: the compressed data ends too early, as of a file that was
	// still being written or copied. All that it gave before is good.
	ErrTruncated = errors.New("compressed data ends too early")
	// ErrCorrupt: the compressed data is damaged, or something else follows
	// it. The last bytes before the error are not proven by a checksum.
	ErrCorrupt = errors.New("compressed data is corrupt")
	// ErrUnsupported: compressed in a way that is not read here, as xz, bzip2,
	// lz4, or zstd with a window above 64 MiB (zstd --long, --ultra -22).
	ErrUnsupported = errors.New("compression is not supported")
)

const (
	// inputBuffer stands between the disk and a decoder.
	inputBuffer = 64 << 10
	// maxWindow bounds what a zstd frame can make the decoder allocate: it
	// holds one window. The zstd tool stays at 8 MiB unless it is told --ultra
	// or --long.
	maxWindow = 64 << 20
	// magicLen is the longest magic looked for, that of bzip2.
	magicLen = 10
)

// Source is an opened input: a plain file, gzip or zstd, told by the first
// bytes and not by the name, or standard input. Only Progress may be called
// while another goroutine reads.
type Source struct {
	// Name is as given to Open; "-" is standard input.
	Name string
	// Compression is "", "gzip" or "zstd".
	Compression string
	// Size is what the file holds on disk, in bytes, when it was opened; -1
	// where that is unknown, as for a pipe.
	Size int64

	file   *os.File // nil for standard input
	disk   *counter
	buffer *bufio.Reader
	body   io.Reader
	close  func()
	offset int64 // decompressed bytes given so far
	err    error // ends every further read
}

// Open opens name, or takes stdin where name is "-". It waits for the writer of
// a named pipe, and for the first ten bytes of any pipe to see what it is. A missing file, a lack of permission
// and a directory are errors (*fs.PathError); an empty file is not. Damage in
// compressed data shows only in Read. A compression that is not read here is
// ErrUnsupported.
func Open(name string, stdin io.Reader) (*Source, error) {
	s := &Source{Name: name, Size: -1}
	var in io.Reader
	if name == "-" {
		if stdin == nil {
			return nil, errors.New("open standard input: there is none")
		}
		in = stdin
		if f, ok := stdin.(*os.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				s.Size = info.Size()
			}
		}
	} else {
		f, size, err := openFile(name)
		if err != nil {
			return nil, err
		}
		s.file, s.Size, in = f, size, f
	}
	s.disk = &counter{r: in}
	s.buffer = bufio.NewReaderSize(s.disk, inputBuffer)
	if err := s.detect(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openFile opens name for reading; size is -1 if it is no regular file.
func openFile(name string) (f *os.File, size int64, err error) {
	f, err = os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		return f, -1, nil
	}
	return f, info.Size(), nil
}

// detect looks at the first bytes and sets up the decoder.
func (s *Source) detect() error {
	// A short file or a failing disk gives fewer bytes; the reason comes again
	// when the source is read.
	magic, _ := s.buffer.Peek(magicLen)
	kind, supported := compression(magic)
	if !supported {
		return fmt.Errorf("open %s: %s: %w", s.Name, kind, ErrUnsupported)
	}
	s.Compression = kind
	switch kind {
	case "gzip":
		z, err := gzip.NewReader(s.buffer)
		if err != nil {
			s.err = s.classify(err)
			return nil
		}
		s.body = z
	case "zstd":
		// One goroutine less to end, and as fast (concurrency 1).
		z, err := zstd.NewReader(s.buffer, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxWindow))
		if err != nil {
			s.err = s.classify(err)
			return nil
		}
		s.body, s.close = z, z.Close
	default:
		s.body = s.buffer
	}
	return nil
}

// Read gives decompressed bytes. At the end of a plain file it gives io.EOF
// and can be called again once the file has grown.
func (s *Source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.body.Read(p)
	s.offset += int64(n)
	if err == nil || s.Compression == "" {
		return n, err
	}
	if err != io.EOF {
		err = s.classify(err)
	}
	s.err = err
	return n, err
}

// ReaderAt gives the file itself for reading at any offset; ok is false for
// what is compressed or no regular file. It ends with Close.
func (s *Source) ReaderAt() (r io.ReaderAt, ok bool) {
	if s.file == nil || s.Compression != "" || s.Size < 0 {
		return nil, false
	}
	return s.file, true
}

// SkipTo makes the next Read begin at the decompressed offset. A plain regular
// file is positioned; anything else can only go forwards and is read up to
// there. A source that ends earlier is io.ErrUnexpectedEOF.
func (s *Source) SkipTo(offset int64) error {
	if _, ok := s.ReaderAt(); !ok {
		if offset < s.offset {
			return fmt.Errorf("skip %s to byte %d: already at %d", s.Name, offset, s.offset)
		}
		_, err := io.CopyN(io.Discard, s, offset-s.offset)
		if err == io.EOF {
			err = fmt.Errorf("skip %s to byte %d: %w", s.Name, offset, io.ErrUnexpectedEOF)
		}
		return err
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	if offset > info.Size() {
		return fmt.Errorf("skip %s to byte %d: %w", s.Name, offset, io.ErrUnexpectedEOF)
	}
	if _, err := s.file.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	s.buffer.Reset(s.disk)
	s.disk.n.Store(offset)
	s.offset = offset
	return nil
}

// Progress tells how many bytes have been taken from the disk, of Size.
func (s *Source) Progress() int64 { return s.disk.n.Load() }

// Close releases the decoder and the file. Standard input stays open.
func (s *Source) Close() error {
	if s.close != nil {
		s.close()
		s.close = nil
	}
	s.err = fs.ErrClosed
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// classify says what an error of a decoder means.
func (s *Source) classify(err error) error {
	if s.disk.err != nil {
		return s.disk.err // the disk failed, not the data
	}
	kind := ErrCorrupt
	switch {
	case s.disk.ended && s.buffer.Buffered() == 0 &&
		(errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)):
		// Decoders say "unexpected EOF" of damage inside a block as well.
		kind = ErrTruncated
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		kind = ErrUnsupported
	}
	// The decoder's own error is text only: wrapped, its io.EOF would pass for
	// a proper end.
	return fmt.Errorf("%s: %s: %w at decompressed byte %d: %v", s.Name, s.Compression, kind, s.offset, err)
}

// counter counts what comes from the disk and keeps its error apart from those
// of a decoder.
type counter struct {
	r     io.Reader
	n     atomic.Int64
	ended bool  // the last read met the end
	err   error // of the disk, never io.EOF
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	c.ended = err == io.EOF
	if err != nil && !c.ended {
		c.err = err
	}
	return n, err
}

// magics are the first bytes of what is told apart, in the order of looking.
// Sources: RFC 1952 section 2.3.1, RFC 8878 section 3.1.1, and the format
// descriptions of xz, bzip2 and lz4.
func magics() []magic {
	return []magic{
		{"gzip", "\x1f\x8b\x08", true},
		{"zstd", "\x28\xb5\x2f\xfd", true},
		{"xz", "\xfd7zXZ\x00", false},
		{"lz4", "\x04\x22\x4d\x18", false},
	}
}

type magic struct {
	kind, prefix string
	supported    bool
}

// compression names the compression that the first bytes of a file tell, ""
// for none, and whether it is read here.
func compression(first []byte) (kind string, supported bool) {
	for _, m := range magics() {
		if bytes.HasPrefix(first, []byte(m.prefix)) {
			return m.kind, m.supported
		}
	}
	switch {
	// A zstd stream may begin with a skippable frame, as pzstd writes it.
	case len(first) >= 4 && first[0]>>4 == 5 && string(first[1:4]) == "\x2a\x4d\x18":
		return "zstd", true
	// "BZh", a level, then the first block's magic: pi in BCD.
	case len(first) >= 10 && string(first[:3]) == "BZh" && string(first[4:10]) == "1AY&SY":
		return "bzip2", false
	}
	return "", true
}
