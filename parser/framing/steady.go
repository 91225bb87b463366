package framing

import "bytes"

// form is the look of a prefix that any logger prints too, so that it is taken
// for a wrapper's only by what stands behind it: a date without a zone, as ts
// (moreutils) writes it, or an object that only names a time and a text.
type form struct {
	bracket, month, spaced, zoned bool
	// sep stands before the fraction, which has digits digits.
	sep    byte
	digits int8
	// text is the key that holds the text of an object.
	text string
}

// steadyHeads is after how many heads of vLLM behind the same form, with no
// line without it between, the form is taken off whatever follows.
const steadyHeads = 3

// steady knows whether one form stands on every line of the source, as only a
// wrapper puts it there. A line without it ends that.
type steady struct {
	form  form
	heads int
	// taken is set where a form was taken off this line already, same where
	// the line has the form although it stays on.
	taken, same bool
}

// takes tells whether f may be taken off in front of rest.
func (s *steady) takes(f form, rest []byte) bool {
	if engineHead(rest) {
		s.note(f)
		return true
	}
	if f != s.form || s.taken {
		return false
	}
	s.same = true
	return s.heads >= steadyHeads
}

// takesLate is takes for what must be steady before even a head is believed: a
// request log in JSON quotes whole heads.
func (s *steady) takesLate(f form, text []byte) bool {
	if s.taken {
		return false
	}
	head := engineHead(text)
	if head {
		s.note(f)
	}
	known := f == s.form && s.heads >= steadyHeads
	s.same = head || known
	return known
}

func (s *steady) note(f form) {
	if s.taken {
		return
	}
	if f != s.form {
		s.form, s.heads = f, 0
	}
	s.heads = min(s.heads+1, steadyHeads)
}

// miss takes note of a line that has no such form.
func (s *steady) miss() { s.heads = 0 }

// begin prepares for a text from which a form was taken already, or not.
func (s *steady) begin(taken bool) { s.taken, s.same = taken, false }

// end judges a text off which nothing more is taken.
func (s *steady) end(text []byte) {
	if !s.taken && !s.same && len(bytes.TrimSpace(text)) > 0 {
		s.miss()
	}
}

// engineHead tells whether b begins as only a line of vLLM does, plain or from
// its JSON formatter.
func engineHead(b []byte) bool {
	return vllmHead(b) || bytes.HasPrefix(b, []byte(`{"asctime"`))
}

func (s stamp) form(b []byte) form {
	f := form{spaced: s.spaced, zoned: s.zoned}
	if s.n > 20 && (b[19] == '.' || b[19] == ',') {
		f.sep = b[19]
		for i := 20; i < s.n && isDigit(b[i]); i++ {
			f.digits++
		}
	}
	return f
}

// monthForm is the form of what scanMonth read.
func monthForm(b []byte, n int) form {
	f := form{month: true}
	if n > 15 {
		f.sep = b[15]
		// scanMonth takes any number of digits; more than these is no clock.
		f.digits = int8(min(n-16, 100))
	}
	return f
}

// isSGLang tells whether b begins as a message of SGLang does that its
// bracketed date belongs to.
func isSGLang(b []byte) bool {
	for _, w := range []string{"Decode batch", "Prefill batch", "server_args="} {
		if bytes.HasPrefix(b, []byte(w)) {
			return true
		}
	}
	return false
}

// cutLemonade takes "[Info] (vllm) " off, or the "[Info] (Process) " of older
// releases: what Lemonade's log has between its date and a line of the vLLM
// that it runs (lemonade-sdk/vllm-rocm#5; the form is aixlog's, and its own
// lines have other names in the parentheses).
func cutLemonade(b []byte) (rest []byte, ok bool) {
	end := bytes.IndexByte(b[:min(len(b), len("[Warning]"))], ']')
	if end < 1 || b[0] != '[' {
		return nil, false
	}
	rest = b[end+1:]
	for _, name := range []string{" (vllm)", " (Process)"} {
		if bytes.HasPrefix(rest, []byte(name)) {
			switch string(b[1:end]) {
			case "Trace", "Debug", "Info", "Notice", "Warn", "Warning", "Error", "Fatal":
				return cutSpace(rest[len(name):])
			}
		}
	}
	return nil, false
}
