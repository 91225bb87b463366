package main

import (
	"bytes"
	"context"
	"io"
	"strings"

	"diagnose/tailer"
)

// runFinder finds the starts of servers (tailer.RunFinder).
type runFinder struct{}

var (
	// argsMarks stand in the line with the arguments, which every server prints
	// once (vllm/entrypoints).
	argsMarks = [][]byte{[]byte("non-default args: {"), []byte("args: Namespace(")}
	// versionMarks, and the logo, stand a few lines above it.
	versionMarks = [][]byte{[]byte("vLLM API server version "), []byte("vLLM server version ")}
	bannerMarks  = append([][]byte{[]byte("█  version ")}, versionMarks...)
)

// bannerReach is how far above its arguments a banner is looked for, in bytes.
const bannerReach = 8 << 10

// Back implements tailer.RunFinder.
func (runFinder) Back(f io.ReaderAt, end, limit int64) ([]int64, error) {
	var starts []int64
	floor := max(0, end-limit)
	for at := end; len(starts) < 2 && at > floor; {
		found, ok, err := tailer.LastLineContaining(f, at, at-floor, argsMarks)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		at = found
		if b, ok, err := tailer.LastLineContaining(f, at, bannerReach, bannerMarks); err == nil && ok {
			at = b
		}
		starts = append([]int64{at}, starts...)
	}
	return starts, nil
}

// Forward implements tailer.RunFinder.
func (runFinder) Forward(ctx context.Context, text io.Reader) (starts []tailer.Place, size int64, err error) {
	banner := tailer.Place{Offset: -bannerReach - 1}
	size, _, err = tailer.Read(ctx, text, tailer.ReadOptions{StartLine: 1, Final: true}, func(l tailer.Line) error {
		at := tailer.Place{Offset: l.Offset, Line: l.Number}
		switch {
		case containsAny(l.Data, argsMarks):
			if l.Offset-banner.Offset <= bannerReach {
				at = banner
			}
			starts = append(starts[max(0, len(starts)-1):], at)
			banner.Offset = -bannerReach - 1 // of this run
		case containsAny(l.Data, bannerMarks):
			banner = at
		}
		return nil
	})
	return starts, size, err
}

func containsAny(text []byte, marks [][]byte) bool {
	for _, m := range marks {
		if bytes.Contains(text, m) {
			return true
		}
	}
	return false
}

// startsRecord tells whether a line certainly begins a line of its own.
func startsRecord(line []byte) bool {
	return len(line) > 6 && line[0] == '(' && strings.Contains(string(line[:min(len(line), 80)]), " pid=")
}
