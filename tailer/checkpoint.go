package tailer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"time"
)

// Checkpoint is from where a path is read after a restart.
type Checkpoint struct {
	Path string `json:"path"`
	// Generations are to be read again, oldest first, each from its Offset. The
	// first may be Done: it needs no reading, and what is newer does. A Done one
	// without a Name says that all needs reading.
	Generations []Position `json:"generations,omitempty"`
	// Cursor is that of the last entry of a journal that needs no reading, and
	// Journal where it ends.
	Cursor  string           `json:"cursor,omitempty"`
	Journal *JournalPosition `json:"journal,omitempty"`
	// Boot is the boot id; device numbers mean nothing in another boot.
	Boot  string    `json:"boot,omitempty"`
	Saved time.Time `json:"saved"`
}

// Position is a place in one generation, and what tells the generation.
type Position struct {
	Name   string `json:"name"` // where it was last seen
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	// Head is the SHA-256, in hex, of the first HeadLen bytes; Before that of
	// the BeforeLen bytes that end at Offset.
	Head      string `json:"head,omitempty"`
	HeadLen   int    `json:"head_len"`
	Offset    int64  `json:"offset"`
	Line      int64  `json:"line"` // of the line at Offset, 0 if unknown
	Before    string `json:"before,omitempty"`
	BeforeLen int    `json:"before_len"`
	// Modified is when the file was last written to, as far as was seen.
	Modified time.Time `json:"modified"`
	Done     bool      `json:"done,omitempty"`
	// Text is what stands from Offset on, if that is not much: the file may be
	// removed before it is read again.
	Text []byte `json:"text,omitempty"`
}

// JournalPosition counts the text of one start of a unit.
type JournalPosition struct {
	Invocation string `json:"invocation"` // systemd's name of the start
	Offset     int64  `json:"offset"`
	Line       int64  `json:"line"` // of the line at Offset
}

func (c Checkpoint) isZero() bool { return len(c.Generations) == 0 && c.Cursor == "" }

// sameCheckpoints compares without the time of saving.
func sameCheckpoints(a, b map[string]Checkpoint) bool {
	return maps.EqualFunc(a, b, func(x, y Checkpoint) bool {
		x.Saved, y.Saved = time.Time{}, time.Time{}
		return reflect.DeepEqual(x, y)
	})
}

// Store keeps checkpoints over restarts, by path.
type Store interface {
	// Load gives what was saved last; nothing saved is an empty map. With an
	// error the map holds what could be had.
	Load() (map[string]Checkpoint, error)
	// Save replaces all that was saved, or changes nothing.
	Save(checkpoints map[string]Checkpoint) error
}

// checkpointVersion rises when an older program would misread the file.
const checkpointVersion = 1

// CheckpointFile is a Store in one file of a directory. It must not be shared
// by two processes.
type CheckpointFile struct {
	path string
	// blocked: what is there could not be put aside and must not be replaced.
	blocked error
}

// checkpointContent is what the file holds.
type checkpointContent struct {
	Version     int                   `json:"version"`
	Checkpoints map[string]Checkpoint `json:"checkpoints"`
}

// A CheckpointError tells why saved checkpoints are not used. Following begins
// as at a first start.
type CheckpointError struct {
	Path string
	// Version is that of a file which a newer program wrote; 0 if it is
	// corrupt.
	Version int
	// Aside is where the content is kept; "" if it could not be put aside, and
	// then nothing is saved over it.
	Aside string
	Err   error
}

func (e *CheckpointError) Error() string {
	what := "corrupt"
	if e.Version != 0 {
		what = fmt.Sprintf("written by a newer version (format %d)", e.Version)
	}
	text := fmt.Sprintf("checkpoint file %s is %s", e.Path, what)
	if e.Aside != "" {
		text += ", kept as " + e.Aside
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *CheckpointError) Unwrap() error { return e.Err }

// NewCheckpointFile keeps checkpoints in dir, which must exist, in a file
// named checkpoints.json.
func NewCheckpointFile(dir string) *CheckpointFile {
	return &CheckpointFile{path: filepath.Join(dir, "checkpoints.json")}
}

// Load reads the file. A *CheckpointError says that it is corrupt or of a
// newer version; it has been put aside then.
func (s *CheckpointFile) Load() (map[string]Checkpoint, error) {
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]Checkpoint{}, nil
	}
	if err != nil {
		s.blocked = err
		return map[string]Checkpoint{}, err
	}
	var content checkpointContent
	err = json.Unmarshal(data, &content)
	var version struct{ Version int }
	if json.Unmarshal(data, &version) == nil && version.Version > checkpointVersion {
		// A newer program may come back: copied, so that it also finds its own
		// file until the first Save.
		aside := freeName(fmt.Sprintf("%s.v%d", s.path, version.Version), data)
		return map[string]Checkpoint{}, s.aside(&CheckpointError{
			Path: s.path, Version: version.Version, Aside: aside, Err: writeFile(aside, data),
		})
	}
	if err == nil && content.Version < 1 {
		err = fmt.Errorf("version %d", content.Version)
	}
	if err != nil {
		aside := freeName(s.path+".corrupt", data)
		return map[string]Checkpoint{}, s.aside(&CheckpointError{
			Path: s.path, Aside: aside, Err: errors.Join(err, os.Rename(s.path, aside)),
		})
	}
	if content.Checkpoints == nil {
		content.Checkpoints = map[string]Checkpoint{}
	}
	return content.Checkpoints, nil
}

// freeName gives a name under which nothing else is kept.
func freeName(name string, data []byte) string {
	for i, free := 1, name; ; i++ {
		if _, err := os.Lstat(free); err != nil {
			return free // or what comes next says why not
		}
		if kept, err := os.ReadFile(free); err == nil && bytes.Equal(kept, data) {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, i)
	}
}

// aside finishes e: where the content could not be kept, nothing may replace
// it.
func (s *CheckpointFile) aside(e *CheckpointError) error {
	if _, err := os.Stat(e.Aside); err != nil || (e.Version != 0 && e.Err != nil) {
		e.Aside = ""
		s.blocked = e
	}
	return e
}

// Save writes the file anew beside the old one and then takes its place, so
// that a crash leaves one of the two.
func (s *CheckpointFile) Save(checkpoints map[string]Checkpoint) error {
	if s.blocked != nil {
		return fmt.Errorf("not saved over what could not be read: %w", s.blocked)
	}
	data, err := json.Marshal(checkpointContent{checkpointVersion, checkpoints})
	if err != nil {
		return err
	}
	return writeFile(s.path, append(data, '\n'))
}

// writeFile replaces a file durably: temporary file, fsync, rename, fsync of
// the directory.
func writeFile(path string, data []byte) (err error) {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
