package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// startupOpen names what the answers of fixtures/startup lack, with the reason.
// A case that comes right has to leave the list.
var startupOpen = map[string]string{
	"005-free-memory-check-rocm-estimate": "class: the sentence is the same as for another process, and no line says ROCm; medium at most",
	"020-mm-profiling-v0":                 "class: only a warning names images and videos, no frame; medium at most",
}

// TestStartup holds the start-up failures and engine deaths of public reports
// against their labels: class or an honest unknown, the root's text, the phase,
// the mechanism, and every number.
func TestStartup(t *testing.T) {
	seen := map[string]bool{}
	for log, file := range cases(t, "startup") {
		name := strings.TrimSuffix(filepath.Base(log), ".log")
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c struct {
				Form     string      `json:"form"`
				Invented []string    `json:"invented"`
				Why      string      `json:"why"`
				Expect   expectation `json:"expect"`
			}
			readJSON(t, file, &c)
			if c.Form == "" || len(c.Invented) == 0 || c.Why == "" || c.Expect.LabelConfidence == "" {
				t.Error("form, invented, why or label_confidence is missing")
			}
			r := call(t, "", "--format", "json", "--no-siblings", log)
			d := r.document(t)
			if want := status(d); r.status != want {
				t.Errorf("status %d, the document says %d", r.status, want)
			}
			var problems []string
			if len(d.Incidents) == 1 {
				problems = c.Expect.problems(d.Incidents[0])
				if len(d.Incidents[0].OOM) > 0 {
					problems = append(problems, gibProblems(t, log, d.Incidents[0], c.Expect.OOMGiB)...)
				}
			} else {
				problems = []string{"not one failure: " + brief(d)}
			}
			reason, open := startupOpen[name]
			switch {
			case open && len(problems) == 0:
				t.Errorf("is right now; it can leave the list of what is open (%s)", reason)
			case open:
				t.Logf("open (%s): %s", reason, strings.Join(problems, "; "))
			default:
				for _, p := range problems {
					t.Error(p)
				}
			}
		})
	}
	for name := range startupOpen {
		if !seen[name] {
			t.Errorf("%s is listed as open and is no fixture", name)
		}
	}
}
