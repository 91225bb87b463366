package main

import (
	"path/filepath"
	"testing"
)

// TestHandbook: docs/catalogue.md is what "diagnose catalog handbook" prints.
func TestHandbook(t *testing.T) {
	r := call(t, "", "catalog", "handbook")
	if r.status != exitHealthy || r.errors != "" {
		t.Fatalf("status %d: %s", r.status, r.errors)
	}
	written(t, filepath.Join("..", "..", "docs", "catalogue.md"), r.out)
}
