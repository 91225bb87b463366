package matcher

import (
	"fmt"
	"strings"

	"diagnose/parser"

	"github.com/hashicorp/go-multierror"
)

// TestSamples runs every entry's own samples through parser and matcher: those
// that must match, and the near misses that must not. Problems come back all
// at once.
func (c *Catalog) TestSamples() (count int, err error) {
	var problems *multierror.Error
	for _, e := range c.Entries {
		for i, s := range e.Samples {
			if s.Text == "" {
				continue // a fixture, proven by the tests of the tree
			}
			count++
			if p := c.testSample(e, s); p != nil {
				problems = multierror.Append(problems, fmt.Errorf("%s: sample %d: %w", e.file, i+1, p))
			}
		}
	}
	if problems != nil {
		problems.ErrorFormat = oneLineEach
	}
	return count, problems.ErrorOrNil()
}

func (c *Catalog) testSample(e *Entry, s Sample) error {
	t := NewTracker(c, Options{})
	p := parser.New(t.Add)
	offset := int64(0)
	for n, line := range strings.Split(strings.TrimRight(s.Text, "\n"), "\n") {
		p.Line(parser.Line{At: parser.Pos{Line: int64(n + 1), Offset: offset}, Data: []byte(line)})
		offset += int64(len(line)) + 1
	}
	p.Flush()
	incidents, observations := t.Incidents()
	found := "nothing"
	matched := false
	if s.Not && e.Role == "failure" {
		observations = nil // the near miss asks that nothing is called failed
	}
	for _, in := range append(incidents, observations...) {
		id := "unknown"
		if in.Verdict.Mechanism != nil {
			id = *in.Verdict.Mechanism
		}
		found = id
		if id == e.ID {
			matched = true
			if err := expectations(s, in); err != nil && !s.Not {
				return err
			}
		}
	}
	switch {
	case s.Not && matched:
		return fmt.Errorf("a near miss matches (it guards against: %s)", s.Why)
	case e.Role == "benign" && !s.Not:
		if len(incidents) > 0 {
			return fmt.Errorf("is reported as %s, and should be recognised as no failure", found)
		}
	case !s.Not && !matched:
		return fmt.Errorf("does not match; the answer is %s", found)
	}
	return nil
}

func expectations(s Sample, in Incident) error {
	got := map[string]string{"class": in.Verdict.Class, "family": in.Verdict.Family, "confidence": in.Verdict.Confidence, "phase": in.Phase, "kind": in.Root.Kind}
	for k, want := range s.Expect {
		if k == "mechanism" {
			continue
		}
		if g, known := got[k]; !known || g != want {
			return fmt.Errorf("%s is %q, expected %q", k, g, want)
		}
	}
	return nil
}
