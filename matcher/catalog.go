package matcher

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"

	"diagnose/matcher/catalog"

	"github.com/hashicorp/go-multierror"
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
	replaced map[string]*Entry
	remedies map[string]RemedySpec
	doNots   map[string]DoNotSpec
	// sharedOrder are the ids of the shared steps as the file has them.
	sharedOrder []string
}

// shared is the file of steps that several entries use.
type shared struct {
	Remedies []RemedySpec         `yaml:"remedies"`
	DoNot    map[string]DoNotSpec `yaml:"do_not"`
}

const sharedFile = "shared.yaml"

// EmbeddedCatalog gives the knowledge that ships with the program. It is loaded
// once; nobody changes a catalogue after it is loaded.
func EmbeddedCatalog() (*Catalog, error) { return loadEmbedded() }

var loadEmbedded = sync.OnceValues(func() (*Catalog, error) { return LoadCatalog(catalog.FS) })

// LoadCatalog reads the entries of each file system in turn; a later one
// replaces entries of an earlier one by id. All problems come back at once in a
// multierror, each as "DIR/file:line: reason"; the entries that are sound are
// loaded even so, and the shipped one stays where its replacement is refused,
// so that a bad overlay does not take the rest away.
func LoadCatalog(dirs ...fs.FS) (*Catalog, error) {
	c := &Catalog{byID: map[string]*Entry{}, replaced: map[string]*Entry{}, remedies: map[string]RemedySpec{}, doNots: map[string]DoNotSpec{}}
	var problems *multierror.Error
	sum := sha256.New()
	for n, dir := range dirs {
		names, errs := entryFiles(dir)
		problems = multierror.Append(problems, errs...)
		for _, name := range names {
			data, err := fs.ReadFile(dir, name)
			if err != nil {
				problems = multierror.Append(problems, fmt.Errorf("read %s: %w", path.Join(dirName(dir), name), err))
				continue
			}
			sum.Write([]byte(name))
			sum.Write(data)
			problems = multierror.Append(problems, c.loadFile(path.Join(dirName(dir), name), data, n)...)
		}
	}
	c.Revision = hex.EncodeToString(sum.Sum(nil))[:8]
	problems = multierror.Append(problems, c.settle()...)
	problems.ErrorFormat = oneLineEach
	return c, problems.ErrorOrNil()
}

// settle takes entries out that do not fit to the others, and orders the rest.
func (c *Catalog) settle() []error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(c.byID)) {
		e := c.byID[id]
		found := c.checkUses(e)
		if len(found) == 0 {
			continue
		}
		errs = append(errs, found...)
		delete(c.byID, id)
		if old := c.replaced[id]; old != nil && len(c.checkUses(old)) == 0 {
			c.byID[id] = old
			c.Clashes = slices.DeleteFunc(c.Clashes, func(s string) bool { return s == id })
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.byID)) {
		c.byID[id].source = nil // 5 MB of syntax trees, for a daemon's life
		c.Entries = append(c.Entries, c.byID[id])
	}
	return errs
}

// entryFiles lists the files of a directory that are read, in order. A
// directory that gives none is surely a mistake.
func entryFiles(dir fs.FS) ([]string, []error) {
	at := orWords(dirName(dir), "the catalogue")
	list, err := fs.ReadDir(dir, ".")
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return nil, []error{fmt.Errorf("%s is a file; give the directory", at)}
	case errors.Is(err, fs.ErrNotExist):
		return nil, []error{fmt.Errorf("%s does not exist", at)}
	case err != nil:
		return nil, []error{fmt.Errorf("list catalogue: %w", err)}
	}
	var names []string
	var errs []error
	for _, f := range list {
		switch base, ext := strings.TrimSuffix(f.Name(), path.Ext(f.Name())), path.Ext(f.Name()); {
		case f.IsDir():
		case ext == ".yaml":
			names = append(names, f.Name())
		case ext == ".yml":
			errs = append(errs, fmt.Errorf("%s is not read; name it %s.yaml", path.Join(dirName(dir), f.Name()), base))
		}
	}
	if len(names)+len(errs) == 0 {
		errs = append(errs, fmt.Errorf("no *.yaml in %s", at))
	}
	return names, errs
}

// dirName is the directory of a file system made by os.DirFS, which is that
// text; any other has none.
func dirName(dir fs.FS) string {
	if v := reflect.ValueOf(dir); v.Kind() == reflect.String {
		return v.String()
	}
	return ""
}

// Overlaid counts the entries that come from a later directory than the first.
func (c *Catalog) Overlaid() int {
	n := 0
	for _, e := range c.Entries {
		if e.layer > 0 {
			n++
		}
	}
	return n
}

func oneLineEach(errs []error) string {
	lines := make([]string, len(errs))
	for i, e := range errs {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

func (c *Catalog) loadFile(name string, data []byte, layer int) []error {
	src := &source{name: name}
	if path.Base(name) == sharedFile {
		var s shared
		if errs := src.decode(data, &s); errs != nil {
			return errs
		}
		if s.check(src); len(src.errs) > 0 {
			return src.errs
		}
		for _, r := range s.Remedies {
			if _, taken := c.remedies[r.ID]; !taken {
				c.sharedOrder = append(c.sharedOrder, r.ID)
			}
			c.remedies[r.ID] = r
		}
		for id, d := range s.DoNot {
			c.doNots[id] = d
		}
		return nil
	}
	e := &Entry{file: name, layer: layer, source: src}
	if errs := src.decode(data, e); errs != nil {
		return errs
	}
	if e.check(src); len(src.errs) > 0 {
		return src.errs
	}
	if old := c.byID[e.ID]; old != nil {
		c.Clashes = append(c.Clashes, e.ID)
		c.replaced[e.ID] = old
	}
	c.byID[e.ID] = e
	return nil
}

func (e *Entry) hasSamples() bool {
	yes, no := false, false
	for _, s := range e.Samples {
		yes, no = yes || !s.Not, no || s.Not
	}
	return yes && no
}

// checkUses holds an entry against the others and the shared steps.
func (c *Catalog) checkUses(e *Entry) []error {
	src := &source{name: e.file, root: e.source.root}
	for i, r := range e.Remedies {
		if _, ok := c.remedies[r.Use]; r.Use != "" && !ok {
			src.bad(src.line("remedies", i, "use"), "remedy %q is not in %s", r.Use, sharedFile)
		}
	}
	for i, d := range e.DoNot {
		if _, ok := c.doNots[d.Use]; d.Use != "" && !ok {
			src.bad(src.line("do_not", i, "use"), "do_not %q is not in %s", d.Use, sharedFile)
		}
	}
	for i, a := range e.Also {
		if o := c.byID[strings.ToLower(a)]; o != nil && o.ID != e.ID {
			src.bad(src.line("also", i), "also: %q is the id of %s", a, o.file)
		}
	}
	return src.errs
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
