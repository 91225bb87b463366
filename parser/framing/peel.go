package framing

import "bytes"

// kernelUnit is the unit of a kernel line, however it came.
const kernelUnit = "kernel"

// peel takes the outermost wrapper off b and adds what it said to m. ok is
// false if there is none.
func (d *Decoder) peel(b []byte, m *Meta) (l layer, ok bool) {
	if isBare(b) {
		return layer{}, false
	}
	switch c := b[0]; {
	case c == '(':
		return d.peelRecord(b)
	case c == '{':
		return d.peelObject(b, m)
	case isDigit(c):
		l, ok = d.peelStamp(b, m)
	case c == '[':
		l, ok = d.peelBracket(b, m)
	case c == '<':
		// the priority that syslog and "dmesg -r" print: <6>
		if i := bytes.IndexByte(b[:min(len(b), 5)], '>'); i > 1 && digits(b[1:i]) {
			if isKernelTime(b[i+1:]) {
				m.Unit = kernelUnit
				return layer{kind: Plain, text: b[i+1:]}, true
			}
			return d.peelSyslog(b[i+1:], m)
		}
	case c == esc:
		// A coloured record, or a name that compose or stern coloured. isBare
		// has seen that something follows.
		if b[colour(b)] == '(' {
			return d.peelRecord(b)
		}
	case isLetter(c):
		l, ok = d.peelSyslog(b, m)
	}
	if ok {
		return l, true
	}
	return d.peelName(b, m)
}

// peelStamp takes off a date and what may stand between it and the text.
func (d *Decoder) peelStamp(b []byte, m *Meta) (layer, bool) {
	s, ok := scanStamp(b)
	if !ok {
		return layer{}, false
	}
	rest, ok := cutSpace(b[s.n:])
	if !ok {
		return layer{}, false
	}
	if !s.zoned || s.spaced {
		if inner, ok := cutLemonade(rest); ok && !s.zoned {
			return layer{kind: Timestamps, text: inner}, true
		}
		// A date as Python prints it belongs to the record, unless a second
		// head follows, or it stands on every line.
		if !d.steady.takes(s.form(b), rest) {
			return layer{}, false
		}
		if s.zoned {
			setTime(m, b[:s.n])
		}
		return layer{kind: Timestamps, text: rest, formed: true}, true
	}
	setTime(m, b[:s.n])
	if l, ok := d.peelCRI(rest, m); ok {
		return l, true
	}
	if t, ok := scanTag(rest, true); ok {
		d.setTag(m, &t)
		return layer{kind: SyslogISO, text: t.text}, true
	}
	if bytes.HasPrefix(rest, []byte("NVRM: ")) {
		d.setName(&m.Unit, []byte(kernelUnit))
	}
	return layer{kind: Timestamps, text: rest}, true
}

// peelCRI reads "stdout F text" after the time. The tag may carry more words
// after a colon (kubernetes/cri-api, runtime log format).
func (d *Decoder) peelCRI(b []byte, m *Meta) (layer, bool) {
	const n = len("stdout ")
	if len(b) < n+1 || b[n-1] != ' ' || string(b[:n-1]) != "stdout" && string(b[:n-1]) != "stderr" {
		return layer{}, false
	}
	tag, text, _ := bytes.Cut(b[n:], []byte(" "))
	tag = bytes.TrimSuffix(tag, []byte("\r"))
	if tag, _, _ = bytes.Cut(tag, []byte(":")); len(tag) != 1 || tag[0] != 'F' && tag[0] != 'P' {
		return layer{}, false
	}
	d.setStream(m, b[:n-1])
	return layer{kind: CRI, text: text, splits: true, partial: tag[0] == 'P'}, true
}

// peelSyslog reads "Aug 19 18:34:30 host tag[pid]: text" and the full form of
// journalctl, "Mon 2026-08-19 18:34:30 UTC host tag[pid]: text". A kernel line
// may have lost all but its tag.
func (d *Decoder) peelSyslog(b []byte, m *Meta) (layer, bool) {
	if text, ok := bytes.CutPrefix(b, []byte("kernel: ")); ok {
		m.Unit = kernelUnit
		return layer{kind: JournaldShort, text: text}, true
	}
	if bytes.HasPrefix(b, []byte("NVRM: ")) && m.Unit == "" {
		m.Unit = kernelUnit
		return layer{}, false
	}
	n := scanMonth(b)
	if n > 0 {
		if l, ok := d.peelMonth(b, n); ok {
			return l, true
		}
	}
	if n == 0 && oneOf(b, weekdays) {
		if s, ok := scanStamp(b[4:]); ok && s.spaced && !s.zoned && len(b) > 4+s.n && b[4+s.n] == ' ' {
			n = 4 + s.n
			zone, _, _ := bytes.Cut(b[n+1:min(len(b), n+8)], []byte(" "))
			if len(zone) == 0 {
				return layer{}, false
			}
			if string(zone) == "UTC" {
				stamp := append(append(make([]byte, 0, 40), b[4:n]...), 'Z')
				setTime(m, stamp)
			}
			n += 1 + len(zone)
		}
	}
	if n == 0 || n >= len(b) || b[n] != ' ' {
		return layer{}, false
	}
	t, ok := scanTag(b[n+1:], false)
	if !ok {
		return layer{}, false
	}
	d.setTag(m, &t)
	return layer{kind: JournaldShort, text: t.text}, true
}

// peelMonth takes off the date that ts writes by default, "Nov 30 02:27:33".
// What names a process behind it is syslog's.
func (d *Decoder) peelMonth(b []byte, n int) (layer, bool) {
	rest, ok := cutSpace(b[n:])
	if !ok {
		return layer{}, false
	}
	if t, ok := scanTag(rest, false); ok && (t.pid > 0 || string(t.name) == kernelUnit) {
		return layer{}, false
	}
	if !d.steady.takes(monthForm(b, n), rest) {
		return layer{}, false
	}
	return layer{kind: Timestamps, text: rest, formed: true}, true
}

// tag is the part of a syslog line after its time.
type tag struct {
	host, name []byte
	pid        int
	text       []byte
}

// scanTag reads "host tag[pid]: text", or without the host. Where only a time
// went before, strict asks for host and pid, or the kernel's tag: "torch
// error: x" is a message.
func scanTag(b []byte, strict bool) (t tag, ok bool) {
	i := 0
	for i < len(b) && i < maxName && isNameByte(b[i]) {
		i++
	}
	if i == 0 || i >= len(b) || levelWord(b[:i]) == i {
		return t, false
	}
	if b[i] == ' ' {
		t.host = b[:i]
		b = b[i+1:]
	}
	for i = 0; i < len(b) && i < maxName && isTagByte(b[i]); i++ {
	}
	if i == 0 || i >= len(b) {
		return t, false
	}
	t.name = b[:i]
	if b[i] == '[' {
		j := bytes.IndexByte(b[i:min(len(b), i+12)], ']')
		if j < 0 {
			return t, false
		}
		if t.pid = number(b[i+1 : i+j]); t.pid == 0 {
			return t, false
		}
		i += j + 1
	}
	if i >= len(b) || b[i] != ':' {
		return t, false
	}
	sure := t.pid > 0 || string(t.name) == kernelUnit
	if (strict || t.host == nil) && !sure || strict && t.host == nil {
		return t, false
	}
	t.text, ok = cutSpace(b[i+1:])
	return t, ok
}

func (d *Decoder) setTag(m *Meta, t *tag) {
	d.setName(&m.Host, t.host)
	d.setName(&m.Unit, t.name)
	if m.PID == 0 {
		m.PID = t.pid
	}
}

// isNameByte tells of the bytes of a host's, container's or service's name.
func isNameByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '.' || c == '-'
}

func isTagByte(c byte) bool {
	return isNameByte(c) || c == '/' || c == '@' || c == '(' || c == ')'
}
