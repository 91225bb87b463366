package tailer

import "time"

// Line is one physical line of a source.
type Line struct {
	// Data is the line without its "\n". It is valid only until the callback
	// that received it returns.
	Data []byte
	// Offset is that of the line's first byte in the decompressed source.
	Offset int64
	// Next is the offset of the byte after the line and its "\n": where a
	// reader resumes.
	Next int64
	// Number counts "\n" from 1; 0 where the source was not read from its start.
	Number int64
	// Cut counts the bytes left out of the middle of a line longer than the
	// reader's limit.
	Cut int64
	// Unterminated marks a last line that had no "\n" when it was read.
	Unterminated bool
	// ReadAt is when the line was read; zero in a post-mortem.
	ReadAt time.Time
}
