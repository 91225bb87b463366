package framing

import "bytes"

// maxBracket bounds what is looked through for the end of a bracket. A pod's
// name has up to 253 bytes.
const maxBracket = 400

// peelBracket takes off what stands in brackets: a time, a pod, a label of a
// cloud exporter, a sidecar.
func (d *Decoder) peelBracket(b []byte, m *Meta) (layer, bool) {
	if isKernelTime(b) {
		// The time since boot stays: it is all that "dmesg" has.
		m.Unit = kernelUnit
		return layer{}, false
	}
	end := bytes.IndexByte(b[:min(len(b), maxBracket)], ']')
	if end < 0 {
		return layer{}, false
	}
	in := b[1:end]
	if after, ok := bytes.CutPrefix(b[end+1:], []byte(": ")); ok {
		return d.peelSidecar(in, after, m)
	}
	rest, ok := cutSpace(b[end+1:])
	if !ok {
		return layer{}, false
	}
	if s, ok := scanStamp(in); ok && s.n == len(in) {
		if s.zoned {
			setTime(m, in)
			return layer{kind: Timestamps, text: rest}, true
		}
		return d.peelBracketed(s.form(in), rest)
	}
	if n := scanMonth(in); n > 0 && n == len(in) {
		return d.peelBracketed(monthForm(in, n), rest)
	}
	if pod, ok := bytes.CutPrefix(in, []byte("pod/")); ok {
		name, container, ok := bytes.Cut(pod, []byte("/"))
		if !ok || len(name) == 0 || len(container) == 0 || bytes.IndexByte(in, ' ') >= 0 {
			return layer{}, false
		}
		d.setName(&m.Pod, name)
		d.setName(&m.Container, container)
		return layer{kind: KubectlPrefix, text: rest}, true
	}
	if label, ok := bytes.CutPrefix(in, []byte("resource.labels.")); ok {
		key, val, ok := bytes.Cut(label, []byte(": "))
		if !ok {
			return layer{}, false
		}
		switch string(key) {
		case "containerName", "container_name":
			d.setName(&m.Container, val)
		case "podName", "pod_name":
			d.setName(&m.Pod, val)
		case "namespaceName", "namespace_name":
			d.setName(&m.Namespace, val)
		}
		return layer{kind: KubectlPrefix, text: rest}, true
	}
	return layer{}, false
}

// peelBracketed takes off "[2026-11-30 02:27:33] ", which people have ts write
// and which SGLang's own lines begin with.
func (d *Decoder) peelBracketed(f form, rest []byte) (layer, bool) {
	f.bracket = true
	if isSGLang(rest) || !d.steady.takes(f, rest) {
		return layer{}, false
	}
	return layer{kind: Timestamps, text: rest, formed: true}, true
}

// peelSidecar reads "[name]: 2024-11-13T03:15:08.672Z 1 stdout: text"
// (vllm#9818).
func (d *Decoder) peelSidecar(name, b []byte, m *Meta) (layer, bool) {
	s, ok := scanStamp(b)
	if !ok || !s.zoned || s.spaced || len(b) <= s.n || b[s.n] != ' ' {
		return layer{}, false
	}
	num, rest, ok := bytes.Cut(b[s.n+1:min(len(b), s.n+40)], []byte(" "))
	if !ok || !digits(num) {
		return layer{}, false
	}
	const n = len("stdout")
	if len(rest) <= n || rest[n] != ':' || string(rest[:n]) != "stdout" && string(rest[:n]) != "stderr" {
		return layer{}, false
	}
	text, ok := cutSpace(b[s.n+1+len(num)+1+n+1:])
	if !ok {
		return layer{}, false
	}
	setTime(m, b[:s.n])
	d.setStream(m, rest[:n])
	d.setName(&m.Container, name)
	return layer{kind: Timestamps, text: text}, true
}

// isKernelTime tells whether b begins as a line of dmesg: "[12345.678901] ",
// or "[Tue Jun 24 12:00:00 2026] " of "dmesg -T".
func isKernelTime(b []byte) bool {
	if len(b) < len("[0.000] ") || b[0] != '[' {
		return false
	}
	if oneOf(b[1:], weekdays) {
		return len(b) > 26 && scanMonth(b[5:]) == 15 && b[20] == ' ' && digits(b[21:25]) && b[25] == ']' && b[26] == ' '
	}
	i := 1
	for i < len(b) && b[i] == ' ' {
		i++
	}
	from := i
	for i < len(b) && i < 20 && isDigit(b[i]) {
		i++
	}
	if i == from || i >= len(b) || b[i] != '.' {
		return false
	}
	from = i + 1
	for i = from; i < len(b) && i < from+10 && isDigit(b[i]); i++ {
	}
	return i >= from+3 && i+1 < len(b) && b[i] == ']' && b[i+1] == ' '
}
