package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"syscall"

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
	saved = maps.Clone(saved)
	for path, p := range saved {
		saved[path] = c.d.rewound(path, p)
	}
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

// rewound moves a checkpoint back to the start of its run where what belongs to
// it is lost: the start-up lines are then read again, with all that follows. It
// stays where they are not in reach: of a journal, or after a rotation.
func (d *Daemon) rewound(path string, c tailer.Checkpoint) tailer.Checkpoint {
	at := resumesAt(c)
	if at.Offset == 0 {
		return c
	}
	_, raw, err := d.opt.Store.loadStart(path, checkpointKey(c))
	if err != nil {
		d.warn(err)
	}
	i := slices.IndexFunc(c.Generations, func(p tailer.Position) bool { return !p.Done })
	if raw != nil || d.opt.RunStart == nil || i < 0 || !reflect.DeepEqual(c.Generations[i], at) {
		return c
	}
	f, err := os.Open(at.Name)
	if err != nil {
		return c // it was rotated
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return c
	}
	if !isFile(info, at.Device, at.Inode) || info.Size() < at.Offset {
		return c
	}
	start := d.opt.RunStart(f, at.Offset)
	if start >= at.Offset {
		return c
	}
	at.Offset, at.Line, at.Before, at.BeforeLen, at.Text = start, 0, "", 0, nil
	if start == 0 {
		at.Line = 1
	}
	c.Generations = slices.Clone(c.Generations)
	c.Generations[i] = at
	return c
}

// isFile tells whether a file is the one with these numbers.
func isFile(info os.FileInfo, device, inode uint64) bool {
	id, ok := info.Sys().(*syscall.Stat_t)
	return ok && id.Ino == inode && id.Dev == device
}
