package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-multierror"
	"github.com/spf13/cobra"
)

func (a *app) checkConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check-config FILE", Short: "Check the daemon's configuration, all problems at once", Args: cobra.ExactArgs(1),
		Long: "Checks keys, types and values, the secrets' files, the mechanisms of the directory\nnamed by catalog, and for each path whether the user who runs this can read it\nand whether the packaged service's could.",
		RunE: func(_ *cobra.Command, args []string) error {
			c, found, err := readConfig(args[0])
			if err != nil {
				return err
			}
			c.check(&found)
			for _, e := range fieldErrors(c.Notify.CheckSecrets(os.Getenv)) {
				found.bad("notify."+e.Field, "%s", e.Reason)
			}
			for i, p := range c.Paths {
				switch {
				case found.fields[fmt.Sprintf("paths[%d]", i)]:
					continue
				case p == "-":
					fmt.Fprintln(a.out, "-: standard input, read once to its end")
					continue
				}
				fmt.Fprintf(a.out, "%s: %s\n", p, readable(p))
				if why := serviceReads(p); why != "" {
					fmt.Fprintf(a.out, "%s: not readable by the packaged service's user: %s\n", p, why)
				}
			}
			for i, j := range c.Journals {
				if !found.fields[fmt.Sprintf("journals[%d]", i)] {
					fmt.Fprintf(a.out, "journal of %s: read through journalctl\n", j)
				}
			}
			var all *multierror.Error
			if bad := checkOverlay(c.Catalog, found.broken); len(bad) > 0 {
				all = multierror.Append(all, bad...)
			}
			if err := found.err(args[0]); err != nil {
				all = multierror.Append(err, all.WrappedErrors()...)
			}
			if err := linesOf(all); err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.out, "the configuration is sound")
			return err
		},
	}
}

// checkOverlay loads the directory of catalog: and gives what is wrong with its
// files. That it is no directory was told already.
func checkOverlay(dir string, broken bool) []error {
	if info, err := os.Stat(dir); broken || err != nil || !info.IsDir() || !filepath.IsAbs(dir) {
		return nil
	}
	_, bad := loadOverlay(dir)
	return bad
}

// serviceReads says why the packaged service cannot read a file of a pattern.
func serviceReads(pattern string) string {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return "" // told with the configuration
	}
	groups := serviceIDs()
	for _, n := range names {
		if why := serviceCannot(n, groups); why != "" {
			return why
		}
	}
	return ""
}

// readable says what a path gives this user.
func readable(pattern string) string {
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		return "does not exist yet; it will be waited for"
	}
	bad := 0
	var last error
	for _, n := range names {
		if err := readableFile(n); err != nil {
			bad, last = bad+1, err
		}
	}
	if bad > 0 {
		return fmt.Sprintf("%d of %d files cannot be read by this user: %v", bad, len(names), last)
	}
	return fmt.Sprintf("%d files, readable", len(names))
}

// readableFile says why a file cannot be followed. Opening a pipe would wait for
// who writes into it.
func readableFile(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &os.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	_ = f.Close() // it was opened for reading only
	return nil
}
