package matcher

import (
	"regexp"
	"strconv"
	"strings"

	"diagnose/parser"
	"diagnose/parser/oom"
)

// onLine tells whether the signature looks at lines of this kind.
func (s *Signature) onLine(l parser.Level) bool {
	switch s.On {
	case "raw", "kernel":
		if l != parser.Raw {
			return false
		}
	case "line":
		if l == parser.Raw {
			return false
		}
	case "any":
	default:
		return false
	}
	if len(s.Levels) == 0 {
		return true
	}
	for _, name := range s.Levels {
		if name == l.String() {
			return true
		}
	}
	return false
}

// kernelHead is what stands before a kernel's own words: dmesg's times, or
// "kernel: " of syslog.
var kernelHead = regexp.MustCompile(`^(?:<\d+>)?(?:\[ *\d+\.\d+\] |\[[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]+ \d{4}\] |(?:\S+ ){0,5}kernel: )`)

// kernelWords tells whether a line of a server's log is the kernel's: it has the
// kernel's head, or begins with the words themselves, as where a collector took
// the head off. Behind other words it is a quotation.
func (s *Signature) kernelWords(text string) bool {
	if s.On != "kernel" || kernelHead.MatchString(text) {
		return true
	}
	if s.Pattern != nil {
		at := s.Pattern.FindStringIndex(text)
		return at != nil && at[0] == 0
	}
	for _, t := range s.Texts {
		if strings.HasPrefix(text, t) {
			return true
		}
	}
	return false
}

// textMatches tests literals first; the pattern runs only on what they let by.
func (s *Signature) textMatches(text string) bool {
	if len(s.Texts) > 0 && !containsAny(text, s.Texts) {
		return false
	}
	for _, t := range s.TextsAll {
		if !strings.Contains(text, t) {
			return false
		}
	}
	return s.Pattern == nil || s.Pattern.MatchString(text)
}

func containsAny(text string, subs []string) bool {
	for _, t := range subs {
		if strings.Contains(text, t) {
			return true
		}
	}
	return false
}

// capture gives the named groups of the pattern as facts. A name may end in a
// unit: "needed_GiB" gives needed in bytes.
func (s *Signature) capture(text string) map[string]Value {
	if s.Pattern == nil {
		return nil
	}
	m := s.Pattern.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	vars := map[string]Value{}
	for i, name := range s.Pattern.SubexpNames() {
		if name == "" || m[i] == "" {
			continue
		}
		scale := 1.0
		for _, u := range []struct {
			suffix string
			scale  float64
		}{{"_GiB", 1 << 30}, {"_MiB", 1 << 20}, {"_MB", 1 << 20}, {"_KiB", 1 << 10}, {"_kB", 1 << 10}} {
			if strings.HasSuffix(name, u.suffix) {
				name, scale = strings.TrimSuffix(name, u.suffix), u.scale
				break
			}
		}
		if w, ok := vocabulary[name]; ok && w.kind == textKind {
			vars[name] = Text(m[i])
			continue
		}
		if f, err := strconv.ParseFloat(strings.ReplaceAll(m[i], ",", ""), 64); err == nil {
			vars[name] = Num(f * scale)
		} else {
			vars[name] = Text(m[i])
		}
	}
	return vars
}

// hit is a signature that holds for a failure.
type hit struct {
	entry      *Entry
	sig        *Signature
	confidence float64
	frame      *parser.Frame
	frameName  string
	exception  int // index of the exception that the signature matched
	vars       map[string]Value
}

// matchFailure tries the signatures of an entry on a record's exceptions.
func matchFailure(e *Entry, f *failure, phase string, s Scope) (hit, bool) {
	best := hit{}
	for i := range e.Match.Signatures {
		sig := &e.Match.Signatures[i]
		if sig.On != "" && sig.On != "exception" && sig.On != "any" {
			continue
		}
		if sig.Phase != "" && sig.Phase != phase && phase != "unknown" {
			continue
		}
		h, ok := matchSignature(sig, f)
		if !ok || h.confidence <= best.confidence || !sig.Requires.holds(withVars{s, h.vars}) {
			continue
		}
		if sig.Phase != "" && phase == "unknown" {
			h.confidence *= 0.9
		}
		h.entry = e
		best = h
	}
	if best.entry == nil {
		return best, false
	}
	for _, v := range e.Match.Vetoes {
		if v.When.Eval(withVars{s, best.vars}).True() {
			return hit{}, false
		}
	}
	return best, true
}

// withVars lets a signature's conditions see what its own pattern captured:
// the same words can mean two things by their figures.
type withVars struct {
	Scope
	vars map[string]Value
}

func (w withVars) Lookup(name string) Value {
	if v, ok := w.vars[name]; ok {
		return v
	}
	return w.Scope.Lookup(name)
}

func matchSignature(sig *Signature, f *failure) (hit, bool) {
	h := hit{sig: sig, confidence: sig.Confidence}
	found := false
	for i, x := range f.exs {
		if consequenceOf(x) != "" {
			continue
		}
		if !sig.exceptionMatches(x, f.ooms[i]) {
			continue
		}
		h.exception, found = i, true
		h.vars = sig.capture(x.Text)
		break
	}
	if !found {
		return h, false
	}
	frames := allFrames(f)
	if len(sig.FramesAny) > 0 {
		h.frame, h.frameName = findFrame(frames, sig.FramesAny)
		if h.frame == nil {
			return h, false
		}
	}
	for _, name := range sig.FramesAll {
		if fr, _ := findFrame(frames, []string{name}); fr == nil {
			return h, false
		}
	}
	if fr, _ := findFrame(frames, sig.FramesNone); fr != nil {
		return h, false
	}
	return h, true
}

func (s *Signature) exceptionMatches(x parser.Exception, m *oom.Message) bool {
	switch s.OOM {
	case "any":
		if m == nil {
			return false
		}
	case "numbers":
		if m == nil || m.Tried == nil {
			return false
		}
	case "masked":
		if m == nil || !m.Masked {
			return false
		}
	case "no":
		if m != nil {
			return false
		}
	case "cut":
		return x.Class == "" && x.Text == ""
	}
	if len(s.Forms) > 0 {
		if m == nil || !containsWord(s.Forms, m.Form) {
			return false
		}
	}
	if len(s.Exceptions) > 0 {
		ok := false
		for _, c := range s.Exceptions {
			ok = ok || c == x.Class || c == lastName(x.Class)
		}
		if !ok {
			return false
		}
	}
	return s.textMatches(x.Text)
}

func containsWord(list []string, w string) bool {
	for _, l := range list {
		if l == w {
			return true
		}
	}
	return false
}

// methodHead names what a worker was told to do when it failed: V0's
// multiproc_worker_utils.py, and worker_base.py under V0 and Ray.
var methodHead = regexp.MustCompile(`^(?:Exception in worker \S+ while processing method|Error executing method) '?([a-z_]+)`)

// allFrames lists the frames of a record's own exceptions, innermost last. The
// method that the record's head names counts as the outermost.
func allFrames(f *failure) []parser.Frame {
	var out []parser.Frame
	if m := methodHead.FindStringSubmatch(f.rec.First()); m != nil {
		out = append(out, parser.Frame{Func: m[1], At: f.rec.At()})
	}
	for _, x := range f.exs {
		out = append(out, x.Frames...)
	}
	return out
}

// findFrame gives the innermost frame that bears one of the names: a function,
// an identifier in the quoted source line, or a file.
func findFrame(frames []parser.Frame, names []string) (*parser.Frame, string) {
	for i := len(frames) - 1; i >= 0; i-- {
		for _, n := range names {
			if frameIs(&frames[i], n) {
				return &frames[i], n
			}
		}
	}
	return nil, ""
}

func frameIs(f *parser.Frame, name string) bool {
	if strings.ContainsAny(name, "./") {
		if strings.HasSuffix(name, "/") {
			return strings.Contains(f.File, name)
		}
		if strings.HasSuffix(f.File, name) {
			return true
		}
		return strings.Contains(f.Code, name)
	}
	return f.Func == name || hasIdentifier(f.Code, name)
}

// hasIdentifier finds name in code at identifier boundaries.
func hasIdentifier(code, name string) bool {
	for from := 0; ; {
		i := strings.Index(code[from:], name)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(name)
		if (i == 0 || !isWordByte(code[i-1])) && (end == len(code) || !isWordByte(code[end])) {
			return true
		}
		from = i + 1
	}
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
