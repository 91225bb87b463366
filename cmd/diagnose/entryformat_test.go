package main

import (
	"os"
	"path/filepath"
	"testing"

	"diagnose/matcher"

	"github.com/google/go-cmp/cmp"
)

// TestEntryFormat: docs/entry-format.md is what the code says of an entry.
func TestEntryFormat(t *testing.T) {
	cat, err := matcher.EmbeddedCatalog()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(top, "matcher", "entry.go"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := matcher.EntryFormat(cat, source)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(top, "docs", "entry-format.md")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test ./cmd/diagnose -run TestEntryFormat -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/entry-format.md is stale (-want +got); -update rewrites it:\n%s", diff)
	}
}
