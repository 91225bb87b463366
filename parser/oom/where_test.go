package oom

import (
	"strings"
	"testing"
)

// sentence builds an allocator's sentence from the figures of a public report.
// A process is "this 54.59 GiB" or "73820 30.29 GiB".
func sentence(tried, total, free string, processes []string, allowed, allocated, private, unallocated string) string {
	var b strings.Builder
	b.WriteString("CUDA out of memory. Tried to allocate " + tried + ". GPU 0 has a total capacity of " + total + " of which " + free + " is free. ")
	for _, p := range processes {
		if size, ok := strings.CutPrefix(p, "this "); ok {
			b.WriteString("Including non-PyTorch memory, this process has " + size + " memory in use. ")
			continue
		}
		pid, size, _ := strings.Cut(p, " ")
		b.WriteString("Process " + pid + " has " + size + " memory in use. ")
	}
	if allowed != "" {
		b.WriteString(allowed + " allowed; ")
	}
	b.WriteString("Of the allocated memory " + allocated + " is allocated by PyTorch, ")
	if private != "" {
		b.WriteString("with " + private + " allocated in private pools (e.g., CUDA Graphs), ")
	}
	b.WriteString("and " + unallocated + " is reserved by PyTorch but unallocated.")
	return b.String()
}

// about is a size in GiB as a table gives it: two decimals, -1 for unknown.
func about(t *testing.T, what string, s *Size, want float64) {
	t.Helper()
	if want == unknown {
		if s != nil {
			t.Errorf("%s: want nothing, got %+v", what, *s)
		}
		return
	}
	if s == nil {
		t.Errorf("%s: want %.3f GiB, got nothing", what, want)
		return
	}
	if off := float64(s.Bytes)/float64(gib) - want; off > 0.0101 || off < -0.0101 {
		t.Errorf("%s: want %.3f GiB, got %.3f", what, want, float64(s.Bytes)/float64(gib))
	}
}

const unknown = -1

// Messages of public reports, with what follows from their figures.
func TestWhere(t *testing.T) {
	tests := []struct {
		name              string
		text              string
		reserved, n, x    float64 // GiB
		others            float64
		want              Where
		unmapped, dropped bool
	}{
		{
			name:     "packing, much outside PyTorch",
			text:     sentence("2.96 GiB", "79.25 GiB", "1.16 GiB", []string{"this 78.08 GiB"}, "", "68.35 GiB", "69.34 MiB", "4.37 GiB"),
			reserved: 72.72, n: 5.36, x: 0.01,
			want: Where{Verdict: Packing, NonPyTorch: true},
		},
		{
			name:     "private pools, own process under a host pid",
			text:     sentence("786.00 MiB", "79.11 GiB", "140.75 MiB", []string{"3270336 78.96 GiB"}, "", "68.83 GiB", "660.00 MiB", "331.08 MiB"),
			reserved: 69.15, n: 9.81, x: 0.01,
			want: Where{Verdict: PrivatePools, NonPyTorch: true},
		},
		{
			name:     "packing, large pools",
			text:     sentence("25.31 GiB", "79.25 GiB", "24.65 GiB", []string{"this 54.59 GiB"}, "", "23.57 GiB", "9.93 GiB", "30.41 GiB"),
			reserved: 53.98, n: 0.61, x: 0.01,
			want: Where{Verdict: Packing, PrivatePools: true},
		},
		{
			name:     "truly full",
			text:     sentence("270.00 MiB", "21.98 GiB", "156.94 MiB", []string{"this 21.80 GiB"}, "", "21.42 GiB", "", "24.12 MiB"),
			reserved: 21.44, n: 0.36, x: 0.03,
			want: Where{Verdict: Full},
		},
		{
			name:     "other process",
			text:     sentence("294.00 MiB", "31.36 GiB", "82.62 MiB", []string{"73820 30.29 GiB", "this 994.00 MiB"}, "", "352.57 MiB", "", "47.43 MiB"),
			reserved: 0.39, n: 0.58, x: 0.02, others: 30.29,
			want: Where{Verdict: OtherProcess, OtherProcess: true},
		},
		{
			name:     "more free than tried, own process in the middle",
			text:     sentence("86.00 MiB", "23.64 GiB", "264.00 MiB", []string{"2086283 419.48 MiB", "this 8.04 GiB", "2797307 14.85 GiB"}, "", "7.63 GiB", "", "40.11 MiB"),
			reserved: 7.67, n: 0.37, x: 0.08, others: 15.26,
			want: Where{Verdict: FreeEnough, OtherProcess: true},
		},
		{
			name:     "impossible",
			text:     sentence("74.16 GiB", "44.40 GiB", "29.89 GiB", []string{"2684311 14.51 GiB"}, "", "13.44 GiB", "", "738.96 MiB"),
			reserved: 14.16, n: 0.35, x: 0.00,
			want: Where{Verdict: TooLarge},
		},
		{
			name:     "limit within the rounding of the figures",
			text:     strings.ReplaceAll(sentence("2.00 MiB", "255.98 GiB", "244.65 GiB", nil, "1.05 GiB", "1017.01 MiB", "17.00 MiB", "54.99 MiB"), "CUDA", "HIP"),
			reserved: 1.047, n: unknown, x: unknown, others: unknown,
			want: Where{Verdict: Limited},
		},
		{
			name:     "limit, process value unknown to the driver",
			text:     sentence("3.98 GiB", "31.84 GiB", "16.30 GiB", []string{"this 17179869184.00 GiB"}, "17.51 GiB", "6.74 GiB", "", "7.02 GiB"),
			reserved: 13.76, n: unknown, x: unknown,
			want: Where{Verdict: Limited}, dropped: true,
		},
		{
			name:     "allocator counts unmapped memory",
			text:     sentence("900.00 MiB", "79.19 GiB", "679.38 MiB", []string{"this 72.66 GiB", "42728 3.66 GiB", "49892 2.02 GiB"}, "", "71.60 GiB", "2.98 GiB", "1.35 GiB"),
			reserved: 72.95, n: unknown, x: 0.19, others: 5.68,
			want: Where{Verdict: Packing, OtherProcess: true}, unmapped: true,
		},
		{
			name:     "own process with 0 bytes",
			text:     sentence("1.47 GiB", "79.11 GiB", "1.25 GiB", []string{"this 0 bytes"}, "", "70.03 GiB", "340.00 MiB", "22.16 MiB"),
			reserved: 70.05, n: unknown, x: unknown,
			want: Where{Verdict: PrivatePools}, dropped: true,
		},
		{
			name:     "full to within granularity, display",
			text:     sentence("1.16 GiB", "7.75 GiB", "1.17 GiB", []string{"this 5.02 GiB"}, "", "4.81 GiB", "", "18.97 MiB"),
			reserved: 4.83, n: 0.19, x: 1.56,
			want: Where{Verdict: Full, Granular: true, Unexplained: true},
		},
		{
			name:     "the worked example",
			text:     sentence("8.00 GiB", "139.80 GiB", "6.40 GiB", []string{"this 133.39 GiB"}, "", "124.39 GiB", "3.23 GiB", "5.01 GiB"),
			reserved: 129.40, n: 3.99, x: 0.01,
			want: Where{Verdict: Packing},
		},
		{
			name:     "packing by more than half of the free blocks",
			text:     sentence("4.00 GiB", "80.00 GiB", "1.00 GiB", []string{"this 79.00 GiB"}, "", "74.00 GiB", "", "4.00 GiB"),
			reserved: 78, n: 1, x: 0,
			want: Where{Verdict: Packing, Possibly: true},
		},
		{
			name:     "a limit, and a device that is short too",
			text:     sentence("8.00 GiB", "80.00 GiB", "1.00 GiB", []string{"this 79.00 GiB"}, "79.20 GiB", "77.00 GiB", "", "0 bytes"),
			reserved: 77, n: 2, x: 0,
			want: Where{Verdict: Limited, DeviceShort: true},
		},
		{
			name:     "a limit that was not reached",
			text:     sentence("8.00 GiB", "80.00 GiB", "1.00 GiB", []string{"this 20.00 GiB", "77 59.00 GiB"}, "79.20 GiB", "18.00 GiB", "", "0 bytes"),
			reserved: 18, n: 2, x: 0, others: 59,
			want: Where{Verdict: OtherProcess, OtherProcess: true},
		},
		{
			// Two entries cover what the allocator holds: neither can be
			// called another process.
			name:     "two host pids, own process not known",
			text:     sentence("8.00 GiB", "80.00 GiB", "1.00 GiB", []string{"11 39.00 GiB", "12 40.00 GiB"}, "", "30.00 GiB", "", "0 bytes"),
			reserved: 30, n: unknown, x: unknown, others: unknown,
			want: Where{Verdict: Full, OthersUnknown: true},
		},
		{
			// Sleep mode in a container: no entry covers the counters, and the
			// own entry must not become another process.
			name:     "host pid below the counters",
			text:     sentence("900.00 MiB", "79.19 GiB", "679.38 MiB", []string{"42728 72.66 GiB"}, "", "72.90 GiB", "", "50.00 MiB"),
			reserved: 72.95, n: unknown, x: unknown, others: unknown,
			want: Where{Verdict: Full, OthersUnknown: true},
		},
		{
			name:     "more allocated than the device has",
			text:     sentence("1.00 GiB", "24.00 GiB", "0 bytes", []string{"this 30.00 GiB", "9 1.00 GiB"}, "", "29.00 GiB", "", "500.00 MiB"),
			reserved: 29.49, n: unknown, x: unknown, others: unknown,
			want: Where{Verdict: Full, OthersUnknown: true},
		},
		{
			name:     "old form",
			text:     "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.69 GiB total capacity; 22.06 GiB already allocated; 5.44 MiB free; 22.32 GiB reserved in total by PyTorch)",
			reserved: 22.32, n: unknown, x: unknown, others: unknown,
			want: Where{Verdict: Packing},
		},
		{
			name:     "cut before the processes",
			text:     "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 1.00 GiB is free. Process 12 has 40.00 GiB memory in use. Incl",
			reserved: unknown, n: unknown, x: unknown, others: unknown,
			want: Where{Verdict: Unknown},
		},
		{
			name:     "refused before the driver was asked",
			text:     "CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit. Requested size: 2.00 GiB",
			reserved: unknown, n: unknown, x: unknown, others: unknown,
			want: Where{Verdict: Limited},
		},
		{
			name:     "no figures",
			text:     "CUDA error: out of memory",
			reserved: unknown, n: unknown, x: unknown, others: unknown,
			want: Where{Verdict: Unknown},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, ok := Parse(tt.text)
			if !ok {
				t.Fatalf("not read: %s", tt.text)
			}
			a := m.Account()
			about(t, "reserved", a.Reserved, tt.reserved)
			about(t, "non-PyTorch", a.NonPyTorch, tt.n)
			about(t, "unexplained", a.Unexplained, tt.x)
			about(t, "others", a.Others, tt.others)
			if a.Unmapped != tt.unmapped || a.Dropped > 0 != tt.dropped {
				t.Errorf("want unmapped %v dropped %v, got %v %d", tt.unmapped, tt.dropped, a.Unmapped, a.Dropped)
			}
			got := m.Where()
			got.Short = nil
			if got != tt.want {
				t.Errorf("want %+v\ngot  %+v", tt.want, got)
			}
		})
	}
}

// What is derived carries the precision of all that it was derived from.
func TestAccountPrecision(t *testing.T) {
	m, _ := Parse(sentence("8.00 GiB", "139.80 GiB", "6.40 GiB", []string{"this 133.39 GiB"}, "", "124.39 GiB", "3.23 GiB", "512.00 MiB"))
	a := m.Account()
	const g, mb = 5368709, 5243
	for _, tt := range []struct {
		what string
		size *Size
		want int64
	}{
		{"reserved", a.Reserved, g + mb},
		{"live", a.Live, 2 * g},
		{"missing", a.Missing, 2 * g},
		{"non-PyTorch", a.NonPyTorch, 2*g + mb},
		{"unexplained", a.Unexplained, 3 * g},
		{"others", a.Others, 0},
	} {
		if tt.size == nil || tt.size.Precision != tt.want {
			t.Errorf("%s: want ± %d, got %+v", tt.what, tt.want, tt.size)
		}
	}
	about(t, "live", a.Live, 121.16)
	about(t, "missing", a.Missing, 1.60)
}

func TestShort(t *testing.T) {
	m, _ := Parse(sentence("270.00 MiB", "21.98 GiB", "156.94 MiB", []string{"this 21.80 GiB"}, "", "21.42 GiB", "", "24.12 MiB"))
	if short := m.Where().Short; short == nil || short.Bytes/mib != 88 {
		t.Errorf("want 88.94 MiB short, got %+v", short)
	}
}
