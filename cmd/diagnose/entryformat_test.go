package main

import (
	"os"
	"path/filepath"
	"testing"

	"diagnose/matcher"
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
	written(t, filepath.Join(top, "docs", "entry-format.md"), got)
}
