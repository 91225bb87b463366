package framing

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a value that is skipped.
const maxDepth = 64

// value is one value of a JSON object: raw is the text of it, of a string
// without its quotes. The zero value is that of an absent key.
type value struct {
	raw []byte
	// kind is 's' string, 'a' array, 'o' object, 'n' number or word.
	kind byte
	// escaped is set where a string holds a backslash.
	escaped bool
}

// fields walks the keys of one JSON object that fills a line. It checks only
// what is needed to find them: a nested value is skipped by its brackets.
type fields struct {
	b    []byte
	i    int
	more bool
	// whole is set once the object was read to its end, with nothing after it.
	whole bool
}

// next returns the next key, as written, and its value; ok is false at the end
// and where the text is no JSON.
func (f *fields) next() (key []byte, v value, ok bool) {
	f.space()
	switch {
	case f.more && f.eat('}'):
		f.space()
		f.whole = f.i == len(f.b)
		return nil, v, false
	case f.more && !f.eat(','):
		return nil, v, false
	case !f.more && !f.eat('{'):
		return nil, v, false
	}
	f.space()
	if !f.more && f.eat('}') {
		f.space()
		f.whole = f.i == len(f.b)
		return nil, v, false
	}
	f.more = true
	k, ok := f.value()
	if !ok || k.kind != 's' {
		return nil, v, false
	}
	f.space()
	if !f.eat(':') {
		return nil, v, false
	}
	f.space()
	v, ok = f.value()
	return k.raw, v, ok
}

func (f *fields) space() {
	for f.i < len(f.b) && (f.b[f.i] == ' ' || f.b[f.i] == '\t' || f.b[f.i] == '\r') {
		f.i++
	}
}

func (f *fields) eat(c byte) bool {
	if f.i < len(f.b) && f.b[f.i] == c {
		f.i++
		return true
	}
	return false
}

func (f *fields) value() (value, bool) {
	if f.i >= len(f.b) {
		return value{}, false
	}
	from := f.i
	switch f.b[from] {
	case '"':
		n, escaped := stringEnd(f.b[from+1:])
		if n < 0 {
			return value{}, false
		}
		f.i = from + n + 2
		return value{f.b[from+1 : from+1+n], 's', escaped}, true
	case '{', '[':
		if !f.skip() {
			return value{}, false
		}
		kind := byte('o')
		if f.b[from] == '[' {
			kind = 'a'
		}
		return value{raw: f.b[from:f.i], kind: kind}, true
	}
	for f.i < len(f.b) && (isDigit(f.b[f.i]) || isLetter(f.b[f.i]) || f.b[f.i] == '-' || f.b[f.i] == '+' || f.b[f.i] == '.') {
		f.i++
	}
	return value{raw: f.b[from:f.i], kind: 'n'}, f.i > from
}

// skip passes a nested value.
func (f *fields) skip() bool {
	depth := 0
	for f.i < len(f.b) {
		c := f.b[f.i]
		f.i++
		switch c {
		case '"':
			n, _ := stringEnd(f.b[f.i:])
			if n < 0 {
				return false
			}
			f.i += n + 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return false
			}
		case '}', ']':
			if depth--; depth == 0 {
				return true
			}
		}
	}
	return false
}

// stringEnd returns the place of the quote that ends the string, -1 if there
// is none.
func stringEnd(b []byte) (n int, escaped bool) {
	for {
		k := bytes.IndexByte(b[n:], '"')
		if k < 0 {
			return -1, false
		}
		slashes := 0
		for slashes < k && b[n+k-1-slashes] == '\\' {
			slashes++
		}
		if !escaped {
			escaped = bytes.IndexByte(b[n:n+k], '\\') >= 0
		}
		if slashes%2 == 0 {
			return n + k, escaped
		}
		n += k + 1
	}
}

// appendText appends the text of a string value. A wrong escape is kept as
// written, half of a surrogate pair becomes U+FFFD.
func appendText(dst []byte, v value) []byte {
	if !v.escaped {
		return append(dst, v.raw...)
	}
	b := v.raw
	for {
		k := bytes.IndexByte(b, '\\')
		if k < 0 || k+1 >= len(b) {
			return append(dst, b...)
		}
		dst = append(dst, b[:k]...)
		b = b[k:]
		n := 2
		switch b[1] {
		case '"', '\\', '/':
			dst = append(dst, b[1])
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'u':
			var r rune
			if r, n = unicodeEscape(b); n > 0 {
				dst = utf8.AppendRune(dst, r)
				break
			}
			n = 2
			fallthrough
		default:
			dst = append(dst, b[:2]...)
		}
		b = b[n:]
	}
}

// unicodeEscape reads \uXXXX, or two of them for one rune; n is 0 if b begins
// with none.
func unicodeEscape(b []byte) (r rune, n int) {
	r, ok := hex4(b)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if low, ok := hex4(b[6:]); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
