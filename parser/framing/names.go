package framing

import "bytes"

const (
	maxNames    = 32
	maxNameText = 300
)

// names are the prefixes of compose, stern and kubetail met so far in this
// source, with colour and padding as printed. Such a prefix has no mark of its
// own, so a new one needs a log line behind it; a known one is taken off
// whatever follows.
type names struct {
	known []namePrefix
	// maybe are those of stern and kubetail seen once: two words before a
	// record can also be a message without its newline.
	maybe []string
}

type namePrefix struct {
	text           string
	kind           Kind
	pod, container string
}

// peelName takes off "name-1  | ", "pod container " and "[pod] ".
func (d *Decoder) peelName(b []byte, m *Meta) (layer, bool) {
	for i := range d.names.known {
		p := &d.names.known[i]
		if rest, ok := p.cut(b); ok {
			p.tell(m)
			return layer{kind: p.kind, text: rest}, true
		}
	}
	if n, p := composePrefix(b); n > 0 && looksLog(b[n:]) {
		d.names.learn(p)
		p.tell(m)
		return layer{kind: p.kind, text: b[n:]}, true
	}
	if n := cutCell(b); n > 0 && cellHead(b[n:]) {
		d.names.learn(namePrefix{text: string(b[:n]), kind: Compose})
		return layer{kind: Compose, text: b[n:]}, true
	}
	if n, p, coloured := podPrefix(b); n > 0 && vllmHead(b[n:]) && (coloured || d.names.second(b[:n])) {
		d.names.learn(p)
		p.tell(m)
		return layer{kind: p.kind, text: b[n:]}, true
	}
	return layer{}, false
}

// cut takes the prefix off b. An empty text may have lost the space before it.
func (p *namePrefix) cut(b []byte) ([]byte, bool) {
	if len(b) >= len(p.text) {
		return b[len(p.text):], string(b[:len(p.text)]) == p.text
	}
	line := bytes.TrimSuffix(b, []byte("\r"))
	return nil, p.kind == Compose && len(line) > 0 && line[len(line)-1] == '|' &&
		p.text[:len(line)] == string(line)
}

func (p *namePrefix) tell(m *Meta) {
	if m.Pod == "" {
		m.Pod = p.pod
	}
	if m.Container == "" {
		m.Container = p.container
	}
}

func (s *names) learn(p namePrefix) {
	if len(s.known) < maxNames {
		s.known = append(s.known, p)
	}
}

// second tells whether the prefix was seen before, and remembers it.
func (s *names) second(prefix []byte) bool {
	for _, w := range s.maybe {
		if w == string(prefix) {
			return true
		}
	}
	if len(s.maybe) < maxNames {
		s.maybe = append(s.maybe, string(prefix))
	}
	return false
}

// composePrefix reads "name  | " with the colours that compose gives it; n is
// 0 if b begins with none.
func composePrefix(b []byte) (n int, p namePrefix) {
	w := b[:min(len(b), maxNameText)]
	from := colour(w)
	i := from
	for i < len(w) && isNameByte(w[i]) {
		i++
	}
	name := w[from:i]
	if len(name) == 0 || !isLetter(name[0]) && !isDigit(name[0]) || levelWord(name) == len(name) {
		return 0, p
	}
	i += colour(w[i:])
	spaces := i
	for i < len(w) && w[i] == ' ' {
		i++
	}
	if i == spaces || i >= len(w) || w[i] != '|' {
		return 0, p
	}
	i++
	// Compose switches the colour off before or after the space.
	i += colour(w[i:])
	if i >= len(w) || w[i] != ' ' {
		return 0, p
	}
	i++
	i += resetOnly(w[i:])
	return i, namePrefix{text: string(w[:i]), kind: Compose, container: string(name)}
}

// cutCell gives the length of "  | " at the start of b, 0 if b begins with
// anything else: the margin of a CI's page that is pasted, or compose's prefix
// without its name. Exception groups have it too, so it is believed in front of
// a head of vLLM only.
func cutCell(b []byte) int {
	i := 0
	for i < len(b) && i < 4 && b[i] == ' ' {
		i++
	}
	if i == 0 || i+1 >= len(b) || b[i] != '|' || b[i+1] != ' ' {
		return 0
	}
	return i + 2
}

// cellHead tells whether b begins with a head of vLLM, or with a time in
// brackets and one.
func cellHead(b []byte) bool {
	if len(b) > 0 && b[0] == '[' {
		if s, ok := scanStamp(b[1:]); ok && s.zoned && len(b) > s.n+2 && b[s.n+1] == ']' && b[s.n+2] == ' ' {
			b = b[s.n+3:]
		}
	}
	return vllmHead(b)
}

// podPrefix reads "pod container " of stern and "[pod] " of kubetail. coloured
// is set where stern's colours are there, which no log has.
func podPrefix(b []byte) (n int, p namePrefix, coloured bool) {
	w := b[:min(len(b), maxNameText)]
	if len(w) > 0 && w[0] == '[' && lostColour(w) == 0 {
		end := bytes.Index(w, []byte("] "))
		if end < 0 || !isPod(w[1:end]) {
			return 0, p, false
		}
		n = end + 2
		return n, namePrefix{text: string(w[:n]), kind: KubectlPrefix, pod: string(w[1:end])}, false
	}
	word := func() []byte {
		i := n + colour(w[n:])
		coloured = coloured || i > n
		from := i
		for i < len(w) && isNameByte(w[i]) {
			i++
		}
		n = i + colour(w[i:])
		return w[from:i]
	}
	pod := word()
	if !isPod(pod) || n >= len(w) || w[n] != ' ' {
		return 0, p, false
	}
	n++
	container := word()
	if len(container) == 0 || n >= len(w) || w[n] != ' ' {
		return 0, p, false
	}
	n++
	return n, namePrefix{text: string(w[:n]), kind: KubectlPrefix, pod: string(pod), container: string(container)}, coloured
}

// isPod tells whether b could be the name of a pod: lower case, with the
// number or hash that a controller appends after "-".
func isPod(b []byte) bool {
	dash, digit := false, false
	for _, c := range b {
		switch {
		case 'a' <= c && c <= 'z' || c == '.':
		case c == '-':
			dash = true
		case isDigit(c):
			digit = true
		default:
			return false
		}
	}
	return dash && digit && len(b) >= 3
}

// resetOnly returns the length of the colour sequences at the start of b that
// only switch off.
func resetOnly(b []byte) int {
	i := 0
	for i < len(b) {
		n := oneColour(b[i:])
		if n == 0 {
			break
		}
		seq := b[i : i+n]
		if seq[n-1] != 'm' || !isReset(seq[bytes.IndexByte(seq, '['):]) {
			break
		}
		i += n
	}
	return i
}
