package tailer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseJournalEntry(t *testing.T) {
	for _, c := range []struct {
		name, data, message string
		absent              bool
	}{
		{"text", `{"__CURSOR":"s=1","MESSAGE":"one\ntwo"}`, "one\ntwo", false},
		{"bytes", `{"__CURSOR":"s=1","MESSAGE":[255,10,97]}`, "\xff\na", false},
		{"no bytes", `{"__CURSOR":"s=1","MESSAGE":[]}`, "", false},
		{"null", `{"__CURSOR":"s=1","MESSAGE":null}`, "", true},
		{"none", `{"__CURSOR":"s=1"}`, "", true},
		{"several", `{"__CURSOR":"s=1","MESSAGE":[null,"first","second"]}`, "first", false},
		{"several of bytes", `{"__CURSOR":"s=1","MESSAGE":[[104,105],"second"]}`, "hi", false},
		{"too large a byte", `{"__CURSOR":"s=1","MESSAGE":[256]}`, "", true},
		{"a number", `{"__CURSOR":"s=1","MESSAGE":7}`, "", true},
	} {
		e, err := parseJournalEntry([]byte(c.data))
		if err != nil || string(e.message) != c.message || e.absent != c.absent || e.cursor != "s=1" {
			t.Errorf("%s: %+v, %v", c.name, e, err)
		}
	}
	for _, data := range []string{``, `{`, `[]`, `{"MESSAGE":"x"}`, `{"__CURSOR":""}`, `null`} {
		if _, err := parseJournalEntry([]byte(data)); err == nil {
			t.Errorf("%q is no error", data)
		}
	}
}

func FuzzParseJournalEntry(f *testing.F) {
	f.Add([]byte(`{"__CURSOR":"s=1","MESSAGE":[255,10,97],"_PID":"7"}`))
	f.Add([]byte(`{"__CURSOR":["s=1"],"MESSAGE":[[1],[null]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseJournalEntry(data)
		if err == nil && e.cursor == "" {
			t.Error("an entry without a cursor")
		}
		if e.absent && e.message != nil {
			t.Error("absent, and there")
		}
	})
}

// fakeJournal is a journalctl that prints the entries of a file behind the
// cursor, then ends.
func fakeJournal(t *testing.T, dir string) []string {
	t.Helper()
	script := filepath.Join(dir, "journalctl")
	must(t, os.WriteFile(script, []byte(`#!/bin/sh
echo "$@" >> "$0.calls"
after=
for a in "$@"; do case $a in --after-cursor=*) after=${a#--after-cursor=};; esac; done
while read -r line; do
	if [ -z "$after" ]; then printf '%s\n' "$line"; continue; fi
	case $line in *"\"$after\""*) after=;; esac
done < "$0.entries"
case " $* " in *" --follow "*) ;; *) exit 0;; esac
echo "it was rotated" >&2
exit 1
`), 0o755))
	return []string{"sh", script}
}

func entry(cursor, invocation string, message any) string {
	b, _ := json.Marshal(map[string]any{
		"__CURSOR": cursor, "MESSAGE": message, "_SYSTEMD_UNIT": "vllm.service", "_HOSTNAME": "node17",
		"_PID": "4711", "_SYSTEMD_INVOCATION_ID": invocation,
	})
	return string(b) + "\n"
}

// managed is an entry of the service manager about the unit.
func managed(cursor, invocation string, message any) string {
	b, _ := json.Marshal(map[string]any{
		"__CURSOR": cursor, "MESSAGE": message, "_SYSTEMD_UNIT": "init.scope", "_HOSTNAME": "node17",
		"_PID": "1", "UNIT": "vllm.service", "INVOCATION_ID": invocation,
	})
	return string(b) + "\n"
}

// What the service manager says of a unit is of the unit's invocation, wherever
// it comes among the unit's lines.
func TestJournalManager(t *testing.T) {
	r := &recorder{}
	j := newJournal(&Follower{opt: Options{}.withDefaults(), handler: r}, "vllm", Checkpoint{})
	for i, e := range []string{
		managed("s=1", "i1", "Starting"), entry("s=2", "i1", "one"), managed("s=3", "i1", "Deactivated"), entry("s=4", "i1", "two"),
		managed("s=5", "i2", "Starting"), entry("s=6", "i2", "three"),
	} {
		j.entry(Line{Data: []byte(e)})
		if got, want := j.ref.Meta.Unit, "vllm.service"; got != want {
			t.Errorf("entry %d: unit %q", i, got)
		}
	}
	waitCalls(t, r, "Starting", "one", "Deactivated", "two", "gone", "Starting", "three")
}

func TestFollowJournal(t *testing.T) {
	dir := t.TempDir()
	command := fakeJournal(t, dir)
	entries := command[1] + ".entries"
	write(t, entries, entry("s=1", "i1", "one")+entry("s=2", "i1", "two\nthree\n")+"not JSON\n"+
		entry("s=3", "i1", []int{255, 'x'})+entry("s=4", "i1", nil)+entry("s=5", "i2", "of the next start"))
	r := &recorder{}
	store := &memStore{}
	opt := fast()
	opt.Journals, opt.Store, opt.JournalCommand = []string{"vllm"}, store, command
	var warned []string
	opt.Warn = func(err error) { warned = append(warned, err.Error()) }
	f, stop := follow(t, opt, r)
	waitCalls(t, r, "one", "two", "three", "\xffx", "gone", "of the next start")
	for _, e := range r.all() {
		if e.call == "line" && e.text != "of the next start" {
			f.Commit(e.ref, e.line.Next, 0)
		}
		want := Meta{Unit: "vllm.service", Host: "node17", PID: 4711}
		if e.call == "line" && (e.ref.Meta != want || e.ref.Path != "journal:vllm") {
			t.Errorf("%q is of %+v", e.text, e.ref)
		}
	}
	must(t, f.Flush())
	if d := cmp.Diff("s=4", store.saved["journal:vllm"].Cursor); d != "" {
		t.Error(d)
	}
	// journalctl ends, and is started again behind the last entry.
	eventually(t, "a restart", func() bool { return f.Counters().JournalRestarts.Load() > 0 })
	write(t, entries, entry("s=6", "i2", "later"))
	waitCalls(t, r, "one", "two", "three", "\xffx", "gone", "of the next start", "later")
	eventually(t, "it is followed again", func() bool {
		made, err := os.ReadFile(command[1] + ".calls")
		return err == nil && strings.Contains(string(made), "--follow --no-tail --after-cursor=s=6\n")
	})
	if n := f.Counters().JournalSkipped.Load(); n != 1 {
		t.Errorf("%d entries skipped", n)
	}
	store.mu.Lock()
	store.dead = true
	store.mu.Unlock()
	stop()
	if !slices.Contains(warned, "journal of vllm: journalctl ended: exit status 1: it was rotated") {
		t.Errorf("warned of %q", warned)
	}

	// From the checkpoint: the entry that was not committed comes again.
	store.dead = false
	r = &recorder{}
	_, stop = follow(t, opt, r)
	waitCalls(t, r, "of the next start", "later")
	stop()
	made, err := os.ReadFile(command[1] + ".calls")
	must(t, err)
	first, rest, _ := strings.Cut(string(made), "\n")
	const all = "--output=json --all --no-pager --quiet --unit=vllm"
	// Behind a cursor it is read without --follow first, which would leave out
	// what an earlier boot wrote.
	if first != all+" --follow --no-tail --boot" || !strings.HasPrefix(rest, all+" --after-cursor=s=5\n") || !strings.Contains(rest, all+" --follow --no-tail --after-cursor=s=6\n") {
		t.Errorf("called with\n%s", made)
	}
}

func TestJournalCommits(t *testing.T) {
	j := newJournal(&Follower{opt: Options{}.withDefaults(), handler: &recorder{}}, "vllm", Checkpoint{})
	for i := range 3 * maxCursors {
		j.entry(Line{Data: []byte(entry(fmt.Sprintf("s=%d", i), "i", "123456789"))})
	}
	if len(j.cursors) > maxCursors {
		t.Errorf("%d cursors are kept", len(j.cursors))
	}
	for _, c := range []struct {
		offset int64
		atMost string
	}{{0, ""}, {10*5000 + 3, "s=4999"}, {10 * 3 * maxCursors, fmt.Sprintf("s=%d", 3*maxCursors-1)}} {
		j.commit(j.ref.Gen, c.offset, 0)
		got := j.checkpoint().Cursor
		if len(got) > len(c.atMost) || len(got) == len(c.atMost) && got > c.atMost {
			t.Errorf("commit of %d keeps %s, after %s", c.offset, got, c.atMost)
		}
	}
	if got := j.checkpoint().Cursor; got != fmt.Sprintf("s=%d", 3*maxCursors-1) {
		t.Errorf("all is committed, and %s is kept", got)
	}
}

// Lines are counted from the unit's start, also after a restart of the reader:
// an incident that is read again stands where it stood.
func TestJournalNumbers(t *testing.T) {
	entries := []string{
		entry("s=1", "i1", "one\ntwo"), entry("s=2", "i1", "three"), entry("s=3", "i1", "four"),
		entry("s=4", "i2", "five"), entry("s=5", "i2", "six"), entry("s=6", "i2", "seven"),
	}
	read := func(c Checkpoint, entries []string, commit string) (places []string, next Checkpoint) {
		r := &recorder{}
		j := newJournal(&Follower{opt: Options{}.withDefaults(), handler: r}, "vllm", c)
		for _, e := range entries {
			j.entry(Line{Data: []byte(e)})
		}
		for _, e := range r.all() {
			if e.call != "line" {
				continue
			}
			places = append(places, fmt.Sprintf("%s %d@%d", e.text, e.line.Number, e.line.Offset))
			if e.text == commit {
				j.commit(e.ref.Gen, e.line.Next, 0)
			}
		}
		return places, j.checkpoint()
	}
	all, _ := read(Checkpoint{}, entries, "")
	want := []string{"one 1@0", "two 2@4", "three 3@8", "four 4@14", "five 1@0", "six 2@5", "seven 3@9"}
	if d := cmp.Diff(want, all); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for i, commit := range []string{"two", "three", "four", "five", "six"} {
		_, c := read(Checkpoint{}, entries, commit)
		if c.Cursor != fmt.Sprintf("s=%d", i+1) {
			t.Fatalf("after %s: %+v", commit, c)
		}
		again, _ := read(c, entries[i+1:], "")
		if d := cmp.Diff(want[i+2:], again); d != "" {
			t.Errorf("after %s (-want +got):\n%s", commit, d)
		}
	}
	// Of a release that did not count.
	if again, _ := read(Checkpoint{Cursor: "s=2"}, entries[2:3], ""); again[0] != "four 1@0" {
		t.Error(again)
	}
}
