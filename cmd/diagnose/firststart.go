package main

import (
	"bytes"
	"os"
	"strings"

	"diagnose/tailer"
)

// firstStart finds where to begin in a log that was never followed: at the
// start of the run before the last one, so that the configuration and a crash
// just before are known; at most 64 MiB back.
func firstStart(_ string, f *os.File, size int64) int64 {
	const back = 64 << 20
	args := [][]byte{[]byte("non-default args: {"), []byte("args: Namespace(")}
	at, ok, err := tailer.LastLineContaining(f, size, back, args)
	if err != nil || !ok {
		return lineFrom(f, size, size-back)
	}
	if left := back - (size - at); left > 0 {
		if before, ok, err := tailer.LastLineContaining(f, at, left, args); err == nil && ok {
			at = before
		}
	}
	// The banner stands a few lines above the arguments.
	banner := [][]byte{[]byte("█  version "), []byte("vLLM API server version "), []byte("vLLM server version ")}
	if b, ok, err := tailer.LastLineContaining(f, at, 8<<10, banner); err == nil && ok {
		at = b
	}
	if at <= 8<<10 {
		return 0 // only so are lines counted, and what stands before is short
	}
	return at
}

// lineFrom gives the start of the first line that begins at or after an offset.
func lineFrom(f *os.File, size, at int64) int64 {
	if at <= 0 {
		return 0
	}
	buf := make([]byte, 1<<20)
	n, _ := f.ReadAt(buf, at-1) // a short read leaves the end to start from
	if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
		return at + int64(i)
	}
	return size
}

// startsRecord tells whether a line certainly begins a line of its own.
func startsRecord(line []byte) bool {
	return len(line) > 6 && line[0] == '(' && strings.Contains(string(line[:min(len(line), 80)]), " pid=")
}
