package parser

// Pos is where a physical line stands in the input. It is what a statement of
// a diagnosis points at.
type Pos struct {
	// Source indexes the inputs of one reading, from 0.
	Source int
	// Line counts "\n" from 1 in the decompressed bytes of the source. It is 0
	// where the source was not read from its start.
	Line int64
	// Offset is the byte offset of the line's first byte in the decompressed
	// source, or -1 where it is not known.
	Offset int64
	// Order is the place in a reading that merges several sources by time; 0
	// where each source is read on its own.
	Order int64
}

// Before tells whether p stands before q in one reading.
func (p Pos) Before(q Pos) bool {
	if p.Order != 0 && q.Order != 0 {
		return p.Order < q.Order
	}
	if p.Source != q.Source {
		return p.Source < q.Source
	}
	return p.Offset < q.Offset
}

// Line is one physical line as it was read, without its "\n".
type Line struct {
	At   Pos
	Data []byte
	// Cut counts the bytes that the reader left out of the middle of a huge
	// line; 0 for a whole line.
	Cut int64
}

// Process names the writer of a line by the innermost "(name pid=N)" prefix.
// Key processes by PID: a worker changes its name while it starts
// (vllm/utils/system_utils.py), and PIDs repeat only across runs.
type Process struct {
	Name string
	// PID is 0 where the line had no prefix.
	PID int
}

// IsZero tells whether the line had no prefix.
func (p Process) IsZero() bool { return p == Process{} }
