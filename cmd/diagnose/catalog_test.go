package main

import (
	"path/filepath"
	"testing"

	"diagnose/matcher"
)

// TestCatalogLogs runs the samples that are whole logs of the fixtures; the
// inline ones are run by "catalog test".
func TestCatalogLogs(t *testing.T) {
	cat, err := matcher.EmbeddedCatalog()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, e := range cat.Entries {
		for _, s := range e.Samples {
			if s.Log == "" {
				continue
			}
			seen++
			t.Run(e.ID+"/"+s.Log, func(t *testing.T) {
				t.Parallel()
				d := call(t, "", "--format", "json", "--all", "--no-siblings", filepath.Join(fixtures, s.Log)).document(t)
				var named []string
				matched := false
				for _, in := range append(d.Incidents, d.Observations...) {
					id := deref(in.Verdict.Mechanism)
					named = append(named, id)
					if id != e.ID {
						continue
					}
					matched = true
					for key, got := range map[string]string{
						"class": in.Verdict.Class, "family": in.Verdict.Family,
						"confidence": in.Verdict.Confidence, "phase": in.Phase, "kind": in.Root.Kind,
					} {
						if want, ok := s.Expect[key]; ok && !s.Not && got != want {
							t.Errorf("%s %s, expected %s", key, got, want)
						}
					}
				}
				switch {
				case s.Not && matched:
					t.Errorf("a near miss matches: %s", s.Why)
				case e.Role == "benign" && !s.Not:
					// Another failure may stand in the same log.
					if matched {
						t.Error("no failure, and reported as one")
					}
				case !s.Not && !matched:
					t.Errorf("does not match; the answer is %q", named)
				}
			})
		}
	}
	if seen == 0 {
		t.Error("no entry has a fixture for a sample")
	}
}

// TestCatalogSamples: each entry that names a failure has a sample that must
// match and a near miss that must not, and each near miss says what it guards
// against.
func TestCatalogSamples(t *testing.T) {
	cat, err := matcher.EmbeddedCatalog()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range cat.Entries {
		if e.Role == "explain" {
			continue
		}
		positive, negative := 0, 0
		for i, s := range e.Samples {
			if s.Not {
				negative++
				if s.Why == "" {
					t.Errorf("%s: sample %d does not say what it guards against", e.ID, i+1)
				}
			} else {
				positive++
			}
		}
		if positive == 0 || negative == 0 {
			t.Errorf("%s: %d samples that match, %d near misses", e.ID, positive, negative)
		}
	}
}
