package report

import (
	"strconv"
	"strings"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// SizeText writes a number of bytes as PyTorch and vLLM print sizes, so that it
// can be searched for in the log: "6.40 GiB", "755.12 MiB", "144.25 KiB",
// "512 B". There is no unit above GiB.
func SizeText(bytes int64) string {
	abs := float64(bytes)
	if abs < 0 {
		abs = -abs
	}
	// The next unit is taken where two decimals would print 1024.00.
	const almost = 1023.995
	switch {
	case abs < kib:
		return strconv.FormatInt(bytes, 10) + " B"
	case abs < almost*kib:
		return two(float64(bytes)/kib) + " KiB"
	case abs < almost*mib:
		return two(float64(bytes)/mib) + " MiB"
	}
	return two(float64(bytes)/gib) + " GiB"
}

func two(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// grouped writes 10836864 as "10,836,864", as vLLM prints token counts.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	var b strings.Builder
	b.WriteString(sign)
	for i := range len(s) {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// counted is "1 rank" or "8 ranks".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(int64(n)) + " " + noun + "s"
}
