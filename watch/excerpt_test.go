package watch

import (
	"bytes"
	"testing"

	"diagnose/tailer"
)

// Of a server that started long ago only an excerpt is read, once; its facts
// outlive the daemon.
func TestTheStartOfTheRunComesAsAnExcerpt(t *testing.T) {
	log := crashes(t, crash, 1)
	cut := int64(bytes.Index(log, []byte("Application startup complete")))
	cut += int64(bytes.IndexByte(log[cut:], '\n')) + 1
	rest := int64(len(log)) - cut
	for name, kill := range map[string]int64{
		"before the first line": 0,
		"in the crash":          rest / 2,
		"never":                 -1,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, log)
			t.Cleanup(b.close)
			b.cuts = []int64{cut}
			b.start()
			ref := b.ref(0)
			ref.Excerpt = true
			for at := int64(0); at < cut; {
				n := int64(bytes.IndexByte(log[at:], '\n'))
				b.d.Line(ref, tailer.Line{Data: log[at : at+n], Offset: at, Next: at + n + 1})
				at += n + 1
			}
			b.at, b.next = cut, cut
			if kill >= 0 {
				b.feed(cut + kill)
				live := tailer.Position{Device: 1, Inode: 3, Offset: b.next - cut}
				if err := b.store.Save(map[string]tailer.Checkpoint{b.path: {Generations: []tailer.Position{live}}}); err != nil {
					t.Fatal(err)
				}
				b.start()
			}
			b.feedAll()
			b.rest(70)
			in := b.last(b.one()).Incident
			want := postmortem(t, log)[0]
			if in.ID != want.ID || deref(in.Verdict.Mechanism) != deref(want.Verdict.Mechanism) {
				t.Errorf("%s %s, expected %s %s", in.ID, deref(in.Verdict.Mechanism), want.ID, deref(want.Verdict.Mechanism))
			}
			if deref(in.Engine.Version) != "0.24.0" || in.Engine.Flags["port"].Value == "" || len(in.Budget) == 0 {
				t.Errorf("the start of the run is lost: %+v", in.Engine)
			}
		})
	}
}
