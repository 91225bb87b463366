package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/matcher"
)

func TestStartMarks(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       bool
	}{
		{"arguments", "(APIServer pid=1) INFO 11-30 02:25:11 [api_utils.py:273] non-default args: {'model': 'x'}", true},
		{"api server", "INFO 03-01 10:00:00 api_server.py:459] vLLM API server version 0.6.3", true},
		{"V1 engine", "INFO 03-01 10:00:00 [core.py:58] Initializing a V1 LLM engine (v0.8.5) with config: model='x'", true},
		{"V0 engine", "INFO 03-01 10:00:00 llm_engine.py:249] Initializing an LLM engine (v0.6.6) with config: model='x'", true},
		{"a dump names the engine too", "(EngineCore pid=2) ERROR 11-30 02:27:33 [dump_input.py:72] Dumping input data for V1 LLM engine (v0.24.0) with config: model='x'", false},
		{"statistics", "INFO 11-30 02:27:33 [loggers.py:273] Engine 000: Running: 8 reqs", false},
		{"nothing", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The mark may lie across two reads of the buffer.
			for _, before := range []int{0, 256<<10 - 30, 256<<10 - 3, 512<<10 - 70} {
				file := filepath.Join(t.TempDir(), "vllm.log")
				if err := os.WriteFile(file, []byte(strings.Repeat("x", before)+c.line+"\nmore\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				if got, err := hasStart(file); err != nil || got != c.want {
					t.Errorf("after %d bytes: %v, %v; expected %v", before, got, err, c.want)
				}
			}
		})
	}
}

func TestInputs(t *testing.T) {
	dir := t.TempDir()
	path := func(names ...string) []string {
		out := make([]string, len(names))
		for i, n := range names {
			out[i] = filepath.Join(dir, n)
		}
		return out
	}
	const start, rest = "vLLM API server version 0.24.0\n", "statistics\n"
	for name, text := range map[string]string{
		"a.log": rest, "a.log.1": rest, "a.log.2": start, "a.log.3": start,
		"b.log": start, "b.log.1": start,
		"c.log": rest, "c.log.1": rest, // none has a start
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		opt   oneshot
		given []string
		want  [][]string
	}{
		{"back to the start", oneshot{}, path("a.log"), [][]string{path("a.log.2", "a.log.1", "a.log")}},
		{"has its start", oneshot{}, path("b.log"), [][]string{path("b.log")}},
		{"no generation has it", oneshot{}, path("c.log"), [][]string{path("c.log")}},
		{"not wanted", oneshot{noSiblings: true}, path("a.log"), [][]string{path("a.log")}},
		{"named generations", oneshot{}, path("b.log", "b.log.1"), [][]string{path("b.log.1", "b.log")}},
		{"several servers", oneshot{}, path("b.log", "a.log"), [][]string{path("b.log"), path("a.log.2", "a.log.1", "a.log")}},
		{"one server", oneshot{join: true}, path("b.log", "a.log"), [][]string{path("b.log", "a.log")}},
		{"standard input", oneshot{}, []string{"-"}, [][]string{{"-"}}},
		{"missing", oneshot{}, path("no.log"), [][]string{path("no.log")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.opt.inputs(c.given)
			if err != nil {
				t.Fatal(err)
			}
			var files [][]string
			for _, s := range got {
				files = append(files, s.files)
			}
			if !slices.EqualFunc(files, c.want, slices.Equal) {
				t.Errorf("got %v, expected %v", files, c.want)
			}
		})
	}
}

func TestWindow(t *testing.T) {
	at := func(first string) matcher.Incident {
		return matcher.Incident{Time: matcher.Time{First: &first}}
	}
	for _, c := range []struct {
		name, since, until string
		in                 matcher.Incident
		want               bool
	}{
		{"no bounds", "", "", at("2026-11-30T02:27:33Z"), true},
		{"since, before it", "2026-11-30T02:27:34Z", "", at("2026-11-30T02:27:33Z"), false},
		{"since, on it", "2026-11-30T02:27:33Z", "", at("2026-11-30T02:27:33Z"), true},
		{"until, on it", "", "2026-11-30T02:27:33Z", at("2026-11-30T02:27:33Z"), true},
		{"until, after it", "", "2026-11-30T02:27:32Z", at("2026-11-30T02:27:33Z"), false},
		{"zones are compared as moments", "2026-11-30T03:00:00+01:00", "", at("2026-11-30T02:27:33Z"), true},
		{"no time is kept", "2026-11-30T02:27:34Z", "", matcher.Incident{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := newWindow(c.since, c.until)
			if err != nil {
				t.Fatal(err)
			}
			kept, unsure := w.keep([]matcher.Incident{c.in})
			if got := len(kept) == 1; got != c.want {
				t.Errorf("kept: %v, expected %v", got, c.want)
			}
			if (unsure == 1) != (c.want && c.since != "" && c.in.Time.First == nil) {
				t.Errorf("unsure: %d", unsure)
			}
		})
	}
}

func TestPercent(t *testing.T) {
	for text, want := range map[string]float64{"5.4": 5.4, "5.4%": 5.4, "99 %": 99, "0": 0, "100": 100} {
		if got, err := parsePercent(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; expected %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "half", "-1", "100.1", "NaN", "Inf", "0x1p-2%%"} {
		if got, err := parsePercent(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestWindowOrder(t *testing.T) {
	for _, c := range []struct {
		since, until string
		year         int
		zone         string
		ok           bool
	}{
		{"", "", 0, "", true},
		{"11-30 03:00:00", "", 0, "", true},
		{"11-30 02:00:00", "11-30 03:00:00", 0, "", true},
		{"11-30 03:00:00", "11-30 03:00:00", 0, "", true},
		{"11-30 03:00:01", "11-30 03:00:00", 0, "", false},
		{"12-31 23:00:00", "01-01 01:00:00", 0, "", false}, // no printed time lies between
		{"2026-12-31T23:00:00Z", "2027-01-01T01:00:00Z", 0, "", true},
		{"2026-11-30T03:00:00+02:00", "2026-11-30T02:00:00Z", 0, "", true},
		{"2026-11-30T03:00:00Z", "2026-11-30T02:00:00Z", 0, "", false},
		{"2026-11-30T03:00:00Z", "11-30 02:00:00", 0, "", true}, // cannot be told
		{"2026-11-30T03:00:00Z", "11-30 02:00:00", 2026, "UTC", false},
		{"11-30 03:30:00", "2026-11-30T03:00:00Z", 2026, "Europe/Berlin", true},
	} {
		w, err := newWindow(c.since, c.until)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.check(c.year, c.zone); (err == nil) != c.ok {
			t.Errorf("since %q until %q: %v", c.since, c.until, err)
		}
	}
}
