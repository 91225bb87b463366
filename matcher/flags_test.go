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
				if !ok || e.ID == "kv-pinned-too-large" {
					continue // the log itself shows the flag
				}
				if r.When == nil || !strings.Contains(r.When.String(), "version_in(") {
					t.Errorf("%s: %q sets %s (from %s on) under any version", e.ID, r.ID, flag, rel.since)
				}
			}
		}
	}
}

// TestSGLangsOwnFlags: a user of SGLang is told of SGLang's flags alone.
func TestSGLangsOwnFlags(t *testing.T) {
	cat := embedded(t)
	const logits = `  File "/usr/local/lib/python3.12/dist-packages/sglang/srt/layers/attention/dsa/dsa_indexer_kpool.py", line 998, in _get_topk_ragged_kpool_plan
tvm.error.InternalError: CUDA out of memory. Tried to allocate 73.65 GiB.
`
	full := strings.Repeat("[2025-12-12 12:00:00 TP0] Decode batch, #running-req: 6, #token: 1920, token usage: 0.94, cuda graph: True, gen throughput (token/s): 446.45, #queue-req: 5,\n", 5)
	for name, log := range map[string]string{"logits": logits, "pool": full} {
		incidents, observations := diagnoseLog(cat, []byte(log), Options{})
		all := append(incidents, observations...)
		if len(all) != 1 {
			t.Fatalf("%s: %d incidents and observations", name, len(all))
		}
		in, own := all[0], false
		for _, r := range in.Remedies {
			own = own || strings.Contains(r.Title+r.Why, "--mem-fraction-static")
			if namesVLLMFlag(r.Title + r.Why) {
				t.Errorf("%s: %q names a flag of vLLM", name, r.Title)
			}
		}
		for _, d := range in.DoNot {
			if namesVLLMFlag(d.Change + d.Because) {
				t.Errorf("%s: do not %q names a flag of vLLM", name, d.Change)
			}
		}
		if !own {
			t.Errorf("%s: no step names SGLang's flag", name)
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
	if !foreignFlag(s, "raise --gpu-memory-utilization") || foreignFlag(s, "lower --mem-fraction-static") {
		t.Error("SGLang's flags are confused with vLLM's")
	}
}
