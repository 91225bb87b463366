package watch

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"diagnose/matcher"
	"diagnose/notify"
	"diagnose/parser"
	"diagnose/tailer"
)

const logPath = "/var/log/vllm.log"

// bench is a host with one log and one state directory. Its daemon can be
// killed and started again, and its clock is moved by hand.
type bench struct {
	t    testing.TB
	path string
	real string // the log's file, where there is one
	dir  string
	log  []byte
	// cuts are where generations begin after the first one.
	cuts []int64
	now  time.Time
	told []notify.Notice
	// warned is what the daemon complained of; unexpected unless tolerant.
	warned   []error
	tolerant bool
	// Options for the next life.
	opt Options
	// refuse makes the store's writes fail, deaf the publishing.
	refuse, deaf error

	d     *Daemon
	store tailer.Store
	disk  checkpointMemory
	lives uint64
	at    int64 // read so far
	next  int64 // committed, in whole text
}

// checkpointMemory is what the follower has on disk.
type checkpointMemory struct{ saved map[string]tailer.Checkpoint }

func (m *checkpointMemory) Load() (map[string]tailer.Checkpoint, error) { return m.saved, nil }

func (m *checkpointMemory) Save(c map[string]tailer.Checkpoint) error {
	m.saved = c
	return nil
}

var base = time.Date(2026, 11, 30, 2, 40, 0, 0, time.UTC)

func newBench(t testing.TB, log []byte) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("", "watch-")
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, path: logPath, dir: dir, log: log, now: base, opt: Options{Historic: 1 << 62}}
}

// close removes what a property's bench leaves; tests that run once use it by
// t.Cleanup.
func (b *bench) close() { os.RemoveAll(b.dir) }

// start begins a life of the daemon where the checkpoint says.
func (b *bench) start() {
	b.t.Helper()
	store, err := OpenStore(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	store.write = func(path string, data []byte) error {
		if b.refuse != nil {
			return b.refuse
		}
		return os.WriteFile(path, data, 0o600)
	}
	opt := b.opt
	opt.Catalog, opt.Store, opt.Host = catalogue(b.t), store, "gpu-1"
	opt.Now = func() time.Time { return b.now }
	opt.Publish = func(list []notify.Notice) []error {
		failed := make([]error, len(list))
		for i, n := range list {
			if failed[i] = b.deaf; b.deaf == nil {
				b.told = append(b.told, n)
			}
		}
		return failed
	}
	opt.Warn = func(err error) {
		b.warned = append(b.warned, err)
		if !b.tolerant {
			b.t.Error(err)
		}
	}
	opt.Commit = func(ref tailer.SourceRef, offset, _ int64) {
		if ref.Path == b.path && b.real == "" && ref.Inode < uint64(len(b.cuts))+3 {
			b.next = b.begins(int(ref.Inode)-2) + offset
		}
	}
	if b.d, err = New(opt); err != nil {
		b.t.Fatal(err)
	}
	b.lives++
	b.store = b.d.Checkpoints(&b.disk)
	saved, err := b.store.Load()
	if err != nil {
		b.t.Fatal(err)
	}
	b.at, b.next = 0, 0
	if c, ok := saved[b.path]; ok {
		p := c.Generations[0]
		b.at = b.begins(int(p.Inode)-2) + p.Offset
		b.next = b.at
	}
	b.d.Retry()
}

// begins is where a generation begins in the whole text.
func (b *bench) begins(gen int) int64 {
	if gen == 0 {
		return 0
	}
	return b.cuts[gen-1]
}

// gen is the generation of a place.
func (b *bench) gen(at int64) int {
	n := 0
	for n < len(b.cuts) && b.cuts[n] <= at {
		n++
	}
	return n
}

func (b *bench) ref(at int64) tailer.SourceRef {
	gen := b.gen(at)
	ref := tailer.SourceRef{Path: b.path, Gen: b.lives*1000 + uint64(gen) + 1, Name: b.path, Device: 1, Inode: uint64(gen) + 2}
	if info, err := os.Stat(b.real); err == nil {
		id := info.Sys().(*syscall.Stat_t)
		ref.Name, ref.Device, ref.Inode = b.real, id.Dev, id.Ino
	}
	return ref
}

// save puts the checkpoint on disk.
func (b *bench) save() {
	gen := b.gen(b.next)
	if gen > 0 && b.next == b.begins(gen) {
		gen-- // committed at the end of the one before
	}
	ref := b.ref(b.begins(gen))
	c := tailer.Checkpoint{Generations: []tailer.Position{{Device: ref.Device, Inode: ref.Inode, Offset: b.next - b.begins(gen)}}}
	if err := b.store.Save(map[string]tailer.Checkpoint{b.path: c}); err != nil && !b.tolerant {
		b.t.Error(err)
	}
}

// feed gives the lines up to a place, a millisecond each.
func (b *bench) feed(to int64) {
	to = min(to, int64(len(b.log)))
	for b.at < to {
		end := bytes.IndexByte(b.log[b.at:], '\n')
		if end < 0 {
			return
		}
		ref, from := b.ref(b.at), b.begins(b.gen(b.at))
		l := tailer.Line{Data: b.log[b.at : b.at+int64(end)], Offset: b.at - from, Next: b.at + int64(end) + 1 - from}
		b.at += int64(end) + 1
		b.d.Line(ref, l)
		b.now = b.now.Add(time.Millisecond)
		if b.next > b.at {
			b.t.Fatalf("committed %d, read %d", b.next, b.at)
		}
	}
}

func (b *bench) feedAll() { b.feed(int64(len(b.log))) }

// rest lets seconds pass without a line.
func (b *bench) rest(seconds int) {
	for i := range seconds {
		b.now = b.now.Add(time.Second)
		b.d.Idle(b.ref(max(0, b.at-1)), b.now)
		if i%10 == 9 {
			b.d.Retry()
		}
	}
}

// pass lets much time pass at once.
func (b *bench) pass(d time.Duration) {
	b.now = b.now.Add(d)
	b.d.Idle(b.ref(max(0, b.at-1)), b.now)
	b.d.Retry()
}

// add appends to the log.
func (b *bench) add(text string) { b.log = append(b.log, text...) }

// events lists what was told of an incident, in order.
func (b *bench) events(id string) []string {
	var out []string
	for _, n := range b.told {
		if n.Incident.ID == id {
			out = append(out, n.Event)
		}
	}
	return out
}

// opened lists the ids of the incidents that were opened.
func (b *bench) opened() []string {
	var ids []string
	for _, n := range b.told {
		if n.Event == notify.EventOpened {
			ids = append(ids, n.Incident.ID)
		}
	}
	sort.Strings(ids)
	return ids
}

// last is the newest state that was told of an incident.
func (b *bench) last(id string) notify.Notice {
	for _, n := range slices.Backward(b.told) {
		if n.Incident.ID == id {
			return n
		}
	}
	b.t.Fatalf("nothing told of %s", id)
	return notify.Notice{}
}

// one is the only incident that was opened.
func (b *bench) one() string {
	b.t.Helper()
	ids := b.opened()
	if len(ids) != 1 {
		b.t.Fatalf("%d incidents opened, expected one: %v", len(ids), ids)
	}
	return ids[0]
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

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "fixtures", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var (
	pidForm  = regexp.MustCompile(`pid=(\d+)`)
	timeForm = regexp.MustCompile(`(\d\d-\d\d )(\d\d):(\d\d)(:\d\d)`)
)

// shifted gives a run other pids and other times, as another start has.
func shifted(text []byte, by int) []byte {
	text = pidForm.ReplaceAllFunc(text, func(m []byte) []byte {
		v, err := strconv.Atoi(string(m[4:]))
		if err != nil {
			return m
		}
		return []byte("pid=" + strconv.Itoa(v+1000*by))
	})
	return timeForm.ReplaceAllFunc(text, func(m []byte) []byte {
		t, err := time.Parse("01-02 15:04:05", string(m))
		if err != nil {
			return m
		}
		return []byte(t.Add(time.Duration(by) * time.Minute).Format("01-02 15:04:05"))
	})
}

// crashes makes a log of n whole runs of a fixture.
func crashes(t testing.TB, name string, n int) []byte {
	t.Helper()
	text := fixture(t, name)
	var out []byte
	for i := range n {
		out = append(out, shifted(text, i)...)
	}
	return out
}

// postmortem gives the failures in a whole log.
func postmortem(t testing.TB, log []byte) []matcher.Incident {
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
	slices.SortFunc(incidents, func(a, b matcher.Incident) int { return cmp.Compare(a.ID, b.ID) })
	return incidents
}

func idsOf(list []matcher.Incident) []string {
	var ids []string
	for _, in := range list {
		ids = append(ids, in.ID)
	}
	return ids
}

// bare leaves out what a daemon adds, and where things stand.
func bare(t testing.TB, in matcher.Incident) string {
	t.Helper()
	in.Status, in.Occurrences, in.RecurrenceOf = "", 0, nil
	in.Host, in.Unit, in.Pod, in.Container = nil, nil, nil, nil
	in.Followup, in.Restarted = nil, nil
	text, err := said(in)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var errDisk = errors.New("no space left on device")
