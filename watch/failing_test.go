package watch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"diagnose/notify"
	"diagnose/tailer"

	"github.com/google/go-cmp/cmp"
)

// While nothing can be published the incidents wait, in this life and over a
// restart, and each event is told once in the end.
func TestPublishingFails(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%t", killed), func(t *testing.T) {
			b := newBench(t, append(crashes(t, crash, 2), startOf(t, 2, "32768")...))
			t.Cleanup(b.close)
			b.tolerant, b.deaf = true, errors.New("queue is full")
			b.start()
			b.feedAll()
			b.rest(90)
			b.save()
			if len(b.told) != 0 {
				t.Fatal("told although publishing fails")
			}
			if killed {
				b.start()
				b.rest(30)
			}
			b.deaf = nil
			b.rest(30)
			ids := b.opened()
			if len(ids) != 2 {
				t.Fatalf("opened %v", ids)
			}
			for _, id := range ids {
				if err := saneOrder(b.events(id)); err != "" {
					t.Errorf("%s: %s: %v", id, err, b.events(id))
				}
			}
			b.rest(30)
			b.start()
			b.rest(30)
			if len(b.opened()) != 2 {
				t.Errorf("told again: %v", b.opened())
			}
			if b.d.Metrics().PublishErrors() != 0 {
				t.Error("failures counted without a failure")
			}
		})
	}
}

// A kill after the record and before the notice: the next life tells it, with
// the time that it happened, and never twice.
func TestKilledBetweenRecordAndNotice(t *testing.T) {
	b := newBench(t, crashes(t, crash, 1))
	t.Cleanup(b.close)
	b.tolerant, b.deaf = true, errors.New("killed")
	b.start()
	b.feedAll()
	b.rest(2)
	list, err := ReadStore(b.dir).Incidents(10)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if diff := cmp.Diff([]Telling{{eventOpened, list[0].Opened}}, list[0].Pending); diff != "" {
		t.Fatal(diff)
	}
	b.tolerant, b.deaf = false, nil
	b.now = b.now.Add(time.Hour)
	b.start()
	if n := b.last(list[0].Incident.ID); n.Event != eventOpened || !n.Time.Equal(list[0].Opened) || n.Printed != "11-30 02:27:33" {
		t.Errorf("told as %s of %s, printed %q", n.Event, n.Time, n.Printed)
	}
	b.feedAll()
	b.rest(70)
	wantEvents(t, b, list[0].Incident.ID, eventOpened, eventClosed)
}

// While the disk refuses, incidents are told even so, the position stays before
// them, and they are recorded when the disk is back.
func TestStoreFails(t *testing.T) {
	b := newBench(t, crashes(t, crash, 2))
	t.Cleanup(b.close)
	b.tolerant, b.refuse = true, errDisk
	b.start()
	b.feedAll()
	b.rest(90)
	if len(b.opened()) != 2 {
		t.Fatalf("opened %v", b.opened())
	}
	first := int64(strings.Index(string(b.log), "Dumping input data"))
	if first < 0 || b.next > first {
		t.Errorf("committed %d, the crash that is not on disk begins at %d", b.next, first)
	}
	if len(b.warned) == 0 || !errors.Is(b.warned[0], errDisk) || b.d.Metrics().StateErrors() == 0 {
		t.Errorf("warned %v, %d errors counted", b.warned, b.d.Metrics().StateErrors())
	}
	b.refuse, b.tolerant = nil, false
	b.rest(10)
	list, err := ReadStore(b.dir).Incidents(10)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d recorded, %v", len(list), err)
	}
	b.pass(6 * time.Minute)
	b.pass(6 * time.Minute)
	if b.next != int64(len(b.log)) {
		t.Errorf("committed %d of %d after the disk is back", b.next, len(b.log))
	}
	b.save()
	b.start()
	b.rest(70)
	if len(b.opened()) != 2 {
		t.Errorf("told again: %v", b.opened())
	}
}

// The start of the run is saved before the checkpoint that needs it.
func TestStartIsSavedBeforeTheCheckpoint(t *testing.T) {
	b := newBench(t, crashes(t, crash, 1))
	t.Cleanup(b.close)
	b.start()
	b.feed(9000)
	b.rest(2)
	b.save()
	old := b.disk.saved
	b.tolerant, b.refuse = true, errDisk
	b.pass(6 * time.Minute)
	b.pass(6 * time.Minute)
	b.save()
	if diff := cmp.Diff(old, b.disk.saved); diff != "" {
		t.Errorf("a checkpoint was saved without the start that belongs to it:\n%s", diff)
	}
	b.refuse, b.tolerant = nil, false
	b.save()
	if cmp.Equal(old, b.disk.saved) {
		t.Error("the checkpoint stands still after the disk is back")
	}
}

// refusing is a store of checkpoints whose disk is full.
type refusing struct{ checkpointMemory }

func (*refusing) Save(map[string]tailer.Checkpoint) error { return errDisk }

// A kill between the two writes leaves the old checkpoint with its own start.
func TestOldCheckpointKeepsItsStart(t *testing.T) {
	log := crashes(t, crash, 3)
	want := idsOf(postmortem(t, log))
	b := newBench(t, log)
	t.Cleanup(b.close)
	b.start()
	b.feed(5000) // inside the first start
	b.rest(2)
	b.save()
	b.feed(int64(len(log))/3 + 12000) // in the second run
	b.rest(70)
	b.tolerant = true
	b.store.(*checkpoints).inner = &refusing{}
	b.save()
	b.tolerant = false
	b.start()
	if b.at > 5000 {
		t.Fatalf("reading goes on at %d", b.at)
	}
	b.feedAll()
	b.rest(90)
	if diff := cmp.Diff(want, b.opened()); diff != "" {
		t.Errorf("opened (-post-mortem +live):\n%s", diff)
	}
	for _, in := range postmortem(t, log) {
		if diff := cmp.Diff(bare(t, in), bare(t, b.last(in.ID).Incident)); diff != "" {
			t.Errorf("(-post-mortem +live):\n%s", diff)
		}
	}
}

// Files that cannot be read are told of, left as they are, and do not keep the
// rest from being followed; their incidents are not told again.
func TestUnreadableIncidents(t *testing.T) {
	for name, spoil := range map[string]func(data []byte) []byte{
		"cut":       func(d []byte) []byte { return d[:len(d)/2] },
		"empty":     func([]byte) []byte { return nil },
		"no record": func([]byte) []byte { return []byte("[1]") },
		"newer":     func(d []byte) []byte { return []byte(strings.Replace(string(d), `"version":1`, `"version":2`, 1)) },
		"another":   func(d []byte) []byte { return []byte(strings.ReplaceAll(string(d), `"id":"`, `"id":"0`)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, crashes(t, crash, 1))
			t.Cleanup(b.close)
			b.start()
			b.feedAll()
			b.rest(70)
			id := b.one()
			file := filepath.Join(b.dir, "incidents", id+".json")
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			spoiled := spoil(data)
			if err := os.WriteFile(file, spoiled, 0o600); err != nil {
				t.Fatal(err)
			}
			b.tolerant = true // no checkpoint was saved: all is read again
			b.start()
			if len(b.warned) == 0 || !strings.Contains(b.warned[0].Error(), file) {
				t.Errorf("warned %v", b.warned)
			}
			if name == "newer" && !errors.Is(b.warned[0], ErrNewer) {
				t.Errorf("warned %v", b.warned)
			}
			b.add(string(shifted(fixture(t, crash), 1)))
			b.feedAll()
			b.rest(70)
			if len(b.opened()) != 2 {
				t.Errorf("opened %v", b.opened())
			}
			after, err := os.ReadFile(file)
			if err != nil || string(after) != string(spoiled) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
}

// A crash that is read again without the start of its run says less: what was
// told stays. The file of the start is kept, whoever wrote it.
func TestLostStartDoesNotSpoilTheDiagnosis(t *testing.T) {
	for name, spoiled := range map[string]string{
		"empty": "", "cut": `{"version":1,"path":"/var/log/vllm.log","sta`, "newer": `{"version":2,"path":"/var/log/vllm.log"}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := oneBench(t, whole(t))
			b.feedAll()
			b.rest(20)
			id := b.one()
			b.save()
			before := b.last(id).Incident
			files, err := filepath.Glob(filepath.Join(b.dir, "streams", "*.json"))
			if err != nil || len(files) != 1 || b.next == 0 || b.next == int64(len(b.log)) {
				t.Fatal(files, err, b.next)
			}
			if err := os.WriteFile(files[0], []byte(spoiled), 0o600); err != nil {
				t.Fatal(err)
			}
			b.tolerant = true
			b.start()
			b.add(lateDeath)
			b.feedAll()
			b.rest(70)
			b.save()
			wantEvents(t, b, id, eventOpened, eventClosed, eventUpdated)
			if diff := cmp.Diff(before.Remedies, b.last(id).Incident.Remedies); diff != "" {
				t.Errorf("the advice has changed: %s", diff)
			}
			kept, err := filepath.Glob(files[0] + ".*")
			if err != nil || len(kept) != 1 {
				t.Fatal(kept, err)
			}
			if data, err := os.ReadFile(kept[0]); err != nil || string(data) != spoiled {
				t.Errorf("%q is kept, %v", data, err)
			}
			if len(b.warned) != 1 || !strings.Contains(b.warned[0].Error(), "kept as "+kept[0]) {
				t.Errorf("warned %v", b.warned)
			}
		})
	}
}

// Where the start of a run is lost and the log is still there, it is read again.
func TestCheckpointGoesBackToTheStart(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "vllm.log")
	if err := os.WriteFile(log, make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	store, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(Options{
		Catalog: catalogue(t), Store: store,
		RunStart: func(_ *os.File, before int64) int64 { return before - 1000 },
	})
	if err != nil {
		t.Fatal(err)
	}
	id := info.Sys().(*syscall.Stat_t)
	there := tailer.Position{Name: log, Device: id.Dev, Inode: id.Ino, Offset: 4000, Line: 50, Before: "x", BeforeLen: 1}
	other := there
	other.Inode++
	for name, c := range map[string]struct {
		generations []tailer.Position
		started     bool
		want        int64
	}{
		"lost":             {[]tailer.Position{there}, false, 3000},
		"after a done one": {[]tailer.Position{{Done: true}, there}, false, 3000},
		"not lost":         {[]tailer.Position{there}, true, 4000},
		"another file":     {[]tailer.Position{other}, false, 4000},
		"before a new one": {[]tailer.Position{there, {Name: log}}, false, 3000},
	} {
		t.Run(name, func(t *testing.T) {
			path := "/" + name
			if c.started {
				if err := store.putStart(path, []byte(`{"lines":[]}`), nil, ""); err != nil {
					t.Fatal(err)
				}
			}
			inner := &checkpointMemory{saved: map[string]tailer.Checkpoint{path: {Generations: c.generations}}}
			saved, err := d.Checkpoints(inner).Load()
			if err != nil {
				t.Fatal(err)
			}
			if got := resumesAt(saved[path]); got.Offset != c.want || got.Offset != 4000 && (got.Line != 0 || got.BeforeLen != 0) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestUnusableStart(t *testing.T) {
	b := newBench(t, crashes(t, crash, 1))
	t.Cleanup(b.close)
	b.start()
	b.feed(20000)
	b.rest(2)
	b.save()
	files, err := filepath.Glob(filepath.Join(b.dir, "streams", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte(`{"version":1,"path":"/another.log"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.tolerant = true
	b.start()
	b.feedAll()
	b.rest(70)
	if len(b.opened()) != 1 || len(b.warned) != 1 || !strings.Contains(b.warned[0].Error(), "it is that of /another.log") {
		t.Errorf("opened %v, warned %v", b.opened(), b.warned)
	}
}

// A state directory that could not be made, or was removed since, is made when
// it can be.
func TestStoreMakesItsDirectoryAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	var r Record
	r.Incident.ID = "0123456789ab"
	if err := s.Put(r); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(r.Incident.ID); err != nil {
		t.Error(err)
	}
	d, err := New(Options{Catalog: catalogue(t), Store: s})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := d.Checkpoints(tailer.NewCheckpointFile(dir)).Save(map[string]tailer.Checkpoint{"/a": {Cursor: "1"}}); err != nil {
		t.Error(err)
	}
}

// With the state directory goes the start of the run: it is written again, also
// where nothing in it is new.
func TestStartIsWrittenAgain(t *testing.T) {
	b := newBench(t, crashes(t, crash, 1))
	t.Cleanup(b.close)
	b.start()
	end := int64(strings.Index(string(b.log), "Application startup complete."))
	b.feed(end + 1000)
	b.pass(6 * time.Minute)
	b.save()
	files, err := filepath.Glob(filepath.Join(b.dir, "streams", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	b.save()
	b.start()
	b.feedAll()
	b.rest(70)
	if in := b.last(b.one()).Incident; in.Engine.Model == nil {
		t.Error("the start of the run is lost")
	}
}

func TestStoreOfADirectoryThatIsNotThere(t *testing.T) {
	_, err := ReadStore(filepath.Join(t.TempDir(), "none")).Incidents(1)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStore(file); err == nil || !strings.HasPrefix(err.Error(), "state directory: ") {
		t.Error(err)
	}
}

func TestPutRefusesForeignNames(t *testing.T) {
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", "../x", "ABC", strings.Repeat("0", 65)} {
		var r Record
		r.Incident.ID = id
		if err := s.Put(r); err == nil {
			t.Errorf("%q was written", id)
		}
	}
}

// A real write is whole and leaves nothing behind.
func TestPutIsWhole(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	var r Record
	r.Incident.ID = "0123456789ab"
	for range 3 {
		if err := s.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(filepath.Join(dir, "incidents"))
	if err != nil || len(files) != 1 || files[0].Name() != "0123456789ab.json" {
		t.Errorf("%v, %v", files, err)
	}
	got, err := s.Get("0123456789ab")
	if err != nil || got.Incident.ID != r.Incident.ID {
		t.Error(got, err)
	}
}

// An incident that was open when the daemon was killed, and whose log is gone,
// is closed even so.
func TestOrphanIsClosed(t *testing.T) {
	b := newBench(t, crashes(t, crash, 1))
	t.Cleanup(b.close)
	b.start()
	b.feedAll()
	b.rest(2)
	id := b.one()
	wantEvents(t, b, id, eventOpened)
	b.log, b.disk.saved = nil, map[string]tailer.Checkpoint{}
	b.start()
	b.pass(time.Minute)
	b.pass(time.Minute)
	wantEvents(t, b, id, eventOpened, eventClosed)
}

// The same text under another name is not another incident, and is told of.
func TestSameCrashUnderAnotherName(t *testing.T) {
	b := newBench(t, crashes(t, crash, 1))
	t.Cleanup(b.close)
	b.tolerant = true
	b.start()
	b.feedAll()
	b.rest(70)
	b.path = "/var/log/copy.log"
	b.at, b.next = 0, 0
	b.feedAll()
	b.rest(70)
	id := b.one()
	if len(b.warned) != 1 || b.warned[0].Error() != "incident "+id+" in /var/log/copy.log stands in another log too, and is told there" {
		t.Errorf("warned of %v", b.warned)
	}
}

// Replicas that start in the same second, under the same pids and with the same
// raw text, are two servers; so are those that differ in their pids alone.
func TestReplicasThatFailAlike(t *testing.T) {
	first := fixture(t, "vllm-h200/v0251-device-assert.log")
	cut := bytes.Index(first, []byte("/pytorch/aten"))
	later := func(text []byte, minutes string) []byte {
		return append(bytes.Clone(text[:cut]), regexp.MustCompile(`(\d\d-\d\d \d\d):\d\d(:\d\d)`).ReplaceAll(text[cut:], []byte("${1}:"+minutes+"${2}"))...)
	}
	for name, second := range map[string][]byte{
		"in other containers": later(first, "59"),
		"under other pids":    bytes.ReplaceAll(first, []byte("pid=8"), []byte("pid=78")),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, first)
			t.Cleanup(b.close)
			b.start()
			b.feedAll()
			b.rest(70)
			b.path, b.log = "/var/log/other.log", second
			b.at, b.next = 0, 0
			b.feedAll()
			b.rest(70)
			ids := b.opened()
			if len(ids) != 2 {
				t.Fatalf("opened %v", ids)
			}
			// Read again, both are known.
			b.disk.saved = map[string]tailer.Checkpoint{}
			b.start()
			b.feedAll()
			b.rest(70)
			b.path, b.log = logPath, first
			b.at, b.next = 0, 0
			b.feedAll()
			b.rest(70)
			if got := b.opened(); len(got) != 2 {
				t.Errorf("opened again: %v", got)
			}
		})
	}
}

func TestNoticeCarriesThePrintedTime(t *testing.T) {
	b := newBench(t, crashes(t, crash, 1))
	t.Cleanup(b.close)
	b.start()
	b.feedAll()
	b.rest(70)
	b.save()
	b.start()
	b.add(startOf(t, 1, "16384"))
	b.feedAll()
	b.rest(3)
	n := b.last(b.one())
	if n.Event != notify.EventFollowup || n.Printed != "11-30 02:27:33" {
		t.Errorf("%s with the printed time %q", n.Event, n.Printed)
	}
}
