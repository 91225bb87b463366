package oom

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestParseSize(t *testing.T) {
	tests := []struct {
		text      string
		bytes     int64
		precision int64
		printed   string
	}{
		{"0 bytes", 0, 0, "0 bytes"},
		{"1024 bytes", 1024, 0, "1024 bytes"},
		{"512.00 KiB", 512 << 10, 5, "512.00 KiB"},
		{"2.00 MiB", 2 << 20, 5243, "2.00 MiB"},
		{"1024.00 MiB", 1 << 30, 5243, "1024.00 MiB"},
		{"139.80 GiB", 150109106995, 5368709, "139.80 GiB"},
		{"1.80 GB", 1932735283, 5368709, "1.80 GB"},
		{"8.0 GiB", 8 << 30, 53687091, "8.0 GiB"},
		{"8 GiB", 8 << 30, 1 << 29, "8 GiB"},
		{"8.00GiB", 8 << 30, 5368709, "8.00 GiB"},
		{" 23.77\r\n GiB ", 25522843156, 5368709, "23.77 GiB"},
		{"37252902.99 GiB", 40000000005777654, 5368709, "37252902.99 GiB"},
		// 2^64, which drivers report for "not available".
		{"17179869184.00 GiB", math.MaxInt64, 5368709, "17179869184.00 GiB"},
		{"99999999999999999999 GiB", math.MaxInt64, 1 << 29, "99999999999999999999 GiB"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			s, ok := ParseSize(tt.text)
			want := Size{Bytes: tt.bytes, Precision: tt.precision, Text: tt.printed}
			if !ok || s != want {
				t.Errorf("want %+v, got %+v (%v)", want, s, ok)
			}
		})
	}
	for _, text := range []string{
		"", "8.00", "GiB", "8.00 TiB", "8.00 gib", "8,00 GiB", "8. GiB", ".5 GiB", "-1 bytes", "1.5 bytes",
		"8.00 GiB.", "1e3 MiB", "100000000000000000000000000000 bytes", "8.0000000000001 GiB", "8.00 GiB 8.00 GiB",
	} {
		if s, ok := ParseSize(text); ok {
			t.Errorf("ParseSize(%q) = %+v", text, s)
		}
	}
}

// A printed size holds the true one within its precision.
func TestParseSizeHoldsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth := rapid.Int64Range(0, 1<<50).Draw(t, "bytes")
		s, ok := ParseSize(format(truth))
		if !ok {
			t.Fatalf("cannot read %q", format(truth))
		}
		if off := s.Bytes - truth; off > s.Precision+1 || off < -s.Precision-1 {
			t.Fatalf("%q is read as %d ± %d, was %d", s.Text, s.Bytes, s.Precision, truth)
		}
	})
}

// format prints as c10's format_size does.
func format(n int64) string {
	switch {
	case n <= 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n <= 1<<20:
		return fmt.Sprintf("%.2f KiB", float64(n)/(1<<10))
	case n <= 1<<30:
		return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}

func TestDerivedSizesSaturate(t *testing.T) {
	top := &Size{Bytes: math.MaxInt64, Precision: math.MaxInt64}
	if s := top.plus(top); s.Bytes != math.MaxInt64 || s.Precision != math.MaxInt64 {
		t.Errorf("sum of the largest: %+v", s)
	}
	if s := (&Size{Bytes: math.MinInt64}).minus(top); s.Bytes != math.MinInt64 {
		t.Errorf("difference of the extremes: %+v", s)
	}
	if s := top.plus(nil); s != nil {
		t.Errorf("sum with an unknown: %+v", s)
	}
}
