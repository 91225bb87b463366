package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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

// loadConfig reads and checks a file. Every problem is a line "file:line:
// reason".
func loadConfig(path string) (config, error) {
	var c config
	data, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read configuration: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return c, yamlProblems(path, err)
	}
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return c, yamlProblems(path, err)
	}
	return c, c.check(path, &node)
}

// yamlProblems turns yaml's list into one line a problem.
func yamlProblems(path string, err error) error {
	var typed *yaml.TypeError
	list := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if errors.As(err, &typed) {
		list = typed.Errors
	}
	var all *multierror.Error
	for _, m := range list {
		line, rest, ok := strings.Cut(strings.TrimPrefix(m, "line "), ": ")
		if _, num := strconv.Atoi(line); ok && num == nil {
			rest = strings.ReplaceAll(strings.ReplaceAll(rest, " in type main.config", ""), " in type ", " of ")
			all = multierror.Append(all, fmt.Errorf("%s:%s: %s", path, line, rest))
			continue
		}
		all = multierror.Append(all, fmt.Errorf("%s: %s", path, m))
	}
	return linesOf(all)
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

// check finds impossible values and names their lines.
func (c config) check(path string, node *yaml.Node) error {
	var all *multierror.Error
	bad := func(field, format string, args ...any) {
		at := path
		if n := fieldLine(node, field); n > 0 {
			at = fmt.Sprintf("%s:%d", path, n)
		}
		all = multierror.Append(all, fmt.Errorf("%s: %s: %s", at, field, fmt.Sprintf(format, args...)))
	}
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
	for name, d := range map[string]time.Duration{
		"timing.gather": c.Timing.Gather, "timing.settle": c.Timing.Settle, "timing.close_after": c.Timing.CloseAfter,
		"timing.historic": c.Timing.Historic, "timing.held_after": c.Timing.HeldAfter,
	} {
		if d < 0 {
			bad(name, "%s is negative", d)
		}
	}
	if c.Catalog != "" {
		if _, err := os.Stat(c.Catalog); err != nil {
			bad("catalog", "%v", err)
		}
	}
	for _, err := range fieldErrors(c.Notify.Validate()) {
		bad("notify."+err.Field, "%s", err.Reason)
	}
	return linesOf(all)
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

// fieldLine finds the line of a field path such as notify.sinks[0].file.path, or
// of the nearest part of it that is there.
func fieldLine(n *yaml.Node, field string) int {
	if n == nil || len(n.Content) == 0 {
		return 0
	}
	cur := n
	if cur.Kind == yaml.DocumentNode {
		cur = cur.Content[0]
	}
	line := 1
	for _, part := range strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := child(cur, part)
		if next == nil {
			break
		}
		cur, line = next, next.Line
	}
	return line
}

func child(n *yaml.Node, part string) *yaml.Node {
	switch n.Kind {
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
