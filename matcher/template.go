package matcher

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Template is a text of a catalogue entry with figures in it: "{free|GiB}".
// Text in "[[ ]]" is left out if a figure in it is unknown; an unknown figure
// elsewhere makes the whole text unknown.
type Template struct {
	src   string
	parts []part
	line  int
}

type part struct {
	text   string
	expr   *Expr
	format string
	group  []part // an optional group
}

// formats of a figure, each with what it prints.
var formats = map[string]string{
	"":       "as it is",
	"GiB":    "bytes as GiB with two decimals",
	"MiB":    "bytes as MiB with two decimals",
	"KiB":    "bytes as KiB",
	"size":   "bytes as PyTorch prints them: MiB up to 1 GiB, GiB above",
	"bytes":  "whole bytes with commas",
	"tokens": "a count with commas",
	"int":    "a whole number",
	"pct":    "a percentage with one decimal",
	"util":   "a utilisation with two decimals",
}

// ParseTemplate compiles a template.
func ParseTemplate(src string) (Template, error) {
	t := Template{src: src}
	var err error
	t.parts, err = parseParts(strings.TrimSpace(src), true)
	return t, err
}

func parseParts(s string, groups bool) ([]part, error) {
	var parts []part
	for s != "" {
		open := strings.IndexByte(s, '{')
		group := -1
		if groups {
			group = strings.Index(s, "[[")
		}
		text := s
		if first := earlier(open, group); first >= 0 {
			text = s[:first]
		}
		if strings.Contains(text, "]]") {
			return nil, fmt.Errorf("template: ]] without [[")
		}
		if !groups && strings.Contains(text, "[[") {
			return nil, fmt.Errorf("template: [[ within [[ ]]")
		}
		if open < 0 && group < 0 {
			return append(parts, part{text: s}), nil
		}
		if group >= 0 && (open < 0 || group < open) {
			end := strings.Index(s[group:], "]]")
			if end < 0 {
				return nil, fmt.Errorf("template: [[ without ]]")
			}
			inner, err := parseParts(s[group+2:group+end], false)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part{text: s[:group]}, part{group: inner})
			s = s[group+end+2:]
			continue
		}
		end := strings.IndexByte(s[open:], '}')
		if end < 0 {
			return nil, fmt.Errorf("template: { without }")
		}
		body, format := s[open+1:open+end], ""
		if bar := strings.LastIndexByte(body, '|'); bar >= 0 && !strings.HasPrefix(body[bar:], "||") && (bar == 0 || body[bar-1] != '|') {
			body, format = body[:bar], strings.TrimSpace(body[bar+1:])
		}
		if formats[format] == "" {
			return nil, fmt.Errorf("template: unknown format %q", format)
		}
		e, err := Compile(strings.TrimSpace(body))
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{text: s[:open]}, part{expr: e, format: format})
		s = s[open+end+1:]
	}
	return parts, nil
}

// earlier is the smaller of two offsets of which either may be -1 for none.
func earlier(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// UnmarshalYAML compiles the template and keeps its line for errors.
func (t *Template) UnmarshalYAML(n *yaml.Node) error {
	parsed, err := ParseTemplate(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*t = parsed
	t.line = n.Line
	return nil
}

// Empty tells whether there is no text at all.
func (t Template) Empty() bool { return len(t.parts) == 0 }

// Source is the template as written.
func (t Template) Source() string { return t.src }

// Render fills the figures in; ok is false if a required one is unknown.
func (t Template) Render(s Scope) (text string, ok bool) {
	var b strings.Builder
	if !render(&b, t.parts, s) {
		return "", false
	}
	return strings.Join(strings.Fields(b.String()), " "), true
}

func render(b *strings.Builder, parts []part, s Scope) bool {
	for _, p := range parts {
		switch {
		case p.group != nil:
			var inner strings.Builder
			if render(&inner, p.group, s) {
				b.WriteString(inner.String())
			}
		case p.expr != nil:
			v := p.expr.Eval(s)
			if !v.Known() {
				return false
			}
			b.WriteString(formatValue(v, p.format))
		default:
			b.WriteString(p.text)
		}
	}
	return true
}

// Names lists the facts that the template uses.
func (t Template) Names() []string { return partNames(t.parts) }

func partNames(parts []part) []string {
	var names []string
	for _, p := range parts {
		if p.expr != nil {
			names = append(names, p.expr.Names()...)
		}
		names = append(names, partNames(p.group)...)
	}
	return names
}

func formatValue(v Value, format string) string {
	switch v.kind {
	case textKind:
		return v.text
	case boolKind:
		return strconv.FormatBool(v.yes)
	}
	switch format {
	case "GiB":
		return fmt.Sprintf("%.2f GiB", v.num/(1<<30))
	case "MiB":
		return fmt.Sprintf("%.2f MiB", v.num/(1<<20))
	case "KiB":
		return fmt.Sprintf("%s KiB", strconv.FormatFloat(math.Round(v.num/(1<<10)*100)/100, 'f', -1, 64))
	case "size":
		return SizeText(int64(v.num))
	case "bytes":
		return Thousands(int64(v.num)) + " B"
	case "tokens":
		return Thousands(int64(v.num))
	case "pct":
		return strconv.FormatFloat(math.Round(v.num*10)/10, 'f', 1, 64) + " %"
	case "util":
		return strconv.FormatFloat(v.num, 'f', 2, 64)
	case "int":
		return strconv.FormatInt(int64(v.num), 10)
	}
	return strconv.FormatFloat(v.num, 'f', -1, 64)
}

// SizeText prints a size with its unit, as reports do: the next unit is taken
// where two decimals would print 1024.00.
func SizeText(bytes int64) string {
	const almost = 1023.995
	switch abs := math.Abs(float64(bytes)); {
	case abs >= almost*(1<<20):
		return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30))
	case abs >= almost*(1<<10):
		return fmt.Sprintf("%.2f MiB", float64(bytes)/(1<<20))
	case abs >= 1<<10:
		return fmt.Sprintf("%.2f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d B", bytes)
}

// Thousands prints a count with commas.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if neg {
		return "-" + s
	}
	return s
}
