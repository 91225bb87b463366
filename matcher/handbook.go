package matcher

import (
	"fmt"
	"sort"
	"strings"
)

// Handbook gives the whole catalogue as one Markdown document: the text of
// docs/catalogue.md, which is generated and never edited.
func Handbook(c *Catalog) string {
	var b strings.Builder
	b.WriteString("# How a vLLM server runs out of memory, or dies otherwise\n\n")
	b.WriteString("Generated from the entries in `matcher/catalog`; `diagnose explain ID` prints one of them.\n\n")
	byFamily := map[string][]*Entry{}
	for _, e := range c.Entries {
		f := FamilyOf(e.Class)
		if e.Role == "benign" {
			f = "benign"
		}
		byFamily[f] = append(byFamily[f], e)
	}
	families := []struct{ name, title string }{
		{"workspace_driven", "Workspace-driven: scratch that start-up profiling never bounded"},
		{"kv_pressure", "KV pressure"},
		{"capacity", "Capacity: it does not fit at start"},
		{"other_oom", "Other ways to run out of GPU memory"},
		{"host", "Host memory"},
		{"not_oom", "Not out of memory"},
		{"benign", "Looks like a failure and is none"},
	}
	for _, f := range families {
		list := byFamily[f.name]
		if len(list) == 0 {
			continue
		}
		fmt.Fprintf(&b, "## %s\n\n| mechanism | class | what it is |\n|---|---|---|\n", f.title)
		for _, e := range list {
			fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", e.ID, e.ID, e.Class, strings.ReplaceAll(e.Title, "|", "\\|"))
		}
		b.WriteString("\n")
	}
	for _, e := range c.Entries {
		for _, line := range strings.SplitAfter(ExplainText(c, e), "\n") {
			// Each entry is one level below the document's title.
			if strings.HasPrefix(line, "#") {
				line = "#" + line
			}
			b.WriteString(line)
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// Scaffold gives a new entry's file, ready to be filled in.
func Scaffold(id string) string {
	return `id: ` + id + `
class: workspace   # one of: ` + strings.Join(classWords(), ", ") + `
title: one line that a stranger understands

match:
  signatures:
    # Any one of these is enough; all parts of one must hold.
    - frames_any: [name_of_the_function_that_allocates]
      oom: any            # any, numbers, masked, no
      phase: runtime      # startup or runtime; leave out for any
      confidence: 0.9     # high from 0.85, medium from 0.6, low from 0.4

# What one call needs beyond the profile; leave out if no formula is known.
# demand:
#   scales_with: max_num_batched_tokens
#   source: where the formula was read
#   parts:
#     - {name: the tensor, bytes: "tokens * 1024"}

# versions:
#   - {range: "<0.29", state: affected, certainty: how it is known}

summary: Two sentences at most, with figures such as {tried|GiB}.

explain: |
  What happens, for a person who does not know the kernel.

mistaken_for: |
  What it is taken for, and how the two differ.

remedies:
  - use: lower-utilization   # see shared.yaml, or write the step out here

do_not:
  - use: raise-utilization

verify:
  - what to run, and what to read in the log

refs: [vllm#0]

samples:
  - text: |
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] EngineCore encountered a fatal error.
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] Traceback (most recent call last):
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1]   File "a.py", line 1, in name_of_the_function_that_allocates
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 512.00 MiB is free.
  - not: true
    why: which mistake this near miss guards against
    text: |
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] EngineCore encountered a fatal error.
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] Traceback (most recent call last):
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1]   File "a.py", line 1, in name_of_the_function_that_allocates
      (EngineCore pid=1) ERROR 11-02 14:03:11 [core.py:1] ValueError: not an out-of-memory
`
}

// classes lists the classes of the contract with their families.
var classes = map[string]string{
	"workspace": "workspace_driven", "sampler_logits": "workspace_driven", "multimodal_encoder": "workspace_driven",
	"cudagraph": "workspace_driven", "speculative": "workspace_driven", "lora": "workspace_driven",
	"kv_pressure": "kv_pressure",
	"weights":     "capacity", "profiling": "capacity", "kv_allocation": "capacity",
	"fragmentation": "other_oom", "other_process": "other_oom", "process_limit": "other_oom", "comm_buffers": "other_oom",
	"host_memory":      "host",
	"workspace_locked": "not_oom", "illegal_access": "not_oom", "device_assert": "not_oom", "nccl": "not_oom",
	"hardware": "not_oom", "rpc_timeout": "not_oom", "worker_died": "not_oom", "assertion": "not_oom",
	"software_fault": "not_oom", "config": "not_oom", "dependency": "not_oom",
}

func classWords() []string {
	out := make([]string, 0, len(classes))
	for c := range classes {
		out = append(out, c)
	}
	sort.Strings(out)
	return out
}
