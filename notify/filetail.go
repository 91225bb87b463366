package notify

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"
)

const (
	// maxTail is how much of the end of an incident file is read at the start;
	// an incident takes some 10 KiB.
	maxTail = 64 << 20
	// maxLine bounds one line of it in memory.
	maxLine = 4 << 20
)

// seenLines is what an incident file is known to hold.
type seenLines struct {
	opened map[string]bool
	// ended holds the ids of incidents that were closed, and followups at their
	// times: what a restart tells again is not written again.
	ended map[string]bool
	last  map[string]string // digest of each incident's last line
}

func (s seenLines) note(id, event string, at time.Time, sum string) {
	s.last[id] = sum
	switch event {
	case EventOpened:
		s.opened[id] = true
	case EventClosed, EventFollowup:
		s.ended[endKey(id, event, at)] = true
	}
}

// has tells whether a line that is written once is there.
func (s seenLines) has(id, event string, at time.Time) bool {
	return (event == EventClosed || event == EventFollowup) && s.ended[endKey(id, event, at)]
}

// endKey names a line that is written once: an incident is closed once, and
// followed up once at one time.
func endKey(id, event string, at time.Time) string {
	if event == EventClosed {
		return id
	}
	return id + at.UTC().Format(time.RFC3339Nano)
}

// readSeen reads the tail of an incident file. Lines that are torn or foreign
// count for nothing.
func readSeen(path string) (seenLines, error) {
	s := seenLines{opened: map[string]bool{}, ended: map[string]bool{}, last: map[string]string{}}
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return s, err
	}
	if skip := info.Size() - maxTail; skip > 0 {
		if _, err := file.Seek(skip, io.SeekStart); err != nil {
			return s, err
		}
	}
	r := bufio.NewReaderSize(file, 64<<10)
	for {
		line, err := readLine(r)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return s, nil // what is left has no newline: torn
			}
			return s, err
		}
		var e struct {
			Event    string    `json:"event"`
			Time     time.Time `json:"time"`
			Incident struct {
				ID string `json:"id"`
			} `json:"incident"`
		}
		if json.Unmarshal(line, &e) == nil && e.Incident.ID != "" {
			s.note(e.Incident.ID, e.Event, e.Time, digest(string(line)))
		}
	}
}

// readLine returns a line without its newline, or nil for one beyond maxLine.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	over := false
	for {
		part, err := r.ReadSlice('\n')
		if !over {
			line = append(line, part...)
		}
		if len(line) > maxLine {
			line, over = nil, true
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil || over {
			return nil, err
		}
		return line[:len(line)-1], nil
	}
}
