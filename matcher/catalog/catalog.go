// Package catalog holds the knowledge: one YAML file a mechanism, embedded in
// the program. It has no code of its own; the matcher reads it.
package catalog

import "embed"

// FS holds the entries and the shared steps (shared.yaml).
//
//go:embed *.yaml
var FS embed.FS
