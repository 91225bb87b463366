package oom

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Process is another process that the allocator named, or the process itself
// under a pid of the host (see Account).
type Process struct {
	// PID is 0 where the text did not say.
	PID  int
	Size Size
}

// Message is one out-of-memory statement. A nil size was not printed, or not
// whole.
type Message struct {
	// Vendor is CUDA, HIP, XPU, NPU, MUSA, MLU, ... as printed; empty where no
	// vendor is named.
	Vendor string
	// Form is the family of the text, one of the Form constants.
	Form string

	Tried *Size // the request after the allocator's rounding
	Total *Size // the device's capacity, less than nvidia-smi's total
	Free  *Size // sampled after the failed attempt
	Self  *Size // "this process has"; see Account for the other ways to know it
	// Allowed is the limit from a memory fraction; it holds for Allocated plus
	// Unallocated, not for the process.
	Allowed *Size
	// Allocated includes PrivatePools in the modern form.
	Allocated *Size
	// PrivatePools are free blocks in pools of graphs or other MemPools, in
	// spite of its words "allocated in private pools".
	PrivatePools *Size
	// Unallocated are free blocks of the default pools.
	Unallocated *Size
	// ReservedTotal is printed by the old form, where Unallocated is not.
	ReservedTotal *Size

	// GPU counts within CUDA_VISIBLE_DEVICES.
	GPU *int
	// Others are the "Process N has" parts in printed order.
	Others []Process

	// Hint is H1 to H5, the boilerplate after the figures, or empty. It dates
	// the PyTorch release (H4: 2.10, H5: 2.11 on) and is no evidence of
	// fragmentation.
	Hint string
	// Unhinted marks a sentence that is whole and ends without a hint: with
	// PyTorch 2.14 on, expandable segments were in use.
	Unhinted bool

	// Masked marks an out-of-memory whose text carries no figure of any kind.
	// The "more than 1EB" form is not masked: its text says what happened.
	Masked bool
	// Presumed marks a text that does not prove an out-of-memory alone: the
	// masked dispatcher, which hides the cause, and cuDNN's internal error.
	Presumed bool
	// Host marks host memory, which no figure of the device explains.
	Host bool
	// Op is the operator behind a stable-ABI call, such as "aten::new_empty".
	Op string
	// Carried marks an allocator's sentence inside the dispatcher's
	// RuntimeError, as extensions built with PyTorch 2.14 print it.
	Carried bool
}

// window bounds how far behind its head a message's parts are looked for:
// enough for hundreds of process entries.
const window = 64 << 10

// Parse finds the out-of-memory statement in what an exception said: one line
// or several, wrapped or cut, plain or as a repr, alone or quoted by another
// exception. Of several statements it takes the first that has figures. It
// returns false for texts that merely look alike: hints, "out of resource:
// shared memory", buffer overflows of kernel libraries, token budgets, the
// warning of ParseWarningW, and the errors that follow from a dead engine.
func Parse(text string) (Message, bool) {
	sq := squeeze(text)
	found := candidates(sq)
	for _, c := range found {
		if m := c.message(sq); m.figures() {
			return m, true
		}
	}
	if len(found) > 0 {
		m := found[0].message(sq)
		m.Masked = m.Form != FormExabyte
		return m, true
	}
	if m, ok := bare(text, sq); ok {
		m.Masked = !m.figures()
		return m, true
	}
	return Message{}, false
}

// candidate is a place where a family's pattern matches.
type candidate struct {
	family *family
	match  []string
	start  int
	end    int // of the text that can belong to it
}

// maxCandidates bounds the statements looked at per family; a record repeats
// its exception two or three times.
const maxCandidates = 16

func candidates(sq string) []candidate {
	var found []candidate
	for i := range families {
		f := &families[i]
		if !strings.Contains(sq, f.anchor) {
			continue
		}
		for _, at := range f.pattern.FindAllStringSubmatchIndex(sq, maxCandidates) {
			c := candidate{family: f, match: groups(sq, at), start: at[0]}
			if f.accept != nil && !f.accept(c.match, sq[at[0]:min(len(sq), at[0]+window)]) {
				continue
			}
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.start, b.start) })
	for i := range found {
		found[i].end = min(len(sq), found[i].start+window)
		for _, next := range found[i+1:] {
			if next.start > found[i].start && next.family.own {
				found[i].end = min(found[i].end, next.start)
				break
			}
		}
	}
	return found
}

func groups(s string, at []int) []string {
	out := make([]string, len(at)/2)
	for i := range out {
		if at[2*i] >= 0 {
			out[i] = s[at[2*i]:at[2*i+1]]
		}
	}
	return out
}

func (c candidate) message(sq string) Message {
	f := c.family
	m := Message{Form: f.form, Vendor: f.vendor, Presumed: f.presumed, Host: f.host}
	if f.read != nil {
		f.read(&m, c.match, sq[c.start:c.end])
	}
	return m
}

// figures tells whether any size was printed.
func (m Message) figures() bool {
	for _, s := range [...]*Size{m.Tried, m.Total, m.Free, m.Self, m.Allowed, m.Allocated, m.PrivatePools, m.Unallocated, m.ReservedTotal} {
		if s != nil {
			return true
		}
	}
	return len(m.Others) > 0
}

var (
	// A class name alone is an out-of-memory only where the text begins with
	// it: elsewhere it is a line of source, as in "except OutOfMemoryError".
	bareClass = regexp.MustCompile(`^(?:\[rank\d+\]:)?(?:torch\.|cuda\.|c10::)*OutOfMemoryError(?:[:(]|$)`)
	bareHead  = regexp.MustCompile(`(?:^|[Ee]rror:|[Ee]rror\(?\\?['"]|aoti_torch:|boundary:)` + vendors + `outofmemory(?:[.'")]|$)`)
	// On the text as written: a line of its own, not a word of a sentence.
	memoryError = regexp.MustCompile(`(?m)^(?:\[rank\d+\]:\s*)?(?:[\w.]+\.)?_?(?:Array)?MemoryError(?::|\(\)|\s*$)`)
	arraySize   = regexp.MustCompile(`Unabletoallocate` + size + `foranarray`)
)

// bare reads what is left when no family matches: a head that was cut, a class
// name without a text, Python's own error.
func bare(text, sq string) (Message, bool) {
	if strings.Contains(sq, "utofmemory") {
		if at := bareHead.FindStringSubmatch(sq); at != nil {
			return Message{Form: FormBare, Vendor: at[1]}, true
		}
	}
	if bareClass.MatchString(sq) {
		return Message{Form: FormBare}, true
	}
	text = text[:min(len(text), maxText)]
	if strings.Contains(text, "MemoryError") && memoryError.MatchString(text) {
		return Message{Form: FormPython, Host: true, Tried: first(arraySize, sq)}, true
	}
	return Message{}, false
}
