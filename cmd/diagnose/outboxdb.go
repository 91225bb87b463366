package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

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
	aside := fmt.Sprintf("%s.bad-%d", path, time.Now().Unix())
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("state directory: %w", errors.Join(why, err))
	}
	log.Error("the queue of notices cannot be read and was moved aside", "file", aside, "error", why.Error())
	return nil
}

// openBolt opens a database; what bbolt finds broken it may panic over.
func openBolt(path string) (db *bolt.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, fmt.Errorf("open %s: %v", path, p)
		}
	}()
	return bolt.Open(path, 0o600, &bolt.Options{Timeout: 3 * time.Second})
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
