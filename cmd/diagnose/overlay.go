package main

import (
	"errors"
	"fmt"
	"os"

	"diagnose/matcher"
	"diagnose/matcher/catalog"

	"github.com/hashicorp/go-multierror"
	"github.com/spf13/pflag"
)

// overlayFlag is --catalog of the commands that read the knowledge.
func overlayFlag(f *pflag.FlagSet, into *string) {
	f.StringVar(into, "catalog", "", "a directory of mechanisms of your own, over the shipped ones")
}

// loadOverlay loads a directory of entries over the shipped ones. What is wrong
// with it is an error each, with the file's path and line; the catalogue has
// what is sound.
func loadOverlay(dir string) (*matcher.Catalog, []error) {
	cat, err := matcher.LoadCatalog(catalog.FS, os.DirFS(dir))
	var many *multierror.Error
	if errors.As(err, &many) {
		return cat, many.Errors
	}
	if err != nil {
		return cat, []error{err}
	}
	return cat, nil
}

// knowledge gives the shipped catalogue, with a directory over it if one is
// named. A refused entry of it is a warning: the shipped one is used.
func (a *app) knowledge(dir string) (*matcher.Catalog, error) {
	if dir == "" {
		cat, err := matcher.EmbeddedCatalog()
		if err != nil {
			return nil, fmt.Errorf("load catalogue: %w", err)
		}
		return cat, nil
	}
	if st, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("open catalogue: %w", err)
	} else if !st.IsDir() {
		return nil, fmt.Errorf("--catalog: %s is a file; give the directory", dir)
	}
	cat, problems := loadOverlay(dir)
	if cat == nil {
		return nil, errors.Join(problems...)
	}
	for _, p := range problems {
		printWarning(a.err, "%v", p)
	}
	return cat, nil
}
