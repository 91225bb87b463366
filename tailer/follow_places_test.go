package tailer

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFollowWhatComesLater(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "vllm.log")
	r := &recorder{}
	f, _ := follow(t, fast(path), r)
	eventually(t, "waiting", func() bool {
		s := f.State()
		return len(s) == 1 && s[0].Status == StatusWaiting && s[0].Err == nil
	})
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	write(t, path, "one\n")
	waitLines(t, r, "one")
}

func TestFollowNoRegularFile(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	must(t, syscall.Mkfifo(fifo, 0o644))
	f, _ := follow(t, fast(dir, fifo), &recorder{})
	eventually(t, "both are shown as unfit", func() bool {
		s := f.State()
		return len(s) == 2 && s[0].Status == StatusUnfit && s[1].Status == StatusUnfit
	})
	for _, s := range f.State() {
		if want := fmt.Sprintf("follow %s: not a regular file", s.Path); s.Err == nil || s.Err.Error() != want {
			t.Errorf("error %v, want %s", s.Err, want)
		}
	}
	must(t, os.Remove(fifo))
	write(t, fifo, "one\n")
	eventually(t, "the file is followed", func() bool { return f.State()[1].Status == StatusFollowing })
}

// TestFollowPermissions runs itself as another user where it is root, whom no
// permission stops.
func TestFollowPermissions(t *testing.T) {
	if os.Geteuid() == 0 {
		dir, err := os.MkdirTemp("", "permissions")
		must(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		must(t, os.Chmod(dir, 0o777))
		binary := filepath.Join(dir, "tailer.test")
		self, err := os.ReadFile(os.Args[0])
		must(t, err)
		must(t, os.WriteFile(binary, self, 0o755))
		cmd := exec.Command(binary, "-test.run=^TestFollowPermissions$", "-test.v")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("as another user: %v\n%s", err, out)
		}
		return
	}
	dir := filepath.Join(t.TempDir(), "logs")
	must(t, os.Mkdir(dir, 0o755))
	path := filepath.Join(dir, "vllm.log")
	write(t, path, "one\n")
	must(t, os.Chmod(path, 0))
	r := &recorder{}
	f, _ := follow(t, fast(path), r)
	denied := func() bool {
		s := f.State()
		return len(s) == 1 && s[0].Status == StatusDenied && os.IsPermission(s[0].Err)
	}
	eventually(t, "denied", denied)
	must(t, os.Chmod(path, 0o644))
	waitLines(t, r, "one")

	// A folder that can no longer be entered ends a process with a plain
	// nxadm/tail on the next line.
	out, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer func() { _ = out.Close() }()
	must(t, os.Chmod(dir, 0))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	eventually(t, "denied again", denied)
	for i := range 5 {
		_, err = fmt.Fprintf(out, "line %d\n", i)
		must(t, err)
		time.Sleep(2 * time.Millisecond)
	}
	waitLines(t, r, "one", "line 0", "line 1", "line 2", "line 3", "line 4")
	must(t, os.Chmod(dir, 0o755))
	eventually(t, "following", func() bool { return f.State()[0].Status == StatusFollowing })
}

func TestFollowDirectorySwap(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "logs")
	path := filepath.Join(dir, "vllm.log")
	must(t, os.Mkdir(dir, 0o755))
	write(t, path, "one\n")
	r := &recorder{}
	f, _ := follow(t, fast(path), r)
	waitLines(t, r, "one")
	write(t, path, "two\n")
	must(t, os.Rename(dir, dir+".old"))
	must(t, os.Mkdir(dir, 0o755))
	write(t, path, "three\n")
	waitLines(t, r, "one", "two", "three")
	if n := f.Counters().Rotations(RotatedReplaced); n != 1 {
		t.Errorf("%d replaced", n)
	}
}

func TestFollowSymlinkSwap(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "current")
	a, b := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	write(t, a, "one\n")
	must(t, os.Symlink(a, path))
	r := &recorder{}
	f, _ := follow(t, fast(path), r)
	waitLines(t, r, "one")
	write(t, a, "two\n")
	write(t, b, "three\n")
	must(t, os.Symlink(b, path+".new"))
	must(t, os.Rename(path+".new", path))
	waitLines(t, r, "one", "two", "three")
	if n := f.Counters().Rotations(RotatedSymlink); n != 1 {
		t.Errorf("%d symlink swaps", n)
	}
	// The target is rotated in its own folder.
	must(t, os.Rename(b, b+".1"))
	write(t, b, "four\n")
	waitLines(t, r, "one", "two", "three", "four")
}

func TestFollowRegrownPastTheOffset(t *testing.T) {
	for _, own := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "vllm.log")
		write(t, path, "one\ntwo\n")
		r := &recorder{}
		opt := fast(path)
		opt.OwnReader = own
		f, _ := follow(t, opt, r)
		waitLines(t, r, "one", "two")
		// In one call, as seen by a reader: never shorter than it was.
		must(t, os.WriteFile(path+".new", []byte("1111111111\n2222\n3\n"), 0o644))
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		must(t, err)
		_, err = file.WriteAt([]byte("1111111111\n2222\n3\n"), 0)
		must(t, err)
		must(t, file.Close())
		waitLines(t, r, "one", "two", "1111111111", "2222", "3")
		if n := f.Counters().Rotations(RotatedTruncate); n != 1 {
			t.Errorf("%d truncations", n)
		}
	}
}

func TestFollowTruncateWithoutCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm.log")
	write(t, path, "one\ntwo\n")
	r := &recorder{}
	f, _ := follow(t, fast(path), r)
	waitLines(t, r, "one", "two")
	must(t, os.Truncate(path, 0))
	eventually(t, "truncation", func() bool { return f.Counters().Rotations(RotatedTruncate) == 1 })
	write(t, path, "three\n")
	waitLines(t, r, "one", "two", "three")
}

func TestFollowCopyRecovery(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm.log")
	write(t, path, "one\n")
	r := &recorder{}
	opt := fast(path)
	opt.OwnReader = true
	opt.Tick = 50 * time.Millisecond
	f, _ := follow(t, opt, r)
	waitLines(t, r, "one")
	text, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path+".1", append(text, "two\nthr"...), 0o644))
	must(t, os.Truncate(path, 0))
	write(t, path, "ee\n")
	waitLines(t, r, "one", "two", "three")
	if n := f.Counters().Rotations(RotatedCopy); n != 1 {
		t.Errorf("%d copies", n)
	}
}

// TestFollowWakes: nxadm/tail tells of a line long before the next tick.
func TestFollowWakes(t *testing.T) {
	if !inotifyWorks() {
		t.Skip("no inotify here")
	}
	path := filepath.Join(t.TempDir(), "vllm.log")
	write(t, path, "one\n")
	r := &recorder{}
	opt := fast(path)
	f, _ := follow(t, opt, r)
	waitLines(t, r, "one")
	s := f.feeders[path].feeder.(*source)
	eventually(t, "a Tail", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.tailing
	})
	write(t, path, "two\n")
	waitLines(t, r, "one", "two")
}

func TestFollowByPolling(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm.log")
	write(t, path, "one\n")
	r := &recorder{}
	opt := fast(path)
	opt.Poll, opt.StallAfter = true, time.Minute // it is not own code that reads
	f, _ := follow(t, opt, r)
	waitLines(t, r, "one")
	write(t, path, "two\n")
	waitLines(t, r, "one", "two")
	must(t, os.Rename(path, path+".1"))
	write(t, path, "three\n")
	waitLines(t, r, "one", "two", "three")
	if f.Counters().Inotify() {
		t.Error("inotify is used")
	}
}

func TestFollowHugeLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm.log")
	write(t, path, "one\n")
	r := &recorder{}
	opt := fast(path)
	opt.MaxLine, opt.Burst = 100, 1000
	f, _ := follow(t, opt, r)
	waitLines(t, r, "one")
	for range 20 {
		write(t, path, strings.Repeat("x", 500))
		time.Sleep(time.Millisecond)
	}
	write(t, path, "END\ntwo\n")
	waitLines(t, r, "one", strings.Repeat("x", 97)+"END", "two")
	if n := f.Counters().CutLines.Load(); n != 1 {
		t.Errorf("%d cut lines", n)
	}
	for _, e := range r.all() {
		if e.call == "line" && strings.HasSuffix(e.text, "END") && e.line.Cut != 10003-100 {
			t.Errorf("cut %d", e.line.Cut)
		}
	}
}

// TestFollowHugeLineMemory: without nxadm/tail memory does not depend on what
// is written.
func TestFollowHugeLineMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm.log")
	write(t, path, "one\n")
	r := &recorder{}
	opt := fast(path)
	opt.OwnReader = true
	_, _ = follow(t, opt, r)
	waitLines(t, r, "one")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, peak := m.HeapInuse, uint64(0)
	must(t, os.Truncate(path, 100_000_000)) // a hole reads as NULs
	write(t, path, "\ntwo\n")
	eventually(t, "the huge line", func() bool {
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
		return len(r.lines()) == 3
	})
	if lines := r.lines(); len(lines[1]) != defaultMaxLine || lines[2] != "two" {
		t.Errorf("%d bytes, then %q", len(lines[1]), lines[2])
	}
	if grown := int64(peak) - int64(before); grown > 16<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

func TestFollowBurst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm.log")
	write(t, path, "one\n")
	r := &recorder{}
	opt := fast(path)
	opt.Burst = 4 << 10
	_, _ = follow(t, opt, r)
	waitLines(t, r, "one")
	var text bytes.Buffer
	want := []string{"one"}
	for i := range 5000 {
		line := fmt.Sprintf("line %d of a burst that comes at once", i)
		want = append(want, line)
		text.WriteString(line + "\n")
	}
	write(t, path, text.String())
	waitLines(t, r, want...)
}

func TestFollowStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm.log")
	write(t, path, "one\nterminate called")
	r := &recorder{}
	opt := fast(path)
	opt.Starts = func(line []byte) bool { return bytes.HasPrefix(line, []byte("INFO")) }
	_, _ = follow(t, opt, r)
	waitLines(t, r, "one")
	must(t, os.Rename(path, path+".1"))
	write(t, path, "INFO a new server\n")
	waitLines(t, r, "one", "terminate called", "INFO a new server")
	for _, e := range r.all() {
		if e.text == "terminate called" && e.call == "line" && !e.line.Unterminated {
			t.Error("the piece is not marked")
		}
	}
}

func TestFollowLateWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm.log")
	write(t, path, "one\n")
	r := &recorder{}
	opt := fast(path)
	opt.Grace = time.Minute
	_, _ = follow(t, opt, r)
	waitLines(t, r, "one")
	old, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer func() { _ = old.Close() }()
	must(t, os.Rename(path, path+".1"))
	write(t, path, "two\n")
	waitLines(t, r, "one", "two")
	_, err = old.WriteString("late\n")
	must(t, err)
	waitLines(t, r, "one", "two", "late")
	lines := slices.DeleteFunc(r.all(), func(e event) bool { return e.call != "line" })
	if lines[2].ref != lines[0].ref || lines[2].ref == lines[1].ref {
		t.Errorf("the late line is of %+v", lines[2].ref)
	}
}

func TestFollowOneFileOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "vllm.log")
	write(t, path, "one\n")
	must(t, os.Symlink(path, filepath.Join(dir, "link")))
	r := &recorder{}
	f, _ := follow(t, fast(path, filepath.Join(dir, "link")), r)
	waitLines(t, r, "one")
	eventually(t, "the other is shown as a duplicate", func() bool {
		s := f.State()
		return len(s) == 2 && (s[0].Status == StatusDuplicate) != (s[1].Status == StatusDuplicate)
	})
	write(t, path, "two\n")
	waitLines(t, r, "one", "two")
}

func TestFollowSetPaths(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, a, "a1\n")
	write(t, b, "b1\n")
	r := &recorder{}
	opt := fast(a)
	store := &memStore{}
	opt.Store = store
	f, stop := follow(t, opt, r)
	waitLines(t, r, "a1")
	if err := f.SetPaths([]string{"["}); err == nil {
		t.Error("a bad glob was taken")
	}
	must(t, f.SetPaths([]string{b}))
	waitLines(t, r, "a1", "b1")
	if s := f.State(); len(s) != 1 || s[0].Path != b {
		t.Errorf("state %+v", s)
	}
	stop()
	if _, ok := store.saved[a]; !ok {
		t.Error("the checkpoint of what is no longer followed is gone")
	}
}

func TestFollowPipe(t *testing.T) {
	read, out, err := os.Pipe()
	must(t, err)
	r := &recorder{}
	opt := fast("-")
	opt.Stdin = read
	f, _ := follow(t, opt, r)
	_, err = out.WriteString("one\ntwo\nlast")
	must(t, err)
	waitLines(t, r, "one", "two")
	eventually(t, "idle", func() bool { return len(r.texts("idle")) > 0 })
	must(t, out.Close())
	waitLines(t, r, "one", "two", "last")
	eventually(t, "gone", func() bool { return len(r.texts("gone")) == 1 })
	ended := func() bool { s := f.State(); return s[0].Path == "-" && s[0].Status == StatusEnded }
	eventually(t, "ended", ended)

	// It stays told when the paths are looked at again.
	must(t, f.SetPaths([]string{"-", filepath.Join(t.TempDir(), "a.log")}))
	eventually(t, "another source", func() bool { return len(f.State()) == 2 })
	if !ended() {
		t.Errorf("%+v", f.State())
	}
}
