package report

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"diagnose/matcher"
)

// Names are the inputs' names as a report shows them, by index.
type Names []string

// NamesOf gives each input of d a short name: what given holds for it, else the
// base name of its path, with as many folders before it as it takes to tell two
// inputs apart. Standard input ("-") is "stdin".
func NamesOf(d matcher.Document, given []string) Names {
	names := make(Names, len(d.Inputs))
	for i, in := range d.Inputs {
		switch {
		case i < len(given) && given[i] != "":
			names[i] = given[i]
		case in.Name == "-":
			names[i] = "stdin"
		default:
			names[i] = shortest(d.Inputs, i)
		}
		names[i] = word(names[i])
	}
	return names
}

// shortest is the tail of input i's path that no other input's path ends in.
func shortest(inputs []matcher.Input, i int) string {
	parts := strings.Split(path.Clean(inputs[i].Name), "/")
	for n := 1; n < len(parts); n++ {
		tail := strings.Join(parts[len(parts)-n:], "/")
		unique := true
		for j, other := range inputs {
			name := path.Clean(other.Name)
			if j != i && (name == tail || strings.HasSuffix(name, "/"+tail)) {
				unique = false
				break
			}
		}
		if unique {
			return tail
		}
	}
	return strings.Join(parts, "/")
}

// Ref is one position: "vllm.log:812", or "vllm.log@90112" where only the byte
// offset is known. It is empty for nil.
func (n Names) Ref(at *matcher.At) string {
	if at == nil {
		return ""
	}
	return n.source(at.Source) + spot(*at)
}

// maxRefs is how many positions stand behind one statement.
const maxRefs = 4

// Refs are several positions, the file named once: "vllm.log:41, :97". More
// than a few are counted; a negative limit lists all.
func (n Names) Refs(at []matcher.At, limit int) string {
	var b strings.Builder
	for i, a := range at {
		if limit >= 0 && i >= limit && len(at) > limit+1 {
			fmt.Fprintf(&b, " and %s more", grouped(int64(len(at)-i)))
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if i == 0 || a.Source != at[i-1].Source || spot(a) == "" {
			b.WriteString(n.source(a.Source))
		}
		b.WriteString(spot(a))
	}
	return b.String()
}

func (n Names) source(i int) string {
	if i < 0 || i >= len(n) {
		return "input " + strconv.Itoa(i)
	}
	return n[i]
}

func spot(a matcher.At) string {
	switch {
	case a.Line != nil:
		return ":" + strconv.FormatInt(*a.Line, 10)
	case a.Offset != nil:
		return "@" + strconv.FormatInt(*a.Offset, 10)
	}
	return ""
}
