package framing

import "bytes"

// recordFields are those of the JSON formatter of vLLM 0.32.0 and of the
// documented python-json-logger set-up.
type recordFields struct {
	asctime, level, name, message  value
	process, processName, vllmName value
	excInfo, stackInfo, file, line value
}

// recordStart returns where the "{" of a JSON record begins: at 0, or after
// process prefixes, which vLLM up to 0.30.0 glues in front of it (vllm#57955);
// -1 if b is no such line.
func recordStart(b []byte) int {
	i := 0
	for range maxLayers {
		i += colour(b[i:])
		n := processPrefix(b[i:])
		if n == 0 {
			break
		}
		i += n
		i += colour(b[i:])
		if i >= len(b) || b[i] != ' ' {
			return -1
		}
		i++
	}
	if i+1 < len(b) && b[i] == '{' && (b[i+1] == '"' || b[i+1] == ' ') {
		return i
	}
	return -1
}

// FromJSONRecord rewrites a record of vLLM's JSON formatter as the plain
// formatter prints it: "(name pid=N) LEVEL MM-DD HH:MM:SS [logger] message".
// The lines of a longer message and those of exc_info follow, separated by
// "\n" and each with the whole head again, as in a plain log, so that they
// stay with their process. A process prefix before the object is kept. ok is
// false, and text nil, if line is no such record.
func FromJSONRecord(line []byte) (text []byte, ok bool) {
	text, ok = appendRecord(nil, line)
	if !ok {
		return nil, false
	}
	return text, true
}

func (d *Decoder) peelRecord(b []byte) (layer, bool) {
	from := len(d.arena)
	arena, ok := appendRecord(d.arena, b)
	if !ok {
		return layer{}, false
	}
	d.arena = arena
	return layer{kind: Plain, text: arena[from:], lines: true}, true
}

func appendRecord(dst, b []byte) ([]byte, bool) {
	start := recordStart(b)
	if start < 0 {
		return dst, false
	}
	var r recordFields
	f := fields{b: b[start:]}
	for {
		key, v, ok := f.next()
		if !ok {
			break
		}
		if to := r.field(key); to != nil {
			*to = v
		}
	}
	clock := recordClock(r.asctime.raw)
	if !f.whole || clock == nil || r.message.kind != 's' ||
		r.level.kind != 's' || levelWord(r.level.raw) != len(r.level.raw) {
		return dst, false
	}

	body := appendText(nil, r.message)
	for _, v := range []value{r.excInfo, r.stackInfo} {
		if v.kind == 's' && len(v.raw) > 0 {
			body = append(body, '\n')
			body = bytes.TrimSuffix(appendText(body, v), []byte(newline))
		}
	}
	h := len(dst)
	dst = append(dst, b[:start]...)
	dst = r.appendProcess(dst, b[:start])
	dst = append(dst, r.level.raw...)
	dst = append(dst, ' ')
	dst = append(dst, clock...)
	dst = r.appendPlace(dst)
	head := dst[h:len(dst):len(dst)]
	dst = dst[:h]
	eachLine(body, func(line []byte, _ int64, last bool) {
		// For the first line this writes the head onto itself.
		dst = append(dst, head...)
		dst = append(dst, bytes.TrimSuffix(line, []byte("\r"))...)
		if !last {
			dst = append(dst, '\n')
		}
	})
	return dst, true
}

func (r *recordFields) field(key []byte) *value {
	switch string(key) {
	case "asctime":
		return &r.asctime
	case "levelname":
		return &r.level
	case "name":
		return &r.name
	case "message":
		return &r.message
	case "process":
		return &r.process
	case "processName":
		return &r.processName
	case "vllm_process_name":
		return &r.vllmName
	case "exc_info":
		return &r.excInfo
	case "stack_info":
		return &r.stackInfo
	case "filename", "fileinfo":
		return &r.file
	case "lineno":
		return &r.line
	}
	return nil
}

// appendProcess appends "(name pid=N) " unless the line had a prefix with that
// pid already, or the record names no process.
func (r *recordFields) appendProcess(dst, glued []byte) []byte {
	pid := r.process.raw
	if number(pid) == 0 {
		return dst
	}
	from := len(dst)
	dst = append(dst, '(')
	name := r.vllmName
	if name.kind != 's' {
		name = r.processName
	}
	if name.kind == 's' && len(name.raw) > 0 {
		dst = appendWord(dst, name)
		dst = append(dst, ' ')
	}
	dst = append(dst, "pid="...)
	dst = append(dst, pid...)
	if i := bytes.LastIndex(glued, dst[len(dst)-len(pid)-len("pid="):]); i >= 0 {
		after := glued[i+len("pid=")+len(pid):]
		if len(after) > 0 && !isDigit(after[0]) {
			return dst[:from]
		}
	}
	return append(dst, ") "...)
}

func (r *recordFields) appendPlace(dst []byte) []byte {
	dst = append(dst, " ["...)
	switch {
	case r.file.kind == 's' && len(r.file.raw) > 0:
		dst = appendWord(dst, r.file)
		if number(r.line.raw) > 0 {
			dst = append(dst, ':')
			dst = append(dst, r.line.raw...)
		}
	case r.name.kind == 's' && len(r.name.raw) > 0:
		dst = appendWord(dst, r.name)
	default:
		dst = append(dst, '-')
	}
	return append(dst, "] "...)
}

// appendWord appends a name so that it cannot end the head that it stands in.
func appendWord(dst []byte, v value) []byte {
	for i, c := range v.raw {
		if i >= maxName/4 {
			break
		}
		if c <= ' ' || c == '[' || c == ']' || c == '\\' || c == 0x7f {
			c = '_'
		}
		dst = append(dst, c)
	}
	return dst
}

// recordClock finds "MM-DD HH:MM:SS" in asctime: vLLM's own form or one with a
// year.
func recordClock(b []byte) []byte {
	if s, ok := scanStamp(b); ok {
		if s.spaced {
			return b[5:19]
		}
		c := append([]byte(nil), b[5:19]...)
		c[5] = ' '
		return c
	}
	if len(b) >= 14 && isShortDate(b) && isClock(b[6:14]) {
		return b[:14]
	}
	return nil
}
