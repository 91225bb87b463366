package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/matcher"
)

// cases gives the logs of a fixtures' folder by name, with their expectation
// file.
func cases(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(fixtures, folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no expectations in %s: %v", folder, err)
	}
	out := map[string]string{}
	for _, f := range files {
		log := strings.TrimSuffix(f, ".json") + ".log"
		if _, err := os.Stat(log); err != nil {
			t.Fatalf("an expectation without a log: %v", err)
		}
		out[log] = f
	}
	return out
}

// TestServers holds the invented log of the seed case and the logs of real
// servers against everything that is expected of them.
func TestServers(t *testing.T) {
	for _, folder := range []string{"seed", "vllm-h200"} {
		for log, file := range cases(t, folder) {
			t.Run(strings.TrimSuffix(filepath.Base(log), ".log"), func(t *testing.T) {
				t.Parallel()
				var c struct {
					Expect expectation  `json:"expect"`
					OOM    []printedOOM `json:"oom"`
					Facts  struct {
						Version       string       `json:"version"`
						Utilisation   float64      `json:"gpu_memory_utilization"`
						WeightsBytes  int64        `json:"weights_bytes"`
						KVCacheBytes  int64        `json:"kv_cache_bytes"`
						KVCacheTokens int64        `json:"kv_cache_tokens"`
						LastKVUsage   float64      `json:"last_kv_usage_pct"`
						LastStatsLine int64        `json:"last_stats_line"`
						OOM           []printedOOM `json:"oom"`
					} `json:"facts"`
				}
				readJSON(t, file, &c)
				r := call(t, "", "--format", "json", log)
				d := r.document(t)
				if want := status(d); r.status != want {
					t.Errorf("status %d, the document says %d", r.status, want)
				}
				if c.Expect.Incidents == nil {
					t.Fatal("the expectation gives no number of incidents")
				}
				if len(d.Incidents) != *c.Expect.Incidents {
					t.Fatalf("%d incidents, expected %d: %s", len(d.Incidents), *c.Expect.Incidents, brief(d))
				}
				if *c.Expect.Incidents == 0 {
					return
				}
				in := d.Incidents[0]
				for _, p := range append(c.Expect.problems(in), numberProblems(in, append(c.OOM, c.Facts.OOM...))...) {
					t.Error(p)
				}
				if f := c.Facts; f.Version != "" {
					facts := map[string][2]string{
						"version":     {f.Version, deref(in.Engine.Version)},
						"weights":     {fmt.Sprint(f.WeightsBytes), part(in, func(b matcher.Budget) *matcher.BudgetPart { return b.WeightsBytes })},
						"KV cache":    {fmt.Sprint(f.KVCacheBytes), part(in, func(b matcher.Budget) *matcher.BudgetPart { return b.KVCacheBytes })},
						"KV tokens":   {fmt.Sprint(f.KVCacheTokens), part(in, func(b matcher.Budget) *matcher.BudgetPart { return b.KVCacheTokens })},
						"utilisation": {fmt.Sprint(f.Utilisation), in.Engine.Flags["gpu-memory-utilization"].Value},
					}
					for name, wantGot := range facts {
						if wantGot[0] != wantGot[1] {
							t.Errorf("%s: %s, expected %s", name, wantGot[1], wantGot[0])
						}
					}
					// A dump of the scheduler is newer than the last statistics.
					if kv := in.KVCache; kv == nil || kv.UsagePct == nil || math.Abs(*kv.UsagePct-f.LastKVUsage) > 0.05 || lineOf(kv.At) < f.LastStatsLine {
						t.Errorf("KV cache %+v, expected %v %% of line %d", kv, f.LastKVUsage, f.LastStatsLine)
					}
				}
			})
		}
	}
}

// TestReports: on partial logs, a wrong class is never said with high
// confidence, and every number is exact. The table of -v tells what is right.
func TestReports(t *testing.T) {
	for log, file := range cases(t, "reports") {
		t.Run(strings.TrimSuffix(filepath.Base(log), ".log"), func(t *testing.T) {
			t.Parallel()
			var c struct {
				Expect expectation `json:"expect"`
			}
			readJSON(t, file, &c)
			r := call(t, "", "--format", "json", "--no-siblings", log)
			d := r.document(t)
			if want := status(d); r.status != want {
				t.Errorf("status %d, the document says %d", r.status, want)
			}
			if n := c.Expect.Incidents; n != nil && *n != len(d.Incidents) {
				t.Fatalf("%d incidents, expected %d: %s", len(d.Incidents), *n, brief(d))
			} else if n != nil && *n == 0 {
				return
			}
			found := d.Incidents
			if len(found) == 0 && *c.Expect.Class == "kv_pressure" {
				found = d.Observations // nothing need have failed
			}
			if len(found) == 0 {
				t.Fatalf("nothing found, expected %s", *c.Expect.Class)
			}
			in := found[len(found)-1]
			got := fmt.Sprintf("%s (%s), the label is %s (%s)", in.Verdict.Class, in.Verdict.Confidence, *c.Expect.Class, c.Expect.LabelConfidence)
			switch {
			case c.Expect.classRight(in.Verdict):
				t.Log("right:", got)
			case in.Verdict.Class == "unknown":
				t.Log("unknown:", got)
			case in.Verdict.Confidence == "high":
				t.Error("wrong, and sure of it:", got)
			default:
				t.Log("wrong:", got)
			}
			if len(in.OOM) > 0 || !strings.HasPrefix(c.Expect.OOMText, "absent") {
				for _, p := range gibProblems(t, log, in, c.Expect.OOMGiB) {
					t.Error(p)
				}
			}
			if in.Phase != *c.Expect.Phase && in.Phase != "unknown" {
				t.Errorf("phase %s, expected %s", in.Phase, *c.Expect.Phase)
			}
		})
	}
}

// TestSignatures: one log a message form. The class need not be found from a
// single message, but is never wrong with high confidence.
func TestSignatures(t *testing.T) {
	for log, file := range cases(t, "signatures") {
		t.Run(strings.TrimSuffix(filepath.Base(log), ".log"), func(t *testing.T) {
			t.Parallel()
			var c struct {
				Label        *string        `json:"label"`
				RootContains *string        `json:"root_contains"`
				OOM          map[string]any `json:"oom"`
				Phase        string         `json:"phase"`
				Trap         string         `json:"trap"`
			}
			readJSON(t, file, &c)
			r := call(t, "", "--format", "json", "--no-siblings", log)
			d := r.document(t)
			if want := status(d); r.status != want {
				t.Errorf("status %d, the document says %d", r.status, want)
			}
			if len(d.Incidents) == 0 {
				if c.RootContains != nil {
					t.Fatalf("nothing found; the root is %q", *c.RootContains)
				}
				return
			}
			in := d.Incidents[0]
			if len(d.Incidents) > 1 {
				t.Errorf("%d incidents, one happened: %s", len(d.Incidents), brief(d))
			}
			right := c.Label != nil && (in.Verdict.Class == *c.Label || in.Verdict.Class == "device_assert" && *c.Label == "illegal_access")
			if !right && in.Verdict.Confidence == "high" && in.Verdict.Class != "unknown" {
				t.Errorf("sure of class %s, the label is %s (%s)", in.Verdict.Class, deref(c.Label), c.Trap)
			}
			if c.RootContains != nil && !strings.Contains(in.Root.Text, *c.RootContains) && !chained(t, log, in.Root, *c.RootContains) {
				t.Errorf("root text %q lacks %q (%s)", in.Root.Text, *c.RootContains, c.Trap)
			}
			for _, p := range gibProblems(t, log, in, withoutSentinels(c.OOM)) {
				t.Error(p)
			}
		})
	}
}

// chained tells whether the words stand in an exception that was raised from
// the root: between them is only the sentence that says so.
func chained(t *testing.T, log string, root matcher.Root, words string) bool {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")[lineOf(root.At):]
	for i, l := range lines {
		if strings.Contains(l, words) {
			return strings.Contains(strings.Join(lines[:i], "\n"), "direct cause of the following exception")
		}
	}
	return false
}

// withoutSentinels leaves out what is no measurement: 0 bytes of this process
// is what NVML answers inside a pid namespace.
func withoutSentinels(gib map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range gib {
		if n, ok := v.(float64); !ok || n != 0 || k != "process_in_use_gib" {
			out[k] = v
		}
	}
	return out
}

// TestHostile: bad input and near misses, as the table beside them says.
func TestHostile(t *testing.T) {
	type expected struct {
		expectation
		Exit             int      `json:"exit"`
		MessageContains  *string  `json:"message_contains"`
		MessageLacks     []string `json:"message_lacks"`
		Framing          *string  `json:"framing"`
		Masked           *bool    `json:"masked"`
		ConfidenceAtMost *string  `json:"confidence_at_most"`
		TriedBytes       *int64   `json:"tried_bytes"`
		FreeBytes        *int64   `json:"free_bytes"`
		Model            *string  `json:"model"`
		Restarted        bool     `json:"restarted"`
		RestartLine      int64    `json:"restart_line"`
		ChangesMade      []string `json:"changes_made"`
		Year             *int     `json:"year"`
	}
	folder := filepath.Join(fixtures, "hostile")
	table := map[string]expected{}
	readJSON(t, filepath.Join(folder, "expect.json"), &table)
	logs, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range logs {
		if _, ok := table[l.Name()]; !ok && l.Name() != "expect.json" {
			t.Errorf("%s: no expectation", l.Name())
		}
	}
	for name, e := range table {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(folder, name)
			text := call(t, "", "--no-siblings", log)
			if text.status != e.Exit {
				t.Errorf("status %d, expected %d (%s)\n%s", text.status, e.Exit, e.Why, text.errors)
			}
			if e.MessageContains != nil {
				printed := text.out
				if e.Exit == exitUsage {
					printed = text.errors
				}
				if !strings.Contains(printed, *e.MessageContains) {
					t.Errorf("%q is not printed: %q", *e.MessageContains, printed)
				}
			}
			for _, secret := range e.MessageLacks {
				for _, format := range []string{"text", "json", "markdown", "html"} {
					r := call(t, "", "--no-siblings", "--verbose", "--format", format, log)
					if strings.Contains(r.out+r.errors, secret) {
						t.Errorf("format %s prints %q", format, secret)
					}
				}
			}
			if e.Incidents == nil {
				if strings.Contains(text.out, "no failure found") {
					t.Errorf("called healthy (%s)", e.Why)
				}
				return
			}
			d := call(t, "", "--format", "json", "--no-siblings", log).document(t)
			if len(d.Incidents) != *e.Incidents {
				t.Fatalf("%d incidents, expected %d (%s): %s", len(d.Incidents), *e.Incidents, e.Why, brief(d))
			}
			if e.Framing != nil && d.Inputs[0].Framing != *e.Framing {
				t.Errorf("framing %s, expected %s", d.Inputs[0].Framing, *e.Framing)
			}
			if *e.Incidents == 0 {
				return
			}
			in := d.Incidents[0]
			for _, p := range e.problems(in) {
				t.Error(p)
			}
			if e.Model != nil && deref(in.Engine.Model) != *e.Model {
				t.Errorf("model %s, expected %s", deref(in.Engine.Model), *e.Model)
			}
			if e.ConfidenceAtMost != nil && in.Verdict.Confidence == "high" {
				t.Errorf("confidence high, expected %s at most", *e.ConfidenceAtMost)
			}
			if e.TriedBytes != nil || e.Masked != nil {
				if len(in.OOM) == 0 {
					t.Fatal("no numbers")
				}
				o := in.OOM[0]
				if e.Masked != nil && o.Masked != *e.Masked {
					t.Errorf("masked %v, expected %v", o.Masked, *e.Masked)
				}
				if number(o.TriedBytes) != number(e.TriedBytes) || number(o.FreeBytes) != number(e.FreeBytes) {
					t.Errorf("tried %s, free %s; expected %s, %s", number(o.TriedBytes), number(o.FreeBytes), number(e.TriedBytes), number(e.FreeBytes))
				}
			}
			if e.Year != nil && (in.Time.First == nil || !strings.HasPrefix(*in.Time.First, fmt.Sprint(*e.Year))) {
				t.Errorf("time %s, expected one of %d", deref(in.Time.First), *e.Year)
			}
			if (in.Restarted != nil) != e.Restarted {
				t.Fatalf("restarted: %v, expected %v", in.Restarted != nil, e.Restarted)
			}
			if e.Restarted {
				if lineOf(in.Restarted.At) != e.RestartLine {
					t.Errorf("restart at line %d, expected %d", lineOf(in.Restarted.At), e.RestartLine)
				}
				if strings.Join(in.Restarted.ChangesMade, ", ") != strings.Join(e.ChangesMade, ", ") {
					t.Errorf("changes made %q, expected %q", in.Restarted.ChangesMade, e.ChangesMade)
				}
			}
		})
	}
}

// brief names what a document reports, for a message.
func brief(d matcher.Document) string {
	var out []string
	for _, in := range d.Incidents {
		out = append(out, fmt.Sprintf("%s at line %d (%q)", in.Verdict.Class, lineOf(in.Root.At), in.Root.Text))
	}
	return strings.Join(out, "; ")
}

// part gives the figure of the first GPU that has it.
func part(in matcher.Incident, of func(matcher.Budget) *matcher.BudgetPart) string {
	for _, b := range in.Budget {
		if p := of(b); p != nil {
			return fmt.Sprint(p.Value)
		}
	}
	return "none"
}
