package matcher

import (
	"fmt"
	"regexp"

	"diagnose/parser/version"

	"go.yaml.in/yaml/v3"
)

// Entry is one mechanism of the catalogue: one YAML file, decoded strictly.
// Everything that a person reads about a mechanism comes from it.
type Entry struct {
	// ID is the mechanism's name, for ever ("flashmla-sparse-mixed-batch").
	ID string `yaml:"id"`
	// Also lists numbers and names used elsewhere for it ("C1").
	Also  []string `yaml:"also"`
	Class string   `yaml:"class"`
	Title string   `yaml:"title"`
	// Role is failure (the default), observation (wrong, but nothing failed),
	// benign (looks like a failure and is none) or explain (knowledge without a
	// signature, because its details are not verified).
	Role string `yaml:"role"`

	Match   Match      `yaml:"match"`
	Applies *Condition `yaml:"applies_when"`
	Demand  *Demand    `yaml:"demand"`
	// Scales names what a computed demand grows with when there is no formula:
	// max_num_batched_tokens (default for run-time OOMs), max_num_seqs, none.
	Scales   string         `yaml:"scales_with"`
	Versions []VersionState `yaml:"versions"`

	// Summary is the verdict in at most two sentences.
	Summary Template `yaml:"summary"`
	// Explain is for a person who does not know the kernel.
	Explain string `yaml:"explain"`
	// Mistaken tells what it is taken for and how they differ.
	Mistaken string `yaml:"mistaken_for"`

	Evidence     []Statement  `yaml:"evidence"`
	RuledOut     []Excluded   `yaml:"ruled_out"`
	Contributing []Excluded   `yaml:"contributing"`
	Remedies     []RemedySpec `yaml:"remedies"`
	DoNot        []DoNotSpec  `yaml:"do_not"`
	Verify       []Template   `yaml:"verify"`
	Missing      []Guarded    `yaml:"missing"`
	Refs         []string     `yaml:"refs"`
	Samples      []Sample     `yaml:"samples"`

	file   string
	layer  int     // the directory it comes from: 0 ships
	source *source // for the lines of what is wrong
}

// Match tells how an entry is recognised: any of its signatures, unless a veto
// is known to hold.
type Match struct {
	Signatures []Signature `yaml:"signatures"`
	Vetoes     []Veto      `yaml:"vetoes"`
}

// Signature holds if all of its parts hold. It needs at least one of frames,
// exceptions, texts.
type Signature struct {
	// On is where Texts may stand: exception (default: the text of an exception
	// of the root record), line (a record of a logger without an exception), raw
	// (output that no logger formatted), kernel (a kernel log).
	On string `yaml:"on"`
	// Frames are function names, quoted source lines (an identifier in them) or
	// file paths (with a "." or "/"): any, all, none of them in the traceback.
	FramesAny  []string `yaml:"frames_any"`
	FramesAll  []string `yaml:"frames_all"`
	FramesNone []string `yaml:"frames_none"`
	// Exceptions are class names; the module may be left out.
	Exceptions []string `yaml:"exceptions"`
	// Texts are literals, any of which must stand in the text, case-exact.
	Texts []string `yaml:"texts"`
	// TextsAll must all stand in it.
	TextsAll []string `yaml:"texts_all"`
	// Pattern is a regular expression over the text. A named group is a fact
	// for the entry's expressions; "needed_GiB" gives needed in bytes.
	Pattern *Pattern `yaml:"pattern"`
	// OOM asks that the exception be an out-of-memory: any, numbers, masked, no;
	// or cut: the traceback stops before it.
	OOM string `yaml:"oom"`
	// Forms are families of the allocator grammar (package oom), any.
	Forms []string `yaml:"forms"`
	// Levels are those of an On: line record.
	Levels []string `yaml:"levels"`
	// Phase is startup, runtime or shutdown, empty for any.
	Phase string `yaml:"phase"`
	// Requires must be known to be true.
	Requires *Condition `yaml:"requires"`
	// Confidence is the score of the verdict if this signature holds: from 0.85
	// high, from 0.6 medium, from 0.4 low.
	Confidence float64 `yaml:"confidence"`
	// Alone tells that a line is a failure by itself; without it the line is a
	// cause only if the engine is seen to die of it.
	Alone bool `yaml:"alone"`
	// MinCount asks for that many such lines before the line counts.
	MinCount int `yaml:"min_count"`
	// Root is first (default: the first exception of the chain is the root) or
	// matched (the one that this signature matched).
	Root string `yaml:"root"`
}

// Pattern is a compiled regular expression.
type Pattern struct{ *regexp.Regexp }

// UnmarshalYAML compiles the pattern.
func (p *Pattern) UnmarshalYAML(n *yaml.Node) error {
	re, err := regexp.Compile(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	p.Regexp = re
	return nil
}

// Condition is a truth expression.
type Condition struct{ *Expr }

// UnmarshalYAML compiles the expression and asks for a truth.
func (c *Condition) UnmarshalYAML(n *yaml.Node) error {
	e, err := Compile(n.Value)
	if err == nil {
		err = want(e.kind, boolKind)
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	c.Expr = e
	return nil
}

// holds is true for no condition and for one known to be true.
func (c *Condition) holds(s Scope) bool { return c == nil || c.Eval(s).True() }

// Figure is an expression that gives a number or a text.
type Figure struct{ *Expr }

// UnmarshalYAML compiles the expression.
func (f *Figure) UnmarshalYAML(n *yaml.Node) error {
	e, err := Compile(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	f.Expr = e
	return nil
}

// Veto forbids the entry and says why.
type Veto struct {
	When    Condition `yaml:"when"`
	Because string    `yaml:"because"`
}

// Demand is what one call needs beyond the profile: all its parts, in the
// order in which they are asked for. The allocator names one part; a remedy
// provides for all of them.
type Demand struct {
	Parts []DemandPart `yaml:"parts"`
	// ScalesWith is max_num_batched_tokens or max_num_seqs: the variable tokens
	// (or seqs) of the formulas.
	ScalesWith string `yaml:"scales_with"`
	Source     string `yaml:"source"`
	// Coincidences warns of other formulas that give the same figure.
	Coincidences []string `yaml:"coincidences"`
}

// DemandPart is one tensor of the call.
type DemandPart struct {
	Name string `yaml:"name"`
	// Bytes is an expression in tokens (or seqs) and facts.
	Bytes Figure `yaml:"bytes"`
}

// VersionState tells for a set of releases whether they have the fault.
type VersionState struct {
	Range     VersionSet `yaml:"range"`
	State     string     `yaml:"state"` // affected or fixed
	By        string     `yaml:"by"`
	Certainty string     `yaml:"certainty"`
}

// VersionSet is a PEP 440 specifier set.
type VersionSet struct {
	version.Set
	Text string
}

// UnmarshalYAML reads the set.
func (v *VersionSet) UnmarshalYAML(n *yaml.Node) error {
	set, err := version.ParseSet(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	v.Set, v.Text = set, n.Value
	return nil
}

// Statement is one piece of evidence that an entry adds.
type Statement struct {
	Grade Grade      `yaml:"grade"`
	When  *Condition `yaml:"when"`
	Say   Template   `yaml:"say"`
	// Formula shows the arithmetic of a computed statement.
	Formula Template `yaml:"formula"`
}

// Excluded is a class ruled out, or one that contributed.
type Excluded struct {
	Class string     `yaml:"class"`
	When  *Condition `yaml:"when"`
	Say   Template   `yaml:"say"`
}

// RemedySpec is one step; a step whose condition does not hold, or whose
// values are unknown, is not printed.
type RemedySpec struct {
	// Use takes a step from the shared steps (catalog/shared.yaml) instead.
	Use   string     `yaml:"use"`
	ID    string     `yaml:"id"`
	Title Template   `yaml:"title"`
	When  *Condition `yaml:"when"`
	// Set gives values as expressions; a plain text value is written 'text'
	// in quotes inside the expression.
	Set       map[string]Figure `yaml:"set"`
	Unset     []string          `yaml:"unset"`
	UpgradeTo string            `yaml:"upgrade_to"`
	Why       Template          `yaml:"why"`
	Expect    Template          `yaml:"expect"`
	Costs     Template          `yaml:"costs"`
	Grade     string            `yaml:"grade"` // computed, upstream_fix, field_report, inferred
	Refs      []string          `yaml:"refs"`
}

// DoNotSpec is a change to warn of.
type DoNotSpec struct {
	Use     string     `yaml:"use"`
	Change  Template   `yaml:"change"`
	When    *Condition `yaml:"when"`
	Because Template   `yaml:"because"`
}

// Guarded is a text with a condition.
type Guarded struct {
	When *Condition `yaml:"when"`
	Say  Template   `yaml:"say"`
}

// Sample proves an entry: a fixture or an inline log that must match, or a
// near miss that must not.
type Sample struct {
	// Log is a path below fixtures/; Text is an inline log.
	Log  string `yaml:"log"`
	Text string `yaml:"text"`
	// Not marks a near miss; Why says which mistake it guards against.
	Not    bool              `yaml:"not"`
	Why    string            `yaml:"why"`
	Expect map[string]string `yaml:"expect"`
}
