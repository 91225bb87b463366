package matcher

import "testing"

func TestSizeText(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 1<<20 - 6: "1023.99 KiB", 1<<20 - 5: "1.00 MiB", 1 << 20: "1.00 MiB",
		1<<30 - 5243: "1023.99 MiB", 1<<30 - 5242: "1.00 GiB", 1 << 30: "1.00 GiB", -(1 << 30): "-1.00 GiB", 3 << 40: "3072.00 GiB",
		-1 << 63: "-8589934592.00 GiB",
	} {
		if got := SizeText(bytes); got != want {
			t.Errorf("SizeText(%d) = %q, want %q", bytes, got, want)
		}
	}
}
