package framing

import (
	"bytes"
	"slices"
)

// Meta is what the wrappers said about a line. Where two layers say the same,
// the outermost counts.
type Meta struct {
	// Time is RFC 3339, "" where no layer printed both year and zone. Its
	// fields are in range, but the day is not checked against the month.
	Time string
	// Stream is "stdout", "stderr" or "" (not known).
	Stream string
	// Unit is the systemd unit or syslog tag; "kernel" for a kernel line.
	Unit, Host, Pod, Namespace, Container string
	// PID is the process that journald or syslog named, 0 if none. It is the
	// host's, so it may differ from the one vLLM prints.
	PID int
}

// Kind names a form of framing.
type Kind string

// The kinds. A line of vLLM's own JSON formatter is plain; a sidecar's or a
// cloud exporter's prefix counts as the form that it is made of.
const (
	Plain         Kind = "plain"
	DockerJSON    Kind = "docker-json"
	CRI           Kind = "cri"
	Compose       Kind = "compose"
	JournaldJSON  Kind = "journald-json"
	JournaldShort Kind = "journald-short"
	SyslogISO     Kind = "syslog-iso"
	KubectlPrefix Kind = "kubectl-prefix"
	Timestamps    Kind = "timestamps"
	CollectorJSON Kind = "collector-json"
	Mixed         Kind = "mixed"
)

// Inner is one line as its process wrote it, without "\n". A trailing "\r" is
// kept.
type Inner struct {
	// Text is valid until the next call of Decode or Flush.
	Text []byte
	Meta Meta
	// At is the caller's mark of the physical line on which the text began.
	At uint64
	// Joined counts the physical lines that the text is made of, from 1.
	Joined int
	// Cut counts the bytes dropped: from the middle of a joined line over the
	// limit, or just before this line of an object with too many lines.
	Cut int64
}

const (
	// maxLayers bounds the nesting; real logs show up to three.
	maxLayers = 4
	// maxHolds bounds the unfinished lines; one container has two streams.
	maxHolds = 16
	// maxLines bounds the inner lines of one JSON object. Docker and journald
	// write one; torch.compile tracebacks reach some hundred.
	maxLines = 4096
	// keepBytes is the largest buffer kept from line to line.
	keepBytes = 64 << 10

	newline = "\n"

	defaultMaxJoin = 1 << 20
	leastMaxJoin   = 64
)

// Decoder turns the physical lines of one source into inner lines.
type Decoder struct {
	maxJoin int
	out     []Inner
	// arena holds the texts of this call that are not a part of the line. It
	// only grows within a call, so that earlier texts stay valid.
	arena []byte
	holds []*hold
	// spent are the holds whose texts this call gives out, free those that can
	// be used again.
	spent, free []*hold

	counts map[Kind]uint64
	plain  uint64
	lines  uint64
	names  names
	seen   interned
	docker dockerState
	steady steady
}

// NewDecoder returns a decoder whose joined lines keep at most maxJoin bytes:
// the first and the last half. Zero or less means 1 MiB, the least is 64.
func NewDecoder(maxJoin int) *Decoder {
	if maxJoin <= 0 {
		maxJoin = defaultMaxJoin
	}
	return &Decoder{maxJoin: max(maxJoin, leastMaxJoin), counts: make(map[Kind]uint64)}
}

// Decode takes one physical line without its "\n" and returns its inner lines:
// usually one, none for an unfinished piece, several where an object held
// several. at is the caller's mark of the line and comes back in Inner.At. The
// slice and its texts are valid until the next call; a text may be a part of
// line.
func (d *Decoder) Decode(line []byte, at uint64) []Inner {
	d.recycle()
	if len(line) > 0 && line[0] == 0 {
		// A writer that kept its offset over copytruncate leaves a hole.
		line = bytes.TrimLeft(line, "\x00")
	}
	d.lines++
	p := part{text: line, at: at, seq: d.lines, joined: 1}
	if isBare(line) {
		if len(line) > 0 {
			d.plain++
		}
		d.steady.begin(false)
		d.steady.end(line)
		d.emit(&p)
		return d.out
	}
	d.unwrap(p, 0)
	return d.out
}

// Passed tells of a plain line that the caller need not have decoded: it
// counts for what is believed only while it stands on every line.
func (d *Decoder) Passed() { d.steady.miss() }

// Fork gives a decoder that knows the same prefixes and holds nothing.
func (d *Decoder) Fork() *Decoder {
	f := NewDecoder(d.maxJoin)
	f.names = names{known: slices.Clone(d.names.known), maybe: slices.Clone(d.names.maybe)}
	f.seen, f.docker, f.steady = d.seen, d.docker, d.steady
	return f
}

// Flush gives out the unfinished lines, oldest first. Call it at the end of
// the input, or when a source has been silent for so long that the rest will
// not come.
func (d *Decoder) Flush() []Inner {
	d.recycle()
	// What comes out of one layer may be an unfinished piece of the next.
	for len(d.holds) > 0 {
		d.release(0)
	}
	return d.out
}

// Kind returns the outermost form of more than half of the lines so far,
// Mixed if there is none, Plain before the first line.
func (d *Decoder) Kind() Kind {
	best, most, total := Plain, d.plain, d.plain
	for k, n := range d.counts {
		total += n
		if n > most {
			best, most = k, n
		}
	}
	if 2*most <= total && total > 0 {
		return Mixed
	}
	return best
}

// Held returns the mark of the oldest piece that is still held; ok is false if
// none is. A reader that resumes must resume at or before it.
func (d *Decoder) Held() (at uint64, ok bool) {
	if len(d.holds) == 0 {
		return 0, false
	}
	// A piece that came out of an outer layer's joining may be older than those
	// held before it.
	oldest := d.holds[0].first
	for _, h := range d.holds[1:] {
		if h.first.seq < oldest.seq {
			oldest = h.first
		}
	}
	return oldest.at, true
}

// part is a text on its way through the layers.
type part struct {
	text []byte
	meta Meta
	at   uint64
	// seq counts physical lines: at cannot be compared.
	seq    uint64
	joined int
	cut    int64
	// formed is set where a form was taken off.
	formed bool
}

// layer is one wrapper taken off.
type layer struct {
	kind Kind
	text []byte
	// splits is set where the wrapper splits long lines, partial where this
	// piece is not the last of its line.
	splits, partial bool
	// lines is set where text holds final lines.
	lines bool
	// formed is set where what was taken off is a form.
	formed bool
}

// isBare tells of the commonest lines that nothing can be taken off: most of
// any log, so they are told apart before anything else is tried.
func isBare(b []byte) bool {
	i := 0
	if len(b) > 0 && b[0] == esc {
		i = colour(b)
	}
	if i == len(b) {
		return true
	}
	switch c := b[i]; c {
	case ' ':
		return cutCell(b[i:]) == 0
	case '\t':
		return true
	case '(':
		return recordStart(b) < 0
	case 'I', 'W', 'E', 'D', 'C':
		n := i + levelWord(b[i:])
		return n > i && n < len(b) && (b[n] == ' ' || b[n] == ':')
	}
	return false
}

func (d *Decoder) unwrap(p part, depth int) {
	var l layer
	ok := false
	d.steady.begin(p.formed)
	if depth < maxLayers {
		l, ok = d.peel(p.text, &p.meta)
	}
	if depth == 0 {
		if !ok || l.kind == Plain {
			d.plain++
		} else {
			d.counts[l.kind]++
		}
	}
	if !ok || l.lines && l.kind == Plain {
		d.steady.end(p.text)
	}
	p.formed = p.formed || l.formed
	switch {
	case !ok:
		d.emit(&p)
	case l.lines:
		eachLine(l.text, func(line []byte, gap int64, _ bool) {
			q := p
			q.text, q.cut = line, p.cut+gap
			d.emit(&q)
		})
	case l.splits:
		eachLine(l.text, func(line []byte, gap int64, last bool) {
			q := p
			q.text, q.cut = line, p.cut+gap
			d.join(q, l.kind, l.partial && last, depth)
		})
	default:
		p.text = l.text
		d.unwrap(p, depth+1)
	}
}

func (d *Decoder) emit(p *part) {
	d.out = append(d.out, Inner{Text: p.text, Meta: p.meta, At: p.at, Joined: p.joined, Cut: p.cut})
}

// recycle takes back what the last call gave out.
func (d *Decoder) recycle() {
	d.out = d.out[:0]
	if cap(d.out) > 64 {
		d.out = nil
	}
	if cap(d.arena) > keepBytes {
		d.arena = nil
	}
	d.arena = d.arena[:0]
	for _, h := range d.spent {
		if cap(h.buf) <= keepBytes && len(d.free) < 2 {
			d.free = append(d.free, h)
		}
	}
	clear(d.spent)
	d.spent = d.spent[:0]
}

// eachLine calls f for the lines of text. Of more than maxLines it leaves out
// the middle: a traceback ends with the exception. gap counts the bytes left
// out before a line.
func eachLine(text []byte, f func(line []byte, gap int64, last bool)) {
	skipFrom, skipTo := maxLines, maxLines
	if n := bytes.Count(text, []byte(newline)) + 1; n > maxLines {
		skipFrom, skipTo = maxLines/2, n-maxLines/2
	}
	var gap int64
	for i := 0; ; i++ {
		line, rest, more := bytes.Cut(text, []byte(newline))
		if i >= skipFrom && i < skipTo {
			gap += int64(len(line)) + 1
		} else {
			f(line, gap, !more)
			gap = 0
		}
		if !more {
			return
		}
		text = rest
	}
}

// interned remembers the names seen last, so that a line of a known host costs
// no allocation.
type interned struct {
	words [8]string
	next  int
}

func (s *interned) get(b []byte) string {
	for _, w := range s.words {
		if w == string(b) {
			return w
		}
	}
	w := string(b)
	s.words[s.next] = w
	s.next = (s.next + 1) % len(s.words)
	return w
}
