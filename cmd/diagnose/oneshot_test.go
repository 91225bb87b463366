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
	flags := usedFlags()
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
		if name, value, err := parseSetting(c.in, flags); err != nil || name != c.name || value != c.value {
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
		if name, value, err := parseSetting(in, flags); err == nil {
			t.Errorf("%q is taken for %q = %q", in, name, value)
		}
	}
}

// TestUsedFlags: what can be given without a warning is what matcher reads, and
// a number or a truth is checked as one.
func TestUsedFlags(t *testing.T) {
	facts, err := os.ReadFile("../../matcher/facts.go")
	if err != nil {
		t.Fatal(err)
	}
	used := usedFlags()
	for _, m := range regexp.MustCompile(`"flags\.([a-z0-9_]+)"|\bdef\("([a-z0-9_]+)"`).FindAllStringSubmatch(string(facts), -1) {
		if _, ok := used[m[1]+m[2]]; !ok {
			t.Errorf("facts.go uses %s, which is not among the used flags", m[1]+m[2])
		}
	}
	catalogue := ""
	names, err := fs.Glob(catalog.FS, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(catalog.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		catalogue += string(data)
	}
	for name, kind := range used {
		_, err := matcher.Compile(name) // a word of the vocabulary
		if err != nil && !strings.Contains(catalogue+string(facts), "flags."+name) {
			t.Errorf("%s changes nothing", name)
		}
		compared := regexp.MustCompile(`flags\.` + name + ` *(<|>|[-+*/] )`).MatchString(catalogue)
		if compared && kind == textFlag {
			t.Errorf("the catalogue takes %s for a number, its value is not checked as one", name)
		}
	}
}
