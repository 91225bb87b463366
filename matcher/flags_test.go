package matcher

import (
	"strings"
	"testing"

	"diagnose/parser/version"
)

// TestFlagsOfTheRelease: no step names a flag that the log's release does not
// have, and one of the old flags stands in where there is one.
func TestFlagsOfTheRelease(t *testing.T) {
	cat := embedded(t)
	for _, v := range []string{"0.8.2", "0.9.1", "0.10.0", "0.10.1", "0.10.2", "0.11.0", "0.11.1", "0.13.0", "0.18.0", "0.24.0", "0.33.0"} {
		parsed, _ := version.Parse(v)
		incidents, _ := diagnoseLog(cat, mixedBatchRun(v, 8, true), Options{})
		if len(incidents) != 1 || len(incidents[0].Remedies) == 0 {
			t.Fatalf("%s: %d incidents", v, len(incidents))
		}
		pinned := false
		for _, r := range incidents[0].Remedies {
			for flag := range r.Set {
				pinned = pinned || flag == "--kv-cache-memory-bytes"
				if rel, ok := flagReleases[flag]; ok && version.Compare(parsed, mustVersion(rel.since)) < 0 {
					t.Errorf("%s: %q sets %s, which exists from %s on", v, r.Title, flag, rel.since)
				}
			}
		}
		if want := version.Compare(parsed, mustVersion("0.10.2")) >= 0; pinned != want {
			t.Errorf("%s: the KV cache is pinned: %v, expected %v", v, pinned, want)
		}
	}
}

// TestFlagGatesInCatalogue: every step that sets a flag younger than the oldest
// logs has a condition on the version, so that it is not left to chance.
func TestFlagGatesInCatalogue(t *testing.T) {
	cat := embedded(t)
	for _, e := range cat.Entries {
		for _, r := range e.Remedies {
			r = cat.remedy(r)
			for flag := range r.Set {
				rel, ok := flagReleases[flag]
				if !ok || e.ID == "kv-pinned-too-large" || strings.HasPrefix(e.ID, "flashinfer-workspace") {
					continue // the log itself shows the flag, or its feature
				}
				if r.When == nil || !strings.Contains(r.When.String(), "version_in(") {
					t.Errorf("%s: %q sets %s (from %s on) under any version", e.ID, r.ID, flag, rel.since)
				}
			}
		}
	}
}

func TestFlagNote(t *testing.T) {
	s := newScope()
	set := map[string]string{"--kv-cache-memory-bytes": "1", "--max-num-batched-tokens": "2048"}
	if got, want := flagNote(s, set), "The log does not tell its release: --kv-cache-memory-bytes exists from vLLM 0.10.2 on."; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	if !flagsExist(s, set) {
		t.Error("an unknown release loses the step")
	}
	s.version, s.known = mustVersion("0.10.1"), true
	if flagNote(s, set) != "" || flagsExist(s, set) {
		t.Error("0.10.1 has no --kv-cache-memory-bytes")
	}
	s.set("engine", Text("sglang"), Established)
	if !foreign(s, "raise --gpu-memory-utilization") || foreign(s, "lower --mem-fraction-static") {
		t.Error("SGLang's flags are confused with vLLM's")
	}
}
