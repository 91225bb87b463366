package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"diagnose/watch"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// openOutboxDB opens the queue of notices. A file that cannot be read is moved
// aside, never deleted: following must go on.
func openOutboxDB(dir string, log *slog.Logger) (*bolt.DB, error) {
	path := filepath.Join(dir, "outbox.db")
	db, err := openBolt(path)
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, berrors.ErrTimeout):
		return nil, withHint(fmt.Errorf("state directory %s: another diagnose watch uses it", dir), "stop it, or give another --state-dir")
	case stateRefuses(err):
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := moveAside(path, log, err); err != nil {
		return nil, err
	}
	if db, err = openBolt(path); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	return db, nil
}

// moveAside keeps a queue that cannot be used under another name.
func moveAside(path string, log *slog.Logger, why error) error {
	aside := watch.FreeName(fmt.Sprintf("%s.bad-%d", path, time.Now().Unix()))
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("state directory: %w", errors.Join(why, err))
	}
	log.Error("the queue of notices cannot be read and was moved aside", "file", aside, "error", why.Error())
	return nil
}

// openBolt opens a database; what bbolt finds broken it may panic over.
func openBolt(path string) (db *bolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, fmt.Errorf("open %s: %v", path, p)
		}
	}()
	if err := wholeBolt(path); err != nil {
		return nil, err
	}
	return bolt.Open(path, 0o600, &bolt.Options{Timeout: lockPatience})
}

// lockPatience is how long another daemon may hold the queue.
const lockPatience = 3 * time.Second

// wholeBolt tells whether a database has lost its end, or all of it. bbolt maps
// the file and would be killed by the first look behind the end.
func wholeBolt(path string) (err error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return fmt.Errorf("open %s: the file is empty", path)
	}
	// Read-only, bbolt looks at no page but the first two.
	db, err := bolt.Open(path, 0, &bolt.Options{Timeout: lockPatience, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.View(func(tx *bolt.Tx) error {
		if info, err := os.Stat(path); err != nil || info.Size() < tx.Size() {
			return errors.Join(err, fmt.Errorf("open %s: the file is cut, %d of %d bytes", path, info.Size(), tx.Size()))
		}
		return nil
	})
}

// stateRefuses tells whether a state directory is full, broken, read-only, not
// there or not this user's: that may pass, and logs can be followed meanwhile.
func stateRefuses(err error) bool {
	for _, e := range []error{
		syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, os.ErrPermission, os.ErrNotExist,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
