package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-multierror"
	"go.yaml.in/yaml/v3"
)

// problem is one thing wrong with a configuration; line is 0 where it has none.
type problem struct {
	line int
	text string
}

// problems collects what is wrong with a file, to be told all at once and in
// the order of its lines.
type problems struct {
	root yaml.Node
	list []problem
	// broken tells that the file is no YAML.
	broken bool
}

func (p *problems) add(list ...problem) { p.list = append(p.list, list...) }

// bad adds a problem of a field, such as notify.sinks[0].file.path. What yaml
// itself refused on that line is not complained of again: its value is not
// there, and says nothing more.
func (p *problems) bad(field, format string, args ...any) {
	line := fieldLine(&p.root, field)
	if fieldNode(&p.root, field) != nil && slices.ContainsFunc(p.list, func(o problem) bool { return o.line == line && strings.HasPrefix(o.text, refused) }) {
		return
	}
	p.add(problem{line, field + ": " + fmt.Sprintf(format, args...)})
}

// refused begins the text of every problem with a value's type.
const refused = "wrong type: "

func (p *problems) err(path string) error {
	slices.SortStableFunc(p.list, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var all *multierror.Error
	for _, one := range p.list {
		at := path
		if one.line > 0 {
			at += ":" + strconv.Itoa(one.line)
		}
		all = multierror.Append(all, fmt.Errorf("%s: %s", at, one.text))
	}
	return linesOf(all)
}

// yamlProblems takes yaml's own errors apart and says them in words.
func yamlProblems(err error) []problem {
	var typed *yaml.TypeError
	list := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if errors.As(err, &typed) {
		list = typed.Errors
	}
	out := make([]problem, len(list))
	for i, m := range list {
		out[i].text = m
		if line, rest, ok := strings.Cut(strings.TrimPrefix(m, "line "), ": "); ok {
			if n, err := strconv.Atoi(line); err == nil {
				out[i] = problem{n, inWords(rest)}
			}
		}
	}
	return out
}

// inWords translates the two messages of yaml that name types of this program.
func inWords(m string) string {
	if f := regexp.MustCompile(`^field (.*) not found in type \S+$`).FindStringSubmatch(m); f != nil {
		return fmt.Sprintf("unknown key %q", f[1])
	}
	if f := regexp.MustCompile("^cannot unmarshal !!(\\S+)(?: `(.*)`)? into (\\S+)$").FindStringSubmatch(m); f != nil {
		is := map[string]string{"seq": "a list", "map": "a mapping"}[f[1]]
		if is == "" {
			is = strconv.Quote(f[2])
		}
		return refused + is + " is not " + kindWords(f[3])
	}
	return m
}

func kindWords(goType string) string {
	switch {
	case goType == "string":
		return "a text"
	case goType == "bool":
		return "true or false"
	case strings.HasPrefix(goType, "int"):
		return "a whole number"
	case goType == "time.Duration":
		return "a duration, as in 250ms, 5s or 72h"
	case goType == "time.Time":
		return "a time, as in 2026-11-30T14:00:00Z"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	}
	return "a mapping"
}

// fieldLine finds the line of a field path such as notify.sinks[0].file.path, or
// of the nearest part of it that is there.
func fieldLine(n *yaml.Node, field string) int {
	line := 1
	for _, part := range fieldParts(field) {
		if n = child(n, part); n == nil {
			break
		}
		line = n.Line
	}
	return line
}

// fieldNode is the value of a field path, nil where it is not there.
func fieldNode(n *yaml.Node, field string) *yaml.Node {
	for _, part := range fieldParts(field) {
		if n = child(n, part); n == nil {
			return nil
		}
	}
	return n
}

func fieldParts(field string) []string {
	return strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

func child(n *yaml.Node, part string) *yaml.Node {
	switch n.Kind {
	case yaml.DocumentNode:
		return child(n.Content[0], part)
	case yaml.AliasNode:
		return child(n.Alias, part)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == part {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}
