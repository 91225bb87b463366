package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"diagnose/matcher"
)

// event is a line of the file sink.
type event struct {
	Event    string           `json:"event"`
	Time     time.Time        `json:"time"`
	Incident matcher.Incident `json:"incident"`
}

// File appends one JSON line per notice to a local file and syncs it to disk.
// The file is opened for each line, so that it can be rotated at any time. A
// line torn by a crash or a full disk is closed with a newline before the next.
// An incident's opened and closed lines are written once, and each follow-up, for
// as long as the file remembers them, or the outbox the first.
type File struct {
	name, path string

	mu   sync.Mutex
	seen seenLines
	// unsynced is the digest of a line that was written and not yet synced.
	unsynced string
}

// NewFile returns a sink for one file and reads what the file holds already. A
// file that does not exist is created with the first line.
func NewFile(name, path string) (*File, error) {
	seen, err := readSeen(path)
	if err != nil {
		return nil, fmt.Errorf("read incident file: %w", err)
	}
	return &File{name: name, path: path, seen: seen}, nil
}

// Name implements Notifier.
func (f *File) Name() string { return f.name }

// Send implements Notifier.
func (f *File) Send(_ context.Context, n Notice, s State) (State, bool, error) {
	st := decodeState[eventState](s)
	n = prepare(n)
	f.mu.Lock()
	defer f.mu.Unlock()

	id := n.Incident.ID
	opened := st.Opened || f.seen.opened[id]
	wanted := n.Event
	if !opened && wanted != EventTest {
		n.Event = EventOpened
	}
	next := eventState{Opened: true, Last: st.Last}
	if f.unsynced == "" && (wanted == EventOpened && opened || f.seen.has(id, wanted, n.Incident.Followup)) {
		return encodeState(next), false, nil
	}
	line, err := f.line(n)
	if err != nil {
		return failed(s, &Error{Sink: f.name, Reason: InvalidPayload, Code: "own_check", Detail: err.Error()})
	}
	next.Last = digest(string(line))
	if err := f.append(line, n, next.Last, st.Last); err != nil {
		return failed(s, &Error{Sink: f.name, Reason: Storage, Detail: conceal(err.Error(), nil)})
	}
	if wanted == n.Event || wanted == EventUpdated {
		return encodeState(next), false, nil
	}
	return encodeState(next), true, ErrMore
}

func (f *File) line(n Notice) ([]byte, error) {
	return json.Marshal(event{Event: n.Event, Time: n.Time.UTC(), Incident: n.Incident})
}

// append writes one line unless it is the last one of its incident already.
func (f *File) append(line []byte, n Notice, sum, last string) (err error) {
	file, created, err := openAppend(f.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if sum == f.unsynced {
		if err := file.Sync(); err != nil {
			return err
		}
		f.unsynced = ""
		return nil
	}
	if sum == last || sum == f.seen.last[n.Incident.ID] {
		return nil
	}
	if err := closeTornLine(file); err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	f.seen.note(n.Incident.ID, n.Event, n.Incident.Followup, sum)
	f.unsynced = sum
	if err := file.Sync(); err != nil {
		return err
	}
	f.unsynced = ""
	if created {
		return syncDir(filepath.Dir(f.path))
	}
	return nil
}

// openAppend opens path for appending; it may hold a prompt's words, so only
// owner and group can read it.
func openAppend(path string) (file *os.File, created bool, err error) {
	file, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, os.ErrNotExist) {
		file, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o640)
		return file, true, err
	}
	return file, false, err
}

// closeTornLine ends a last line that has no newline. What it held is lost to
// readers, and is written again if it was not acknowledged.
func closeTornLine(file *os.File) error {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], info.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = file.Write([]byte{'\n'})
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Preview implements Previewer.
func (f *File) Preview(n Notice) ([]byte, error) {
	line, err := f.line(prepare(n))
	return append(line, '\n'), err
}
