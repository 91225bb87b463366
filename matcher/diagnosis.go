package matcher

import "encoding/json"

// Schema names the JSON contract. Within v1 fields are only added.
const Schema = "diagnose/v1"

// Document is what one reading of one or more inputs found.
type Document struct {
	Schema       string     `json:"schema"`
	Tool         Tool       `json:"tool"`
	Inputs       []Input    `json:"inputs"`
	Observations []Incident `json:"observations"`
	Incidents    []Incident `json:"incidents"`
}

// Tool says which program and which knowledge made a document.
type Tool struct {
	Version string `json:"version"`
	Catalog string `json:"catalog"`
}

// Input is one source that was read.
type Input struct {
	Name    string    `json:"name"`
	Bytes   int64     `json:"bytes"`
	Lines   *int64    `json:"lines"`
	Framing string    `json:"framing"`
	Skipped []Skipped `json:"skipped"`
}

// Skipped is a part of an input that was not read, and why.
type Skipped struct {
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	Why    string `json:"why"`
}

// At is where a statement stands. Line is nil when the input was not read from
// its start; a nil *At means that the statement stands nowhere (a default).
type At struct {
	Source int    `json:"source"`
	Line   *int64 `json:"line"`
	Offset *int64 `json:"offset"`
}

// Grade says how a statement is known.
type Grade string

// The grades, surest first.
const (
	Established Grade = "established" // it stands in the log
	Computed    Grade = "computed"    // shown arithmetic over established figures
	Inferred    Grade = "inferred"    // says so in its text
)

// Status of an incident on this host.
const (
	StatusNew       = "new"
	StatusHistoric  = "historic"
	StatusRecurring = "recurring"
)

// Incident is one failure of one run of a server, with its diagnosis. As an
// observation it is something wrong that has not failed.
type Incident struct {
	// ID is the first 12 hex digits of a SHA-256 over the root record with
	// framing and ANSI stripped; the same live and post-mortem.
	ID           string  `json:"id"`
	Status       string  `json:"status"`
	Occurrences  int     `json:"occurrences"`
	RecurrenceOf *string `json:"recurrence_of"`

	Host      *string `json:"host"`
	Unit      *string `json:"unit"`
	Pod       *string `json:"pod"`
	Container *string `json:"container"`

	Time   Time   `json:"time"`
	Engine Engine `json:"engine"`
	// Phase is startup, runtime, shutdown or unknown.
	Phase string `json:"phase"`
	Ranks []Rank `json:"ranks"`

	Verdict Verdict  `json:"verdict"`
	Root    Root     `json:"root"`
	OOM     []OOM    `json:"oom"`
	Budget  []Budget `json:"budget"`
	KVCache *KVCache `json:"kv_cache"`

	Evidence     []Evidence     `json:"evidence"`
	RuledOut     []RuledOut     `json:"ruled_out"`
	Contributing []Contributing `json:"contributing"`
	Consequences []Consequence  `json:"consequences"`
	Remedies     []Remedy       `json:"remedies"`
	DoNot        []DoNot        `json:"do_not"`
	Restarted    *Restarted     `json:"restarted"`
	Followup     *Followup      `json:"followup"`

	Verify     []string `json:"verify"`
	Missing    []string `json:"missing"`
	References []string `json:"references"`

	// failed is the earliest time of what failed in the run, as printed.
	failed string
	// printed is the root's time as the log prints it.
	printed string
}

// PrintedTime is the root's time as the log prints it ("11-30 02:27:33"), ""
// for raw output.
func (i Incident) PrintedTime() string { return i.printed }

// FailedTime is the earliest printed time of what failed in the run; the root,
// if it is raw output, has none of its own.
func (i Incident) FailedTime() string { return i.failed }

// Time bounds an incident. First and Last are RFC 3339 where the log gives
// year and zone, else nil; Basis says what the log gives.
type Time struct {
	First *string `json:"first"`
	Last  *string `json:"last"`
	Basis string  `json:"time_basis"`
}

// Engine is the server that failed, as its banner and arguments describe it.
type Engine struct {
	Name    string          `json:"name"`
	Version *string         `json:"version"`
	Model   *string         `json:"model"`
	Flags   map[string]Flag `json:"flags"`
}

// Flag is one setting, keyed by its name without dashes ("max-num-seqs").
type Flag struct {
	Value string `json:"value"`
	// Basis is arguments, default, given or config.
	Basis string `json:"basis"`
	At    *At    `json:"at"`
}

// Rank is a process that failed.
type Rank struct {
	Process string `json:"process"`
	PID     *int   `json:"pid"`
	GPU     *int   `json:"gpu"`
	At      *At    `json:"at"`
}

// Verdict is the answer.
type Verdict struct {
	Family     string  `json:"family"`
	Class      string  `json:"class"`
	Mechanism  *string `json:"mechanism"`
	Confidence string  `json:"confidence"`
	Summary    string  `json:"summary"`
}

// Root is the cause, apart from its consequences. At is the line that carries
// the exception's text.
type Root struct {
	Kind  string  `json:"kind"`
	Text  string  `json:"text"`
	Frame *string `json:"frame"`
	At    *At     `json:"at"`
}

// OOM holds the numbers of one rank's failed allocation. A nil size was not
// printed. Precision is half of the last printed digit, in bytes.
type OOM struct {
	Process                  string           `json:"process"`
	GPU                      *int             `json:"gpu"`
	TriedBytes               *int64           `json:"tried_bytes"`
	TotalBytes               *int64           `json:"total_bytes"`
	FreeBytes                *int64           `json:"free_bytes"`
	ProcessBytes             *int64           `json:"process_bytes"`
	OtherProcesses           []OtherProcess   `json:"other_processes"`
	AllowedBytes             *int64           `json:"allowed_bytes"`
	AllocatedBytes           *int64           `json:"allocated_bytes"`
	PrivatePoolsBytes        *int64           `json:"private_pools_bytes"`
	ReservedUnallocatedBytes *int64           `json:"reserved_unallocated_bytes"`
	Precision                map[string]int64 `json:"precision"`
	// Masked marks an OOM whose text carries no numbers.
	Masked bool `json:"masked"`
	At     *At  `json:"at"`
}

// OtherProcess is a process on the same GPU that the allocator named.
type OtherProcess struct {
	PID   int   `json:"pid"`
	Bytes int64 `json:"bytes"`
}

// Budget is the memory of one GPU of one run, part by part.
type Budget struct {
	Process          string      `json:"process"`
	GPU              *int        `json:"gpu"`
	TotalBytes       *BudgetPart `json:"total_bytes"`
	FreeAtStartBytes *BudgetPart `json:"free_at_start_bytes"`
	RequestedBytes   *BudgetPart `json:"requested_bytes"`
	WeightsBytes     *BudgetPart `json:"weights_bytes"`
	PeakActivation   *BudgetPart `json:"peak_activation_bytes"`
	NonTorchBytes    *BudgetPart `json:"non_torch_bytes"`
	ConsumedBytes    *BudgetPart `json:"consumed_bytes"`
	GraphEstimate    *BudgetPart `json:"graph_estimate_bytes"`
	GraphActual      *BudgetPart `json:"graph_actual_bytes"`
	KVCacheBytes     *BudgetPart `json:"kv_cache_bytes"`
	OutsideBytes     *BudgetPart `json:"outside_bytes"`
	KVCacheTokens    *BudgetPart `json:"kv_cache_tokens"`
}

// BudgetPart is one figure of a budget; bytes, or tokens for kv_cache_tokens.
type BudgetPart struct {
	Value int64 `json:"value"`
	Grade Grade `json:"grade"`
	At    *At   `json:"at"`
}

// KVCache is the last known load before the failure. UsagePct is in percent.
type KVCache struct {
	UsagePct    *float64 `json:"usage_pct"`
	Running     *int     `json:"running"`
	Waiting     *int     `json:"waiting"`
	Preemptions *int     `json:"preemptions"`
	AgeSeconds  *int     `json:"age_seconds"`
	At          *At      `json:"at"`
}

// Evidence is one statement, its grade and its lines.
type Evidence struct {
	Grade     Grade   `json:"grade"`
	Statement string  `json:"statement"`
	Formula   *string `json:"formula"`
	At        []At    `json:"at"`
}

// RuledOut is a class that was considered and why it is not the answer.
type RuledOut struct {
	Class   string `json:"class"`
	Because string `json:"because"`
	At      []At   `json:"at"`
}

// Contributing is something that made it worse without being the cause.
type Contributing struct {
	Class     string `json:"class"`
	Statement string `json:"statement"`
	At        []At   `json:"at"`
}

// Consequence counts records (not lines, not copies) that only report that
// something earlier failed.
type Consequence struct {
	Kind  string `json:"kind"`
	What  string `json:"what"`
	Count int    `json:"count"`
	At    *At    `json:"at"`
}

// Remedy is one step: the changes that must be made together. Keys of Set are
// flags as typed or env:NAME.
type Remedy struct {
	Rank      int               `json:"rank"`
	Title     string            `json:"title"`
	Set       map[string]string `json:"set"`
	Unset     []string          `json:"unset"`
	UpgradeTo *string           `json:"upgrade_to"`
	Why       string            `json:"why"`
	Expect    string            `json:"expect"`
	Costs     string            `json:"costs"`
	// Grade is computed, upstream_fix, field_report or inferred.
	Grade string   `json:"grade"`
	Refs  []string `json:"refs"`
}

// DoNot is a change that would not help, or harm.
type DoNot struct {
	Change  string `json:"change"`
	Because string `json:"because"`
}

// Restarted describes the next run in the same log.
type Restarted struct {
	At             *At      `json:"at"`
	ChangesMade    []string `json:"changes_made"`
	ChangesMissing []string `json:"changes_missing"`
	// StepTaken is the rank of the remedy that was taken whole.
	StepTaken *int `json:"step_taken"`
}

// Followup is what the daemon learned after the incident.
type Followup struct {
	RestartedAt    *string  `json:"restarted_at"`
	ChangesMade    []string `json:"changes_made"`
	ChangesMissing []string `json:"changes_missing"`
	// StepTaken is the rank of the remedy that was taken whole.
	StepTaken *int     `json:"step_taken"`
	BudgetNow []Budget `json:"budget_now"`
	HeldSince *string  `json:"held_since"`
	Withdrawn []string `json:"withdrawn"`
}

// FamilyOf gives the family that a class belongs to, unknown for any other
// word.
func FamilyOf(class string) string {
	if f, ok := classes[class]; ok {
		return f
	}
	return "unknown"
}

// MarshalJSON writes empty lists and maps as [] and {}, never null, as the
// contract promises.
func (i Incident) MarshalJSON() ([]byte, error) {
	type plain Incident
	p := plain(i)
	fill(&p.Ranks)
	fill(&p.OOM)
	fill(&p.Budget)
	fill(&p.Evidence)
	fill(&p.RuledOut)
	fill(&p.Contributing)
	fill(&p.Consequences)
	fill(&p.Remedies)
	fill(&p.DoNot)
	fill(&p.Verify)
	fill(&p.Missing)
	fill(&p.References)
	if p.Engine.Flags == nil {
		p.Engine.Flags = map[string]Flag{}
	}
	return json.Marshal(p)
}

func fill[T any](s *[]T) {
	if *s == nil {
		*s = []T{}
	}
}
