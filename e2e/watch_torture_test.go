package e2e

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// torture is how many kill points there are in all: 200, or what
// DIAGNOSE_TORTURE says.
func torture(t *testing.T) int {
	t.Helper()
	v := os.Getenv("DIAGNOSE_TORTURE")
	if v == "" {
		return 200
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("DIAGNOSE_TORTURE=%q is no number of kills", v)
	}
	return n
}

// rotations are the ways in which a log is rotated, given its path and how often
// that was done. Each leaves the path as the file to append to.
var rotations = map[string]func(path string, n int) error{
	"none": nil,
	"rename": func(path string, n int) error {
		return os.Rename(path, fmt.Sprintf("%s.%d", path, n))
	},
	"compress": func(path string, n int) error {
		old := fmt.Sprintf("%s.%d", path, n)
		if err := os.Rename(path, old); err != nil {
			return err
		}
		return compress(old)
	},
	// What is written between the copy and the cut is the rotator's loss, so
	// nothing is.
	"copytruncate": func(path string, n int) error {
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(fmt.Sprintf("%s.%d", path, n), data, 0o600)
		}
		if err != nil {
			return err
		}
		return os.Truncate(path, 0)
	},
	"symlink": func(path string, n int) error {
		next := fmt.Sprintf("%s-%d", path, n)
		if err := os.WriteFile(next, nil, 0o600); err != nil {
			return err
		}
		if err := os.Symlink(next, path+".new"); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	},
}

func compress(path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(path + ".gz")
	if err != nil {
		return err
	}
	w := gzip.NewWriter(out)
	if _, err := io.Copy(w, in); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Remove(path)
}

// TestKilledAnywhere ends the daemon with SIGKILL at random points while servers
// start and crash in its log, with and without rotation: each crash is one
// incident and is opened once.
func TestKilledAnywhere(t *testing.T) {
	total := torture(t)
	for mode, rotate := range rotations {
		kills := total / 10
		if mode == "none" {
			kills = total - 4*kills
		}
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d, %d kills", seed, kills)
			killed(t, rand.New(rand.NewPCG(seed, 1)), kills, rotate)
		})
	}
}

func killed(t *testing.T, rnd *rand.Rand, kills int, rotate func(string, int) error) {
	dir := t.TempDir()
	path, jsonl := filepath.Join(dir, "vllm.log"), filepath.Join(dir, "out.jsonl")
	text := read(t, fixture)
	crashes := max(2, kills/8)
	var d *exec.Cmd
	start := func() {
		said, err := os.OpenFile(filepath.Join(dir, "stderr"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer said.Close()
		d = exec.Command(program, "watch", "--state-dir", filepath.Join(dir, "state"), "--jsonl", jsonl, path)
		d.Stderr = said
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
	}
	kill := func() {
		_ = d.Process.Kill() // it may have ended, which the incidents show
		_ = d.Wait()
	}
	write(t, path, "")
	start()
	defer func() { kill() }()
	rotated := 0
	for i := range crashes {
		run := rerun(text, i)
		steps := kills * (i + 1) / crashes
		steps -= kills * i / crashes
		for k := range steps {
			cut := len(run) / (steps - k)
			if k < steps-1 {
				cut = rnd.IntN(2*cut + 1)
			}
			appendTo(t, path, run[:min(cut, len(run))])
			run = run[min(cut, len(run)):]
			if rotate != nil && rnd.IntN(4) == 0 {
				// One look at the file between two truncations: see "What can be
				// lost" in the tailer.
				time.Sleep(300 * time.Millisecond)
				rotated++
				if err := rotate(path, rotated); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Duration(rnd.IntN(250)) * time.Millisecond)
			kill()
			start()
		}
		appendTo(t, path, run)
	}
	var opened map[string]int
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if opened = openings(t, jsonl); len(opened) >= crashes {
			break
		}
	}
	time.Sleep(time.Second) // for what is told twice
	opened = openings(t, jsonl)
	if len(opened) != crashes {
		t.Errorf("%d incidents of %d crashes, after %d kills and %d rotations", len(opened), crashes, kills, rotated)
	}
	for id, n := range opened {
		if n != 1 {
			t.Errorf("%s was opened %d times", id, n)
		}
	}
	if t.Failed() {
		t.Log(read(t, filepath.Join(dir, "stderr")))
	}
}

var (
	pids  = regexp.MustCompile(`pid=(\d+)`)
	clock = regexp.MustCompile(`\d\d-\d\d \d\d:\d\d:\d\d`)
)

// rerun is the n-th start of a server, with its own pids and times.
func rerun(text string, n int) string {
	text = pids.ReplaceAllStringFunc(text, func(m string) string {
		v, err := strconv.Atoi(strings.TrimPrefix(m, "pid="))
		if err != nil {
			return m
		}
		return fmt.Sprint("pid=", v+1000*n)
	})
	return clock.ReplaceAllStringFunc(text, func(m string) string {
		at, err := time.Parse("01-02 15:04:05", m)
		if err != nil {
			return m
		}
		return at.Add(time.Duration(n) * time.Minute).Format("01-02 15:04:05")
	})
}

// openings counts the opened events of each incident.
func openings(t *testing.T, jsonl string) map[string]int {
	t.Helper()
	out := map[string]int{}
	data, err := os.ReadFile(jsonl)
	if err != nil {
		return out // not one yet
	}
	for line := range strings.Lines(string(data)) {
		var e struct {
			Event    string
			Incident struct{ ID string }
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			continue // torn by a kill, or still being written
		}
		if e.Event == "opened" {
			out[e.Incident.ID]++
		}
	}
	return out
}
