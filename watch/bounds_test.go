package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"diagnose/tailer"
)

// feedLines gives lines of a log that is rotated before each of them.
func (b *bench) feedLines(gen int, lines ...string) {
	at := int64(0)
	ref := tailer.SourceRef{Path: b.path, Gen: uint64(gen), Name: fmt.Sprintf("%s.%d", b.path, gen), Device: 1, Inode: uint64(gen) + 2}
	for _, l := range lines {
		b.d.Line(ref, tailer.Line{Data: []byte(l), Offset: at, Next: at + int64(len(l)) + 1})
		at += int64(len(l)) + 1
		b.now = b.now.Add(time.Second)
	}
}

// heap is what is in use, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A server outlives ten thousand rotations; its crash is told with the names of
// the generations that it stands in.
func TestThousandsOfRotations(t *testing.T) {
	b := newBench(t, nil)
	t.Cleanup(b.close)
	b.start()
	b.feedLines(1, strings.Split(strings.TrimSuffix(startOf(t, 0, "32768"), "\n"), "\n")...)
	const stats = "(APIServer pid=2476) INFO 11-30 02:27:31 [loggers.py:273] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 1.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%, Prefix cache hit rate: 0.0%"
	var early int64
	for gen := 2; gen < 10_000; gen++ {
		b.feedLines(gen, stats, "(APIServer pid=2476) WARNING 11-30 02:27:31 [a.py:1] something")
		if gen == 1000 {
			early = heap()
		}
	}
	if grown := heap() - early; grown > 1<<20 {
		t.Errorf("9,000 rotations cost %d bytes", grown)
	}
	s := b.d.stream(b.path)
	if n := len(s.sources.refs); n > 2*maxSources {
		t.Errorf("%d generations are known", n)
	}
	_, rest, _ := strings.Cut(string(whole(t)), "Application startup complete.\n")
	b.feedLines(10_000, strings.Split(strings.TrimSuffix(rest, "\n"), "\n")...)
	b.d.Gone(tailer.SourceRef{Path: b.path})
	n := b.last(b.one())
	if len(n.Sources) == 0 || len(n.Sources) > 60 {
		t.Errorf("%d sources", len(n.Sources))
	}
	if at := n.Incident.Root.At; at == nil || n.Sources[at.Source] != "vllm.log.10000" {
		t.Errorf("the root stands in %v of %v", at, n.Sources)
	}
	if at := n.Incident.Engine.Flags["port"].At; at == nil || n.Sources[at.Source] != "vllm.log.1" {
		t.Errorf("the arguments stand in %v of %v", at, n.Sources)
	}
}

// A crash loop costs no more memory than a few crashes.
func TestCrashLoop(t *testing.T) {
	b := newBench(t, nil)
	t.Cleanup(b.close)
	b.start()
	text := fixture(t, crash)
	var early int64
	const runs = 100
	for i := range runs {
		b.feedLines(i+1, strings.Split(strings.TrimSuffix(string(shifted(text, i)), "\n"), "\n")...)
		b.told = b.told[:0]
		if i == runs/2 {
			early = heap()
		}
	}
	b.d.Gone(tailer.SourceRef{Path: b.path})
	if grown := heap() - early; grown > 1<<20 {
		t.Errorf("%d crashes cost %d bytes", runs/2, grown)
	}
	if files, err := os.ReadDir(filepath.Join(b.dir, "incidents")); err != nil || len(files) != runs {
		t.Errorf("%d incidents on disk, %v", len(files), err)
	}
}

// Of thousands of incidents on disk the newest are known at a start; all stay.
func TestThousandsOfIncidents(t *testing.T) {
	const many = 1200
	b := newBench(t, nil)
	t.Cleanup(b.close)
	store, err := OpenStore(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	store.write = func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }
	closed := base
	for i := range many {
		r := Record{Path: fmt.Sprintf("/log%d", i%4), Run: fmt.Sprint(i), Opened: base.Add(time.Duration(i) * time.Minute), Closed: &closed}
		r.Incident.ID = fmt.Sprintf("%012x", i)
		if err := store.Put(r); err != nil {
			t.Fatal(err)
		}
		at := base.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(store.incidentPath(r.Incident.ID), at, at); err != nil {
			t.Fatal(err)
		}
	}
	b.start()
	known := 0
	for path, l := range b.d.ledgers {
		known += len(l.list)
		if len(l.list) > maxEntries {
			t.Errorf("%s: %d remembered", path, len(l.list))
		}
	}
	if known < maxLoaded-4 || known > maxLoaded {
		t.Errorf("%d known", known)
	}
	if newest := b.d.ledgers["/log3"].list; newest[len(newest)-1].ID != fmt.Sprintf("%012x", many-1) {
		t.Errorf("the newest is %s", newest[len(newest)-1].ID)
	}
	if files, err := os.ReadDir(filepath.Join(b.dir, "incidents")); err != nil || len(files) != many {
		t.Errorf("%d incidents on disk, %v", len(files), err)
	}
}

// What clients can make a server write must not grow the daemon: processes and
// arguments that nobody has, statistics, errors, HTTP errors without end.
func TestHostileLinesCostNoMemory(t *testing.T) {
	for name, line := range map[string]func(i int) string{
		"processes": func(i int) string { return fmt.Sprintf("(Worker pid=%d) WARNING 11-30 02:27:31 [a.py:1] x", i) },
		"names":     func(i int) string { return fmt.Sprintf("(W%d pid=7) ERROR 11-30 02:27:31 [a.py:1] x", i) },
		"configs": func(i int) string {
			return fmt.Sprintf("(EngineCore pid=%d) INFO 11-30 02:27:25 [core.py:114] Initializing a V1 LLM engine (v0.24.0) with config: model='m%d', k%d=1", i, i, i)
		},
		"arguments": func(i int) string {
			return fmt.Sprintf("(APIServer pid=%d) INFO 11-30 02:27:10 [api_utils.py:273] non-default args: {'a%d': %d, 'model': 'm'}", i, i, i)
		},
		"exceptions": func(i int) string {
			return fmt.Sprintf("(EngineCore pid=7) ERROR 11-30 02:27:31 [core.py:%d] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 GiB.", i, i)
		},
		"warnings W": func(i int) string {
			return fmt.Sprintf("[W1130 02:27:31.000 CUDACachingAllocator.cpp:1] memory allocation failed with an error on GPU %d", i)
		},
		"http": func(i int) string {
			return fmt.Sprintf("(APIServer pid=%d) INFO:     127.0.0.1:59184 - \"POST /v1/completions HTTP/1.1\" 500 Internal Server Error", i)
		},
		"long": func(i int) string {
			return fmt.Sprintf("(EngineCore pid=%d) ERROR 11-30 02:27:31 [core.py:1] RuntimeError: %s", i%8, strings.Repeat("x", 200_000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			t.Cleanup(b.close)
			b.opt.Gather = time.Hour // nothing is told meanwhile
			b.start()
			b.feedLines(1, strings.Split(strings.TrimSuffix(startOf(t, 0, "32768"), "\n"), "\n")...)
			n := 6_000
			if name == "long" {
				n = 600
			}
			ref := tailer.SourceRef{Path: b.path, Gen: 2, Name: b.path, Device: 1, Inode: 2}
			var early, at int64
			for i := range 3 * n {
				if i == n {
					early = heap()
				}
				l := line(i + 100)
				b.d.Line(ref, tailer.Line{Data: []byte(l), Offset: at, Next: at + int64(len(l)) + 1})
				at += int64(len(l)) + 1
			}
			if grown := heap() - early; grown > 512<<10 {
				t.Errorf("%d lines cost %d KiB more than the %d before them", 2*n, grown>>10, n)
			}
		})
	}
}

// The start of a run of very many ranks is cut, but never what names the run.
func TestHeadIsBounded(t *testing.T) {
	b := newBench(t, nil)
	t.Cleanup(b.close)
	b.start()
	lines := strings.Split(strings.TrimSuffix(startOf(t, 0, "32768"), "\n"), "\n")
	for i := range 5000 {
		lines = append(lines, fmt.Sprintf("(EngineCore pid=%d) INFO 11-30 02:27:28 [kv_cache_utils.py:2137] GPU KV cache size: 1,5%02d,072 tokens", 3000+i%64, i%100))
	}
	lines = append(lines, "(APIServer pid=2476) INFO:     Application startup complete.")
	b.feedLines(1, lines...)
	s := b.d.stream(b.path)
	size, ready := 0, 0
	for _, h := range s.heads {
		for _, l := range h.starts {
			size += len(l.data)
			if strings.Contains(string(l.data), "startup complete") {
				ready++
			}
		}
	}
	if size > maxHeadBytes || ready != 2 {
		t.Errorf("%d bytes kept, %d lines that say ready", size, ready)
	}
}

// The streams of logs that are no longer followed are dropped, and go on when
// they come back.
func TestForsakenStreams(t *testing.T) {
	b := newBench(t, crashes(t, crash, 1))
	t.Cleanup(b.close)
	b.start()
	b.feed(9000)
	b.save()
	b.now = b.now.Add(2 * forsaken)
	b.d.Retry()
	if n := len(b.d.streams); n != 0 {
		t.Fatalf("%d streams kept", n)
	}
	b.lives++ // the follower opens the file again, from its checkpoint
	b.at = b.disk.saved[b.path].Generations[0].Offset
	b.next = b.at
	b.feedAll()
	b.rest(70)
	want := postmortem(t, b.log)
	if b.one() != want[0].ID {
		t.Errorf("opened %v", b.opened())
	}
	if in := b.last(b.one()).Incident; deref(in.Engine.Version) != "0.24.0" || in.Engine.Flags["port"].Value == "" {
		t.Errorf("the start of the run is lost: %+v", in.Engine)
	}
}
