package main

import (
	"fmt"
	"runtime/debug"

	"diagnose/matcher"

	"github.com/spf13/cobra"
)

// stamped is set by the linker when a package is built.
var stamped string

// version gives the program's version: as stamped, else what the Go tool
// recorded.
func version() string {
	if stamped != "" {
		return stamped
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "The program's version and that of its knowledge", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cat, err := matcher.EmbeddedCatalog()
			if err != nil {
				return fmt.Errorf("load catalogue: %w", err)
			}
			_, err = fmt.Fprintf(a.out, "diagnose %s, catalogue %s (%d mechanisms), %s\n", version(), cat.Revision, len(cat.Entries), matcher.Schema)
			return err
		},
	}
}
