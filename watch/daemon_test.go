package watch

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"sync"
	"testing"
	"time"

	"diagnose/matcher"
	"diagnose/notify"
	"diagnose/parser"
	"diagnose/tailer"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const logPath = "/var/log/vllm.log"

// life is one life of the daemon over a log that is fed line by line.
type life struct {
	d      *Daemon
	now    time.Time
	commit int64
	told   *[]notify.Notice
}

func newLife(t testing.TB, dir string, now time.Time, commit int64, told *[]notify.Notice) *life {
	t.Helper()
	store, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	l := &life{now: now, commit: commit, told: told}
	l.d, err = New(Options{
		Catalog: catalogue(t), Store: store, Host: "gpu-1", Historic: 1 << 62,
		Publish: func(n notify.Notice) error { *told = append(*told, n); return nil },
		Commit:  func(_ tailer.SourceRef, offset, _ int64) { l.commit = offset },
		Warn:    func(err error) { t.Error(err) },
		Now:     func() time.Time { return l.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var ref = tailer.SourceRef{Path: logPath, Gen: 1, Name: logPath, Device: 1, Inode: 2}

// feed gives the lines of log from one offset to another and returns where it
// stopped.
func (l *life) feed(log []byte, from, to int64) int64 {
	for at := from; at < to; {
		end := bytes.IndexByte(log[at:], '\n')
		if end < 0 {
			break
		}
		l.d.Line(ref, tailer.Line{Data: log[at : at+int64(end)], Offset: at, Next: at + int64(end) + 1})
		at += int64(end) + 1
		l.now = l.now.Add(time.Millisecond)
		from = at
	}
	return from
}

// rest lets seconds pass without a line.
func (l *life) rest(seconds int) {
	for range seconds {
		l.now = l.now.Add(time.Second)
		l.d.Idle(ref, l.now)
	}
}

var loaded = sync.OnceValues(matcher.EmbeddedCatalog)

func catalogue(t testing.TB) *matcher.Catalog {
	t.Helper()
	cat, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

// crashes makes a log of n whole runs that each crash, with pids and times of
// their own.
func crashes(t testing.TB, name string, n int) []byte {
	t.Helper()
	base, err := os.ReadFile(filepath.Join("..", "fixtures", "vllm-h200", name))
	if err != nil {
		t.Fatal(err)
	}
	pid := regexp.MustCompile(`pid=(\d+)`)
	minute := regexp.MustCompile(`(\d\d-\d\d \d\d:)(\d\d)(:\d\d)`)
	var out []byte
	for i := range n {
		run := pid.ReplaceAllFunc(base, func(m []byte) []byte {
			v, _ := strconv.Atoi(string(m[4:]))
			return []byte("pid=" + strconv.Itoa(v+1000*i))
		})
		run = minute.ReplaceAllFunc(run, func(m []byte) []byte {
			v, _ := strconv.Atoi(string(m[6:8]))
			s := strconv.Itoa((v + i) % 60)
			if len(s) < 2 {
				s = "0" + s
			}
			return append(append(append([]byte{}, m[:6]...), s...), m[8:]...)
		})
		out = append(out, run...)
	}
	return out
}

// postmortem gives the ids of the failures in a whole log.
func postmortem(t testing.TB, log []byte) []string {
	t.Helper()
	tr := matcher.NewTracker(catalogue(t), matcher.Options{Single: true})
	p := parser.New(tr.Add)
	at := int64(0)
	for i, line := range bytes.Split(bytes.TrimSuffix(log, []byte("\n")), []byte("\n")) {
		p.Line(parser.Line{At: parser.Pos{Line: int64(i + 1), Offset: at}, Data: line})
		at += int64(len(line)) + 1
	}
	p.Flush()
	incidents, _ := tr.Incidents()
	var ids []string
	for _, in := range incidents {
		ids = append(ids, in.ID)
	}
	sort.Strings(ids)
	return ids
}

func opened(told []notify.Notice) []string {
	var ids []string
	for _, n := range told {
		if n.Event == notify.EventOpened {
			ids = append(ids, n.Incident.ID)
		}
	}
	sort.Strings(ids)
	return ids
}

// TestLiveTellsWhatThePostMortemTells kills the daemon at arbitrary lines and
// pauses it anywhere: every failure is opened exactly once, under the id that
// a post-mortem of the whole log gives it.
func TestLiveTellsWhatThePostMortemTells(t *testing.T) {
	for _, name := range []string{"v0240-dsa-32768-0.92.log", "v0240-tp2-dsa-32768-0.95.log", "v0251-kill-enginecore.log", "v0251-kv-refused.log", "v0251-sleep-wake.log", "v0240-clean-stop.log"} {
		t.Run(name, func(t *testing.T) {
			log := crashes(t, name, 3)
			want := postmortem(t, log)
			rapid.Check(t, func(t *rapid.T) {
				dir, err := os.MkdirTemp("", "watch-")
				if err != nil {
					t.Fatal(err)
				}
				defer os.RemoveAll(dir)
				var told []notify.Notice
				now := time.Date(2026, 11, 30, 2, 40, 0, 0, time.UTC)
				commit := int64(0)
				for range rapid.IntRange(0, 4).Draw(t, "kills") {
					l := newLife(testingOf(t), dir, now, commit, &told)
					to := rapid.Int64Range(commit, int64(len(log))).Draw(t, "to")
					reached := l.feed(log, commit, to)
					// A pause of more than a minute inside a traceback would make
					// the piece that stands there the record.
					l.rest(rapid.IntRange(0, 50).Draw(t, "pause"))
					if l.commit > reached {
						t.Fatalf("committed %d, read %d", l.commit, reached)
					}
					now, commit = l.now, l.commit
				}
				l := newLife(testingOf(t), dir, now, commit, &told)
				l.feed(log, commit, int64(len(log)))
				l.rest(90)
				if diff := cmp.Diff(want, opened(told)); diff != "" {
					t.Fatalf("opened (-post-mortem +live):\n%s", diff)
				}
			})
		})
	}
}

// fatal lets the helpers of this file take a rapid.T.
type fatal struct {
	testing.TB
	t *rapid.T
}

func testingOf(t *rapid.T) testing.TB { return fatal{t: t} }

func (f fatal) Helper()           {}
func (f fatal) Fatal(args ...any) { f.t.Fatal(args...) }
func (f fatal) Error(args ...any) { f.t.Error(args...) }
