package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"
	"unicode"

	"diagnose/notify"

	"github.com/hashicorp/go-multierror"
	"go.yaml.in/yaml/v3"
)

// config is the file of the daemon. Every key has a default; the example in
// packaging/ comments each.
type config struct {
	Paths    []string `yaml:"paths"`
	Journals []string `yaml:"journals"`
	StateDir string   `yaml:"state_dir"`
	JSONL    string   `yaml:"jsonl"`
	Host     string   `yaml:"host"`
	// Listen is a loopback address for /metrics, /healthz and /readyz; empty
	// is off.
	Listen  string        `yaml:"listen"`
	Catalog string        `yaml:"catalog"`
	Log     logConfig     `yaml:"log"`
	Timing  timing        `yaml:"timing"`
	Notify  notify.Config `yaml:"notify"`
}

type logConfig struct {
	Format string `yaml:"format"` // text or json
	Level  string `yaml:"level"`  // debug, info, warn, error
}

type timing struct {
	Gather     time.Duration `yaml:"gather"`
	Settle     time.Duration `yaml:"settle"`
	CloseAfter time.Duration `yaml:"close_after"`
	Historic   time.Duration `yaml:"historic"`
	HeldAfter  time.Duration `yaml:"held_after"`
}

// loadConfig reads and checks a file together with what is given over it.
// Every problem is a line "file:line: reason".
func loadConfig(path string, over ...func(*config)) (config, error) {
	c, found, err := readConfig(path)
	if err != nil {
		return c, err
	}
	for _, o := range over {
		o(&c)
	}
	c.check(&found)
	return c, found.err(path)
}

// readConfig decodes a file as far as it can and gives what cannot be decoded.
// err is for a file that cannot be read at all.
func readConfig(path string) (c config, found problems, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return c, found, fmt.Errorf("read configuration: %w", err)
	}
	if err := yaml.Unmarshal(data, &found.root); err != nil {
		found.add(yamlProblems(err)...)
		found.broken = true
		return c, found, nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	err = dec.Decode(&c)
	if found.unique(&found.root) {
		// yaml drops a mapping with a key that stands twice whole.
		c = config{}
		err = found.root.Decode(&c)
		found.unknown(&found.root, reflect.TypeFor[config]())
	}
	if err != nil && !errors.Is(err, io.EOF) {
		found.refuse(&found.root, reflect.TypeFor[config](), "")
		found.add(found.named(yamlProblems(err))...)
		found.broken = len(found.root.Content) > 0 && found.refused[found.root.Content[0]]
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		found.add(problem{second.Line, "a second document stands behind the first; only one is read"})
	} else if !errors.Is(err, io.EOF) {
		found.add(yamlProblems(err)...)
	}
	return c, found, nil
}

// linesOf gives a multierror the form of one problem a line.
func linesOf(all *multierror.Error) error {
	if all != nil {
		all.ErrorFormat = func(errs []error) string {
			lines := make([]string, len(errs))
			for i, e := range errs {
				lines[i] = e.Error()
			}
			return strings.Join(lines, "\n")
		}
	}
	return all.ErrorOrNil()
}

// check finds impossible values.
func (c config) check(found *problems) {
	if found.broken {
		return // it is no YAML, or no mapping; its values are not known
	}
	bad := found.bad
	if len(c.Paths)+len(c.Journals) == 0 {
		bad("paths", "nothing to follow: give paths or journals")
	}
	for i, p := range c.Paths {
		if _, err := filepath.Match(p, ""); err != nil {
			bad(fmt.Sprintf("paths[%d]", i), "%q is not a pattern: %v", p, err)
		} else if !filepath.IsAbs(p) && p != "-" {
			bad(fmt.Sprintf("paths[%d]", i), "%q is not absolute; the daemon has no directory of its own", p)
		}
	}
	for i, j := range c.Journals {
		if !unitName(j) {
			bad(fmt.Sprintf("journals[%d]", i), "%q is not the name of a unit, as in vllm.service", j)
		}
	}
	if c.StateDir == "" {
		bad("state_dir", "is needed")
	}
	if c.Log.Format != "" && c.Log.Format != "text" && c.Log.Format != "json" {
		bad("log.format", "%q is neither text nor json", c.Log.Format)
	}
	if _, err := logLevel(c.Log.Level); err != nil {
		bad("log.level", "%v", err)
	}
	if c.Listen != "" && !loopback(c.Listen) {
		bad("listen", "%q is not a loopback address and port, as in 127.0.0.1:9464", c.Listen)
	}
	c.checkTiming(found)
	if c.Catalog != "" {
		info, err := os.Stat(c.Catalog)
		switch {
		case !filepath.IsAbs(c.Catalog):
			bad("catalog", "%q is not absolute; the daemon has no directory of its own", c.Catalog)
		case err != nil:
			bad("catalog", "%v", err)
		case !info.IsDir():
			bad("catalog", "%s is a file; give the directory", c.Catalog)
		}
	}
	c.ownOutput(bad)
	c.checkWords(found)
	for _, err := range fieldErrors(c.Notify.Validate()) {
		bad("notify."+err.Field, "%s", err.Reason)
	}
}

// unitName tells whether journalctl can be asked for a unit. An empty name would
// match no entry, and for ever.
func unitName(s string) bool {
	return s != "" && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// fieldErrors takes the problems of the notify section apart.
func fieldErrors(err error) []*notify.FieldError {
	if err == nil {
		return nil
	}
	var one *notify.FieldError
	var many *multierror.Error
	var out []*notify.FieldError
	if errors.As(err, &many) {
		for _, e := range many.Errors {
			if errors.As(e, &one) {
				out = append(out, one)
			}
		}
		return out
	}
	if errors.As(err, &one) {
		return []*notify.FieldError{one}
	}
	return []*notify.FieldError{{Field: "", Reason: err.Error()}}
}
