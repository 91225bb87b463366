package matcher

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// source is a file of the catalogue while it is checked.
type source struct {
	name string
	root yaml.Node
	errs []error
}

func (s *source) bad(line int, format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf("%s:%d: %s", s.name, line, fmt.Sprintf(format, args...)))
}

// line finds the line of a value by its keys and indices, or of the nearest
// part of that path that is there.
func (s *source) line(at ...any) int {
	n, line := &s.root, 1
	if n.Kind == yaml.DocumentNode {
		n = n.Content[0]
	}
	for _, step := range at {
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		var next *yaml.Node
		switch step := step.(type) {
		case int:
			if n.Kind == yaml.SequenceNode && step < len(n.Content) {
				next = n.Content[step]
				line = next.Line
			}
		case string:
			for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == step {
					line, next = n.Content[i].Line, n.Content[i+1]
				}
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	return line
}

// decode decodes with unknown keys refused and turns yaml's list of problems
// into "file:line: reason".
func (s *source) decode(data []byte, into any) []error {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	err := dec.Decode(into)
	if errors.Is(err, io.EOF) {
		s.bad(1, "the file is empty")
		return s.errs
	}
	if err == nil {
		if err = yaml.Unmarshal(data, &s.root); err == nil {
			s.placeholders(data)
			return nil
		}
	}
	var typed *yaml.TypeError
	list := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if errors.As(err, &typed) {
		list = typed.Errors
	}
	for _, m := range list {
		s.errs = append(s.errs, fmt.Errorf("%s:%s", s.name, inWords(strings.TrimPrefix(m, "line "))))
	}
	return s.errs
}

var (
	unknownKey = regexp.MustCompile(`^(\d+): field (.*) not found in type (\S+)$`)
	wrongType  = regexp.MustCompile("^(\\d+): cannot unmarshal !!(\\S+)(?: `(.*)`)? into (\\S+)$")
)

// inWords translates the messages of yaml that name types of this program.
func inWords(m string) string {
	if f := unknownKey.FindStringSubmatch(m); f != nil {
		out := fmt.Sprintf("%s: unknown key %q", f[1], f[2])
		if near := nearestWord(f[2], keysOfType(f[3])); near != "" {
			out += "; did you mean " + near + "?"
		}
		return out
	}
	if f := wrongType.FindStringSubmatch(m); f != nil {
		is := map[string]string{"seq": "a list", "map": "a mapping"}[f[2]]
		if is == "" {
			is = fmt.Sprintf("%q", f[3])
		}
		need := "a mapping"
		switch {
		case f[4] == "string", f[4] == "matcher.Grade":
			need = "a text"
		case f[4] == "bool":
			need = "true or false"
		case f[4] == "int":
			need = "a whole number"
		case f[4] == "float64":
			need = "a number"
		case strings.HasPrefix(f[4], "[]"):
			need = "a list"
		}
		return f[1] + ": " + is + " is not " + need
	}
	return m
}

// keysOfType gives the YAML keys of one of the catalogue's types by its name.
func keysOfType(name string) []string {
	for _, t := range entryTypes() {
		if t.String() == name {
			return keysOf(t)
		}
	}
	return nil
}

// entryTypes are the types that a file of the catalogue is made of, in the
// order in which they are met.
func entryTypes() []reflect.Type {
	var out []reflect.Type
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || len(keysOf(t)) == 0 || slices.Contains(out, t) {
			return
		}
		out = append(out, t)
		for i := range t.NumField() {
			if t.Field(i).Tag.Get("yaml") != "" {
				add(t.Field(i).Type)
			}
		}
	}
	add(reflect.TypeFor[Entry]())
	add(reflect.TypeFor[shared]())
	return out
}

func keysOf(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		if k := t.Field(i).Tag.Get("yaml"); k != "" {
			out = append(out, k)
		}
	}
	return out
}

// nearestWord is the word that a slip of the keyboard turns into what was
// typed: two letters may differ, or a third of them, and of a short word one.
func nearestWord(typed string, words []string) string {
	least := 1 + max(2, len(typed)/3)
	if len(typed) < 5 {
		least = 2
	}
	best := ""
	for _, w := range words {
		if d := distance(typed, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// scaffoldWords are what Scaffold leaves to be replaced.
var scaffoldWords = []struct{ text, want string }{
	{"title: one line that a stranger understands", "say in one line what runs out or fails"},
	{"name_of_the_function_that_allocates", "give a frame of a real traceback, in the signature and in the samples"},
	{"Two sentences at most, with figures such as", "give the verdict"},
	{"What happens, for a person who does not know the kernel.", "explain it"},
	{"What it is taken for, and how the two differ.", "say so, or leave mistaken_for out"},
	{"what to run, and what to read in the log", "say so, or leave verify out"},
	{"vllm#0]", "give the source of what the entry says"},
	{"which mistake this near miss guards against", "say so"},
}

// placeholders refuses a scaffold that was not filled in, each word once.
func (s *source) placeholders(data []byte) {
	lines := strings.Split(string(data), "\n")
	for _, w := range scaffoldWords {
		for i, l := range lines {
			if strings.Contains(l, w.text) && !strings.HasPrefix(strings.TrimSpace(l), "#") {
				s.bad(i+1, "%q is the scaffold's placeholder: %s", strings.Trim(strings.TrimPrefix(w.text, "title: "), "]"), w.want)
				break
			}
		}
	}
}

var (
	// entryID is what an id may look like; ids are for ever.
	entryID = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	// settingKey is a flag of the server or a variable of its environment.
	settingKey = regexp.MustCompile(`^(--[A-Za-z0-9][A-Za-z0-9_.-]*|env:[A-Za-z_][A-Za-z0-9_]*)$`)
)

// What the keys with few values may say; the empty word is a key left out.
var (
	entryRoles      = []string{"failure", "observation", "benign", "explain"}
	signatureOns    = []string{"exception", "line", "raw", "kernel", "any"}
	signatureOOMs   = []string{"any", "numbers", "masked", "no", "cut"}
	signaturePhases = []string{"startup", "runtime", "shutdown"}
	signatureRoots  = []string{"first", "matched"}
	entryScales     = []string{"max_num_batched_tokens", "max_num_seqs", "none"}
	demandScales    = []string{"max_num_batched_tokens", "max_num_seqs"}
	versionStates   = []string{"affected", "fixed"}
	statementGrades = []string{string(Established), string(Computed), string(Inferred)}
	stepGrades      = []string{"computed", "upstream_fix", "field_report", "inferred"}
)

// oneOf refuses a word that is none of a few; a key left out is none.
func (s *source) oneOf(line int, key, is string, words []string) {
	if is == "" || slices.Contains(words, is) {
		return
	}
	hint := ""
	if near := nearestWord(is, words); near != "" {
		hint = "; did you mean " + near + "?"
	}
	s.bad(line, "%s %q is none of %s%s", key, is, strings.Join(words, ", "), hint)
}

// check finds what decoding cannot: missing parts and impossible values.
func (e *Entry) check(s *source) {
	if !entryID.MatchString(e.ID) {
		s.bad(s.line("id"), "id %q is not lower-case words joined by hyphens", e.ID)
	} else if e.ID+".yaml" != path.Base(s.name) {
		s.bad(s.line("id"), "id %q does not name the file", e.ID)
	}
	e.Role = orWords(e.Role, "failure")
	s.oneOf(s.line("role"), "role", e.Role, entryRoles)
	if e.Role != "benign" && e.Class != "unknown" && FamilyOf(e.Class) == "unknown" {
		s.bad(s.line("class"), "class %q is not one of the classes", e.Class)
	}
	s.oneOf(s.line("scales_with"), "scales_with", e.Scales, entryScales)
	if e.Title == "" || e.Explain == "" {
		s.bad(1, "title and explain are needed")
	}
	e.checkSignatures(s)
	e.Demand.check(s)
	for i, v := range e.Versions {
		if !slices.Contains(versionStates, v.State) {
			s.bad(s.line("versions", i, "state"), "versions %d: state %q is neither affected nor fixed", i+1, v.State)
		}
	}
	for i, st := range e.Evidence {
		s.oneOf(s.line("evidence", i, "grade"), "grade", string(st.Grade), statementGrades)
	}
	for i, r := range e.Remedies {
		r.check(s, i)
	}
	if e.Role == "failure" && (len(e.Remedies) == 0 || e.Summary.Empty()) {
		s.bad(s.line("remedies"), "a failure needs a summary and at least one remedy")
	}
	if e.Role != "explain" && !e.hasSamples() {
		s.bad(s.line("samples"), "a sample that matches and a near miss that does not are needed")
	}
	for i, sample := range e.Samples {
		if sample.Not && strings.TrimSpace(sample.Why) == "" {
			s.bad(s.line("samples", i), "sample %d: a near miss says in why which mistake it guards against", i+1)
		}
	}
}

func (e *Entry) checkSignatures(src *source) {
	if e.Role != "explain" && len(e.Match.Signatures) == 0 {
		src.bad(src.line("match"), "a signature is needed")
	}
	for i, s := range e.Match.Signatures {
		at := func(key string) int { return src.line("match", "signatures", i, key) }
		bad := func(key, format string, args ...any) {
			src.bad(at(key), "signature %d: "+format, append([]any{i + 1}, args...)...)
		}
		if len(s.FramesAny)+len(s.FramesAll)+len(s.Exceptions)+len(s.Texts)+len(s.TextsAll)+len(s.Forms) == 0 {
			src.bad(at(""), "signature %d has no frame, exception, text or form", i+1)
		}
		if s.Confidence <= 0 || s.Confidence > 1 {
			bad("confidence", "confidence %v is not in (0, 1]", s.Confidence)
		}
		for _, w := range []struct {
			key, is string
			of      []string
		}{
			{"on", s.On, signatureOns},
			{"oom", s.OOM, signatureOOMs},
			{"phase", s.Phase, signaturePhases},
			{"root", s.Root, signatureRoots},
		} {
			src.oneOf(at(w.key), fmt.Sprintf("signature %d: %s", i+1, w.key), w.is, w.of)
		}
		if s.On != "" && s.On != "exception" && len(s.Texts)+len(s.TextsAll) == 0 {
			bad("on", "a line needs a literal text")
		}
	}
}

// check asks that every part grows with the step: what is told of one token
// and of the full step comes from the same formula.
func (d *Demand) check(s *source) {
	if d == nil {
		return
	}
	s.oneOf(s.line("demand", "scales_with"), "scales_with", d.ScalesWith, demandScales)
	unit, step, flag := "tokens", "the step's size", "max_num_batched_tokens"
	if d.ScalesWith == "max_num_seqs" {
		unit, step, flag = "seqs", "the step's sequences", "max_num_seqs"
	}
	if len(d.Parts) == 0 {
		s.bad(s.line("demand"), "demand has no part")
	}
	for i, p := range d.Parts {
		at := s.line("demand", "parts", i, "bytes")
		switch {
		case p.Bytes.Expr == nil:
			s.bad(at, "part %q has no bytes", p.Name)
		case !slices.Contains(p.Bytes.Names(), unit):
			s.bad(at, "part %q does not depend on %s; write %s (%s), not %s (the flag)", p.Name, unit, unit, step, flag)
		}
	}
}

// check holds for the steps of an entry and for the shared ones.
func (r RemedySpec) check(s *source, i int) {
	s.oneOf(s.line("remedies", i, "grade"), "grade", r.Grade, stepGrades)
	for key := range r.Set {
		s.setting(s.line("remedies", i, "set", key), "set", key)
	}
	for n, key := range r.Unset {
		s.setting(s.line("remedies", i, "unset", n), "unset", key)
	}
	if r.Use == "" && r.Title.Empty() {
		s.bad(s.line("remedies", i), "step %d has neither use nor title", i+1)
	}
}

func (s *source) setting(line int, where, key string) {
	if settingKey.MatchString(key) {
		return
	}
	hint := "write --flag or env:NAME"
	if strings.HasPrefix(key, "unset:") {
		hint = "what a step takes away stands in unset, beside set"
	}
	s.bad(line, "%s: %q is neither a flag nor a variable; %s", where, key, hint)
}

func (sh *shared) check(s *source) {
	for i, r := range sh.Remedies {
		if r.ID == "" {
			s.bad(s.line("remedies", i), "step %d has no id", i+1)
		}
		r.check(s, i)
	}
}
