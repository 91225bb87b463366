package oom

import (
	"math"
	"math/big"
	"regexp"
	"strings"
)

// Size is a printed or derived number of bytes.
type Size struct {
	// Bytes is text times unit, rounded to the nearest byte. It is at most
	// math.MaxInt64, which stands for anything larger. A derived size can be
	// negative.
	Bytes int64
	// Precision is half of the last printed digit, in bytes; 0 for an exact
	// figure. For a derived size it is the sum over what it was derived from.
	Precision int64
	// Text is the size as printed, with one space before the unit; empty for a
	// derived size.
	Text string
}

// impossible is what no device has: 2^60 bytes. Drivers that do not know a
// figure report 2^64 - 1, printed as "17179869184.00 GiB".
const impossible = 1 << 60

// Possible tells whether a device can have that many bytes.
func (s Size) Possible() bool { return s.Bytes < impossible }

var sizeText = regexp.MustCompile(`^\s*(\d{1,20})(\.\d{1,9})?\s*(bytes|KiB|MiB|GiB|KB|MB|GB)\s*$`)

// ParseSize reads one size as allocators print it, such as "139.80 GiB" or "0
// bytes". KB, MB and GB are read as powers of two, because PyTorch and vLLM
// print them so.
func ParseSize(text string) (Size, bool) {
	m := sizeText.FindStringSubmatch(text)
	if m == nil {
		return Size{}, false
	}
	whole, fraction, unit := m[1], m[2], m[3]
	if unit == "bytes" && fraction != "" {
		return Size{}, false
	}
	value, ok := new(big.Rat).SetString(whole + fraction)
	if !ok {
		return Size{}, false
	}
	digit := big.NewRat(1, 2)
	for range max(0, len(fraction)-1) {
		digit.Mul(digit, big.NewRat(1, 10))
	}
	scale := unitBytes(unit)
	s := Size{
		Bytes: nearest(value.Mul(value, scale)),
		Text:  whole + fraction + " " + unit,
	}
	if unit != "bytes" {
		s.Precision = nearest(digit.Mul(digit, scale))
	}
	return s, true
}

func unitBytes(unit string) *big.Rat {
	switch unit[0] {
	case 'K':
		return big.NewRat(1<<10, 1)
	case 'M':
		return big.NewRat(1<<20, 1)
	case 'G':
		return big.NewRat(1<<30, 1)
	}
	return big.NewRat(1, 1)
}

// nearest rounds a value that is not negative, and saturates.
func nearest(r *big.Rat) int64 {
	num := new(big.Int).Lsh(r.Num(), 1)
	num.Add(num, r.Denom())
	num.Quo(num, new(big.Int).Lsh(r.Denom(), 1))
	if !num.IsInt64() {
		return math.MaxInt64
	}
	return num.Int64()
}

// exact reads a plain count of bytes, with or without thousands commas.
func exact(digits string) *Size {
	digits = strings.ReplaceAll(digits, ",", "")
	s, ok := ParseSize(digits + " bytes")
	if !ok {
		return nil
	}
	return &s
}

// plus and minus derive a size; nil if an operand is not known, since a sum
// over unknown parts would be a wrong figure rather than a rough one.
func (s *Size) plus(o *Size) *Size {
	if s == nil || o == nil {
		return nil
	}
	return &Size{Bytes: saturate(s.Bytes, o.Bytes), Precision: saturate(s.Precision, o.Precision)}
}

func (s *Size) minus(o *Size) *Size {
	if s == nil || o == nil {
		return nil
	}
	return &Size{Bytes: saturate(s.Bytes, -o.Bytes), Precision: saturate(s.Precision, o.Precision)}
}

func saturate(a, b int64) int64 {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

// atLeast tells whether s reaches o within the precision of both.
func (s *Size) atLeast(o *Size) bool {
	return saturate(s.Bytes, saturate(s.Precision, o.Precision)) >= o.Bytes
}
