package pyrepr

import (
	"strconv"
	"strings"
)

// Kind is what a Value is.
type Kind int

// The kinds. Raw is text that is no Python literal, such as "torch.bfloat16",
// "<object at 0x7f00>" or an unquoted key.
const (
	Raw Kind = iota
	None
	Bool
	Int
	Float
	String
	List
	Tuple
	Set
	Dict
	Call
)

func (k Kind) String() string {
	names := [...]string{"raw", "none", "bool", "int", "float", "string", "list", "tuple", "set", "dict", "call"}
	if k < 0 || int(k) >= len(names) {
		return "kind " + strconv.Itoa(int(k))
	}
	return names[k]
}

// Value is one value, perhaps the readable beginning of one.
type Value struct {
	Kind Kind
	// Source is the text it was read from.
	Source string
	// Name is that of a Call, such as "SchedulerOutput".
	Name string
	// Items are the elements of a List, Tuple or Set.
	Items []Value
	// Entries are those of a Dict, or the arguments of a Call.
	Entries []Entry

	text string // of a String, decoded
}

// Entry is one pair of a Dict, or one argument of a Call.
type Entry struct {
	// Key is the key of a Dict's pair, or the name of a Call's argument; a Raw
	// without text for an argument that has none.
	Key   Value
	Value Value
}

// Text is the value as a person would type it for a flag: a string without its
// quotes, anything else as it was printed.
func (v Value) Text() string {
	if v.Kind == String {
		return v.text
	}
	return v.Source
}

// Str is the text of a String.
func (v Value) Str() (string, bool) { return v.text, v.Kind == String }

// Bool is the value of a Bool.
func (v Value) Bool() (value, ok bool) {
	if v.Kind != Bool {
		return false, false
	}
	return v.Source == "True" || v.Source == "true", true
}

// Int is the value of an Int, if 64 bits hold it.
func (v Value) Int() (int64, bool) {
	if v.Kind != Int {
		return 0, false
	}
	// Base 0 would read "010", which Python does not print, as octal.
	text, base := strings.ReplaceAll(v.Source, "_", ""), 10
	if sign, digits, ok := strings.Cut(text, "0x"); ok && strings.Trim(sign, "+-") == "" {
		text, base = sign+digits, 16
	}
	n, err := strconv.ParseInt(text, base, 64)
	return n, err == nil
}

// Float is the value of a Float or an Int. "nan" and "inf" are Floats.
func (v Value) Float() (float64, bool) {
	switch v.Kind {
	case Float:
		f, err := strconv.ParseFloat(strings.ReplaceAll(v.Source, "_", ""), 64)
		// Python prints no float out of range; what is read as one becomes
		// infinite, with an error.
		return f, err == nil || strings.Contains(err.Error(), "range")
	case Int:
		if n, ok := v.Int(); ok {
			return float64(n), true
		}
		f, err := strconv.ParseFloat(strings.ReplaceAll(v.Source, "_", ""), 64)
		return f, err == nil
	}
	return 0, false
}

// Get finds the entry of a Dict by the text of its key, or the argument of a
// Call by its name. Of several it gives the last, as Python would.
func (v Value) Get(name string) (Value, bool) {
	for i := len(v.Entries) - 1; i >= 0; i-- {
		if e := v.Entries[i]; e.Key.Source != "" && e.Key.Text() == name {
			return e.Value, true
		}
	}
	return Value{}, false
}
