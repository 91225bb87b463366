package watch

import (
	"slices"
	"testing"

	"diagnose/matcher"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// logs are servers that end in each of the ways that matter to a daemon.
var logs = []string{
	"v0240-dsa-32768-0.92.log", "v0240-tp2-dsa-32768-0.95.log", "v0251-kill-enginecore.log", "v0251-kv-refused.log",
	"v0251-sleep-wake.log", "v0240-clean-stop.log", "v0251-device-assert.log", "v0240-prompt-logprobs.log",
}

// TestLiveTellsWhatThePostMortemTells kills the daemon at arbitrary lines,
// pauses the log anywhere, rotates it between any two lines, and saves the
// checkpoint as late as it happens: every failure is opened exactly once, under
// the id that a post-mortem of the whole log gives it, and ends with the same
// diagnosis.
func TestLiveTellsWhatThePostMortemTells(t *testing.T) {
	type whole struct {
		text []byte
		ends []int64
		want []matcher.Incident
	}
	var all []whole
	for _, name := range logs {
		text := crashes(t, "vllm-h200/"+name, 3)
		all = append(all, whole{text, lineEnds(text), postmortem(t, text)})
	}
	rapid.Check(t, func(t *rapid.T) {
		log := all[rapid.IntRange(0, len(logs)-1).Draw(t, "log")]
		b := newBench(inRapid{t: t}, log.text)
		defer b.close()
		b.cuts = rapid.SliceOfNDistinct(rapid.SampledFrom(log.ends[:len(log.ends)-1]), 0, 4, rapid.ID[int64]).Draw(t, "rotations")
		slices.Sort(b.cuts)
		b.start()
		pause := 50
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			b.feed(rapid.Int64Range(b.at, int64(len(log.text))).Draw(t, "to"))
			// A minute without a line inside a traceback would make the piece
			// that stands there the record.
			n := rapid.IntRange(0, pause).Draw(t, "pause")
			pause -= n
			b.rest(n)
			if rapid.Bool().Draw(t, "save") {
				b.save()
			}
			if rapid.Bool().Draw(t, "kill") {
				b.start()
			}
		}
		b.feedAll()
		b.rest(90)
		if diff := cmp.Diff(idsOf(log.want), b.opened()); diff != "" {
			t.Fatalf("opened (-post-mortem +live):\n%s", diff)
		}
		for _, in := range log.want {
			n := b.last(in.ID)
			if diff := cmp.Diff(bare(b.t, in), bare(b.t, n.Incident)); diff != "" {
				t.Fatalf("%s (-post-mortem +live):\n%s", in.ID, diff)
			}
			if err := saneOrder(b.events(in.ID)); err != "" {
				t.Fatalf("%s: %s: %v", in.ID, err, b.events(in.ID))
			}
		}
	})
}

// saneOrder checks an incident's events: opened first and once, closed once.
func saneOrder(events []string) string {
	count := map[string]int{}
	for i, e := range events {
		if (e == eventOpened) != (i == 0) {
			return "opened is not the first event, or not the only one"
		}
		count[e]++
	}
	if count[eventClosed] != 1 {
		return "not closed once"
	}
	return ""
}

func lineEnds(log []byte) []int64 {
	var ends []int64
	for i, c := range log {
		if c == '\n' {
			ends = append(ends, int64(i)+1)
		}
	}
	return ends
}

// inRapid lets the helpers of this package take a rapid.T.
type inRapid struct {
	testing.TB
	t *rapid.T
}

func (f inRapid) Helper()                   {}
func (f inRapid) Fatal(args ...any)         { f.t.Fatal(args...) }
func (f inRapid) Fatalf(s string, a ...any) { f.t.Fatalf(s, a...) }
func (f inRapid) Error(args ...any)         { f.t.Error(args...) }
func (f inRapid) Errorf(s string, a ...any) { f.t.Errorf(s, a...) }
