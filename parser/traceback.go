package parser

import (
	"strings"
)

const tracebackHead = "Traceback (most recent call last):"

// isChain tells whether a line joins two exceptions of one traceback.
func isChain(s string) bool {
	return strings.HasPrefix(s, "During handling of the above exception, another exception occurred:") ||
		strings.HasPrefix(s, "The above exception was the direct cause of the following exception:")
}

// exceptionLine splits "module.Class: text" or a bare "module.Class". It wants
// the shape of an exception's name, so that a sentence with a colon is none.
func exceptionLine(s string) (class, text string, ok bool) {
	if i := strings.IndexByte(s, '('); i > 0 && i+1 < len(s) && (s[i+1] == '\'' || s[i+1] == '"') && isExceptionName(s[:i]) {
		// A repr, as V0's engine process logs it: OutOfMemoryError('text').
		return s[:i], strings.TrimRight(s[i+2:], `'")`), true
	}
	end := strings.IndexByte(s, ':')
	name := s
	if end >= 0 {
		name = s[:end]
		if end+1 < len(s) && s[end+1] != ' ' {
			return "", "", false
		}
	}
	if !isExceptionName(name) {
		return "", "", false
	}
	if end >= 0 {
		text = strings.TrimPrefix(s[end+1:], " ")
	}
	return name, text, true
}

func isExceptionName(name string) bool {
	if name == "" || len(name) > 120 {
		return false
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last == "" || last[0] < 'A' || last[0] > 'Z' {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if !(c == '.' || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			return false
		}
	}
	for _, suffix := range []string{"Error", "Exception", "Exit", "Interrupt", "OutOfResources", "Cancelled", "CancelledError", "TimeoutExpired"} {
		if strings.HasSuffix(last, suffix) {
			return true
		}
	}
	return false
}

// frameLine reads `File "path", line N, in func`.
func frameLine(s string) (file, fn string, ok bool) {
	t := strings.TrimLeft(s, " |+-")
	if !strings.HasPrefix(t, `File "`) {
		return "", "", false
	}
	t = t[len(`File "`):]
	q := strings.Index(t, `", line `)
	if q < 0 {
		return "", "", false
	}
	file = t[:q]
	if i := strings.Index(t[q:], ", in "); i >= 0 {
		fn = strings.TrimSpace(t[q+i+len(", in "):])
	}
	return file, fn, true
}

// readExceptions reads the tracebacks and exception lines of a record. With
// Python's add_note (vLLM 0.8.2 on) a record holds its whole traceback twice:
// equal texts are folded.
func readExceptions(lines []TextLine) []Exception {
	var out []Exception
	var cur Exception
	inTrace, open, afterText := false, false, false
	add := func() {
		if !open {
			return
		}
		for i := range out {
			if out[i].Class == cur.Class && out[i].Text == cur.Text && cur.Class != "" {
				out[i].Copies++
				if len(out[i].Frames) == 0 {
					out[i].Frames = cur.Frames
				}
				cur, open, afterText = Exception{}, false, false
				return
			}
		}
		out = append(out, cur)
		cur, open, afterText = Exception{}, false, false
	}
	for i, l := range lines {
		s := strings.TrimRight(l.Text, " \r")
		switch {
		case s == tracebackHead:
			add()
			inTrace = true
			continue
		case isChain(s):
			add()
			inTrace = false
			continue
		}
		if file, fn, ok := frameLine(s); ok {
			if afterText && cur.Class != "" {
				add()
			}
			cur.Frames = append(cur.Frames, Frame{File: file, Func: fn, At: l.At})
			open, inTrace = true, true
			continue
		}
		if s != "" && s[0] == ' ' && inTrace && len(cur.Frames) > 0 && !afterText {
			f := &cur.Frames[len(cur.Frames)-1]
			if f.Code == "" && strings.Trim(s, " ^~") != "" {
				f.Code, f.CodeAt = strings.TrimSpace(s), l.At
			}
			continue
		}
		if class, text, ok := exceptionLine(s); ok && (inTrace || i == 0 || !afterText) {
			if afterText {
				add()
			}
			cur.Class, cur.Text, cur.At = class, text, l.At
			open, afterText, inTrace = true, true, false
			continue
		}
		if afterText && s != "" {
			cur.Text += "\n" + s
		}
	}
	add()
	return out
}
