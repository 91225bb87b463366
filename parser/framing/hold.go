package framing

// dockerPiece is the size at which dockerd splits a line
// (daemon/logger/copier.go, defaultBufSize).
const dockerPiece = 16 << 10

// dockerState tells whether the objects of this source end their lines.
// Docker ends "log" with "\n" except where it split a line; exporters that
// only borrow the form never do, and joining those would melt a file into one
// line.
type dockerState struct {
	ended, bare bool
}

// holdKey tells the unfinished lines of one source apart.
type holdKey struct {
	kind                         Kind
	stream, unit, pod, container string
	pid                          int
}

// hold is an unfinished line.
type hold struct {
	key   holdKey
	depth int
	first part
	// buf keeps the first half of the limit, then up to as much again and
	// half more, so that dropping the middle is rarely done.
	buf    []byte
	cut    int64
	pieces int
	// short keeps the pieces apart while it is not known whether the source
	// ends its lines; nil when it is.
	short []part
	// ends are the ends of the short pieces in buf.
	ends []int
}

// maxShort is how many short pieces without an end are waited for before the
// source is taken for one that never ends its lines.
const maxShort = 8

// join adds a piece to the unfinished line of its stream, and passes the line
// on when it is whole.
func (d *Decoder) join(p part, kind Kind, partial bool, depth int) {
	key := holdKey{kind, p.meta.Stream, p.meta.Unit, p.meta.Pod, p.meta.Container, p.meta.PID}
	i := d.findHold(key)
	if kind == DockerJSON {
		switch {
		case !partial:
			d.docker = dockerState{ended: true}
		case !d.docker.ended && len(p.text) < dockerPiece:
			if i >= 0 && d.holds[i].loose() && (len(d.holds[i].short) >= maxShort || looksLog(p.text)) {
				d.docker.bare = true
			}
			if d.docker.bare {
				if i >= 0 {
					d.release(i)
				}
				d.unwrap(p, depth+1)
				return
			}
		}
	}
	if !partial && i < 0 {
		d.unwrap(p, depth+1)
		return
	}
	if i < 0 {
		if len(d.holds) >= maxHolds {
			d.release(0)
		}
		h := d.newHold()
		h.key, h.depth, h.first = key, depth, p
		h.first.text = nil
		d.holds = append(d.holds, h)
		i = len(d.holds) - 1
	}
	h := d.holds[i]
	loose := kind == DockerJSON && !d.docker.ended && len(p.text) < dockerPiece
	h.add(p, d.maxJoin, loose)
	if !partial {
		h.short = h.short[:0]
		d.release(i)
	}
}

func (d *Decoder) findHold(key holdKey) int {
	for i, h := range d.holds {
		if h.key == key {
			return i
		}
	}
	return -1
}

func (d *Decoder) newHold() *hold {
	n := len(d.free)
	if n == 0 {
		return &hold{}
	}
	h := d.free[n-1]
	d.free = d.free[:n-1]
	*h = hold{buf: h.buf[:0], short: h.short[:0], ends: h.ends[:0]}
	return h
}

// release passes on the i-th unfinished line as it is.
func (d *Decoder) release(i int) {
	h := d.holds[i]
	d.holds = append(d.holds[:i], d.holds[i+1:]...)
	d.spent = append(d.spent, h)
	if h.key.kind == DockerJSON && !d.docker.ended && h.loose() && len(h.short) > 1 {
		from := 0
		for k, q := range h.short {
			q.text = h.buf[from:h.ends[k]]
			from = h.ends[k]
			d.unwrap(q, h.depth+1)
		}
		return
	}
	h.trim(d.maxJoin, d.maxJoin)
	p := h.first
	p.text, p.joined, p.cut = h.buf, p.joined+h.pieces-1, p.cut+h.cut
	d.unwrap(p, h.depth+1)
}

// loose tells that every piece so far was short and kept apart.
func (h *hold) loose() bool { return len(h.short) == h.pieces }

func (h *hold) add(p part, limit int, loose bool) {
	h.pieces++
	h.buf = append(h.buf, p.text...)
	if h.pieces > 1 {
		h.cut += p.cut
	}
	if loose && len(h.short) == h.pieces-1 && h.pieces <= maxShort {
		p.text = nil
		h.short = append(h.short, p)
		h.ends = append(h.ends, len(h.buf))
	}
	h.trim(limit+limit/2, limit)
}

// trim drops the middle if the text is longer than over, so that limit bytes
// are left.
func (h *hold) trim(over, limit int) {
	if len(h.buf) <= over {
		return
	}
	head := limit / 2
	drop := len(h.buf) - limit
	h.buf = append(h.buf[:head], h.buf[head+drop:]...)
	h.cut += int64(drop)
	h.short = h.short[:0]
}
