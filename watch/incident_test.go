package watch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"diagnose/matcher"
	"diagnose/notify"
	"diagnose/tailer"

	"github.com/google/go-cmp/cmp"
)

const crash = "vllm-h200/v0240-dsa-32768-0.92.log"

// oneBench is a bench for a test that runs once.
func oneBench(t *testing.T, log []byte) *bench {
	t.Helper()
	b := newBench(t, log)
	t.Cleanup(b.close)
	b.start()
	return b
}

// startOf is a fixture up to the line that says that it takes requests, as the
// by-th start, with a token budget of its own.
func startOf(t testing.TB, by int, tokens string) string {
	t.Helper()
	const ready = "Application startup complete.\n"
	text, _, ok := strings.Cut(string(shifted(fixture(t, crash), by)), ready)
	if !ok {
		t.Fatal("no start in the fixture")
	}
	return strings.Replace(text, "'max_num_batched_tokens': 32768", "'max_num_batched_tokens': "+tokens, 1) + ready
}

// lateDeath is what an API server says when it is stopped, minutes after its
// engine died.
const lateDeath = `(APIServer pid=2476) ERROR 11-30 02:35:01 [serving.py:88] Error in chat completion
(APIServer pid=2476) ERROR 11-30 02:35:01 [serving.py:88] Traceback (most recent call last):
(APIServer pid=2476) ERROR 11-30 02:35:01 [serving.py:88]   File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/async_llm.py", line 400, in generate
(APIServer pid=2476) ERROR 11-30 02:35:01 [serving.py:88]     raise EngineDeadError()
(APIServer pid=2476) ERROR 11-30 02:35:01 [serving.py:88] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.
`

func count(in matcher.Incident, kind string) int {
	n := 0
	for _, c := range in.Consequences {
		if c.Kind == kind {
			n += c.Count
		}
	}
	return n
}

func wantEvents(t *testing.T, b *bench, id string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, b.events(id)); diff != "" {
		t.Errorf("events of %s (-want +got):\n%s", id, diff)
	}
}

// whole is a crash of which the server's stop is not told, so that more can
// come of the run.
func whole(t testing.TB) []byte {
	t.Helper()
	text, _, ok := bytes.Cut(fixture(t, crash), []byte("(APIServer pid=2476) INFO:     Shutting down\n"))
	if !ok {
		t.Fatal("no stop in the fixture")
	}
	return text
}

func TestLateConsequenceIsAnUpdate(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%t", killed), func(t *testing.T) {
			b := oneBench(t, whole(t))
			b.feedAll()
			b.rest(70)
			id := b.one()
			wantEvents(t, b, id, eventOpened, eventClosed)
			before := b.last(id).Incident
			b.pass(5 * time.Minute)
			b.rest(2)
			b.save()
			if killed {
				b.start()
				b.rest(3)
			}
			b.add(lateDeath)
			b.feedAll()
			b.rest(70)
			if b.one() != id {
				t.Fatal("another incident")
			}
			wantEvents(t, b, id, eventOpened, eventClosed, eventUpdated)
			after := b.last(id).Incident
			if got, want := count(after, "engine_dead"), count(before, "engine_dead")+1; got != want {
				t.Errorf("%d reports of a dead engine, expected %d", got, want)
			}
			after.Consequences, before.Consequences = nil, nil
			after.Time, before.Time = matcher.Time{}, matcher.Time{}
			if diff := cmp.Diff(bare(t, before), bare(t, after)); diff != "" {
				t.Errorf("a consequence changed the diagnosis (-before +after):\n%s", diff)
			}
		})
	}
}

func TestConsequencesAreCountedOnceOverRestarts(t *testing.T) {
	b := oneBench(t, whole(t))
	b.feedAll()
	b.rest(70)
	b.pass(5 * time.Minute)
	b.save()
	for i := range 3 {
		b.start() // each life reads on where the last one stopped
		b.add(strings.ReplaceAll(lateDeath, "02:35:01", fmt.Sprintf("02:3%d:01", 5+i)))
		b.feedAll()
		b.rest(70)
		b.pass(5 * time.Minute)
		b.save()
	}
	b.start()
	b.rest(3)
	if n := count(b.last(b.one()).Incident, "engine_dead"); n != 4 {
		t.Errorf("%d reports of a dead engine, expected 4", n)
	}
}

func TestSecondCrashRecurs(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%t", killed), func(t *testing.T) {
			b := oneBench(t, crashes(t, crash, 1))
			for i := 1; i <= 3; i++ {
				b.feedAll()
				b.rest(70)
				b.save()
				if killed {
					b.start()
				}
				b.add(string(shifted(fixture(t, crash), i)))
			}
			b.feedAll()
			b.rest(70)
			var got []string
			var first string
			for _, n := range b.told {
				if n.Event != eventOpened {
					continue
				}
				in := n.Incident
				if first == "" {
					first = in.ID
				}
				of := "-"
				if in.RecurrenceOf != nil {
					of = map[bool]string{true: "first", false: "another"}[*in.RecurrenceOf == first]
				}
				got = append(got, fmt.Sprint(in.Status, " ", in.Occurrences, " ", of))
			}
			want := []string{"new 1 -", "recurring 2 first", "recurring 3 first", "recurring 4 first"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The first start after a crash is the service manager's, without the change;
// the engineer's comes later.
func TestFollowUpOfEachStart(t *testing.T) {
	b := oneBench(t, crashes(t, crash, 1))
	b.feedAll()
	b.rest(70)
	id := b.one()
	b.add(startOf(t, 1, "32768"))
	b.feedAll()
	b.rest(3)
	wantEvents(t, b, id, eventOpened, eventClosed, eventFollowup)
	f := b.last(id).Incident.Followup
	if len(f.ChangesMade) != 0 || len(f.ChangesMissing) == 0 || f.RestartedAt == nil {
		t.Errorf("without the change: %+v", f)
	}
	b.save()
	b.start() // the same start is not told again
	b.rest(3)
	b.add(startOf(t, 2, "32768"))
	b.feedAll()
	b.rest(3)
	wantEvents(t, b, id, eventOpened, eventClosed, eventFollowup)
	b.add(startOf(t, 3, "16384"))
	b.feedAll()
	b.rest(3)
	wantEvents(t, b, id, eventOpened, eventClosed, eventFollowup, eventFollowup)
	f = b.last(id).Incident.Followup
	if diff := cmp.Diff([]string{"--max-num-batched-tokens 32768 -> 16384"}, f.ChangesMade); diff != "" {
		t.Errorf("with the change: %v", f.ChangesMade)
	}
	// The first step asks for the pin as well; the budget alone is the fourth.
	if diff := cmp.Diff([]string{"--kv-cache-memory-bytes 131425999257"}, f.ChangesMissing); diff != "" || f.StepTaken == nil || *f.StepTaken != 4 {
		t.Errorf("missing %v, step %v", f.ChangesMissing, f.StepTaken)
	}
	if len(f.BudgetNow) == 0 {
		t.Error("the budget of the new start is missing")
	}
}

// A server that is back at once: the record ends first, and the line that says
// so does not carry the follow-up.
func TestClosedComesBeforeTheFollowUp(t *testing.T) {
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("gone=%t", gone), func(t *testing.T) {
			b := oneBench(t, crashes(t, crash, 1))
			b.feedAll()
			b.rest(3)
			id := b.one()
			wantEvents(t, b, id, eventOpened)
			if gone { // killed, and the crash is not there to be read again
				b.start()
				b.at = int64(len(b.log))
			}
			b.add(startOf(t, 1, "32768"))
			b.feedAll()
			b.rest(3)
			wantEvents(t, b, id, eventOpened, eventClosed, eventFollowup)
			for _, n := range b.told {
				if back := n.Incident.Followup != nil; back != (n.Event == eventFollowup) {
					t.Errorf("%s with a follow-up: %t", n.Event, back)
				}
			}
		})
	}
}

func TestAdviceIsHeldAfterAWeek(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%t", killed), func(t *testing.T) {
			b := oneBench(t, append(crashes(t, crash, 1), startOf(t, 1, "16384")...))
			b.feedAll()
			b.rest(70)
			id := b.one()
			b.save()
			b.pass(6 * 24 * time.Hour)
			wantEvents(t, b, id, eventOpened, eventClosed, eventFollowup)
			if killed {
				b.start()
			}
			b.pass(25 * time.Hour) // the log stays silent: an idle server writes nothing
			b.pass(25 * time.Hour)
			wantEvents(t, b, id, eventOpened, eventClosed, eventFollowup, eventFollowup)
			if f := b.last(id).Incident.Followup; f.HeldSince == nil {
				t.Errorf("not held: %+v", f)
			}
		})
	}
}

func TestAdviceIsWithdrawn(t *testing.T) {
	second := strings.Replace(string(shifted(fixture(t, crash), 1)), "'max_num_batched_tokens': 32768", "'max_num_batched_tokens': 16384", 1)
	for i := range 4 {
		killed, held := i&1 != 0, i&2 != 0
		t.Run(fmt.Sprintf("killed=%t held=%t", killed, held), func(t *testing.T) {
			b := oneBench(t, append(crashes(t, crash, 1), startOf(t, 1, "16384")...))
			b.feedAll()
			b.rest(70)
			first := b.one()
			b.save()
			if killed {
				b.start()
			}
			if held {
				b.pass(8 * 24 * time.Hour)
				b.pass(time.Hour)
				if f := b.last(first).Incident.Followup; f.HeldSince == nil {
					t.Error("not held")
				}
			}
			b.add(strings.TrimPrefix(second, startOf(t, 1, "16384")))
			b.feedAll()
			b.rest(70)
			ids := b.opened()
			other := slices.IndexFunc(ids, func(id string) bool { return id != first })
			if len(ids) != 2 || other < 0 {
				t.Fatalf("opened %v", ids)
			}
			f := b.last(first).Incident.Followup
			if f == nil || f.HeldSince != nil || len(f.Withdrawn) != 1 || !strings.Contains(f.Withdrawn[0], ids[other]) {
				t.Errorf("the advice was not withdrawn: %+v", f)
			}
			said := false
			for _, e := range b.last(ids[other]).Incident.Evidence {
				said = said || strings.HasPrefix(e.Statement, "the advice of incident "+first+" was applied and did not hold")
			}
			if !said {
				t.Error("the second incident does not say that the advice did not hold")
			}
			b.pass(30 * 24 * time.Hour)
			if f := b.last(first).Incident.Followup; f.HeldSince != nil {
				t.Error("withdrawn advice is called held")
			}
		})
	}
}

// A crash with an older setting says nothing about the advice.
func TestAdviceNotAppliedIsNotWithdrawn(t *testing.T) {
	b := oneBench(t, crashes(t, crash, 2))
	b.feedAll()
	b.rest(70)
	for _, n := range b.told {
		if f := n.Incident.Followup; f != nil && len(f.Withdrawn) > 0 {
			t.Errorf("withdrawn: %v", f.Withdrawn)
		}
	}
}

func TestSilentLogIsNotDead(t *testing.T) {
	b := oneBench(t, []byte(startOf(t, 0, "32768")))
	b.feedAll()
	b.rest(120)
	b.pass(72 * time.Hour)
	b.rest(120)
	if len(b.told) > 0 {
		t.Errorf("told of a silent server: %+v", b.told[0].Incident.Verdict)
	}
}

func TestRanksAreGathered(t *testing.T) {
	log := fixture(t, "seed/glm52-8xh200-interleaved.log")
	b := oneBench(t, log)
	b.feedAll()
	if len(b.told) > 0 {
		t.Fatal("told before the ranks could write")
	}
	b.rest(5)
	b.rest(60)
	id := b.one()
	if n := len(b.told[0].Incident.Ranks); b.told[0].Event != eventOpened || n != 8 {
		t.Errorf("%s with %d ranks, expected opened with 8", b.told[0].Event, n)
	}
	wantEvents(t, b, id, eventOpened, eventClosed)
}

// A server that goes on complaining does not delay the first notice.
func TestFirstNoticeWaitsAtMostGather(t *testing.T) {
	log := fixture(t, "seed/glm52-8xh200-interleaved.log")
	b := oneBench(t, log)
	began := time.Time{}
	for _, end := range lineEnds(log) {
		b.feed(end)
		if began.IsZero() && bytes.Count(log[:end], []byte("OutOfMemoryError: CUDA")) == 16 {
			began = b.now
		}
		if !began.IsZero() {
			b.now = b.now.Add(100 * time.Millisecond)
		}
	}
	b.rest(70)
	id := b.one()
	if d := b.told[0].Time.Sub(began); d > 4*time.Second {
		t.Errorf("the first notice came %s after the last rank had written", d)
	}
	if n := len(b.last(id).Incident.Ranks); n != 8 {
		t.Errorf("%d ranks in the end, expected 8", n)
	}
}

func TestTwoServersInOneLog(t *testing.T) {
	for _, name := range []string{"hostile/two-servers-interleaved.log", "hostile/two-servers.log"} {
		t.Run(name, func(t *testing.T) {
			log := fixture(t, name)
			want := postmortem(t, log)
			if len(want) != 1 {
				t.Fatalf("%d incidents in the post-mortem", len(want))
			}
			b := oneBench(t, log)
			ends := lineEnds(log)
			b.feed(ends[len(ends)/3])
			b.rest(30)
			b.save()
			b.start()
			b.feed(ends[2*len(ends)/3])
			b.rest(30)
			b.feedAll()
			b.rest(90)
			if b.one() != want[0].ID {
				t.Fatalf("opened %v", b.opened())
			}
			if diff := cmp.Diff(bare(t, want[0]), bare(t, b.last(want[0].ID).Incident)); diff != "" {
				t.Errorf("(-post-mortem +live):\n%s", diff)
			}
			if f := b.last(want[0].ID).Incident.Followup; f != nil {
				t.Errorf("the other server's start is taken for a restart: %+v", f)
			}
		})
	}
}

func TestContainerReplaced(t *testing.T) {
	b := oneBench(t, crashes(t, crash, 1))
	b.feedAll()
	b.d.Gone(b.ref(b.at - 1))
	id := b.one() // at once: nothing more can come
	wantEvents(t, b, id, eventOpened, eventClosed)
	for _, n := range b.told {
		if n.Time.After(b.now) {
			t.Errorf("%s is told at a time to come", n.Event)
		}
	}
	b.cuts = append(b.cuts, int64(len(b.log)))
	b.add(startOf(t, 1, "16384"))
	b.feedAll()
	b.rest(5)
	wantEvents(t, b, id, eventOpened, eventClosed, eventFollowup)
}

// A log without a start in reach keeps the name of its run over a restart.
func TestRunWithoutAStart(t *testing.T) {
	text := whole(t)
	_, rest, ok := bytes.Cut(text, []byte("Application startup complete.\n"))
	if !ok {
		t.Fatal("no start in the fixture")
	}
	b := oneBench(t, rest)
	b.feedAll()
	b.rest(70)
	id := b.one()
	b.pass(6 * time.Minute)
	b.save()
	b.start()
	b.add(lateDeath)
	b.feedAll()
	b.rest(70)
	if b.one() != id || count(b.last(id).Incident, "engine_dead") != 2 {
		t.Errorf("opened %v, %d reports of a dead engine", b.opened(), count(b.last(id).Incident, "engine_dead"))
	}
}

// A server's clock can be hours off, in a container of another zone: what is
// written while the log is followed is told. What was there before is judged by
// what it prints, and the notice says so.
func TestHistoric(t *testing.T) {
	ready, died, ok := strings.Cut(string(fixture(t, crash)), "Application startup complete.\n")
	if !ok {
		t.Fatal("no start in the fixture")
	}
	morning := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name     string
		do       func(b *bench)
		historic bool
	}{
		{"found at the start", func(b *bench) { b.add(died) }, true},
		{"idle, then written", func(b *bench) { b.feedAll(); b.rest(4); b.add(died) }, false},
		{"never idle, and at the end", func(b *bench) {
			b.onDisk()
			b.feedAll()
			b.d.CaughtUp(b.ref(b.at-1), b.at)
			b.add(died)
		}, false},
		{"nothing read, and at the end", func(b *bench) {
			b.onDisk()
			b.d.CaughtUp(b.ref(0), int64(len(b.log)))
			b.at = int64(len(b.log)) // as from a checkpoint
			b.add(died)
		}, false},
		{"never idle, and not at the end", func(b *bench) {
			b.onDisk()
			b.feedAll()
			b.d.CaughtUp(b.ref(b.at-1), b.at-1)
			b.add(died)
		}, true},
		{"an idle call before the first look", func(b *bench) { b.rest(1); b.add(died) }, true},
		{"a restart at the end", func(b *bench) {
			b.feedAll()
			b.pass(6 * time.Minute)
			b.rest(3)
			b.save()
			b.start()
			b.rest(2)
			b.add(died)
		}, false},
		{"written while the daemon was down", func(b *bench) {
			b.feedAll()
			b.rest(3)
			b.save()
			b.add(died)
			b.start()
		}, true},
		{"written while the daemon was stopped", func(b *bench) {
			b.feedAll()
			b.rest(3)
			b.now = b.now.Add(2 * time.Hour)
			b.add(died)
		}, true},
		{"in a file that took the name", func(b *bench) {
			b.feedAll()
			b.rest(3)
			b.cuts = append(b.cuts, int64(len(b.log)))
			b.add(string(fixture(t, crash)))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []byte(ready+"Application startup complete.\n"))
			t.Cleanup(b.close)
			b.opt.Historic, b.now = time.Hour, morning
			b.start()
			c.do(b)
			b.feedAll()
			b.rest(70)
			n := b.last(b.one())
			if got := n.Incident.Status == matcher.StatusHistoric; got != c.historic {
				t.Errorf("the incident is %s", n.Incident.Status)
			}
			want := ""
			if c.historic {
				want = "older than historic (1h0m0s) by its printed time"
			}
			if n.Unsent != want {
				t.Errorf("not notified: %q", n.Unsent)
			}
		})
	}
}

// onDisk puts the log so far into a file, for what looks at it there.
func (b *bench) onDisk() {
	b.t.Helper()
	b.real = filepath.Join(b.dir, "vllm.log")
	if err := os.WriteFile(b.real, b.log, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func TestTornLineIsReadAndReadAgain(t *testing.T) {
	log := whole(t)
	cut := bytes.Index(log, []byte("torch.OutOfMemoryError: ")) + 40
	at := int64(bytes.LastIndexByte(log[:cut], '\n') + 1)
	b := oneBench(t, log)
	b.feed(at)
	ref := b.ref(at)
	b.d.Tail(ref, tailer.Line{Data: log[at:cut], Offset: at, Next: int64(cut), Unterminated: true})
	b.rest(70) // the writer died inside the line
	id := b.one()
	if !strings.Contains(b.last(id).Incident.Root.Text, "OutOfMemoryError") {
		t.Errorf("the torn line was not read: %q", b.last(id).Incident.Root.Text)
	}
	if b.next > at {
		t.Errorf("committed %d, the torn line begins at %d", b.next, at)
	}
}

func TestPlaceOfTheLog(t *testing.T) {
	b := oneBench(t, nil)
	text := whole(t)
	ref := tailer.SourceRef{Path: "/var/log/pods/x/*.log", Gen: 1, Name: "/var/log/pods/x/0.log", Device: 1, Inode: 2, Meta: tailer.Meta{Pod: "vllm-0", Container: "vllm", Unit: "u", Host: "h"}}
	at := int64(0)
	for line := range bytes.Lines(text) {
		b.d.Line(ref, tailer.Line{Data: bytes.TrimSuffix(line, []byte("\n")), Offset: at, Next: at + int64(len(line))})
		at += int64(len(line))
	}
	b.d.Gone(ref)
	in := b.last(b.one()).Incident
	got := []string{deref(in.Pod), deref(in.Container), deref(in.Unit), deref(in.Host)}
	if diff := cmp.Diff([]string{"vllm-0", "vllm", "u", "h"}, got); diff != "" {
		t.Error(diff)
	}
}

// Positions index the sources that a notice names, whatever was read before.
func TestPositionsIndexTheSources(t *testing.T) {
	b := oneBench(t, crashes(t, crash, 2))
	for i := int64(1); i < 12; i++ {
		b.cuts = append(b.cuts, i*int64(len(b.log))/12)
	}
	for i, c := range b.cuts { // at line ends
		b.cuts[i] = c + int64(bytes.IndexByte(b.log[c:], '\n')) + 1
	}
	b.feedAll()
	b.rest(70)
	for _, n := range b.told {
		eachAt(&n.Incident, func(at *matcher.At) {
			if at.Source < 0 || at.Source >= len(n.Sources) {
				t.Fatalf("%s: source %d of %d", n.Event, at.Source, len(n.Sources))
			}
		})
		if n.Event == notify.EventOpened && len(n.Sources) < 2 {
			t.Errorf("sources %v, the crash lies in several", n.Sources)
		}
	}
}

// A dead server that is asked on fails for hours. Its incident is told again
// ever more rarely, while only a number grows, and ends with the right one.
func TestUpdatesOfANumberComeRarely(t *testing.T) {
	for name, kill := range map[string]bool{"one life": false, "killed in between": true} {
		t.Run(name, func(t *testing.T) {
			b := oneBench(t, crashes(t, crash, 1))
			b.feedAll()
			b.rest(2)
			id := b.one()
			before := len(b.told)
			for i := range 40 * 60 {
				at := base.Add(time.Duration(i) * time.Second).Format("01-02 15:04:05")
				for range 4 {
					b.add("(APIServer pid=2476) ERROR " + at + " [serving.py:1] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.\n" +
						"(APIServer pid=2476) INFO:     127.0.0.1:5 - \"POST /v1/completions HTTP/1.1\" 500 Internal Server Error\n")
				}
				b.feedAll()
				b.rest(1)
				if kill && i == 1000 {
					b.save()
					b.start()
				}
			}
			b.rest(7) // the end of it is told at once
			if n := len(b.told) - before; n < 4 || n > 20 {
				t.Errorf("told %d times", n)
			}
			got, want := b.last(id).Incident.Consequences, postmortem(t, b.log)[0].Consequences
			if diff := cmp.Diff(counts(want), counts(got)); diff != "" {
				t.Errorf("(-postmortem +live):\n%s", diff)
			}
		})
	}
}

func counts(list []matcher.Consequence) map[string]int {
	n := map[string]int{}
	for _, c := range list {
		n[c.Kind+" "+c.What] += c.Count
	}
	return n
}

// A clock that is set back between two runs, as at the end of summer time, does
// not hide that the second one came after the first.
func TestRunsInTheOrderOfTheLog(t *testing.T) {
	text := crashes(t, crash, 2)
	b := oneBench(t, append(bytes.Clone(shifted(text[:len(text)/2], 45)), shifted(text[:len(text)/2], 1)...))
	b.feedAll()
	b.rest(70)
	ids := b.opened()
	if len(ids) != 2 {
		t.Fatalf("opened %v", ids)
	}
	var got []string
	for _, n := range b.told {
		if n.Event == eventOpened {
			got = append(got, fmt.Sprint(n.Incident.Status, " ", n.Incident.Occurrences))
		}
	}
	if diff := cmp.Diff([]string{"new 1", "recurring 2"}, got); diff != "" {
		t.Error(diff)
	}
	for _, n := range b.told {
		if n.Event == eventFollowup {
			return
		}
	}
	t.Error("no follow-up")
}
