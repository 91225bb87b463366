package framing

import (
	"bytes"
	"strconv"
	"time"
)

// object is what is looked for in one JSON line of docker or journald.
type object struct {
	log, stream, time value

	message, pid, unit, userUnit, tag, host, micros value
	transport, container, lineBreak, partial        value

	c collected
}

// peelObject takes off docker's json-file, journald's JSON, vLLM's own JSON
// formatter and the JSON of collectors.
func (d *Decoder) peelObject(b []byte, m *Meta) (layer, bool) {
	var o object
	f := fields{b: b}
	record := false
	for {
		key, v, ok := f.next()
		if !ok {
			break
		}
		if to := o.field(key); to != nil {
			*to = v
		}
		o.c.note(key, v)
		record = record || string(key) == "levelname"
	}
	switch {
	case !f.whole:
		return d.peelTorn(b)
	case o.message.kind != 0 && (o.micros.kind != 0 || o.pid.kind != 0 || o.unit.kind != 0 || o.host.kind != 0):
		return d.peelJournal(&o, m)
	case o.log.kind == 's' && o.c.logtag.kind == 0 && (o.stream.kind == 's' || o.time.kind == 's'):
		d.setStream(m, o.stream.raw)
		if s, ok := scanStamp(o.time.raw); ok && s.zoned && s.n == len(o.time.raw) {
			setTime(m, o.time.raw)
		}
		return d.dockerText(o.log), true
	case record:
		return d.peelRecord(b)
	}
	return d.peelCollected(&o, m)
}

func (o *object) field(key []byte) *value {
	switch string(key) {
	case "log":
		return &o.log
	case "stream":
		return &o.stream
	case "time":
		return &o.time
	case "MESSAGE":
		return &o.message
	case "_PID":
		return &o.pid
	case "_SYSTEMD_UNIT":
		return &o.unit
	case "_SYSTEMD_USER_UNIT":
		return &o.userUnit
	case "SYSLOG_IDENTIFIER":
		return &o.tag
	case "_HOSTNAME":
		return &o.host
	case "__REALTIME_TIMESTAMP":
		return &o.micros
	case "_TRANSPORT":
		return &o.transport
	case "CONTAINER_NAME":
		return &o.container
	case "_LINE_BREAK":
		return &o.lineBreak
	case "CONTAINER_PARTIAL_MESSAGE":
		return &o.partial
	}
	return nil
}

func (d *Decoder) dockerText(log value) layer {
	from := len(d.arena)
	text := log.raw
	if log.escaped {
		d.arena = appendText(d.arena, log)
		text = d.arena[from:]
	}
	line, ended := bytes.CutSuffix(text, []byte(newline))
	return layer{kind: DockerJSON, text: line, splits: true, partial: !ended}
}

// peelTorn reads what is left of a docker line that the daemon did not finish
// writing: a full disk or a power cut stops it anywhere.
func (d *Decoder) peelTorn(b []byte) (layer, bool) {
	raw, ok := bytes.CutPrefix(b, []byte(`{"log":"`))
	if !ok {
		return layer{}, false
	}
	if n, _ := stringEnd(raw); n >= 0 {
		raw = raw[:n]
	}
	l := d.dockerText(value{raw: raw, kind: 's', escaped: true})
	// Nothing of it is known to be whole, so it neither joins nor ends a line.
	return layer{kind: l.kind, text: l.text, lines: true}, true
}

// peelJournal reads a line of "journalctl -o json". Journald breaks lines over
// LineMax= and says so in _LINE_BREAK (systemd.journal-fields(7)); docker's
// journald driver marks its pieces itself.
func (d *Decoder) peelJournal(o *object, m *Meta) (layer, bool) {
	l := layer{kind: JournaldJSON, splits: true}
	from := len(d.arena)
	switch o.message.kind {
	case 's':
		d.arena = appendText(d.arena, o.message)
	case 'a':
		var ok bool
		if d.arena, ok = appendByteArray(d.arena, o.message.raw); !ok {
			d.arena = d.arena[:from]
			return layer{}, false
		}
	case 'n':
		// null is printed for a field over 4 KiB where --all is not given
		if string(o.message.raw) != "null" {
			return layer{}, false
		}
	default:
		return layer{}, false
	}
	l.text = bytes.TrimSuffix(d.arena[from:], []byte(newline))
	l.partial = string(o.lineBreak.raw) == "line-max" || string(o.partial.raw) == "true"

	unit := o.unit.raw
	if len(o.userUnit.raw) > 0 {
		unit = o.userUnit.raw
	}
	if len(unit) == 0 {
		unit = o.tag.raw
	}
	if string(o.transport.raw) == "kernel" {
		unit = []byte(kernelUnit)
	}
	d.setName(&m.Unit, unit)
	d.setName(&m.Host, o.host.raw)
	d.setName(&m.Container, o.container.raw)
	if m.PID == 0 {
		m.PID = number(o.pid.raw)
	}
	if m.Time == "" {
		m.Time = microTime(o.micros.raw)
	}
	return l, true
}

// microTime turns microseconds since 1970 into RFC 3339.
func microTime(b []byte) string {
	if len(b) > 16 || !digits(b) {
		return ""
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return ""
	}
	return time.UnixMicro(n).UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}

// appendByteArray appends the bytes of "[27,91,51]": how journald prints a
// message that is no clean text.
func appendByteArray(dst, raw []byte) ([]byte, bool) {
	n, have := 0, false
	for _, c := range raw[1:] {
		switch {
		case isDigit(c):
			n, have = n*10+int(c-'0'), true
			if n > 255 {
				return dst, false
			}
		case c == ',' || c == ']':
			if have {
				dst = append(dst, byte(n))
			}
			n, have = 0, false
		case c != ' ':
			return dst, false
		}
	}
	return dst, true
}

func (d *Decoder) setStream(m *Meta, b []byte) {
	if m.Stream == "" && (string(b) == "stdout" || string(b) == "stderr") {
		m.Stream = d.seen.get(b)
	}
}

// maxName bounds a name of a host, unit, pod or container; what is longer is
// none.
const maxName = 256

func (d *Decoder) setName(to *string, b []byte) {
	if *to == "" && len(b) > 0 && len(b) <= maxName {
		*to = d.seen.get(b)
	}
}

func setTime(m *Meta, b []byte) {
	if m.Time == "" {
		m.Time = rfc3339(b)
	}
}
