package main

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"diagnose/matcher"
	"diagnose/matcher/catalog"
)

func TestParseSetting(t *testing.T) {
	for _, c := range []struct{ in, name, value string }{
		{"gpu-memory-utilization=0.92", "gpu_memory_utilization", "0.92"},
		{"--gpu_memory_utilization=1", "gpu_memory_utilization", "1"},
		{"device-memory-utilization=.5", "gpu_memory_utilization", ".5"},
		{"max-num-seqs=2147483647", "max_num_seqs", "2147483647"},
		{"kv-cache-memory-bytes=9223372036854775807", "kv_cache_memory_bytes", "9223372036854775807"},
		{"enforce-eager=true", "enforce_eager", "true"},
		{"speculative-config={\"method\"=\"x\"}", "speculative_config", "{\"method\"=\"x\"}"},
		{"nonsense-flag=3", "nonsense_flag", "3"},
	} {
		if name, value, err := parseSetting(c.in); err != nil || name != c.name || value != c.value {
			t.Errorf("%q: %q, %q, %v", c.in, name, value, err)
		}
	}
	for _, in := range []string{
		"max-num-seqs", "=3", "--=3", "-_-=3",
		"gpu-memory-utilization=0", "gpu-memory-utilization=-0.9", "gpu-memory-utilization=1.01", "gpu-memory-utilization=5",
		"gpu-memory-utilization=abc", "gpu-memory-utilization=NaN", "gpu-memory-utilization=Inf", "gpu-memory-utilization=90%", "gpu-memory-utilization=",
		"max-num-batched-tokens=0", "max-num-batched-tokens=-1", "max-num-batched-tokens=99999999999999999999", "max-num-batched-tokens=2147483648",
		"max_num_batched_tokens=8k", "max-num-seqs=1.5", "max-model-len=auto", "tensor-parallel-size=", "block-size= 16", "num-gpu-blocks-override=0",
		"kv-cache-memory-bytes=0", "kv-cache-memory-bytes=9223372036854775808", "kv-cache-memory-bytes=26GiB",
		"enforce-eager=yes", "attention-backend=",
		"free=1", "weights-bytes=1", "kv-usage-pct=99", "version=0.24.0",
	} {
		if name, value, err := parseSetting(in); err == nil {
			t.Errorf("%q is taken for %q = %q", in, name, value)
		}
	}
}

// TestUsedFlags: a flag that an expression of the catalogue asks for can be
// given, and one that can be given is asked for by name somewhere.
func TestUsedFlags(t *testing.T) {
	names, err := fs.Glob(catalog.FS, "*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal(err, len(names))
	}
	asked := map[string]bool{}
	for _, name := range names {
		data, err := fs.ReadFile(catalog.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bflags\.([a-z0-9_]+)`).FindAllStringSubmatch(string(data), -1) {
			asked[m[1]] = true
			if _, ok := usedFlags[m[1]]; !ok {
				t.Errorf("%s uses flags.%s, which is not among usedFlags", name, m[1])
			}
		}
	}
	facts, err := os.ReadFile("../../matcher/facts.go")
	if err != nil {
		t.Fatal(err)
	}
	for name := range usedFlags {
		_, err := matcher.Compile(name) // a word of the vocabulary
		if err != nil && !asked[name] && !strings.Contains(string(facts), `flags.`+name) {
			t.Errorf("%s changes nothing", name)
		}
	}
	for _, m := range regexp.MustCompile(`"flags\.([a-z0-9_]+)"|\bdef\("([a-z0-9_]+)"`).FindAllStringSubmatch(string(facts), -1) {
		if _, ok := usedFlags[m[1]+m[2]]; !ok {
			t.Errorf("facts.go uses %s, which is not among usedFlags", m[1]+m[2])
		}
	}
}
