package tailer

import (
	"encoding/json"
	"errors"
	"strconv"
)

// journalEntry is what is used of one entry of journalctl --output=json.
type journalEntry struct {
	cursor     string
	message    []byte
	absent     bool // no MESSAGE, or null: too large for journalctl
	unit, host string
	pid        int
	invocation string
}

// errNoCursor: an entry that cannot be resumed after is none of journalctl's.
var errNoCursor = errors.New("journal entry without a cursor")

// parseJournalEntry reads one line of journalctl. A field is a string, an array
// of byte values where it is not UTF-8, null where it is too large, or an array
// of these where it was given several times; then the first counts.
func parseJournalEntry(data []byte) (journalEntry, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return journalEntry{}, err
	}
	text := func(name string) string {
		b, _ := journalField(fields[name])
		return string(b)
	}
	e := journalEntry{
		cursor:     text("__CURSOR"),
		unit:       text("_SYSTEMD_UNIT"),
		host:       text("_HOSTNAME"),
		invocation: text("_SYSTEMD_INVOCATION_ID"),
	}
	if e.cursor == "" {
		return journalEntry{}, errNoCursor
	}
	if e.unit == "" {
		e.unit = text("_SYSTEMD_USER_UNIT")
	}
	e.pid, _ = strconv.Atoi(text("_PID"))
	// What the service manager says of the unit ("Starting ...") stands among the
	// unit's own lines, in no sure order.
	if unit := text("UNIT"); e.pid == 1 && unit != "" {
		e.unit, e.invocation, e.pid = unit, text("INVOCATION_ID"), 0
	}
	message, ok := journalField(fields["MESSAGE"])
	e.message, e.absent = message, !ok
	return e, nil
}

// journalField gives the bytes of a field; false if it has none.
func journalField(raw json.RawMessage) ([]byte, bool) {
	if b, ok := journalValue(raw); ok {
		return b, true
	}
	var several []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &several) != nil {
		return nil, false
	}
	for _, one := range several {
		if b, ok := journalValue(one); ok {
			return b, true
		}
	}
	return nil, false
}

// journalValue reads a string or an array of byte values.
func journalValue(raw json.RawMessage) ([]byte, bool) {
	if len(raw) == 0 {
		return nil, false
	}
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil, false
		}
		return []byte(s), true
	case '[':
		var values []uint8Value
		if json.Unmarshal(raw, &values) != nil {
			return nil, false
		}
		b := make([]byte, len(values))
		for i, v := range values {
			b[i] = byte(v)
		}
		return b, true
	}
	return nil, false
}

// uint8Value is a number from 0 to 255. A []byte would be read as base64, and
// a null among the numbers as 0.
type uint8Value uint8

func (v *uint8Value) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseUint(string(b), 10, 8)
	*v = uint8Value(n)
	return err
}
