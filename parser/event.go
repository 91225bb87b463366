package parser

import (
	"diagnose/parser/framing"
	"diagnose/parser/pyrepr"
)

// Event is one thing that a process wrote, with where and when.
type Event struct {
	// At is the first line of what was written.
	At   Pos
	Proc Process
	// Time is the time as printed ("11-30 02:27:33": month, day, no year, no
	// zone), "" for raw output.
	Time string
	Meta framing.Meta
	Body Body
}

// Body is what an event says. The types of this file are all there are.
type Body interface{ body() }

// Banner is the start marker of a server: the first line of a run that names
// the version.
type Banner struct {
	Version string
	Model   string
}

// Args are the arguments of a start, as Python values. Full tells whether all
// were printed (0.6 to 0.8) or only those that differ from the default.
type Args struct {
	Values map[string]pyrepr.Value
	Full   bool
}

// Config is the engine's configuration line. Dump marks the copy that is
// printed at a crash: it belongs to the run that dies and starts none.
type Config struct {
	Version string
	Values  map[string]string
	Dump    bool
}

// Fact is one figure or word of the start-up lines. Names are those of the
// catalogue's expressions; sizes are in bytes and end in "_bytes".
type Fact struct {
	Name string
	// Number is valid if Text is empty.
	Number float64
	// Precision is half of the last printed digit, in the unit of Number.
	Precision float64
	Text      string
	At        Pos
}

// Facts are what one start-up line says.
type Facts struct{ List []Fact }

// Stats is a line of periodic statistics. Counts are -1 where not printed.
type Stats struct {
	Engine      string
	Running     int
	Waiting     int
	Preemptions int
	KVUsagePct  float64
}

// Dump is a line of the crash dump: the scheduler's output or its statistics.
// Numbers are -1 where not printed; Usage is in percent.
type Dump struct {
	Kind           string // "output" or "stats"
	ScheduledTotal int
	Running        int
	Waiting        int
	KVUsagePct     float64
	PromptLogprobs int
	PromptTokens   int
}

// Ready marks the end of a start: the server takes requests.
type Ready struct{}

// Stop marks an ordered stop: somebody told the server to go.
type Stop struct{ Text string }

// Ended marks the last words of a server process.
type Ended struct{ Text string }

// HTTPError counts an access line with a 5xx status.
type HTTPError struct {
	Status int
	Path   string
}

// Failure is a record that carries a traceback or an exception.
type Failure struct {
	Record *Record
	// Exceptions are those of the record's chain in causal order: the first is
	// the cause, copies are folded into Copies. One that carries another
	// process's (RayTaskError), and a group, stand after what they carry.
	Exceptions []Exception
}

// Notice is a record without an exception that may still matter: a WARNING or
// worse, or a raw line.
type Notice struct{ Record *Record }

func (Banner) body()    {}
func (Args) body()      {}
func (Config) body()    {}
func (Facts) body()     {}
func (Stats) body()     {}
func (Dump) body()      {}
func (Ready) body()     {}
func (Stop) body()      {}
func (Ended) body()     {}
func (HTTPError) body() {}
func (Failure) body()   {}
func (Notice) body()    {}

// Level is the severity of a log record.
type Level int8

// Levels. Raw is output that no logger formatted.
const (
	Raw Level = iota
	Debug
	Info
	Warning
	Error
	Critical
)

func (l Level) String() string {
	return [...]string{"raw", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}[l]
}

// TextLine is one line of a record without its prefix and head.
type TextLine struct {
	At   Pos
	Text string
}

// Record is what one process wrote in one go.
type Record struct {
	Proc  Process
	Level Level
	Time  string
	File  string // "core.py", or the shortened path at DEBUG
	Lines []TextLine
	// Dropped counts lines left out of the middle of a huge record.
	Dropped int
}

// First is the record's first line, "" if it has none.
func (r *Record) First() string {
	if len(r.Lines) == 0 {
		return ""
	}
	return r.Lines[0].Text
}

// At is where the record begins.
func (r *Record) At() Pos {
	if len(r.Lines) == 0 {
		return Pos{Offset: -1}
	}
	return r.Lines[0].At
}

// Frame is one entry of a Python traceback.
type Frame struct {
	File string
	Func string
	// Code is the quoted source line, "" if none.
	Code string
	At   Pos
	// CodeAt is the line of Code.
	CodeAt Pos
}

// Exception is one exception of a record.
type Exception struct {
	// Class is the printed class with its module, "" if the traceback was cut
	// before the exception line.
	Class string
	// Text is the message; lines of a message of several are joined by "\n".
	Text string
	At   Pos
	// Frames are outermost first.
	Frames []Frame
	// Copies counts how often the same text stands again in the record.
	Copies int
	// Wrapped marks a text that a terminal broke at its right edge, as far as
	// that shows.
	Wrapped bool
}
