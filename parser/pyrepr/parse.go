package pyrepr

import (
	"strings"
	"unicode/utf8"
)

// Bounds on what one call reads. The configuration of vLLM 0.33 has some 300
// values, four deep; larger texts are dumps, for which Field is made.
const (
	maxDepth  = 64
	maxValues = 1 << 14
	maxText   = 1 << 20
)

// Parse reads the value that s begins with. rest is what follows it. With ok
// false the text was cut, malformed or beyond the bounds: v is what could be
// read, whose last element may be incomplete too, and rest begins where the
// trouble was.
func Parse(s string) (v Value, rest string, ok bool) {
	p := parser{s: s[:min(len(s), maxText)]}
	p.space()
	v, ok = p.value(0, plain)
	return v, s[p.pos:], ok && (p.pos < len(p.s) || len(p.s) == len(s))
}

// ParseDict reads a dictionary such as that of "non-default args: {...}", or
// the arguments of a call such as "Namespace(...)". Keys are given as text, in
// printed order; of a repeated key the last value counts. complete is false
// where the text was cut or is neither.
func ParseDict(s string) (values map[string]Value, order []string, complete bool) {
	v, _, complete := Parse(s)
	values = make(map[string]Value, len(v.Entries))
	for _, e := range v.Entries {
		if e.Key.Source == "" {
			continue
		}
		key := e.Key.Text()
		if _, seen := values[key]; !seen {
			order = append(order, key)
		}
		values[key] = e.Value
	}
	return values, order, complete && (v.Kind == Dict || v.Kind == Call)
}

// place is where a value stands: it decides what may follow it.
type place int

const (
	plain place = iota // at the top: anything may follow
	inner              // in brackets: a comma or a bracket follows
	brace              // first in a pair or in a set: a colon may follow too
)

type parser struct {
	s      string
	pos    int
	values int
}

func (p *parser) space() {
	for p.pos < len(p.s) && isSpace(p.s[p.pos]) {
		p.pos++
	}
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf
}

// at tells whether the byte c comes next.
func (p *parser) at(c byte) bool { return p.pos < len(p.s) && p.s[p.pos] == c }

func (p *parser) value(depth int, where place) (Value, bool) {
	p.values++
	if depth > maxDepth || p.values > maxValues || p.pos >= len(p.s) {
		return Value{}, false
	}
	start := p.pos
	v, ok := p.literal(depth)
	if !ok && v.Kind != Raw {
		// A container or a string that was cut: nothing follows.
		v.Source = p.s[start:p.pos]
		return v, false
	}
	if !ok || v.Kind == Raw && p.pos == start || !p.ends(where) {
		v, whole := p.raw(start, where)
		return v, whole && (ok || where != plain) // "<object at" is cut
	}
	v.Source = p.s[start:p.pos]
	return v, true
}

// ends tells whether a value can end here. It leaves the position alone.
func (p *parser) ends(where place) bool {
	i := p.pos
	for i < len(p.s) && isSpace(p.s[i]) {
		i++
	}
	if i == len(p.s) {
		return true
	}
	switch p.s[i] {
	case ',', ')', ']', '}':
		return true
	case ':':
		return where == brace
	}
	return where == plain && i > p.pos
}

// literal reads what Python could have written. It reads nothing, as Raw, if
// the text begins like no literal.
func (p *parser) literal(depth int) (Value, bool) {
	c := p.s[p.pos]
	switch {
	case c == '\'' || c == '"':
		text, ok := p.quoted()
		return Value{Kind: String, text: text}, ok
	case c == '[':
		items, ok := p.items(depth, ']')
		return Value{Kind: List, Items: items}, ok
	case c == '(':
		items, ok := p.items(depth, ')')
		return Value{Kind: Tuple, Items: items}, ok
	case c == '{':
		return p.braces(depth)
	case c == '<':
		return Value{Kind: Raw}, p.angle()
	case c == '-' || c == '+' || c == '.' || '0' <= c && c <= '9':
		return Value{Kind: p.number()}, true
	case isWord(c):
		return p.name(depth)
	}
	return Value{Kind: Raw}, true
}

// items reads elements up to the closing bracket. "(1)" counts as a tuple.
func (p *parser) items(depth int, closing byte) (items []Value, ok bool) {
	p.pos++ // the bracket
	for {
		p.space()
		if p.at(closing) {
			p.pos++
			return items, true
		}
		v, ok := p.value(depth+1, inner)
		if ok || v.Source != "" {
			items = append(items, v)
		}
		if !ok {
			return items, false
		}
		p.space()
		if p.at(',') {
			p.pos++
		} else if !p.at(closing) {
			return items, false
		}
	}
}

// braces reads a Dict or a Set.
func (p *parser) braces(depth int) (Value, bool) {
	p.pos++
	v := Value{Kind: Dict}
	for {
		p.space()
		if p.at('}') {
			p.pos++
			return v, true
		}
		where := brace
		if v.Kind == Set {
			where = inner
		}
		key, ok := p.value(depth+1, where)
		if !ok {
			if key.Source != "" && v.Kind == Set {
				v.Items = append(v.Items, key)
			}
			return v, false
		}
		p.space()
		if v.Kind == Dict && p.at(':') {
			p.pos++
			p.space()
			value, ok := p.value(depth+1, inner)
			if ok || value.Source != "" {
				v.Entries = append(v.Entries, Entry{Key: key, Value: value})
			}
			if !ok {
				return v, false
			}
			p.space()
		} else if v.Kind == Set || len(v.Entries) == 0 && p.pos < len(p.s) {
			v.Kind = Set
			v.Items = append(v.Items, key)
		} else {
			return v, false // a key without a value
		}
		if p.at(',') {
			p.pos++
		} else if !p.at('}') {
			return v, false
		}
	}
}

// name reads a word: a constant, a dotted name, or a call.
func (p *parser) name(depth int) (Value, bool) {
	start := p.pos
	for p.pos < len(p.s) && (isWord(p.s[p.pos]) || p.s[p.pos] == '.') {
		p.pos++
	}
	name := p.s[start:p.pos]
	if p.at('(') {
		return p.call(depth, name)
	}
	switch name {
	case "None", "null":
		return Value{Kind: None}, true
	case "True", "False", "true", "false":
		return Value{Kind: Bool}, true
	case "nan", "inf":
		return Value{Kind: Float}, true
	}
	return Value{Kind: Raw}, true
}

func (p *parser) call(depth int, name string) (Value, bool) {
	p.pos++
	v := Value{Kind: Call, Name: name}
	for {
		p.space()
		if p.at(')') {
			p.pos++
			if name == "set" && len(v.Entries) == 0 { // the repr of an empty set
				return Value{Kind: Set}, true
			}
			return v, true
		}
		var e Entry
		if n := argument(p.s[p.pos:]); n > 0 {
			e.Key = Value{Kind: Raw, Source: p.s[p.pos : p.pos+n]}
			p.pos += n + 1
			p.space()
		}
		value, ok := p.value(depth+1, inner)
		if ok || value.Source != "" {
			e.Value = value
			v.Entries = append(v.Entries, e)
		}
		if !ok {
			return v, false
		}
		p.space()
		if p.at(',') {
			p.pos++
		} else if !p.at(')') {
			return v, false
		}
	}
}

// argument is the length of the name in "name=", or 0.
func argument(s string) int {
	n := 0
	for n < len(s) && isWord(s[n]) {
		n++
	}
	if n == 0 || n == len(s) || s[n] != '=' || '0' <= s[0] && s[0] <= '9' {
		return 0
	}
	return n
}

// number reads digits, and says what they make; Raw if nothing.
func (p *parser) number() Kind {
	start := p.pos
	if p.at('-') || p.at('+') {
		p.pos++
		if word := p.s[p.pos:]; strings.HasPrefix(word, "inf") || strings.HasPrefix(word, "nan") {
			p.pos += 3
			return Float
		}
	}
	if strings.HasPrefix(p.s[p.pos:], "0x") {
		p.pos += 2
		if p.run("0123456789abcdefABCDEF") == 0 {
			p.pos = start
			return Raw
		}
		return Int
	}
	kind, digits := Int, p.run("0123456789_")
	if p.at('.') {
		p.pos++
		kind = Float
		digits += p.run("0123456789_")
	}
	if digits == 0 {
		p.pos = start
		return Raw
	}
	if p.at('e') || p.at('E') {
		mark := p.pos
		p.pos++
		if p.at('-') || p.at('+') {
			p.pos++
		}
		if p.run("0123456789") == 0 {
			p.pos = mark
			return kind
		}
		kind = Float
	}
	return kind
}

func (p *parser) run(set string) int {
	n := 0
	for p.pos < len(p.s) && strings.IndexByte(set, p.s[p.pos]) >= 0 {
		p.pos++
		n++
	}
	return n
}

// angle reads "<...>", with nested ones and quoted text inside.
func (p *parser) angle() bool {
	depth := 0
	for p.pos < len(p.s) {
		switch c := p.s[p.pos]; c {
		case '<':
			depth++
		case '>':
			// An arrow, as in a function's signature, closes nothing.
			if p.s[p.pos-1] != '-' {
				depth--
			}
		case '\'', '"':
			p.skipQuoted()
			continue
		}
		p.pos++
		if depth == 0 {
			return true
		}
	}
	return false
}

// raw reads anything from start up to the comma or the bracket that ends it.
// A colon with a space behind it ends a key.
func (p *parser) raw(start int, where place) (Value, bool) {
	p.pos = start
	var open []byte
	for p.pos < len(p.s) {
		c := p.s[p.pos]
		switch c {
		case '\'', '"':
			p.skipQuoted()
			continue
		case '(', '[', '{':
			if len(open) < maxDepth {
				open = append(open, c)
			}
		case ')', ']', '}':
			if len(open) == 0 {
				return p.rawEnd(start)
			}
			open = open[:len(open)-1]
		case ',':
			if len(open) == 0 {
				return p.rawEnd(start)
			}
		case ':':
			if len(open) == 0 && where == brace && p.pos+1 < len(p.s) && isSpace(p.s[p.pos+1]) {
				return p.rawEnd(start)
			}
		}
		p.pos++
	}
	v, _ := p.rawEnd(start)
	// At the top the end of the text ends a value; elsewhere it cuts one.
	return v, where == plain && len(open) == 0 && v.Source != ""
}

func (p *parser) rawEnd(start int) (Value, bool) {
	text := strings.TrimRight(p.s[start:p.pos], " \t\r\n\f\v")
	return Value{Kind: Raw, Source: text}, text != ""
}

// skipQuoted steps over a quoted text, to the end if nothing closes it: text
// that was cut within quotes must not be read as if it stood outside of them.
// Of an apostrophe within a word it steps over the apostrophe alone.
func (p *parser) skipQuoted() {
	start, q := p.pos, p.s[p.pos]
	p.pos++
	if start > 0 && isWord(p.s[start-1]) && !prefixed(p.s[:start]) {
		return
	}
	if end := closing(p.s, p.pos, q); end >= 0 {
		p.pos = end + 1
		return
	}
	p.pos = len(p.s)
}

// prefixed tells whether s ends with the letter of a prefixed string (b'...').
func prefixed(s string) bool {
	n := len(s)
	return n > 0 && strings.IndexByte("bBrRuUfF", s[n-1]) >= 0 && (n == 1 || !isWord(s[n-2]))
}

// closing finds the quote q that ends a string from i on; -1 if none does.
func closing(s string, i int, q byte) int {
	for ; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case q:
			return i
		}
	}
	return -1
}
