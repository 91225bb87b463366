package matcher

import (
	"fmt"
	"sort"
	"strings"

	"diagnose/parser/version"
)

// flagReleases tells for the flags and variables of the catalogue's steps
// since which release of vLLM they exist, and before which they were gone
// again. Read in the source distributions of 0.8.2 to 0.18.0
// (vllm/engine/arg_utils.py, vllm/envs.py). What is older is not listed.
var flagReleases = map[string]struct{ since, gone string }{
	"--kv-cache-memory-bytes":                      {"0.10.2", ""}, // vllm#21489
	"--max-cudagraph-capture-size":                 {"0.11.1", ""}, // vllm#26016
	"--cuda-graph-sizes":                           {"0.9.0", "0.13.0"},
	"--mm-encoder-tp-mode":                         {"0.10.2", ""},
	"--no-enable-flashinfer-autotune":              {"0.16.0", ""},
	"env:VLLM_DEBUG_WORKSPACE":                     {"0.13.0", ""},
	"env:VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE":    {"0.11.1", ""},
	"env:VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": {"0.18.0", ""},
	"env:VLLM_SPARSE_INDEXER_MAX_LOGITS_MB":        {"0.19.0", ""}, // vllm#36178
}

// vllmOnly are flags that SGLang does not have.
var vllmOnly = []string{
	"--gpu-memory-utilization", "--max-num-batched-tokens", "--max-num-seqs", "--max-model-len", "--max-logprobs",
	"--kv-cache-memory-bytes", "--max-cudagraph-capture-size", "--enforce-eager", "--no-enable-flashinfer-autotune",
	"--num-gpu-blocks-override", "VLLM_",
}

// flagsExist tells whether the flags that a step sets exist in the log's
// release, and in its engine.
func flagsExist(s *scope, set map[string]string) bool {
	for flag := range set {
		if s.facts["engine"].text == "sglang" && namesVLLMFlag(flag) {
			return false
		}
		r, ok := flagReleases[flag]
		if !ok || !s.known {
			continue
		}
		if version.Compare(s.version, mustVersion(r.since)) < 0 || r.gone != "" && version.Compare(s.version, mustVersion(r.gone)) >= 0 {
			return false
		}
	}
	return true
}

// flagNote says since when the flags of a step exist, where the log does not
// tell its release.
func flagNote(s *scope, set map[string]string) string {
	if s.known {
		return ""
	}
	var notes []string
	for flag := range set {
		r, ok := flagReleases[flag]
		if !ok {
			continue
		}
		note := fmt.Sprintf("%s exists from vLLM %s on", strings.TrimPrefix(flag, "env:"), r.since)
		if r.gone != "" {
			note += ", up to the release before " + r.gone
		}
		notes = append(notes, note)
	}
	sort.Strings(notes)
	if len(notes) == 0 {
		return ""
	}
	return "The log does not tell its release: " + strings.Join(notes, "; ") + "."
}

// foreignFlag tells whether a text tells a user of SGLang to touch a flag of vLLM.
func foreignFlag(s *scope, text string) bool {
	return s.facts["engine"].text == "sglang" && namesVLLMFlag(text)
}

func namesVLLMFlag(text string) bool {
	return containsAny(text, vllmOnly)
}
