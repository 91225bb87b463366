package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"diagnose/tailer"
)

// progress draws a bar on stderr, on a terminal only, once a reading takes
// longer than a second.
type progress struct {
	w      io.Writer
	began  time.Time
	shown  time.Time
	total  int64
	before int64 // of the sources that are done
	src    *tailer.Source
	lines  int
	drawn  bool
}

func newProgress(w io.Writer, inputs []server) *progress {
	p := &progress{began: time.Now()}
	if !isTerminal(w) {
		return p
	}
	p.w = w
	for _, s := range inputs {
		for _, f := range s.files {
			if st, err := os.Stat(f); err == nil {
				p.total += st.Size()
			}
		}
	}
	return p
}

func (p *progress) start(src *tailer.Source) {
	if p.src != nil {
		p.before += p.src.Progress()
	}
	p.src = src
}

// tick is called for each line; it looks at the clock once in 4096 of them.
func (p *progress) tick() {
	if p.lines++; p.w == nil || p.lines&4095 != 0 || p.total == 0 {
		return
	}
	now := time.Now()
	if now.Sub(p.began) < time.Second || now.Sub(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown, p.drawn = now, true
	part := float64(p.before+p.src.Progress()) / float64(p.total)
	const width = 30
	full := min(int(part*width), width)
	fmt.Fprintf(p.w, "\r[%s%s] %3.0f %%", hashes[:full], spaces[:width-full], min(part, 1)*100)
}

const (
	hashes = "##############################"
	spaces = "                              "
)

func (p *progress) done() {
	if p.drawn {
		fmt.Fprintf(p.w, "\r%s\r", spaces+"         ")
		p.drawn = false
	}
}
