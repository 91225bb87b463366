package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
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
	// broken tells that the file is no YAML, or has no keys.
	broken bool
	// refused are the values whose type is wrong: the program does not have them.
	refused map[*yaml.Node]bool
	// wrong are the messages of yaml about them, with the field.
	wrong []wrongType
	// fields are those that bad was told.
	fields map[string]bool
}

type wrongType struct {
	problem
	field string
}

func (p *problems) add(list ...problem) { p.list = append(p.list, list...) }

// bad adds a problem of a field, such as notify.sinks[0].file.path. What yaml
// itself refused is not complained of again: its value is not there, and says
// nothing more.
func (p *problems) bad(field, format string, args ...any) {
	node, line, shown := p.find(field)
	if node != nil && p.refused[node] {
		return
	}
	if p.fields == nil {
		p.fields = map[string]bool{}
	}
	p.fields[field] = true
	p.add(problem{line, shown + ": " + fmt.Sprintf(format, args...)})
}

// given tells whether a field has a value in the file.
func (p *problems) given(field string) bool {
	node, _, _ := p.find(field)
	return node != nil && !p.refused[node] && node.ShortTag() != "!!null"
}

// unique tells of the keys below a node that stand twice in a mapping, and takes
// all but the first out. It tells whether there were any.
func (p *problems) unique(n *yaml.Node) bool {
	twice := false
	if n.Kind == yaml.MappingNode {
		first := map[string]int{}
		var kept []*yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if line, ok := first[key.Value]; ok && key.Kind == yaml.ScalarNode {
				p.add(problem{key.Line, fmt.Sprintf("mapping key %q already defined at line %d", key.Value, line)})
				twice = true
				continue
			}
			if key.Kind == yaml.ScalarNode {
				first[key.Value] = key.Line
			}
			kept = append(kept, key, n.Content[i+1])
		}
		n.Content = kept
	}
	for _, one := range n.Content {
		twice = p.unique(one) || twice
	}
	return twice
}

// unknown tells of the keys below a node that a type does not have.
func (p *problems) unknown(n *yaml.Node, t reflect.Type) {
	switch {
	case n.Kind == yaml.DocumentNode:
		p.unknown(n.Content[0], t)
	case n.Kind == yaml.AliasNode:
		p.unknown(n.Alias, t)
	case t.Kind() == reflect.Pointer:
		p.unknown(n, t.Elem())
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for _, one := range n.Content {
			p.unknown(one, t.Elem())
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		types := map[string]reflect.Type{}
		for i := range t.NumField() {
			types[fieldName(t.Field(i))] = t.Field(i).Type
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if of := types[key.Value]; of != nil {
				p.unknown(n.Content[i+1], of)
			} else if key.ShortTag() != "!!merge" {
				p.add(problem{key.Line, unknownKey(key.Value)})
			}
		}
	}
}

// refuse notes the values below a node that do not fit a type, and their fields.
func (p *problems) refuse(n *yaml.Node, t reflect.Type, field string) {
	switch {
	case n.Kind == yaml.DocumentNode:
		p.refuse(n.Content[0], t, field)
	case n.Kind == yaml.AliasNode:
		p.refuse(n.Alias, t, field)
	case t.Kind() == reflect.Pointer:
		p.refuse(n, t.Elem(), field)
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for i, one := range n.Content {
			p.refuse(one, t.Elem(), fmt.Sprintf("%s[%d]", field, i))
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			name := fieldName(t.Field(i))
			if one, _ := p.child(n, name); one != nil {
				p.refuse(one, t.Field(i).Type, strings.TrimPrefix(field+"."+name, "."))
			}
		}
	case n.Kind != 0:
		err := n.Decode(reflect.New(t).Interface())
		if err == nil {
			return
		}
		if p.refused == nil {
			p.refused = map[*yaml.Node]bool{}
		}
		p.refused[n] = true
		for _, one := range yamlProblems(err) {
			p.wrong = append(p.wrong, wrongType{one, field})
		}
	}
}

// named puts their fields in front of yaml's messages about values that refuse
// has noted; yaml itself gives the line only.
func (p *problems) named(list []problem) []problem {
	for i, one := range list {
		k := slices.IndexFunc(p.wrong, func(w wrongType) bool { return w.problem == one })
		if k < 0 {
			continue
		}
		if f := p.wrong[k].field; f != "" {
			list[i].text = f + ": " + one.text
		}
		p.wrong = slices.Delete(p.wrong, k, k+1)
	}
	return list
}

func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func unknownKey(name string) string { return fmt.Sprintf("unknown key %q", name) }

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
		return unknownKey(f[1])
	}
	if f := regexp.MustCompile("^cannot unmarshal !!(\\S+)(?: `(.*)`)? into (\\S+)$").FindStringSubmatch(m); f != nil {
		is := map[string]string{"seq": "a list", "map": "a mapping"}[f[1]]
		if is == "" {
			is = strconv.Quote(f[2])
		}
		return "wrong type: " + is + " is not " + kindWords(f[3])
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

// find gives the node of a field path such as notify.sinks[0].file.path, nil
// where it is not there, the line of the nearest part that is, and the path as
// it is in the file: a list in the program lacks what was refused.
func (p *problems) find(field string) (node *yaml.Node, line int, shown string) {
	node, line = &p.root, 1
	for _, part := range strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		if node != nil {
			node, part = p.child(node, part)
		}
		if node != nil {
			line = node.Line
		}
		if _, err := strconv.Atoi(part); err == nil {
			part = "[" + part + "]"
		} else if shown != "" {
			part = "." + part
		}
		shown += part
	}
	return node, line, shown
}

// child gives a part of a node, and its name in the file.
func (p *problems) child(n *yaml.Node, part string) (*yaml.Node, string) {
	switch n.Kind {
	case yaml.DocumentNode:
		return p.child(n.Content[0], part)
	case yaml.AliasNode:
		return p.child(n.Alias, part)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == part {
				return n.Content[i+1], part
			}
		}
	case yaml.SequenceNode:
		left, err := strconv.Atoi(part)
		for i, one := range n.Content {
			if err != nil || p.refused[one] {
				continue
			}
			if left == 0 {
				return one, strconv.Itoa(i)
			}
			left--
		}
	}
	return nil, part
}
