package watch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	// Printed is the root's time as the log prints it.
	Printed string `json:"printed"`
	// Failed is the earliest printed time of what failed in the run.
	Failed string `json:"failed,omitempty"`
	// Path is the followed log, Run names the run within it.
	Path string `json:"path"`
	Run  string `json:"run"`
	// Root is the id that the newest assessment would have; the incident keeps
	// the one it was opened with.
	Root string `json:"root"`
	// Sources names what the incident's positions index.
	Sources []string `json:"sources"`
	// Added is evidence that the log alone does not give.
	Added []matcher.Evidence `json:"added,omitempty"`
	// Counted is how far the log had been read at the last change.
	Counted place `json:"counted"`

	Opened  time.Time  `json:"opened"`
	Updated time.Time  `json:"updated"`
	Closed  *time.Time `json:"closed"`
	// Pending is what is still to be published, oldest first.
	Pending []Telling `json:"pending,omitempty"`

	// Restarted is when the server was last ready again, in the run
	// FollowedRun; AppliedAt since when it has run with the advice taken, Held
	// when the advice was found to have held.
	Restarted   *time.Time `json:"restarted"`
	FollowedRun string     `json:"followed_run,omitempty"`
	AppliedAt   *time.Time `json:"applied_at"`
	Held        *time.Time `json:"held"`
}

// Telling is a notice to be made of an incident.
type Telling struct {
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
}

// place is a position that another life can compare.
type place struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	Offset int64  `json:"offset"`
}

// Withdrawn tells whether the advice was applied and the failure came again.
func (r *Record) Withdrawn() bool {
	return r.Incident.Followup != nil && len(r.Incident.Followup.Withdrawn) > 0
}

func (r *Record) entry() entry {
	in := &r.Incident
	e := entry{
		ID: in.ID, Path: r.Path, Run: r.Run, Root: r.Root, Class: in.Verdict.Class, Mechanism: deref(in.Verdict.Mechanism),
		First: in.ID, Occurrences: in.Occurrences, Port: "8000", Printed: r.Printed, Opened: r.Opened,
		Open: r.Closed == nil, Waiting: len(r.Pending) > 0, FollowedRun: r.FollowedRun, AppliedAt: r.AppliedAt,
		Done: r.Held != nil || r.Withdrawn(),
	}
	if in.RecurrenceOf != nil {
		e.First = *in.RecurrenceOf
	}
	if f, ok := in.Engine.Flags["port"]; ok {
		e.Port = f.Value
	}
	return e
}

// Store keeps incidents, and the starts of the runs that are followed, as files
// in a state directory. It needs no lock: "diagnose incidents" reads it while
// the daemon runs. Each file is written whole: temporary file, fsync, rename,
// fsync of the directory. Nothing in it is deleted.
type Store struct {
	dir   string
	write func(path string, data []byte) error
}

// dirMode lets the group read the history.
const dirMode = 0o750

// OpenStore makes the directories. Errors say what is wrong with the state
// directory; the store can be used even so, and writes when that is repaired.
func OpenStore(dir string) (*Store, error) {
	s := &Store{dir: dir, write: writeFile}
	return s, s.makeDirs()
}

func (s *Store) makeDirs() error {
	for _, sub := range []string{"incidents", "streams"} {
		if err := os.MkdirAll(filepath.Join(s.dir, sub), dirMode); err != nil {
			return fmt.Errorf("state directory: %w", err)
		}
	}
	return nil
}

// ReadStore opens a state directory for reading only.
func ReadStore(dir string) *Store {
	return &Store{dir: dir, write: func(string, []byte) error { return errors.ErrUnsupported }}
}

// Put writes a record durably.
func (s *Store) Put(r Record) error {
	r.Version = storeVersion
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode incident %s: %w", r.Incident.ID, err)
	}
	if !isID(r.Incident.ID) {
		return fmt.Errorf("write incident: %q is no id", r.Incident.ID)
	}
	if err := s.write(s.incidentPath(r.Incident.ID), append(data, '\n')); err != nil {
		return fmt.Errorf("write incident %s: %w", r.Incident.ID, err)
	}
	return nil
}

// ErrNewer says that a record was written by a newer version of the program.
var ErrNewer = errors.New("written by a newer version")

// Get reads one record. The error is fs.ErrNotExist where there is none.
func (s *Store) Get(id string) (Record, error) {
	var r Record
	err := s.readInto(s.incidentPath(id), &r)
	if err == nil && r.Incident.ID != id {
		err = fmt.Errorf("read incident %s: it holds another one, %q", s.incidentPath(id), r.Incident.ID)
	}
	return r, err
}

func (s *Store) incidentPath(id string) string { return filepath.Join(s.dir, "incidents", id+".json") }

// has tells whether there is a file for an incident, readable or not.
func (s *Store) has(id string) bool {
	_, err := os.Lstat(s.incidentPath(id))
	return err == nil
}

// readInto decodes the record in a file, or a part of it.
func (s *Store) readInto(path string, r any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read incident: %w", err)
	}
	var v struct {
		Version int `json:"version"`
	}
	err = json.Unmarshal(data, &v)
	if err == nil && v.Version > storeVersion {
		return fmt.Errorf("read incident %s: %w (layout %d, this program knows %d)", path, ErrNewer, v.Version, storeVersion)
	}
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err != nil {
		return fmt.Errorf("read incident %s: not usable, left as it is: %w", path, err)
	}
	return nil
}

// IDs lists the incidents by their files, the last changed first.
func (s *Store) IDs() ([]string, error) {
	files, err := os.ReadDir(filepath.Join(s.dir, "incidents"))
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	type file struct {
		id      string
		changed time.Time
	}
	var list []file
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), ".json")
		info, err := f.Info()
		if ok && isID(id) && err == nil {
			list = append(list, file{id, info.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b file) int { return b.changed.Compare(a.changed) })
	out := make([]string, len(list))
	for i, f := range list {
		out[i] = f.id
	}
	return out, nil
}

// Incidents reads the records that were changed last, at most the given
// number, and gives them the newest first. Files that cannot be read are
// reported together; the others are given even so.
func (s *Store) Incidents(most int) ([]Record, error) {
	ids, err := s.IDs()
	if err != nil {
		return nil, err
	}
	var problems *multierror.Error
	var out []Record
	for _, id := range ids[:max(0, min(most, len(ids)))] {
		r, err := s.Get(id)
		if err != nil {
			problems = multierror.Append(problems, err)
			continue
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b Record) int { return b.Opened.Compare(a.Opened) })
	return out, oneALine(problems)
}

// index reads what has to be remembered of the incidents changed last.
func (s *Store) index(most int) ([]entry, error) {
	ids, err := s.IDs()
	if err != nil {
		return nil, err
	}
	var problems *multierror.Error
	out := make([]entry, 0, min(most, len(ids)))
	for _, id := range ids[:max(0, min(most, len(ids)))] {
		r, err := s.Get(id)
		if err != nil {
			problems = multierror.Append(problems, err)
			continue
		}
		out = append(out, r.entry())
	}
	return out, oneALine(problems)
}

// oneALine gives a multierror the form of one problem a line.
func oneALine(all *multierror.Error) error {
	if all != nil {
		all.ErrorFormat = func(errs []error) string {
			lines := make([]string, len(errs))
			for i, e := range errs {
				lines[i] = e.Error()
			}
			return strings.Join(lines, "\n")
		}
	}
	return all.ErrorOrNil()
}

// isID tells whether a name is that of an incident.
func isID(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// startFile is what a stream needs to go on in the middle of a run.
type startFile struct {
	Version int             `json:"version"`
	Path    string          `json:"path"`
	Start   json.RawMessage `json:"start"`
	// Before belongs to the checkpoint with the key For, the last one that was
	// on disk when this was written.
	Before json.RawMessage `json:"before,omitempty"`
	For    string          `json:"for,omitempty"`
}

func (s *Store) startPath(path string) string {
	return filepath.Join(s.dir, "streams", digest(path)+".json")
}

// hasStart tells whether there is a file of a path's start.
func (s *Store) hasStart(path string) bool {
	_, err := os.Lstat(s.startPath(path))
	return err == nil
}

func (s *Store) putStart(path string, start, before []byte, key string) error {
	f := startFile{Version: storeVersion, Path: path, Start: start, For: key}
	if len(before) > 0 && !bytes.Equal(before, start) {
		f.Before = before
	} else {
		f.For = ""
	}
	data, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode start of %s: %w", path, err)
	}
	if err := s.write(s.startPath(path), append(data, '\n')); err != nil {
		return fmt.Errorf("write start of %s: %w", path, err)
	}
	return nil
}

// loadStart gives what belongs to a checkpoint, also as it was written. raw is
// nil where there is none, or none that this program can read: that one is kept
// under another name, and an error tells of it.
func (s *Store) loadStart(path, key string) (start runStart, raw []byte, err error) {
	data, err := os.ReadFile(s.startPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return runStart{}, nil, nil
	}
	if err != nil {
		return runStart{}, nil, fmt.Errorf("read start of the run: %w", err)
	}
	var f startFile
	as := "corrupt"
	err = json.Unmarshal(data, &f)
	if err == nil && f.Version > storeVersion {
		err, as = ErrNewer, fmt.Sprintf("v%d", f.Version)
	}
	if err == nil && f.Path != path {
		err = fmt.Errorf("it is that of %s", f.Path)
	}
	if err == nil {
		raw = f.Start
		if f.For == key && len(f.Before) > 0 {
			raw = f.Before
		}
		err = json.Unmarshal(raw, &start)
	}
	if err != nil {
		kept, failed := keepAside(s.startPath(path), as)
		return runStart{}, nil, fmt.Errorf("start of the run in %s: %s is not usable, kept as %s: %w", path, s.startPath(path), kept, errors.Join(err, failed))
	}
	return start, raw, nil
}

// keepAside gives a file another name, one that no file has.
func keepAside(path, as string) (kept string, err error) {
	kept = FreeName(path + "." + as)
	return kept, os.Rename(path, kept)
}

// FreeName gives a name that no file has: the given one, or with a number.
func FreeName(name string) string {
	free := name
	for i := 2; ; i++ {
		if _, err := os.Lstat(free); err != nil {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, i)
	}
}
