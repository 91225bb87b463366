package parser

// textLines keeps the lines of a record: the first ones, up to half of the
// limits, and of the rest the newest.
type textLines struct {
	head, tail []TextLine
	gone       int // of tail, lines at its beginning that were dropped
	bytes      int
	dropped    int
}

// lineCost is what a line costs beside its text.
const lineCost = 64

func (t *textLines) add(l TextLine) {
	t.bytes += len(l.Text) + lineCost
	if len(t.tail) == 0 && len(t.head) < MaxRecordLines/2 && t.bytes <= maxRecordBytes/2 || len(t.head) == 0 {
		t.head = append(t.head, l)
		return
	}
	t.tail = append(t.tail, l)
	for n := len(t.tail) - t.gone; n > 1 && (n > MaxRecordLines/2 || t.bytes > maxRecordBytes); n-- {
		old := &t.tail[t.gone]
		t.bytes -= len(old.Text) + lineCost
		*old = TextLine{}
		t.gone++
		t.dropped++
	}
	if t.gone > MaxRecordLines/2 {
		n := copy(t.tail, t.tail[t.gone:])
		clear(t.tail[n:])
		t.tail, t.gone = t.tail[:n], 0
	}
}

// glue appends to the newest line and gives it.
func (t *textLines) glue(s string) string {
	l := &t.head[len(t.head)-1]
	if len(t.tail) > 0 {
		l = &t.tail[len(t.tail)-1]
	}
	if len(l.Text)+len(s) <= maxLineText {
		l.Text += s
		t.bytes += len(s)
	}
	return l.Text
}

// all gives the lines in their order, in memory of their own.
func (t *textLines) all() []TextLine {
	out := make([]TextLine, 0, len(t.head)+len(t.tail)-t.gone)
	out = append(out, t.head...)
	return append(out, t.tail[t.gone:]...)
}
