package matcher

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a restart made of the advice: budget and pin together, the utilisation,
// the pin alone, the budget alone, or a release.
func TestCompare(t *testing.T) {
	const budget, pin, util = "--max-num-batched-tokens", "--kv-cache-memory-bytes", "--gpu-memory-utilization"
	failed := func(alone string) Incident {
		is, release := "0.24.0", "0.29.0"
		return Incident{
			Engine: Engine{Version: &is, Flags: map[string]Flag{"max-num-batched-tokens": {Value: "32768", Basis: "arguments"}}},
			Remedies: []Remedy{
				{Rank: 1, Set: map[string]string{budget: "16384", pin: "1000"}},
				{Rank: 2, Set: map[string]string{util: "0.89"}},
				{Rank: 3, Set: map[string]string{pin: "900"}},
				{Rank: 4, Set: map[string]string{budget: alone}},
				{Rank: 5},
				{Rank: 6, UpgradeTo: &release},
			},
		}
	}
	for _, c := range []struct {
		name, alone string
		flags       map[string]string
		version     string
		made        []string
		missing     []string
		step        int
	}{
		{"nothing", "8192", map[string]string{"max-num-batched-tokens": "32768"}, "", nil, []string{pin + " 1000", budget + " 16384"}, 0},
		{"the first step", "8192", map[string]string{"max-num-batched-tokens": "16384", "kv-cache-memory-bytes": "1000"}, "", []string{pin + " default -> 1000", budget + " 32768 -> 16384"}, nil, 1},
		{"half of it", "8192", map[string]string{"max-num-batched-tokens": "16384"}, "", []string{budget + " 32768 -> 16384"}, []string{pin + " 1000"}, 0},
		{"half of it, which is a step too", "16384", map[string]string{"max-num-batched-tokens": "16384"}, "", []string{budget + " 32768 -> 16384"}, []string{pin + " 1000"}, 4},
		{"the other half", "8192", map[string]string{"max-num-batched-tokens": "32768", "kv-cache-memory-bytes": "1000"}, "", []string{pin + " default -> 1000"}, []string{budget + " 16384"}, 0},
		{"a later step", "8192", map[string]string{"max-num-batched-tokens": "8192"}, "", []string{budget + " 32768 -> 8192"}, nil, 4},
		{"the pin alone", "8192", map[string]string{"max-num-batched-tokens": "32768", "kv-cache-memory-bytes": "900"}, "", []string{pin + " default -> 900"}, nil, 3},
		{"not far enough", "8192", map[string]string{"max-num-batched-tokens": "24576"}, "", []string{budget + " 32768 -> 24576"}, []string{pin + " 1000", budget + " 16384"}, 0},
		{"the release", "8192", map[string]string{"max-num-batched-tokens": "32768"}, "0.29.0", []string{"vLLM 0.24.0 -> 0.29.0"}, nil, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Compare(failed(c.alone), Start{Version: c.version, Flags: c.flags})
			want := Comparison{Made: append([]string{}, c.made...), Missing: append([]string{}, c.missing...)}
			if c.step > 0 {
				want.Step = &c.step
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
