package parser

import (
	"strings"
)

const tracebackHead = "Traceback (most recent call last):"

// isTraceHead tells whether a line begins a traceback: alone, behind a message
// ("EngineCore hit an exception: Traceback ...", 0.7.3 to 0.8.4), or as an
// exception group.
func isTraceHead(s string) bool {
	return strings.HasSuffix(s, tracebackHead) && (len(s) == len(tracebackHead) || len(s) < 200)
}

// isChain tells whether a line joins two exceptions of one traceback.
func isChain(s string) bool {
	return strings.HasPrefix(s, "During handling of the above exception, another exception occurred:") ||
		strings.HasPrefix(s, "The above exception was the direct cause of the following exception:")
}

// exceptionLine splits "module.Class: text" or a bare "module.Class". It wants
// the shape of an exception's name, so that a sentence with a colon is none.
func exceptionLine(s string) (class, text string, ok bool) {
	if s == "" || !isLetter(s[0]) && s[0] != '_' {
		return "", "", false
	}
	end := 0
	for end < len(s) && isNameByte(s[end]) {
		end++
	}
	if !isExceptionName(s[:end]) {
		return "", "", false
	}
	class, rest := s[:end], s[end:]
	if len(rest) > 1 && rest[0] == '(' {
		if rest[1] == '\'' || rest[1] == '"' {
			// A repr, as V0's engine process logs it: OutOfMemoryError('text').
			return class, unrepr(rest[1:]), true
		}
		// Ray names the cause: RayTaskError(OutOfMemoryError): text.
		i := strings.IndexByte(rest, ')')
		if i < 0 || !isExceptionName(rest[1:i]) {
			return "", "", false
		}
		class, rest = s[:end+i+1], rest[i+1:]
	}
	switch {
	case rest == "":
		return class, "", true
	case rest[0] != ':' || len(rest) > 1 && rest[1] != ' ':
		return "", "", false
	}
	return class, strings.TrimPrefix(rest[1:], " "), true
}

// looseException reads the line that ends a traceback where its class has no
// exception's name: "queue.Empty", "zmq.error.Again: text". Without a module
// only Python's own count.
func looseException(s string) (class, text string, ok bool) {
	end := 0
	for end < len(s) && isNameByte(s[end]) {
		end++
	}
	name, rest := s[:end], s[end:]
	last := lastName(name)
	if len(last) < 2 || last[0] < 'A' || last[0] > 'Z' || end > maxClass || rest != "" && !strings.HasPrefix(rest, ": ") {
		return "", "", false
	}
	if last == name && last != "StopIteration" && last != "StopAsyncIteration" && !strings.HasSuffix(last, "Warning") {
		return "", "", false
	}
	return name, strings.TrimPrefix(rest, ": "), true
}

// unrepr gives the text of a quoted string, its end cut off or not.
func unrepr(s string) string {
	quote := s[:1]
	s = strings.TrimSuffix(strings.TrimSuffix(s[1:], ")"), ",")
	s = strings.TrimSuffix(s, quote)
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	return strings.NewReplacer(`\n`, "\n", `\'`, `'`, `\"`, `"`, `\\`, `\`, `\t`, "\t").Replace(s)
}

const maxClass = 120

// exceptionEnds are how the names of exceptions end. Standard ones without
// such an end are read inside a traceback only (looseException).
var exceptionEnds = [...]string{"Error", "Exception", "Exit", "Interrupt", "OutOfResources", "Cancelled", "TimeoutExpired", "ExceptionGroup", "RemoteTraceback"}

func isExceptionName(name string) bool {
	if name == "" || len(name) > maxClass {
		return false
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last == "" || (last[0] < 'A' || last[0] > 'Z') && last[0] != '_' {
		return false
	}
	for _, end := range exceptionEnds {
		if strings.HasSuffix(last, end) {
			return true
		}
	}
	return false
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

func isNameByte(c byte) bool { return c == '.' || c == '_' || isLetter(c) || isDigit(c) }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// frame is a frame's line.
type frame struct {
	file, fn string
	// cut is set where the line ends before it should.
	cut bool
}

// frameLine reads `File "path", line N, in func`.
func frameLine(s string) (frame, bool) {
	const begin, middle = `File "`, `", line `
	t := strings.TrimLeft(s, " ")
	if len(t) < len(begin) || t[:len(begin)] != begin {
		return frame{}, false
	}
	t = t[len(begin):]
	q := strings.Index(t, middle)
	if q < 0 {
		// A terminal broke it. Without its indentation it may be anything.
		e := strings.IndexByte(t, '"')
		cut := len(s) > len(t)+len(begin) && strings.IndexByte(t, '/') >= 0 && (e < 0 || strings.HasPrefix(middle, t[e:]))
		return frame{file: t, cut: true}, cut
	}
	f := frame{file: t[:q]}
	t = t[q+len(middle):]
	n := 0
	for n < len(t) && isDigit(t[n]) {
		n++
	}
	switch rest := t[n:]; {
	case strings.HasPrefix(rest, ", in "):
		if f.file == "<unknown>" || strings.HasSuffix(f.file, ".c") {
			return frame{}, false // a C stack, as a signal handler prints it
		}
		f.fn = strings.TrimSpace(rest[len(", in "):])
		f.cut = f.fn == ""
	case rest != "" || n == 0:
		f.cut = true // a syntax error's frame ends with the number
	}
	return f, true
}

// margin strips what an exception group puts in front of its lines: "  | ",
// "    +-+---- 1 ----"; of a rule nothing is left.
func margin(s string) (rest string, grouped bool) {
	t := strings.TrimLeft(s, " ")
	if len(t) == len(s) || t == "" || t[0] != '|' && t[0] != '+' {
		return s, false
	}
	switch {
	case strings.HasPrefix(t, "| "):
		return t[2:], true
	case t == "|", strings.HasPrefix(t, "+-"):
		return "", true
	case t == "+ Exception Group "+tracebackHead:
		return tracebackHead, true
	}
	return s, false
}

// lastName gives a class without its module.
func lastName(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }
