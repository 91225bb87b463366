package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHandbook: docs/catalogue.md is what "diagnose catalog handbook" prints.
func TestHandbook(t *testing.T) {
	r := call(t, "", "catalog", "handbook")
	if r.status != exitHealthy || r.errors != "" {
		t.Fatalf("status %d: %s", r.status, r.errors)
	}
	file := filepath.Join("..", "..", "docs", "catalogue.md")
	if *update {
		if err := os.WriteFile(file, []byte(r.out), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test ./cmd/diagnose -run TestHandbook -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), r.out); diff != "" {
		t.Errorf("docs/catalogue.md is stale (-want +got); -update rewrites it:\n%s", diff)
	}
}
