package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGrowingFile reads a log while the server still writes it, torn lines
// included. Every reading answers, what is whole by then is right, and the
// last one has the crash.
func TestGrowingFile(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(fixtures, "vllm-h200", "v0240-dsa-32768-0.92.log"))
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "vllm.log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	// Enough for an engine's line; the pieces end anywhere in a line.
	const first, piece = 3000, 997
	if _, err := f.Write(data[:first]); err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() {
		for rest := data[first:]; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			if _, err := f.Write(rest[:min(piece, len(rest))]); err != nil {
				written <- err
				return
			}
		}
		close(written)
	}()
	for done := false; !done; {
		select {
		case err, failed := <-written:
			if failed {
				t.Fatal(err)
			}
			done = true
		default:
		}
		r := call(t, "", "--format", "json", log)
		d := r.document(t)
		if r.status != status(d) {
			t.Fatalf("status %d, the document says %d: %s", r.status, status(d), r.errors)
		}
		for _, in := range d.Incidents {
			if line := lineOf(in.Root.At); in.Verdict.Class == "workspace" && line != 209 && line != 90 {
				t.Fatalf("root at line %d of a log that is still written", line)
			}
		}
		if done && (len(d.Incidents) != 1 || d.Incidents[0].ID != "442818039300") {
			t.Fatalf("the whole log: %s", brief(d))
		}
	}
}

// TestTornLog: a log cut at any of its lines, and at some bytes, is answered
// with a valid document or with an error of use, and never with a class that
// the whole log does not have.
func TestTornLog(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(fixtures, "vllm-h200", "v0240-tp2-dsa-32768-0.95.log"))
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "vllm.log")
	step := len(data)/20 - 1
	for n := step; n < len(data); n += step {
		if err := os.WriteFile(log, data[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		r := call(t, "", "--format", "json", log)
		if r.status == exitUsage {
			t.Fatalf("cut after %d bytes: %s", n, r.errors)
		}
		for _, in := range r.document(t).Incidents {
			if in.Verdict.Class != "workspace" && in.Verdict.Class != "unknown" {
				t.Errorf("cut after %d bytes: class %s (%q)", n, in.Verdict.Class, in.Root.Text)
			}
		}
	}
}
