package oom

import (
	"regexp"
	"strconv"
	"strings"
)

// Every pattern of this package matches squeezed text.
const (
	size = `(\d+(?:\.\d+)?(?:bytes|KiB|MiB|GiB|KB|MB|GB))`
	// The words that backends put before "out of memory".
	vendors = `(CUDA|HIP|XPU|NPU|MUSA|MLU|GCU|DIPU|MACA|HPU)`
	// atenOp is a quoted operator; a JSON log escapes the quotes.
	atenOp = `torch_call_dispatcher\(\\?"(aten::[A-Za-z0-9_.]+)\\?"`
)

// The parts of c10/cuda/CUDACachingAllocator.cpp's sentence and of its copies
// for other devices, each with the words that tell what it is.
var (
	reTotal       = regexp.MustCompile(`[A-Za-z](\d{1,4})hasatotalcapaci?tyof` + size) // 2.1 printed "capacty"
	reFree        = regexp.MustCompile(`ofwhich` + size + `isfree`)
	reSelf        = regexp.MustCompile(`[Tt]hisprocesshas` + size + `memoryinuse`)
	reOther       = regexp.MustCompile(`Process(\d{1,10}|\.{2,3}|…|\?+|<[a-z]{1,10}>)has` + size + `memoryinuse`)
	reAllowed     = regexp.MustCompile(size + `allowed;`)
	reAllocated   = regexp.MustCompile(`Oftheallocatedmemory` + size + `isallocatedbyPyTorch`)
	rePrivate     = regexp.MustCompile(`with` + size + `allocatedinprivatepools`)
	reUnallocated = regexp.MustCompile(`and` + size + `isreservedbyPyTorchbutunallocated`)
	reCarried     = regexp.MustCompile(`\(originallyfrom` + atenOp)

	reOldGPU       = regexp.MustCompile(`\((?:GPU|NPU|MLU|XPU|MUSA)(\d{1,4});`)
	reOldTotal     = regexp.MustCompile(size + `totalcapacity[;)]`)
	reOldAllocated = regexp.MustCompile(size + `alreadyallocated;`)
	reOldFree      = regexp.MustCompile(size + `free[;)]`)
	reOldReserved  = regexp.MustCompile(size + `(?:cached\)|reservedintotalbyPyTorch)`)

	reAsyncAllocated = regexp.MustCompile(`Currentlyallocated:` + size)
	reAsyncTried     = regexp.MustCompile(`Requested:` + size)
	reAsyncTotal     = regexp.MustCompile(`Devicelimit:` + size)
	reAsyncFree      = regexp.MustCompile(`Free\(accordingtoCUDA\):` + size)
	reAsyncAllowed   = regexp.MustCompile(`memoryfraction\):` + size)

	reMPSAllocated = regexp.MustCompile(`MPSallocated:` + size)
	reMPSAllowed   = regexp.MustCompile(`maxallowed:` + size)
	reMPSTried     = regexp.MustCompile(`Triedtoallocate` + size)

	reCupyAllocated = regexp.MustCompile(`allocatedsofar:([\d,]{1,26})bytes`)
	reCupyAllowed   = regexp.MustCompile(`limitsetto:([\d,]{1,26})bytes`)
)

// first is the first size that a pattern finds; nil if none.
func first(re *regexp.Regexp, s string) *Size {
	m := re.FindStringSubmatch(s)
	if m == nil {
		return nil
	}
	return parsed(m[len(m)-1])
}

func parsed(text string) *Size {
	if s, ok := ParseSize(text); ok {
		return &s
	}
	return nil
}

func number(digits string) *int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return nil
	}
	return &n
}

// readAllocator reads the sentence of a caching allocator, in its modern or
// its old shape. match[1] is the vendor and match[2] the size tried.
func readAllocator(m *Message, match []string, s string) {
	m.Vendor, m.Tried = match[1], parsed(match[2])
	m.Allowed = first(reAllowed, s)
	if at := reCarried.FindStringSubmatch(s); at != nil {
		m.Carried, m.Op = true, at[1]
	}
	m.Hint = hint(s)
	if at := reOldGPU.FindStringSubmatch(s); at != nil {
		m.Form, m.GPU = FormOld, number(at[1])
		if m.Vendor == "NPU" {
			m.Form = FormNPU
		}
		readOld(m, s)
		return
	}
	if at := reTotal.FindStringSubmatch(s); at != nil {
		m.GPU, m.Total = number(at[1]), parsed(at[2])
	}
	m.Free = first(reFree, s)
	m.Self = first(reSelf, s)
	for _, at := range reOther.FindAllStringSubmatch(s, -1) {
		if size := parsed(at[2]); size != nil {
			pid, _ := strconv.Atoi(at[1]) // 0 for a pid that was left out
			m.Others = append(m.Others, Process{PID: pid, Size: *size})
		}
	}
	m.Allocated = first(reAllocated, s)
	m.PrivatePools = first(rePrivate, s)
	m.Unallocated = first(reUnallocated, s)
	m.Unhinted = m.Unallocated != nil && endsUnhinted(s)
}

func readOld(m *Message, s string) {
	m.Total = first(reOldTotal, s)
	m.Allocated = first(reOldAllocated, s)
	m.Free = first(reOldFree, s)
	m.ReservedTotal = first(reOldReserved, s)
}

func readAsync(m *Message, match []string, s string) {
	m.GPU = number(match[1])
	m.Allocated = first(reAsyncAllocated, s)
	m.Tried = first(reAsyncTried, s)
	m.Total = first(reAsyncTotal, s)
	m.Free = first(reAsyncFree, s)
	m.Allowed = first(reAsyncAllowed, s)
}

func readMPS(m *Message, _ []string, s string) {
	m.Allocated = first(reMPSAllocated, s)
	m.Allowed = first(reMPSAllowed, s)
	m.Tried = first(reMPSTried, s)
}

func readNPUWorkspace(m *Message, match []string, s string) {
	m.Tried = parsed(match[1])
	if at := reOldGPU.FindStringSubmatch(s); at != nil {
		m.GPU = number(at[1])
	}
	readOld(m, s)
}

func readCupy(m *Message, match []string, s string) {
	m.Tried = exact(match[1])
	if at := reCupyAllocated.FindStringSubmatch(s); at != nil {
		m.Allocated = exact(at[1])
	}
	if at := reCupyAllowed.FindStringSubmatch(s); at != nil {
		m.Allowed = exact(at[1])
	}
}

// readBytes takes a plain count of bytes from the pattern's first group.
func readBytes(m *Message, match []string, _ string) { m.Tried = exact(match[1]) }

// readSize takes a printed size from the pattern's first group.
func readSize(m *Message, match []string, _ string) { m.Tried = parsed(match[1]) }

func readVendor(m *Message, match []string, _ string) { m.Vendor = match[1] }

func readVendorSize(m *Message, match []string, _ string) {
	m.Vendor, m.Tried = match[1], parsed(match[2])
}

func readOp(m *Message, match []string, _ string) { m.Op = match[1] }

// hint names the boilerplate by its words and its address. The variable alone
// does not date it: builds for other devices have names of their own.
func hint(s string) string {
	const (
		oldAddress = "https://pytorch.org/docs/stable/notes/cuda.html#environment-variables"
		newAddress = "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage"
	)
	switch {
	case strings.Contains(s, "Ifreservedmemoryis>>allocatedmemory"):
		return "H1"
	case !strings.Contains(s, "Ifreservedbutunallocatedmemoryislarge"):
		return ""
	case strings.Contains(s, "trysettingmax_split_size_mb"):
		return "H2"
	case strings.Contains(s, newAddress):
		return "H5"
	case !strings.Contains(s, oldAddress):
		return ""
	case strings.Contains(s, "trysettingPYTORCH_ALLOC_CONF="):
		return "H4"
	case strings.Contains(s, "trysettingPYTORCH_CUDA_ALLOC_CONF="):
		return "H3"
	}
	return ""
}

// endsUnhinted tells whether nothing, or only what quotes the sentence, follows
// its full stop.
func endsUnhinted(s string) bool {
	_, rest, ok := strings.Cut(s, "reservedbyPyTorchbutunallocated.")
	if !ok {
		return false
	}
	if rest == "" {
		return true
	}
	for _, next := range [...]string{"'", `"`, `\'`, `\"`, "(originallyfrom", ")", "Exceptionraisedfrom"} {
		if strings.HasPrefix(rest, next) {
			return true
		}
	}
	return false
}
