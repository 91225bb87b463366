package matcher

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"

	"diagnose/matcher/catalog"

	"github.com/hashicorp/go-multierror"
	"go.yaml.in/yaml/v3"
)

// Catalog is the loaded knowledge.
type Catalog struct {
	Entries []*Entry
	// Revision is a short hash of all files, so that a diagnosis says which
	// knowledge made it.
	Revision string
	// Clashes lists ids that a later directory replaced.
	Clashes []string

	byID     map[string]*Entry
	remedies map[string]RemedySpec
	doNots   map[string]DoNotSpec
}

// shared is the file of steps that several entries use.
type shared struct {
	Remedies []RemedySpec         `yaml:"remedies"`
	DoNot    map[string]DoNotSpec `yaml:"do_not"`
}

const sharedFile = "shared.yaml"

// EmbeddedCatalog loads the knowledge that ships with the program.
func EmbeddedCatalog() (*Catalog, error) { return LoadCatalog(catalog.FS) }

// LoadCatalog reads the entries of each file system in turn; a later one
// replaces entries of an earlier one by id. All problems come back at once, as
// "file:line: reason"; the entries that are sound are loaded even so, so that
// a bad overlay does not take the rest away.
func LoadCatalog(dirs ...fs.FS) (*Catalog, error) {
	c := &Catalog{byID: map[string]*Entry{}, remedies: map[string]RemedySpec{}, doNots: map[string]DoNotSpec{}}
	var problems *multierror.Error
	sum := sha256.New()
	for n, dir := range dirs {
		names, err := fs.Glob(dir, "*.yaml")
		if err != nil {
			return nil, fmt.Errorf("list catalogue: %w", err)
		}
		sort.Strings(names)
		for _, name := range names {
			data, err := fs.ReadFile(dir, name)
			if err != nil {
				problems = multierror.Append(problems, fmt.Errorf("read %s: %w", name, err))
				continue
			}
			sum.Write([]byte(name))
			sum.Write(data)
			for _, p := range c.loadFile(name, data, n) {
				problems = multierror.Append(problems, p)
			}
		}
	}
	c.Revision = hex.EncodeToString(sum.Sum(nil))[:8]
	for _, e := range c.byID {
		for _, p := range c.checkUses(e) {
			problems = multierror.Append(problems, p)
			delete(c.byID, e.ID)
		}
	}
	for _, e := range c.byID {
		c.Entries = append(c.Entries, e)
	}
	sort.Slice(c.Entries, func(i, j int) bool { return c.Entries[i].ID < c.Entries[j].ID })
	if problems != nil {
		problems.ErrorFormat = oneLineEach
	}
	return c, problems.ErrorOrNil()
}

func oneLineEach(errs []error) string {
	lines := make([]string, len(errs))
	for i, e := range errs {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

func (c *Catalog) loadFile(name string, data []byte, layer int) []error {
	if path.Base(name) == sharedFile {
		var s shared
		if errs := decodeStrict(name, data, &s); errs != nil {
			return errs
		}
		for _, r := range s.Remedies {
			c.remedies[r.ID] = r
		}
		for id, d := range s.DoNot {
			c.doNots[id] = d
		}
		return nil
	}
	e := &Entry{file: name}
	if errs := decodeStrict(name, data, e); errs != nil {
		return errs
	}
	if errs := e.check(name); errs != nil {
		return errs
	}
	if old := c.byID[e.ID]; old != nil {
		if layer == 0 {
			return []error{fmt.Errorf("%s:1: id %q is taken by %s", name, e.ID, old.file)}
		}
		c.Clashes = append(c.Clashes, e.ID)
	}
	c.byID[e.ID] = e
	return nil
}

// decodeStrict decodes with unknown keys refused and turns yaml's list of
// problems into "file:line: reason".
func decodeStrict(name string, data []byte, into any) []error {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	err := dec.Decode(into)
	if err == nil || errors.Is(err, io.EOF) && len(bytes.TrimSpace(data)) == 0 {
		if err != nil {
			return []error{fmt.Errorf("%s:1: the file is empty", name)}
		}
		return nil
	}
	var typed *yaml.TypeError
	if errors.As(err, &typed) {
		out := make([]error, len(typed.Errors))
		for i, m := range typed.Errors {
			out[i] = fmt.Errorf("%s:%s", name, strings.TrimPrefix(m, "line "))
		}
		return out
	}
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	return []error{fmt.Errorf("%s:%s", name, strings.TrimPrefix(msg, "line "))}
}

// check finds what decoding cannot: missing parts and impossible values.
func (e *Entry) check(name string) []error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s:1: "+format, append([]any{name}, args...)...))
	}
	if e.ID == "" || e.ID+".yaml" != path.Base(name) {
		bad("id %q does not name the file", e.ID)
	}
	if e.Role == "" {
		e.Role = "failure"
	}
	switch e.Role {
	case "failure", "observation", "benign", "explain":
	default:
		bad("role %q is none of failure, observation, benign, explain", e.Role)
	}
	if e.Role != "benign" && e.Class != "unknown" && FamilyOf(e.Class) == "unknown" {
		bad("class %q is not one of the classes", e.Class)
	}
	if e.Title == "" || e.Explain == "" {
		bad("title and explain are needed")
	}
	if e.Role != "explain" && len(e.Match.Signatures) == 0 {
		bad("a signature is needed")
	}
	for i, s := range e.Match.Signatures {
		if len(s.FramesAny)+len(s.FramesAll)+len(s.Exceptions)+len(s.Texts)+len(s.TextsAll)+len(s.Forms) == 0 {
			bad("signature %d has no frame, exception, text or form", i+1)
		}
		if s.Confidence <= 0 || s.Confidence > 1 {
			bad("signature %d: confidence %v is not in (0, 1]", i+1, s.Confidence)
		}
		switch s.On {
		case "", "exception", "line", "raw", "kernel", "any":
		default:
			bad("signature %d: on %q is none of exception, line, raw, kernel, any", i+1, s.On)
		}
		if s.On != "" && s.On != "exception" && len(s.Texts)+len(s.TextsAll) == 0 {
			bad("signature %d: a line needs a literal text", i+1)
		}
	}
	for i, v := range e.Versions {
		if v.State != "affected" && v.State != "fixed" {
			bad("versions %d: state %q is neither affected nor fixed", i+1, v.State)
		}
	}
	if e.Role == "failure" && (len(e.Remedies) == 0 || e.Summary.Empty()) {
		bad("a failure needs a summary and at least one remedy")
	}
	if e.Role != "explain" && !e.hasSamples() {
		bad("a sample that matches and a near miss that does not are needed")
	}
	return errs
}

func (e *Entry) hasSamples() bool {
	yes, no := false, false
	for _, s := range e.Samples {
		yes, no = yes || !s.Not, no || s.Not
	}
	return yes && no
}

func (c *Catalog) checkUses(e *Entry) []error {
	var errs []error
	for _, r := range e.Remedies {
		if _, ok := c.remedies[r.Use]; r.Use != "" && !ok {
			errs = append(errs, fmt.Errorf("%s:1: remedy %q is not in %s", e.file, r.Use, sharedFile))
		}
	}
	for _, d := range e.DoNot {
		if _, ok := c.doNots[d.Use]; d.Use != "" && !ok {
			errs = append(errs, fmt.Errorf("%s:1: do_not %q is not in %s", e.file, d.Use, sharedFile))
		}
	}
	return errs
}

// Entry gives a mechanism by its id or one of its other names, nil if there is
// none.
func (c *Catalog) Entry(id string) *Entry {
	if e := c.byID[id]; e != nil {
		return e
	}
	for _, e := range c.Entries {
		for _, a := range e.Also {
			if strings.EqualFold(a, id) {
				return e
			}
		}
	}
	return nil
}

// remedy resolves a step that may come from the shared file. Fields that the
// entry gives itself win.
func (c *Catalog) remedy(r RemedySpec) RemedySpec {
	if r.Use == "" {
		return r
	}
	s := c.remedies[r.Use]
	if r.When != nil {
		s.When = r.When
	}
	if !r.Title.Empty() {
		s.Title = r.Title
	}
	if !r.Why.Empty() {
		s.Why = r.Why
	}
	if !r.Expect.Empty() {
		s.Expect = r.Expect
	}
	if !r.Costs.Empty() {
		s.Costs = r.Costs
	}
	if r.Grade != "" {
		s.Grade = r.Grade
	}
	s.Refs = append(append([]string{}, s.Refs...), r.Refs...)
	return s
}

func (c *Catalog) doNot(d DoNotSpec) DoNotSpec {
	if d.Use == "" {
		return d
	}
	s := c.doNots[d.Use]
	if d.When != nil {
		s.When = d.When
	}
	if !d.Because.Empty() {
		s.Because = d.Because
	}
	return s
}
