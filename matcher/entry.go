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
	Also []string `yaml:"also"`
	// Class is the contract's word for the cause.
	Class string `yaml:"class"`
	// Title is one line, without a full stop.
	Title string `yaml:"title"`
	// Role is failure (the default), observation (wrong, but nothing failed),
	// benign (looks like a failure and is none) or explain (knowledge without a
	// signature, because its details are not verified).
	Role string `yaml:"role"`

	// Match tells how it is recognised.
	Match Match `yaml:"match"`
	// Applies is the condition under which the code runs, for the entry's page. It
	// decides nothing: what a match needs stands in a signature's requires.
	Applies *Condition `yaml:"applies_when"`
	// Demand is what one call needs beyond the profile, as formulas.
	Demand *Demand `yaml:"demand"`
	// Scales names what a computed demand grows with when there is no formula:
	// max_num_batched_tokens (default for run-time OOMs), max_num_seqs, none.
	Scales string `yaml:"scales_with"`
	// Versions are the releases that were looked at; any other is not known.
	Versions []VersionState `yaml:"versions"`

	// Summary is the verdict in at most two sentences.
	Summary Template `yaml:"summary"`
	// Explain is for a person who does not know the kernel.
	Explain string `yaml:"explain"`
	// Mistaken tells what it is taken for and how they differ.
	Mistaken string `yaml:"mistaken_for"`

	// Evidence is said beside what the engine says of itself.
	Evidence []Statement `yaml:"evidence"`
	// RuledOut are classes that it surely was not.
	RuledOut []Excluded `yaml:"ruled_out"`
	// Contributing are classes that made it worse.
	Contributing []Excluded `yaml:"contributing"`
	// Remedies are the steps, in the order in which a person should try them.
	Remedies []RemedySpec `yaml:"remedies"`
	// DoNot are changes that would harm, or not help.
	DoNot []DoNotSpec `yaml:"do_not"`
	// Verify says what to run, and what to read in the log after it.
	Verify []Template `yaml:"verify"`
	// Missing says what would settle an open point.
	Missing []Guarded `yaml:"missing"`
	// Refs are the sources of what the entry says: vllm#53413, a file, a page.
	Refs []string `yaml:"refs"`
	// Samples prove the entry: one that matches and one near miss at least.
	Samples []Sample `yaml:"samples"`

	file   string
	layer  int     // the directory it comes from: 0 ships
	source *source // for the lines of what is wrong
}

// Match tells how an entry is recognised: any of its signatures, unless a veto
// is known to hold.
type Match struct {
	// Signatures are ways to recognise it, any of which is enough.
	Signatures []Signature `yaml:"signatures"`
	// Vetoes forbid the entry.
	Vetoes []Veto `yaml:"vetoes"`
}

// Signature holds if all of its parts hold. It needs at least one of frames,
// exceptions, texts.
type Signature struct {
	// On is where Texts may stand: exception (default: the text of an exception
	// of the root record), line (a record of a logger without an exception), raw
	// (output that no logger formatted), kernel (a kernel log).
	On string `yaml:"on"`
	// Frames are function names, quoted source lines (an identifier in them) or
	// file paths (with a "." or "/"), any of which is in the traceback.
	FramesAny []string `yaml:"frames_any"`
	// FramesAll must all be in the traceback.
	FramesAll []string `yaml:"frames_all"`
	// FramesNone must not be in the traceback.
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
	// When must be known to be true.
	When Condition `yaml:"when"`
	// Because is the reason, for the page of the entry.
	Because string `yaml:"because"`
}

// Demand is what one call needs beyond the profile: all its parts, in the
// order in which they are asked for. The allocator names one part; a remedy
// provides for all of them.
type Demand struct {
	// Parts are the tensors of the call.
	Parts []DemandPart `yaml:"parts"`
	// ScalesWith is max_num_batched_tokens or max_num_seqs: the variable tokens
	// (or seqs) of the formulas.
	ScalesWith string `yaml:"scales_with"`
	// Source tells where the formula was read.
	Source string `yaml:"source"`
	// Coincidences warns of other formulas that give the same figure.
	Coincidences []string `yaml:"coincidences"`
}

// DemandPart is one tensor of the call.
type DemandPart struct {
	// Name is the tensor's, for a reader.
	Name string `yaml:"name"`
	// Bytes is an expression in tokens (the step's size; seqs where the demand
	// scales with max_num_seqs) and facts. max_num_batched_tokens is the flag that
	// bounds the step; a part that does not depend on the step is refused.
	Bytes Figure `yaml:"bytes"`
}

// VersionState tells for a set of releases whether they have the fault.
type VersionState struct {
	// Range is a PEP 440 specifier: ">=0.20,<0.29".
	Range VersionSet `yaml:"range"`
	// State is affected or fixed.
	State string `yaml:"state"`
	// By names the change that repaired or broke it.
	By string `yaml:"by"`
	// Certainty tells how that is known: measured, read, inferred, and where.
	Certainty string `yaml:"certainty"`
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
	// Grade is established (it stands in the log), computed (shown arithmetic
	// over such figures) or inferred.
	Grade Grade `yaml:"grade"`
	// When must be known to be true.
	When *Condition `yaml:"when"`
	// Say is the statement.
	Say Template `yaml:"say"`
	// Formula shows the arithmetic of a computed statement.
	Formula Template `yaml:"formula"`
}

// Excluded is a class ruled out, or one that contributed.
type Excluded struct {
	// Class is the class that it was not, or that contributed.
	Class string `yaml:"class"`
	// When must be known to be true.
	When *Condition `yaml:"when"`
	// Say is the reason.
	Say Template `yaml:"say"`
}

// RemedySpec is one step; a step whose condition does not hold, or whose
// values are unknown, is not printed.
type RemedySpec struct {
	// Use takes a step from the shared steps (catalog/shared.yaml) instead.
	Use string `yaml:"use"`
	// ID names the step; a shared one is used by it.
	ID string `yaml:"id"`
	// Title is the step in one line.
	Title Template `yaml:"title"`
	// When must be known to be true.
	When *Condition `yaml:"when"`
	// Set gives values as expressions, by --flag or env:NAME; a plain text value
	// is written in quotes inside the expression ('"auto"').
	Set map[string]Figure `yaml:"set"`
	// Unset lists flags or variables (--flag, env:NAME) to be taken away.
	Unset []string `yaml:"unset"`
	// UpgradeTo is the first release that was looked at and has the repair.
	UpgradeTo string `yaml:"upgrade_to"`
	// Why tells how the values come about.
	Why Template `yaml:"why"`
	// Expect tells what the step is expected to do.
	Expect Template `yaml:"expect"`
	// Costs tells what is given up for it.
	Costs Template `yaml:"costs"`
	// Grade is computed, upstream_fix, field_report or inferred (the default).
	Grade string `yaml:"grade"`
	// Refs are the step's own sources.
	Refs []string `yaml:"refs"`
}

// DoNotSpec is a change to warn of.
type DoNotSpec struct {
	// Use takes a warning from the shared ones (catalog/shared.yaml) instead.
	Use string `yaml:"use"`
	// Change is what not to do, as an order ("raise --gpu-memory-utilization alone").
	Change Template `yaml:"change"`
	// When must be known to be true.
	When *Condition `yaml:"when"`
	// Because is the reason.
	Because Template `yaml:"because"`
}

// Guarded is a text with a condition.
type Guarded struct {
	// When must be known to be true.
	When *Condition `yaml:"when"`
	// Say is the text.
	Say Template `yaml:"say"`
}

// Sample proves an entry: a fixture or an inline log that must match, or a
// near miss that must not.
type Sample struct {
	// Log is a path below fixtures/; only the tree's tests run it.
	Log string `yaml:"log"`
	// Text is an inline log.
	Text string `yaml:"text"`
	// Not marks a near miss.
	Not bool `yaml:"not"`
	// Why says which mistake a near miss guards against; it needs one.
	Why string `yaml:"why"`
	// Expect is what the diagnosis must say: class, family, confidence, phase, kind.
	Expect map[string]string `yaml:"expect"`
}
