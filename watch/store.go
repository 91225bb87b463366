package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"diagnose/matcher"

	"github.com/hashicorp/go-multierror"
)

// storeVersion marks the layout of a record; a newer one is left alone.
const storeVersion = 1

// Record is an incident as this host keeps it.
type Record struct {
	Version  int              `json:"version"`
	Incident matcher.Incident `json:"incident"`
	// Path is the followed log, Run names the run within it.
	Path    string   `json:"path"`
	Run     string   `json:"run"`
	Sources []string `json:"sources"`

	Opened  time.Time  `json:"opened"`
	Updated time.Time  `json:"updated"`
	Closed  *time.Time `json:"closed"`
	// Published is the last event that the outbox has; an incident with a
	// newer state is published again at the next start.
	Published string `json:"published"`
	// Restarted is when the next run was ready, Held when the advice was found
	// to have held.
	Restarted *time.Time `json:"restarted"`
	Applied   bool       `json:"applied"`
	Held      *time.Time `json:"held"`
}

// Store keeps incidents and run snapshots as files in a state directory. It
// needs no lock: `diagnose incidents` reads it while the daemon runs. Each file
// is written whole: temporary file, fsync, rename, fsync of the directory.
type Store struct{ dir string }

// OpenStore makes the directories. Errors say what is wrong with the state
// directory; nothing in it is ever deleted.
func OpenStore(dir string) (*Store, error) {
	s := &Store{dir: dir}
	for _, sub := range []string{"incidents", "streams"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o750); err != nil {
			return nil, fmt.Errorf("state directory: %w", err)
		}
	}
	return s, nil
}

// ReadStore opens a state directory for reading only.
func ReadStore(dir string) *Store { return &Store{dir: dir} }

// Put writes a record durably.
func (s *Store) Put(r Record) error {
	r.Version = storeVersion
	return writeJSON(filepath.Join(s.dir, "incidents", r.Incident.ID+".json"), r)
}

// Incidents lists the records, the newest first. Files that cannot be read are
// reported together; the others are given even so.
func (s *Store) Incidents() ([]Record, error) {
	var problems *multierror.Error
	var out []Record
	names, err := os.ReadDir(filepath.Join(s.dir, "incidents"))
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".json") {
			continue
		}
		r, err := s.read(n.Name())
		if err != nil {
			problems = multierror.Append(problems, err)
			continue
		}
		out = append(out, r)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Opened.After(out[j].Opened) })
	if problems != nil {
		problems.ErrorFormat = func(errs []error) string {
			lines := make([]string, len(errs))
			for i, e := range errs {
				lines[i] = e.Error()
			}
			return strings.Join(lines, "\n")
		}
	}
	return out, problems.ErrorOrNil()
}

// ErrNewer says that a record was written by a newer version of the program.
var ErrNewer = errors.New("written by a newer version")

func (s *Store) read(name string) (Record, error) {
	path := filepath.Join(s.dir, "incidents", name)
	var r Record
	data, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("read incident: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read incident %s: %w", path, err)
	}
	if r.Version > storeVersion {
		return r, fmt.Errorf("read incident %s: %w (layout %d, this program knows %d)", path, ErrNewer, r.Version, storeVersion)
	}
	return r, nil
}

// snapshot is what a stream needs to go on in the middle of a run.
type snapshot struct {
	Version int    `json:"version"`
	Path    string `json:"path"`
	// Lines are the start-up and statistics lines of the run, as written.
	Lines []savedLine `json:"lines"`
}

type savedLine struct {
	Source string `json:"source"`
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	Offset int64  `json:"offset"`
	Line   int64  `json:"line"`
	Data   []byte `json:"data"`
}

func (s *Store) putSnapshot(sn snapshot) error {
	sn.Version = storeVersion
	return writeJSON(s.snapshotPath(sn.Path), sn)
}

func (s *Store) snapshotPath(path string) string {
	return filepath.Join(s.dir, "streams", digest(path)+".json")
}

// loadSnapshot gives the zero snapshot where there is none, or none that this
// program can read: the run is then known from the re-read lines alone.
func (s *Store) loadSnapshot(path string) (snapshot, error) {
	var sn snapshot
	data, err := os.ReadFile(s.snapshotPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return sn, nil
	}
	if err != nil {
		return sn, fmt.Errorf("read stream state: %w", err)
	}
	if err := json.Unmarshal(data, &sn); err != nil || sn.Version > storeVersion || sn.Path != path {
		return snapshot{}, fmt.Errorf("stream state of %s is not usable, starting without it", path)
	}
	return sn, nil
}

func writeJSON(path string, v any) (err error) {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Chmod(0o640)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync state: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync state: %w", err)
	}
	return nil
}
