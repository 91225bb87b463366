package oom

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

const fixtures = "../../fixtures/torch-2.11-h200/"

type counters struct {
	Free      int64 `json:"free"`
	Total     int64 `json:"total"`
	Allocated int64 `json:"allocated_bytes"`
	Reserved  int64 `json:"reserved_bytes"`
	OOMs      int   `json:"num_ooms"`
}

type measured struct {
	Case, What, Exception, Message string
	Requested                      int64    `json:"requested_bytes"`
	Before                         counters `json:"counters_before"`
	After                          counters `json:"counters_after"`
}

func measurements(t testing.TB) []measured {
	t.Helper()
	f, err := os.Open(fixtures + "messages.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []measured
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m measured
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no measurements")
	}
	return all
}

// near holds a read size against a counter.
func near(t *testing.T, what string, s *Size, truth int64) {
	t.Helper()
	if s == nil {
		t.Errorf("%s: not read", what)
		return
	}
	if off := s.Bytes - truth; off > s.Precision || off < -s.Precision {
		t.Errorf("%s: read %d ± %d, counter says %d", what, s.Bytes, s.Precision, truth)
	}
}

// Every figure of every message agrees with the allocator's own counters.
func TestMeasured(t *testing.T) {
	read := 0
	for _, c := range measurements(t) {
		t.Run(c.Case+"/"+c.What, func(t *testing.T) {
			m, ok := Parse(c.Message)
			if strings.HasPrefix(c.What, "triton") {
				if ok {
					t.Errorf("an on-chip limit is read as %s", m.Form)
				}
				return
			}
			if !ok {
				t.Fatal("not read")
			}
			a := m.Account()
			switch m.Form {
			case FormModern:
				read++
				if m.Vendor != "CUDA" || m.Hint != "H5" || m.Masked || m.GPU == nil || *m.GPU != 0 {
					t.Errorf("head: %+v", m)
				}
				near(t, "tried", m.Tried, segment(c.Requested))
				near(t, "total", m.Total, c.After.Total)
				near(t, "free", m.Free, c.After.Free)
				near(t, "live = allocated - private pools", a.Live, c.After.Allocated)
				near(t, "reserved = allocated + unallocated", a.Reserved, c.After.Reserved)
				// 518 MiB of context, and more once a graph was captured; the
				// rest of the device is 9 to 15 MiB of driver.
				if a.NonPyTorch == nil || a.NonPyTorch.Bytes < 500*mib || a.NonPyTorch.Bytes > gib {
					t.Errorf("non-PyTorch: %+v", a.NonPyTorch)
				}
				if a.Unexplained == nil || a.Unexplained.Bytes > 15*mib+a.Unexplained.Precision {
					t.Errorf("unexplained: %+v", a.Unexplained)
				}
			case FormAsync:
				near(t, "tried", m.Tried, c.Requested)
				near(t, "total", m.Total, c.After.Total)
				near(t, "free", m.Free, c.After.Free)
				near(t, "allocated", m.Allocated, c.After.Allocated)
				if a.Limit != nil || a.Missing != nil {
					t.Errorf("limit %+v, missing %+v", a.Limit, a.Missing)
				}
			case FormCPU:
				near(t, "tried", m.Tried, c.Requested)
			default:
				if m.figures() {
					t.Errorf("%s has figures: %+v", m.Form, m)
				}
			}
		})
	}
	if read < 20 {
		t.Errorf("only %d allocator messages were read", read)
	}
}

// segment is what the allocator asks the driver for (c10, kMinBlockSize and
// the segment sizes of 2.11).
func segment(asked int64) int64 {
	block := (asked + 511) / 512 * 512
	switch {
	case block <= mib:
		return 2 * mib
	case block < 10*mib:
		return 20 * mib
	}
	return (block + 2*mib - 1) / (2 * mib) * (2 * mib)
}

func TestMeasuredForms(t *testing.T) {
	want := map[string]struct {
		form    string
		verdict Verdict
		masked  bool
	}{
		"cpu 1 PiB":                     {FormCPU, Unknown, false},
		"numel overflow > 1 EB":         {FormExabyte, TooLarge, false},
		"impossible 32 PiB":             {FormModern, TooLarge, false},
		"plain: 8 GiB with ~4 GiB free": {FormModern, Full, false},
		"torchscript":                   {FormModern, Full, false},
		"rounding: asked 512":           {FormModern, Full, false},
		"fragmentation: 8 GiB, ~4 GiB free, ~37 GiB in pinned slivers":         {FormModern, Packing, false},
		"graph pool: 3 GiB dead + 2 GiB live in it; 8 GiB asked, ~4 GiB free":  {FormModern, Full, false},
		"MemPool: 5 GiB dead + 2 GiB live in it; 8 GiB asked, ~4 GiB free":     {FormModern, PrivatePools, false},
		"another process holds 20 GiB; 8 GiB asked, ~2 GiB free":               {FormModern, OtherProcess, false},
		"fraction 0.10: 4 GiB asked after 12 GiB, most of the GPU free":        {FormModern, Limited, false},
		"fraction back to 1.0, then a plain OOM (is 'allowed' still printed?)": {FormModern, Full, false},
		"expandable: the 8 GiB that fragmentation refuses":                     {FormModern, Full, false},
		"mem_get_info as the first CUDA call on a full GPU":                    {FormRuntime, Unknown, true},
		"brim: first cuBLAS call":                                              {FormCublas, Unknown, true},
		"brim: conv (cuDNN)":                                                   {FormCudnnInternal, Unknown, true},
		"cudaMallocAsync: 8 GiB with ~4 GiB free":                              {FormAsync, Full, false},
		"per_process_memory_fraction:0.1 by environment":                       {FormModern, Limited, false},
	}
	for _, c := range measurements(t) {
		w, ok := want[c.What]
		if !ok {
			continue
		}
		delete(want, c.What)
		m, _ := Parse(c.Message)
		if m.Form != w.form || m.Where().Verdict != w.verdict || m.Masked != w.masked {
			t.Errorf("%s: want %+v, got %s %s masked %v", c.What, w, m.Form, m.Where().Verdict, m.Masked)
		}
	}
	for what := range want {
		t.Errorf("no measurement %q", what)
	}
}

// On stderr the sentence stands behind a C++ log head or a class name, and
// before frames.
func TestMeasuredStderr(t *testing.T) {
	for _, name := range []string{"spawned-child-traceback.txt", "stable-abi-stderr.txt"} {
		text, err := os.ReadFile(fixtures + name)
		if err != nil {
			t.Fatal(err)
		}
		m, ok := Parse(string(text))
		if !ok || m.Form != FormModern || m.Tried == nil || m.Tried.Text != "8.00 GiB" ||
			m.Unallocated == nil || m.Hint != "H5" || m.Unhinted {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
