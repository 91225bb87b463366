package report

import (
	"bytes"
	"strings"
)

// style is one of the SGR sequences that every terminal knows.
type style string

// The styles, by what they mean rather than by colour.
const (
	styleNone    style = ""
	styleError   style = "\x1b[1;31m"
	styleWarn    style = "\x1b[1;33m"
	styleNote    style = "\x1b[1;36m"
	styleTitle   style = "\x1b[1m"
	styleCommand style = "\x1b[32m"
	styleGutter  style = "\x1b[34m"
	styleDim     style = "\x1b[2m"
	styleReset         = "\x1b[0m"
)

// printer lays safe text out in lines of at most width columns.
type printer struct {
	b     bytes.Buffer
	width int
	color bool
}

func (p *printer) paint(s style, text string) string {
	if !p.color || s == styleNone || text == "" {
		return text
	}
	return string(s) + text + styleReset
}

// lines is how many lines there are so far.
func (p *printer) lines() int { return bytes.Count(p.b.Bytes(), []byte{'\n'}) }

func (p *printer) blank() { p.b.WriteByte('\n') }

func (p *printer) line(parts ...string) {
	s := strings.TrimRight(strings.Join(parts, ""), " ")
	p.b.WriteString(s)
	p.b.WriteByte('\n')
}

// block is a paragraph: a lead, a text that hangs under its own start, and a
// dim tail such as "[computed]".
type block struct {
	indent    int
	lead      string
	leadStyle style
	// hang is the indent of the lines after the first; zero means under the
	// first letter of the text.
	hang      int
	text      string
	textStyle style
	// strong is painted as a title if the first line begins with it.
	strong string
	tail   string
}

func (p *printer) block(b block) {
	first := strings.Repeat(" ", b.indent) + b.lead
	hang := b.hang
	if hang == 0 {
		hang = columns(first)
	}
	lines := wrapHanging(b.text, p.width-columns(first), p.width-hang)
	// A tail that would be broken stands on a line of its own.
	last, room := len(lines)-1, p.width-hang
	if last == 0 {
		room = p.width - columns(first)
	}
	tails := []string{}
	joined := b.tail != "" && columns(lines[last])+1+columns(b.tail) <= room
	if b.tail != "" && !joined {
		tails = wrap(b.tail, p.width-hang)
	}
	for i, l := range lines {
		lead, strong := strings.Repeat(" ", hang), ""
		if i == 0 {
			lead = strings.Repeat(" ", b.indent) + p.paint(b.leadStyle, b.lead)
			if b.strong != "" && strings.HasPrefix(l, b.strong) {
				strong, l = b.strong, l[len(b.strong):]
			}
		}
		parts := []string{lead, p.paint(styleTitle, strong), p.paint(b.textStyle, l)}
		if i == last && joined {
			parts = append(parts, " ", p.paint(styleDim, b.tail))
		}
		p.line(parts...)
	}
	for _, l := range tails {
		p.line(strings.Repeat(" ", hang), p.paint(styleDim, l))
	}
}

func (p *printer) heading(name string, s style) {
	p.blank()
	p.line(p.paint(s, name))
}
