package matcher

import (
	"strconv"
	"strings"

	"diagnose/parser"
	"diagnose/parser/version"
)

// fact is a value with where it stands.
type fact struct {
	Value
	at    []parser.Pos
	grade Grade
	// basis is arguments, default, given, config or log.
	basis string
	// eps is half of the last printed digit.
	eps float64
}

// scope holds the facts of one incident for the expressions of an entry.
type scope struct {
	facts   map[string]fact
	version version.Version
	known   bool // version is known
}

func newScope() *scope { return &scope{facts: map[string]fact{}} }

// Lookup implements Scope.
func (s *scope) Lookup(name string) Value {
	if set, ok := strings.CutPrefix(name, "version_in:"); ok {
		if !s.known {
			return Value{}
		}
		parsed, err := version.ParseSet(set)
		if err != nil {
			return Value{}
		}
		return Truth(parsed.Contains(s.version))
	}
	return s.facts[name].Value
}

func (s *scope) set(name string, v Value, grade Grade, at ...parser.Pos) {
	s.facts[name] = fact{Value: v, grade: grade, at: at, basis: "log"}
}

func (s *scope) num(name string) (float64, bool) { return s.facts[name].Float() }

// positions collects the lines of the named facts, each once, in order of use.
func (s *scope) positions(names []string) []parser.Pos {
	var out []parser.Pos
	seen := map[parser.Pos]bool{}
	for _, n := range names {
		for _, p := range s.facts[n].at {
			if !seen[p] && p.Offset >= 0 {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// derive sets a computed fact whose lines are those of its inputs.
func (s *scope) derive(name string, v float64, inputs ...string) {
	grade := Computed
	for _, in := range inputs {
		if s.facts[in].grade == Inferred {
			grade = Inferred
		}
	}
	s.facts[name] = fact{Value: Num(v), grade: grade, at: s.positions(inputs)}
}

// textValue turns a flag's printed value into a number, a truth or a text.
func textValue(t string) Value {
	switch t {
	case "None", "null", "":
		return Value{}
	case "True", "true":
		return Truth(true)
	case "False", "false":
		return Truth(false)
	}
	if f, err := strconv.ParseFloat(t, 64); err == nil {
		return Num(f)
	}
	return Text(t)
}
