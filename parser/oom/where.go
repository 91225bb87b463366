package oom

// Verdict says where the missing bytes are. It is not the class of the crash:
// better packing would have fitted most requests that fail for other reasons.
type Verdict string

// The verdicts, in the order in which they are tried.
const (
	// Limited: a memory fraction forbids it.
	Limited Verdict = "limit"
	// TooLarge: the request exceeds the whole device.
	TooLarge Verdict = "impossible"
	// FreeEnough: more was free, when the message was made, than was tried.
	// Something freed memory in between, or a pool or partition has a limit of
	// its own; capacity it was not.
	FreeEnough Verdict = "free-enough"
	// Packing: the allocator's own free blocks would have covered the rest.
	Packing Verdict = "packing"
	// PrivatePools: free blocks of graph pools or MemPools would have, and
	// cannot be lent out.
	PrivatePools Verdict = "private-pools"
	// OtherProcess: what other processes hold would have.
	OtherProcess Verdict = "other-process"
	// Full: nothing named would have.
	Full Verdict = "full"
	// Unknown: the text does not say enough.
	Unknown Verdict = "unknown"
)

const mib, gib = int64(1) << 20, int64(1) << 30

// Where is the verdict over one message, and what else stands out in it.
type Where struct {
	Verdict Verdict
	// Short is what was missing even with perfect packing, for Full and
	// OtherProcess; nil otherwise.
	Short *Size
	// Possibly marks a Packing that needs more than half of the free blocks:
	// they are an upper bound, since only whole free pages can be joined.
	Possibly bool
	// Granular marks a Full device on which slightly more was free than tried:
	// segments are refused when the last few MiB are not usable.
	Granular bool
	// OthersUnknown marks a Full without a usable list of processes: another
	// process may hold the difference.
	OthersUnknown bool
	// DeviceShort marks a Limited request that the device could not have
	// served either.
	DeviceShort bool

	// The flags stand beside any verdict: a part that is large for the device,
	// whether or not it would have covered the missing bytes.
	OtherProcess, Unexplained, NonPyTorch, PrivatePools bool
}

// Where decides by the message's figures alone.
func (m Message) Where() Where {
	a := m.Account()
	w := Where{Verdict: Unknown}
	w.flags(m, a)
	switch {
	case m.Form == FormExabyte:
		w.Verdict = TooLarge
		return w
	case m.Form == FormPreempted:
		w.Verdict = Limited
		return w
	case m.Host || m.Tried == nil || !m.Tried.Possible() && m.Total == nil:
		return w
	case m.Form == FormAsync:
		w.async(m, a)
		return w
	}
	if limited(a.Reserved, m.Tried, a.Limit) {
		w.Verdict = Limited
		w.DeviceShort = a.Missing != nil && a.Missing.Bytes > 0
		return w
	}
	if m.Total != nil && m.Tried.Bytes > m.Total.Bytes {
		w.Verdict = TooLarge
		return w
	}
	if a.Missing == nil {
		return w
	}
	if a.Missing.Bytes <= 0 {
		w.Verdict = FreeEnough
		// Measured: 2.00 MiB refused with 3.12 MiB free; seen: 50.00 MiB
		// refused with 56.88 MiB free.
		if -a.Missing.Bytes <= max(m.Tried.Bytes/20, 8*mib) {
			w.Verdict, w.Granular = Full, true
		}
		return w
	}
	w.missing(m, a)
	return w
}

// missing places the missing bytes of a request that did not fit.
func (w *Where) missing(m Message, a Account) {
	if a.Unallocated == nil {
		return
	}
	missing, packed := a.Missing.Bytes, a.Unallocated.Bytes
	if missing <= packed {
		w.Verdict = Packing
		w.Possibly = missing > packed/2
		return
	}
	rest := a.Missing.minus(a.Unallocated)
	if m.PrivatePools != nil && m.PrivatePools.Possible() {
		rest = rest.minus(m.PrivatePools)
		if rest.Bytes <= 0 {
			w.Verdict = PrivatePools
			return
		}
	}
	w.Verdict, w.Short, w.OthersUnknown = Full, rest, a.Others == nil
	if a.Others != nil && rest.Bytes <= a.Others.Bytes {
		w.Verdict = OtherProcess
	}
}

// async compares allocated and requested with the limits: the free memory it
// prints is what was left after the driver's pool grew for the attempt.
func (w *Where) async(m Message, a Account) {
	switch {
	case m.Total != nil && m.Tried.Bytes > m.Total.Bytes:
		w.Verdict = TooLarge
	case limited(m.Allocated, m.Tried, a.Limit):
		w.Verdict = Limited
		w.DeviceShort = exceeds(m.Allocated, m.Tried, m.Total)
	case exceeds(m.Allocated, m.Tried, m.Total):
		w.Verdict, w.Short = Full, m.Allocated.plus(m.Tried).minus(m.Total)
	}
}

// limited tells whether held and tried reach a limit within their precision:
// the allocator's own test is made on unrounded figures.
func limited(held, tried, limit *Size) bool {
	sum := held.plus(tried)
	return sum != nil && limit != nil && sum.atLeast(limit)
}

func exceeds(held, tried, total *Size) bool {
	sum := held.plus(tried)
	return sum != nil && total != nil && sum.Bytes > total.Bytes
}

func (w *Where) flags(m Message, a Account) {
	var total int64
	if m.Total != nil && m.Total.Possible() {
		total = m.Total.Bytes
	}
	w.OtherProcess = a.Others != nil && a.Others.Bytes >= max(gib/2, total/100)
	w.Unexplained = a.Unexplained != nil && a.Unexplained.Bytes >= max(gib, total/50)
	w.NonPyTorch = a.NonPyTorch != nil && a.NonPyTorch.Bytes >= max(3*gib, total/20)
	w.PrivatePools = total > 0 && m.PrivatePools != nil && m.PrivatePools.Possible() && m.PrivatePools.Bytes >= total/20
}
