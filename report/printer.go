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
	text := b.text
	if b.tail != "" {
		text += " " + b.tail
	}
	lines := wrapHanging(text, p.width-columns(first), p.width-hang)
	for i, l := range lines {
		body, tail := l, ""
		if i == len(lines)-1 && b.tail != "" {
			if s, ok := strings.CutSuffix(l, b.tail); ok {
				body, tail = s, b.tail
			}
		}
		strong := ""
		if i == 0 && b.strong != "" && strings.HasPrefix(body, b.strong) {
			strong, body = b.strong, body[len(b.strong):]
		}
		painted := p.paint(styleTitle, strong) + p.paint(b.textStyle, body) + p.paint(styleDim, tail)
		if i == 0 {
			p.line(strings.Repeat(" ", b.indent), p.paint(b.leadStyle, b.lead), painted)
		} else {
			p.line(strings.Repeat(" ", hang), painted)
		}
	}
}

func (p *printer) heading(name string, s style) {
	p.blank()
	p.line(p.paint(s, name))
}
