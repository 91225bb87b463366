package notify

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"

	"diagnose/matcher"
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
	closed map[string]bool
	// followed is what each incident's newest follow-up says.
	followed map[string]string
	last     map[string]string // digest of each incident's last line
}

func (s seenLines) note(id, event string, f *matcher.Followup, sum string) {
	s.last[id] = sum
	switch event {
	case EventOpened:
		s.opened[id] = true
	case EventClosed:
		s.closed[id] = true
	case EventFollowup:
		s.followed[id] = wordsOf(f)
	}
}

// has tells whether a line that is not to be written twice is there: a restart
// of a daemon whose state was not saved tells the end of an incident again, and
// its newest follow-up.
func (s seenLines) has(id, event string, f *matcher.Followup) bool {
	return event == EventClosed && s.closed[id] || event == EventFollowup && s.followed[id] != "" && s.followed[id] == wordsOf(f)
}

// wordsOf is what a follow-up says, without the time at which that was found.
func wordsOf(f *matcher.Followup) string {
	if f == nil {
		return ""
	}
	g := *f
	g.RestartedAt = nil
	data, err := json.Marshal(g)
	if err != nil {
		return ""
	}
	return digest(string(data))
}

// readSeen reads the tail of an incident file. Lines that are torn or foreign
// count for nothing.
func readSeen(path string) (seenLines, error) {
	s := seenLines{opened: map[string]bool{}, closed: map[string]bool{}, followed: map[string]string{}, last: map[string]string{}}
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
			Event    string `json:"event"`
			Incident struct {
				ID       string            `json:"id"`
				Followup *matcher.Followup `json:"followup"`
			} `json:"incident"`
		}
		if json.Unmarshal(line, &e) == nil && e.Incident.ID != "" {
			s.note(e.Incident.ID, e.Event, e.Incident.Followup, digest(string(line)))
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
