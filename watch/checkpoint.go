package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"diagnose/tailer"
)

// Checkpoints wraps the follower's store: with each checkpoint goes the start
// of the run in which it lies, so that a restart knows both or neither.
func (d *Daemon) Checkpoints(inner tailer.Store) tailer.Store {
	return &checkpoints{d: d, inner: inner, safe: map[string]tailer.Checkpoint{}}
}

type checkpoints struct {
	d     *Daemon
	inner tailer.Store
	safe  map[string]tailer.Checkpoint // as saved last
}

// Load implements tailer.Store.
func (c *checkpoints) Load() (map[string]tailer.Checkpoint, error) {
	saved, err := c.inner.Load()
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	for path, p := range saved {
		c.d.resumed[path] = checkpointKey(p)
		c.safe[path] = p
	}
	return saved, err
}

// Save implements tailer.Store. A path whose start cannot be saved keeps the
// checkpoint it had; the others are saved even so.
func (c *checkpoints) Save(all map[string]tailer.Checkpoint) error {
	all = maps.Clone(all)
	var failed error
	saving := map[*stream]string{}
	for path, p := range all {
		s := c.d.existing(path)
		if s == nil {
			continue
		}
		key := checkpointKey(p)
		if err := s.saveStart(p); err != nil {
			failed = errors.Join(failed, err)
			delete(all, path)
			if old, ok := c.safe[path]; ok {
				all[path] = old
			}
			continue
		}
		saving[s] = key
	}
	err := c.inner.Save(all)
	if errors.Is(err, fs.ErrNotExist) {
		if err = c.d.opt.Store.makeDirs(); err == nil {
			err = c.inner.Save(all)
		}
	}
	if err != nil {
		return errors.Join(failed, err)
	}
	c.safe = all
	for s, key := range saving {
		s.startSaved(key)
	}
	return failed
}

// checkpointKey names a checkpoint by the place from which it is read on.
func checkpointKey(c tailer.Checkpoint) string {
	p := resumesAt(c)
	return digest(fmt.Sprintf("%q %d.%d.%d", c.Cursor, p.Device, p.Inode, p.Offset))
}

// resumesAt gives the place that was committed: what comes after it is to be
// read from its start. It is the zero one for a journal.
func resumesAt(c tailer.Checkpoint) tailer.Position {
	var at tailer.Position
	for i, p := range c.Generations {
		if i == 0 || !p.Done && p.Offset > 0 {
			at = p
		}
	}
	return at
}
