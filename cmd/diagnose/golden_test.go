package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGolden keeps whole answers, as a person reads them, for the seed case
// and each real server. Read the difference before it is accepted.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"seed-80.txt", []string{"seed/glm52-8xh200.log"}},
		{"seed-120.txt", []string{"--width", "120", "seed/glm52-8xh200.log"}},
		{"seed.json", []string{"--format", "json", "seed/glm52-8xh200.log"}},
		{"seed-interleaved-80.txt", []string{"seed/glm52-8xh200-interleaved.log"}},
		{"seed-default-util-80.txt", []string{"seed/glm52-8xh200-default-util.log"}},
		{"clean-stop.txt", []string{"vllm-h200/v0240-clean-stop.log"}},
		{"dsa-32768.txt", []string{"vllm-h200/v0240-dsa-32768-0.92.log"}},
		{"prompt-logprobs.txt", []string{"vllm-h200/v0240-prompt-logprobs.log"}},
		{"tp2.txt", []string{"vllm-h200/v0240-tp2-dsa-32768-0.95.log"}},
		{"device-assert.txt", []string{"vllm-h200/v0251-device-assert.log"}},
		{"free-below-desired.txt", []string{"vllm-h200/v0251-free-below-desired.log"}},
		{"kill-enginecore.txt", []string{"vllm-h200/v0251-kill-enginecore.log"}},
		{"kv-pressure.txt", []string{"vllm-h200/v0251-kv-pressure.log"}},
		{"kv-refused.txt", []string{"vllm-h200/v0251-kv-refused.log"}},
		{"prompt-injection.txt", []string{"vllm-h200/v0251-prompt-injection.log"}},
		{"sleep-wake.txt", []string{"vllm-h200/v0251-sleep-wake.log"}},
		{"weights-too-big.txt", []string{"vllm-h200/v0251-weights-too-big.log"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			last := len(c.args) - 1
			log := filepath.Join(fixtures, c.args[last])
			r := call(t, "", append(append([]string{"--no-siblings"}, c.args[:last]...), log)...)
			if r.errors != "" {
				t.Errorf("stderr: %s", r.errors)
			}
			golden(t, c.name, unstamped(strings.ReplaceAll(r.out, fixtures, "fixtures")))
		})
	}
}

// stamps are what changes with every build and every edit of the catalogue.
var stamps = regexp.MustCompile(`diagnose \S+, catalogue [0-9a-f]+|"(version|catalog)": "[^"]*"(,?\n +"catalog": "[0-9a-f]+")?\n? *\}, *\n *"inputs"`)

func unstamped(out string) string {
	return stamps.ReplaceAllStringFunc(out, func(s string) string {
		if strings.HasPrefix(s, "diagnose") {
			return "diagnose VERSION, catalogue REVISION"
		}
		return `"version": "VERSION", "catalog": "REVISION"}, "inputs"`
	})
}
