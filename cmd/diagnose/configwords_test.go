package main

import (
	"slices"
	"testing"
)

// The words that a route is held against are found in the schema.
func TestContractWords(t *testing.T) {
	for want, place := range map[string][]string{
		"other_oom": {"$defs", "family"},
		"nccl":      {"$defs", "class"},
		"runtime":   {"$defs", "incident", "properties", "phase"},
	} {
		if got := contractWords(place...); !slices.Contains(got, want) || !slices.Contains(got, "unknown") {
			t.Errorf("%v: %v", place, got)
		}
	}
}
