package framing

import "bytes"

// stamp is a date with a time at the start of a text.
type stamp struct {
	// n is the length of the stamp.
	n int
	// zoned is set where it ends in Z or an offset, spaced where a space stands
	// between date and time.
	zoned, spaced bool
}

// scanStamp reads "2026-09-17T22:26:58[.123][Z|+08:00|+0800]". A comma before
// the fraction (Python, dmesg) and a space for the T are taken too.
func scanStamp(b []byte) (stamp, bool) {
	if len(b) < 19 || b[4] != '-' || b[7] != '-' || b[13] != ':' || b[16] != ':' {
		return stamp{}, false
	}
	s := stamp{n: 19, spaced: b[10] == ' '}
	if !s.spaced && b[10] != 'T' {
		return stamp{}, false
	}
	if !digits(b[:4]) || !inRange(b[5:7], 1, 12) || !inRange(b[8:10], 1, 31) || !isClock(b[11:19]) {
		return stamp{}, false
	}
	if len(b) > 20 && (b[19] == '.' || b[19] == ',') && isDigit(b[20]) {
		s.n = 20
		for s.n < len(b) && isDigit(b[s.n]) {
			s.n++
		}
		if s.n > 20+9 {
			return stamp{}, false
		}
	}
	if n := scanZone(b[s.n:]); n > 0 {
		s.n += n
		s.zoned = true
	}
	return s, true
}

func scanZone(b []byte) int {
	switch {
	case len(b) > 0 && b[0] == 'Z':
		return 1
	case len(b) < 5 || b[0] != '+' && b[0] != '-' || !inRange(b[1:3], 0, 23):
		return 0
	case b[3] != ':':
		if inRange(b[3:5], 0, 59) {
			return 5
		}
	case len(b) >= 6 && inRange(b[4:6], 0, 59):
		return 6
	}
	return 0
}

// rfc3339 gives a zoned stamp the form of RFC 3339, changing only what does
// not fit it.
func rfc3339(b []byte) string {
	n := len(b)
	compact := b[n-1] != 'Z' && b[n-3] != ':'
	if b[10] == 'T' && b[19] != ',' && !compact {
		return string(b)
	}
	out := append(make([]byte, 0, n+1), b...)
	out[10] = 'T'
	if out[19] == ',' {
		out[19] = '.'
	}
	if compact {
		out = append(out[:n-2], ':', b[n-2], b[n-1])
	}
	return string(out)
}

// isClock tells whether b is "HH:MM:SS", with a leap second allowed.
func isClock(b []byte) bool {
	return len(b) == 8 && b[2] == ':' && b[5] == ':' &&
		inRange(b[:2], 0, 23) && inRange(b[3:5], 0, 59) && inRange(b[6:8], 0, 60)
}

// isShortDate tells whether b begins with vLLM's "MM-DD ".
func isShortDate(b []byte) bool {
	return len(b) >= 6 && b[2] == '-' && b[5] == ' ' && inRange(b[:2], 1, 12) && inRange(b[3:5], 1, 31)
}

// inRange tells whether the two bytes of b are a number from lo to hi.
func inRange(b []byte, lo, hi int) bool {
	if !isDigit(b[0]) || !isDigit(b[1]) {
		return false
	}
	n := int(b[0]-'0')*10 + int(b[1]-'0')
	return lo <= n && n <= hi
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func digits(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
	}
	return len(b) > 0
}

// number reads a positive decimal number that fills b and fits a pid; 0 if it
// is none.
func number(b []byte) int {
	if len(b) > 10 || !digits(b) {
		return 0
	}
	n := 0
	for _, c := range b {
		n = n*10 + int(c-'0')
	}
	return n
}

// oneOf tells whether b begins with one of the three-letter words and a space.
func oneOf(b []byte, words string) bool {
	if len(b) < 4 || b[3] != ' ' {
		return false
	}
	for i := 0; i+3 <= len(words); i += 3 {
		if words[i:i+3] == string(b[:3]) {
			return true
		}
	}
	return false
}

const (
	months   = "JanFebMarAprMayJunJulAugSepOctNovDec"
	weekdays = "MonTueWedThuFriSatSun"
)

// scanMonth reads "Aug 19 18:34:30" or "Aug  9 18:34:30.123456"; 0 if it is
// none.
func scanMonth(b []byte) int {
	if len(b) < 15 || !oneOf(b, months) || b[6] != ' ' || !isClock(b[7:15]) {
		return 0
	}
	if !inRange(b[4:6], 1, 31) && (b[4] != ' ' || b[5] < '1' || b[5] > '9') {
		return 0
	}
	n := 15
	if n < len(b) && b[n] == '.' {
		for n++; n < len(b) && isDigit(b[n]); n++ {
		}
	}
	return n
}

// cutSpace takes one space off the front; ok is false if b has something else
// there. An empty b is what trimming leaves of an empty text.
func cutSpace(b []byte) (rest []byte, ok bool) {
	if len(b) == 0 {
		return b, true
	}
	if b[0] == ' ' || b[0] == '\t' {
		return b[1:], true
	}
	// "\r" ends an empty text of a file with CRLF.
	return b, bytes.Equal(b, []byte("\r"))
}
