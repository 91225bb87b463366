package oom

// Account is what a message implies beyond what it prints. A nil size is not
// known: a part of it was not printed, or was dropped as impossible.
type Account struct {
	// Reserved is what this allocator holds: allocated and unallocated.
	Reserved *Size
	// Live is what tensors hold: allocated less the free blocks of private
	// pools.
	Live *Size
	// Unallocated is as printed, or for the old form reserved less allocated.
	Unallocated *Size
	// Missing is tried less free; negative where more was free than tried.
	Missing *Size
	// Limit is what a memory fraction allows.
	Limit *Size

	// Self is what this process holds on the device in all.
	Self *Size
	// SelfPID is the pid of the entry that Self was taken from, where the text
	// names no "this process": inside a container the driver knows the process
	// by the host's pid. It is 0 otherwise.
	SelfPID int
	// OtherProcesses are the entries of other processes, and Others is their
	// sum: 0 where the list is whole and names no other. It is nil where there
	// is no list (ROCm, Windows, no NVML), where the list was cut, and where
	// any entry could be this process.
	OtherProcesses []Process
	Others         *Size

	// NonPyTorch is what this process holds outside the allocator: context,
	// modules, graphs, NCCL. An otherwise empty process has 518 MiB on an H200.
	NonPyTorch *Size
	// Unexplained is what nobody named holds: graphics processes, other
	// containers, the driver.
	Unexplained *Size

	// Oversubscribed marks counters above the device's capacity (WDDM, WSL):
	// nothing is then said about processes.
	Oversubscribed bool
	// Unmapped marks an allocator that counts more than the process holds:
	// sleep mode has given pages back behind its back. NonPyTorch is then nil.
	Unmapped bool
	// Dropped counts printed values that no device can have.
	Dropped int
}

// Account derives the quantities, with the precision of everything that each
// was derived from.
func (m Message) Account() Account {
	var a Account
	a.Limit = a.possible(m.Allowed)
	allocated := a.possible(m.Allocated)

	if m.ReservedTotal != nil {
		a.Reserved = a.possible(m.ReservedTotal)
		a.Unallocated = a.Reserved.minus(allocated)
		a.Live = allocated
	} else {
		// An unsigned difference below zero is printed as about 2^64.
		a.Unallocated = a.possible(m.Unallocated)
		a.Reserved = allocated.plus(a.Unallocated)
		// Where U was printed, a missing clause says that P is zero; where the
		// text was cut before U, the clause may have been cut too.
		if m.PrivatePools != nil {
			a.Live = allocated.minus(a.possible(m.PrivatePools))
		} else if m.Unallocated != nil {
			a.Live = allocated
		}
	}
	if m.Form != FormAsync { // its free memory is sampled after the pool grew
		a.Missing = m.Tried.minus(m.Free)
	}
	a.processes(m)
	return a
}

// possible drops what no device can have.
func (a *Account) possible(s *Size) *Size {
	if s != nil && !s.Possible() {
		a.Dropped++
		return nil
	}
	return s
}

func (a *Account) processes(m Message) {
	if over(m) {
		a.Oversubscribed = true
		return
	}
	a.Self = a.process(m.Self)
	dropped := m.Self != nil && a.Self == nil
	entries := make([]Process, 0, len(m.Others))
	for _, p := range m.Others {
		if a.process(&p.Size) == nil {
			dropped = true
			continue
		}
		entries = append(entries, p)
	}
	if i := a.own(m, entries); i >= 0 {
		a.Self, a.SelfPID = &entries[i].Size, entries[i].PID
		entries = append(entries[:i:i], entries[i+1:]...)
	}

	// The list is whole where the sentence goes on behind it. While it is not
	// clear which entry is this process, none can be called another one.
	whole := m.Allocated != nil && (m.Self != nil || a.Self != nil)
	if whole {
		a.OtherProcesses = entries
		a.Others = &Size{}
		for _, p := range entries {
			a.Others = a.Others.plus(&p.Size)
		}
	}
	if a.Self != nil && a.Reserved != nil {
		if a.Self.atLeast(a.Reserved) {
			a.NonPyTorch = a.Self.minus(a.Reserved)
		} else {
			a.Unmapped = true
		}
	}
	if whole && !dropped {
		a.Unexplained = m.Total.minus(m.Free).minus(a.Self).minus(a.Others)
	}
}

// process drops what the driver reports when it does not know: 2^64 - 1, or 0
// for a process that does hold memory.
func (a *Account) process(s *Size) *Size {
	if s != nil && s.Bytes == 0 && a.Reserved != nil && a.Reserved.Bytes > 0 {
		a.Dropped++
		return nil
	}
	return a.possible(s)
}

// own finds the entry that is this process: the only one that covers what the
// allocator holds, where the text says "this process" nowhere. It gives -1 if
// there is none, or a choice.
func (a *Account) own(m Message, entries []Process) int {
	if m.Self != nil || a.Reserved == nil || a.Reserved.Bytes == 0 {
		return -1
	}
	found := -1
	for i := range entries {
		if !entries[i].Size.atLeast(a.Reserved) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// over tells whether the allocator counts more than the device has.
func over(m Message) bool {
	if m.Allocated == nil || m.Total == nil || m.Form == FormMPS {
		return false
	}
	if !m.Total.atLeast(m.Allocated) {
		return true
	}
	return m.Free != nil && m.Free.Bytes == 0 && m.Allocated.Bytes >= m.Total.Bytes
}
