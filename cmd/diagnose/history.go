package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"diagnose/watch"
)

// history is what a daemon has recorded: the files of its state directory, or
// what the daemon itself answers.
type history interface {
	IDs() ([]string, error)
	Get(id string) (watch.Record, error)
	// Incidents gives those changed last, the newest first, also where it has an
	// error for some.
	Incidents(most int) ([]watch.Record, error)
}

// stateDirOf is where the daemon's history lies: as given, of a configuration,
// of systemd, or of the packaged service.
func stateDirOf(given, configFile string) (string, error) {
	if given != "" {
		return given, nil
	}
	if configFile != "" {
		// Only this one value counts: a mistake elsewhere hides no incident.
		c, found, err := readConfig(configFile)
		if err != nil {
			return "", err
		}
		if found.broken {
			return "", found.err(configFile)
		}
		if c.StateDir != "" {
			return c.StateDir, nil
		}
	}
	if dir := os.Getenv("STATE_DIRECTORY"); dir != "" {
		return dir, nil
	}
	return defaultStateDir, nil
}

// openHistory gives the files of a state directory, or the daemon's socket where
// this user may not read them.
func openHistory(dir string) (history, error) {
	files := watch.ReadStore(dir)
	ids, err := files.IDs()
	if err == nil && len(ids) > 0 {
		_, err = files.Get(ids[0])
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		asked, hint := askDaemon(socketPath(), dir)
		if hint != "" {
			return nil, withHint(err, hint)
		}
		return asked, nil
	case len(ids) > 0, err == nil:
		return files, nil // one that cannot be read is told beside the others
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, withHint(fmt.Errorf("state directory: %w", err), "give the daemon's --state-dir DIR, or its --config FILE")
	}
	return nil, withHint(fmt.Errorf("%s: nothing is recorded: no daemon has written there yet", dir), "give the daemon's --state-dir DIR, or its --config FILE")
}

// byPrefix finds the one incident whose id begins so.
func byPrefix(h history, prefix string) (watch.Record, error) {
	ids, err := h.IDs()
	if err != nil {
		return watch.Record{}, err
	}
	var found []string
	for _, known := range ids {
		if strings.HasPrefix(known, prefix) {
			found = append(found, known)
		}
	}
	switch {
	case prefix == "" || len(found) == 0:
		return watch.Record{}, withHint(fmt.Errorf("no incident %q", prefix), `"diagnose incidents" lists those of this host`)
	case len(found) > 1:
		return watch.Record{}, fmt.Errorf("%q begins several ids: %s", prefix, strings.Join(found[:min(len(found), 5)], ", "))
	}
	return h.Get(found[0])
}

// socketPath is where a daemon under systemd answers: in its RuntimeDirectory,
// whose group may enter it.
func socketPath() string {
	dir, _, _ := strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":")
	if dir == "" {
		dir = defaultRuntimeDir
	}
	return filepath.Join(dir, "incidents.sock")
}
