package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"diagnose/matcher"
)

// expectation is the "expect" of a fixture; fixtures/README.md says what each
// key means.
type expectation struct {
	Incidents           *int           `json:"incidents"`
	Family              *string        `json:"family"`
	FamilyAlso          []string       `json:"family_also_acceptable"`
	Class               *string        `json:"class"`
	ClassAlso           []string       `json:"class_also_acceptable"`
	Mechanism           *string        `json:"mechanism"`
	Phase               *string        `json:"phase"`
	RootLine            *int64         `json:"root_line"`
	RootLinesAlso       []int64        `json:"root_lines_also_acceptable"`
	RootTextContains    *string        `json:"root_text_contains"`
	NotRoot             []string       `json:"not_root"`
	Ranks               []string       `json:"ranks"`
	Consequences        map[string]int `json:"consequences"`
	RemediesMustInclude []string       `json:"remedies_must_include"`
	RemediesMustNot     []string       `json:"remedies_must_not_include"`
	RemediesInOrder     []setting      `json:"remedies_in_order"`
	LabelConfidence     string         `json:"label_confidence"`
	Why                 string         `json:"why"`
	OOMGiB              map[string]any `json:"oom_gib"`
	OOMText             string         `json:"oom_text"`
}

type setting = map[string]string

// printedOOM is one allocator sentence of a log, as a fixture gives it.
type printedOOM struct {
	Line          int64  `json:"line"`
	RepeatOf      *int64 `json:"repeat_of_line"`
	Process       string `json:"process"`
	GPU           *int   `json:"gpu"`
	Tried         *int64 `json:"tried_bytes"`
	Total         *int64 `json:"total_bytes"`
	Free          *int64 `json:"free_bytes"`
	ProcessBytes  *int64 `json:"process_bytes"`
	Allowed       *int64 `json:"allowed_bytes"`
	Allocated     *int64 `json:"allocated_bytes"`
	PrivatePools  *int64 `json:"private_pools_bytes"`
	ReservedSpare *int64 `json:"reserved_unallocated_bytes"`
}

// readJSON decodes a fixture's expectation file.
func readJSON(t testing.TB, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// status gives the exit status that belongs to the incidents of a document.
func status(d matcher.Document) int {
	out := exitHealthy
	for _, in := range d.Incidents {
		if in.Verdict.Family == "unknown" {
			return exitUnknown
		}
		out = exitFailure
	}
	return out
}

// problems holds an incident against everything that is expected of it.
func (e expectation) problems(in matcher.Incident) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }

	if e.Class != nil && !e.classRight(in.Verdict) {
		bad("class %s of family %s (%s), expected %s", in.Verdict.Class, in.Verdict.Family, in.Verdict.Confidence, *e.Class)
	}
	if e.Family != nil && in.Verdict.Family != *e.Family && !slices.Contains(e.FamilyAlso, in.Verdict.Family) && !slices.Contains(e.ClassAlso, in.Verdict.Class) {
		bad("family %s, expected %s", in.Verdict.Family, *e.Family)
	}
	if got := matcher.FamilyOf(in.Verdict.Class); got != in.Verdict.Family {
		bad("family %s does not belong to class %s", in.Verdict.Family, in.Verdict.Class)
	}
	if e.Mechanism != nil && deref(in.Verdict.Mechanism) != *e.Mechanism {
		bad("mechanism %q, expected %q", deref(in.Verdict.Mechanism), *e.Mechanism)
	}
	if e.Phase != nil && in.Phase != *e.Phase {
		bad("phase %s, expected %s", in.Phase, *e.Phase)
	}
	if e.RootLine != nil {
		if line := lineOf(in.Root.At); line != *e.RootLine && !slices.Contains(e.RootLinesAlso, line) {
			bad("root at line %d, expected %d or one of %v", line, *e.RootLine, e.RootLinesAlso)
		}
	}
	if e.RootTextContains != nil && !strings.Contains(in.Root.Text, *e.RootTextContains) {
		bad("root text %q lacks %q", in.Root.Text, *e.RootTextContains)
	}
	for _, text := range e.NotRoot {
		if strings.Contains(in.Root.Text, text) {
			bad("a consequence is reported as the root: %q", in.Root.Text)
		}
	}
	if len(e.Ranks) > 0 {
		var got []string
		for _, r := range in.Ranks {
			got = append(got, r.Process)
		}
		if !slices.Equal(got, e.Ranks) {
			bad("ranks %v, expected %v", got, e.Ranks)
		}
	}
	counts := map[string]int{}
	for _, c := range in.Consequences {
		counts[c.Kind] += c.Count
	}
	for kind, want := range e.Consequences {
		if counts[kind] != want {
			bad("%d consequences of kind %s, expected %d", counts[kind], kind, want)
		}
	}
	return append(out, e.remedyProblems(in.Remedies)...)
}

// classRight tells whether a verdict has an accepted class. In reports the
// class not_oom stands for the whole family. A label of low confidence is a
// question, which unknown answers.
func (e expectation) classRight(v matcher.Verdict) bool {
	return v.Class == *e.Class || slices.Contains(e.ClassAlso, v.Class) ||
		(*e.Class == "not_oom" || slices.Contains(e.ClassAlso, "not_oom")) && v.Family == "not_oom" ||
		e.LabelConfidence == "low" && v.Class == "unknown"
}

func (e expectation) remedyProblems(remedies []matcher.Remedy) []string {
	var out []string
	for _, want := range e.RemediesMustInclude {
		met := false
		for _, term := range strings.Split(want, " | ") {
			met = met || slices.ContainsFunc(remedies, func(r matcher.Remedy) bool { return meets(r, term) })
		}
		if !met {
			out = append(out, "no step is "+want)
		}
	}
	for _, term := range e.RemediesMustNot {
		for _, r := range remedies {
			if meets(r, term) {
				out = append(out, fmt.Sprintf("step %d (%v) is %s, which must not be advised", r.Rank, r.Set, term))
			}
		}
	}
	for i, want := range e.RemediesInOrder {
		if i >= len(remedies) || !sameSettings(want, remedies[i].Set) {
			out = append(out, fmt.Sprintf("step %d sets %v, expected %v", i+1, stepSet(remedies, i), want))
		}
	}
	return out
}

func stepSet(remedies []matcher.Remedy, i int) setting {
	if i < len(remedies) {
		return remedies[i].Set
	}
	return nil
}

// meets tells whether a step fits one term: "--flag<=N", "--flag", "env:NAME",
// "env:NAME=VALUE", "unset:--flag", "text:words"; "alone:" before it demands
// that the step changes nothing else.
func meets(r matcher.Remedy, term string) bool {
	term = strings.TrimSpace(term)
	if rest, alone := strings.CutPrefix(term, "alone:"); alone {
		return len(r.Set)+len(r.Unset) == 1 && meets(r, rest)
	}
	if words, ok := strings.CutPrefix(term, "text:"); ok {
		text, _ := json.Marshal(r)
		return strings.Contains(strings.ToLower(string(text)), strings.ToLower(words))
	}
	if flag, ok := strings.CutPrefix(term, "unset:"); ok {
		return slices.Contains(r.Unset, flag)
	}
	if env, ok := strings.CutPrefix(term, "env:"); ok {
		name, value, _ := strings.Cut(env, "=")
		got, set := r.Set["env:"+name]
		return set && strings.Contains(got, value)
	}
	at := strings.IndexAny(term, "<>=")
	if at < 0 {
		_, set := r.Set[term]
		return set
	}
	value, set := r.Set[term[:at]]
	bound := strings.TrimLeft(term[at:], "<>=")
	op := strings.TrimSuffix(term[at:], bound)
	got, err := strconv.ParseFloat(value, 64)
	want, err2 := strconv.ParseFloat(bound, 64)
	if !set || err != nil || err2 != nil {
		return false
	}
	switch op {
	case "<=":
		return got <= want
	case "<":
		return got < want
	case ">=":
		return got >= want
	case ">":
		return got > want
	}
	return got == want
}

// sameSettings compares a step's changes; "~" before a value allows 1 %.
func sameSettings(want, got setting) bool {
	if len(want) != len(got) {
		return false
	}
	for flag, w := range want {
		if near, ok := strings.CutPrefix(w, "~"); ok {
			a, _ := strconv.ParseFloat(near, 64)
			b, err := strconv.ParseFloat(got[flag], 64)
			if err != nil || math.Abs(a-b) > a/100 {
				return false
			}
		} else if got[flag] != w {
			return false
		}
	}
	return true
}

// numberProblems holds the numbers of an incident against the allocator's
// sentences of its log: each failed process once, every figure to the byte.
func numberProblems(in matcher.Incident, printed []printedOOM) []string {
	var out []string
	for _, p := range printed {
		if p.RepeatOf != nil {
			continue
		}
		i := slices.IndexFunc(in.OOM, func(o matcher.OOM) bool { return o.Process == p.Process })
		if i < 0 {
			out = append(out, fmt.Sprintf("no numbers of %s (line %d)", p.Process, p.Line))
			continue
		}
		o := in.OOM[i]
		for _, f := range []struct {
			name      string
			want, got *int64
		}{
			{"tried", p.Tried, o.TriedBytes},
			{"total", p.Total, o.TotalBytes},
			{"free", p.Free, o.FreeBytes},
			{"process", p.ProcessBytes, o.ProcessBytes},
			{"allowed", p.Allowed, o.AllowedBytes},
			{"allocated", p.Allocated, o.AllocatedBytes},
			{"private pools", p.PrivatePools, o.PrivatePoolsBytes},
			{"reserved but unallocated", p.ReservedSpare, o.ReservedUnallocatedBytes},
		} {
			if number(f.want) != number(f.got) {
				out = append(out, fmt.Sprintf("%s, %s: %s bytes, expected %s", p.Process, f.name, number(f.got), number(f.want)))
			}
		}
		if p.GPU != nil && (o.GPU == nil || *o.GPU != *p.GPU) {
			out = append(out, fmt.Sprintf("%s: wrong GPU", p.Process))
		}
		if line := lineOf(o.At); line != p.Line && !repeats(printed, p.Line, line) {
			out = append(out, fmt.Sprintf("%s: numbers of line %d, expected %d", p.Process, line, p.Line))
		}
	}
	return out
}

func repeats(printed []printedOOM, of, line int64) bool {
	return slices.ContainsFunc(printed, func(p printedOOM) bool { return p.Line == line && p.RepeatOf != nil && *p.RepeatOf == of })
}

// gibProblems is numberProblems for fixtures that give GiB, rounded to five
// decimals: some rank must have every figure that the log prints.
func gibProblems(t testing.TB, log string, in matcher.Incident, gib map[string]any) []string {
	sizes := printedSizes(t, log)
	var best []string
	for n, o := range append(in.OOM, matcher.OOM{}) {
		var off []string
		for key, got := range map[string]*int64{
			"tried_gib": o.TriedBytes, "total_gib": o.TotalBytes, "free_gib": o.FreeBytes,
			"process_in_use_gib": o.ProcessBytes, "allocated_gib": o.AllocatedBytes,
			"reserved_unallocated_gib": o.ReservedUnallocatedBytes, "private_pools_gib": o.PrivatePoolsBytes,
		} {
			want, ok := gib[key].(float64)
			if !ok || !slices.ContainsFunc(sizes, func(s float64) bool { return sameSize(s, want) }) {
				continue
			}
			if got == nil || !sameSize(float64(*got), want) {
				off = append(off, fmt.Sprintf("%s is %s bytes, expected %v GiB", key, number(got), want))
			}
		}
		if n == 0 || len(off) < len(best) {
			best = off
		}
	}
	return best
}

// sameSize compares bytes with GiB: sizes below 1 GiB are printed in MiB, both
// with two decimals, and the fixture has five.
func sameSize(bytes, gib float64) bool {
	const g = 1 << 30
	unit := float64(g)
	if gib < 1 {
		unit = 1 << 20
	}
	return math.Abs(bytes-gib*g) <= 0.005*unit+0.000005*g+1
}

// printedSizes gives every size of a log in bytes; a report's numbers need not
// all stand in what is left of its log.
func printedSizes(t testing.TB, log string) []float64 {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var out []float64
	for _, m := range regexp.MustCompile(`([\d.]+)\s+([GM])iB`).FindAllSubmatch(data, -1) {
		n, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			continue
		}
		unit := float64(1 << 20)
		if m[2][0] == 'G' {
			unit = 1 << 30
		}
		out = append(out, n*unit)
	}
	return out
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func lineOf(at *matcher.At) int64 {
	if at == nil || at.Line == nil {
		return 0
	}
	return *at.Line
}

func number(n *int64) string {
	if n == nil {
		return "no"
	}
	return strconv.FormatInt(*n, 10)
}
