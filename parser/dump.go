package parser

import (
	"strconv"
	"strings"

	"diagnose/parser/pyrepr"
)

const (
	dumpConfig = "Dumping input data for V1 LLM engine (v"
	// oldDumpConfig is the second of the five records of 0.9.0 and 0.9.1.
	oldDumpConfig = "V1 LLM engine (v"
	dumpOutput    = "Dumping scheduler output for model execution:"
	dumpStats     = "Dumping scheduler stats:"
)

// readDump reads a line of the crash dump (vllm/logging_utils/dump_input.py).
func readDump(msg string) (Dump, bool) {
	d := Dump{ScheduledTotal: -1, Running: -1, Waiting: -1, KVUsagePct: -1, PromptLogprobs: -1, PromptTokens: -1}
	whole := func(name string, into *int) {
		if v, ok := pyrepr.Field(msg, name); ok {
			if n, err := strconv.Atoi(v); err == nil {
				*into = n
			}
		}
	}
	switch {
	case strings.HasPrefix(msg, dumpOutput), strings.HasPrefix(msg, "SchedulerOutput("):
		d.Kind = "output"
		whole("total_num_scheduled_tokens", &d.ScheduledTotal)
		whole("prompt_logprobs", &d.PromptLogprobs)
		whole("prompt_token_ids_len", &d.PromptTokens)
		if id, ok := pyrepr.Field(msg, "req_id"); ok && d.PromptLogprobs >= 0 {
			if n, ok := scheduledOf(msg, id); ok && n < d.PromptTokens {
				d.PromptTokens = n // a long prompt is cut into chunks
			}
		}
	case strings.HasPrefix(msg, dumpStats), strings.HasPrefix(msg, "SchedulerStats("):
		d.Kind = "stats"
		whole("num_running_reqs", &d.Running)
		whole("num_waiting_reqs", &d.Waiting)
		for _, name := range []string{"kv_cache_usage", "gpu_cache_usage"} {
			if v, ok := pyrepr.Field(msg, name); ok {
				if f, err := strconv.ParseFloat(v, 64); err == nil {
					d.KVUsagePct = f * 100
				}
			}
		}
	default:
		return d, false
	}
	return d, true
}

// scheduledOf gives the tokens that the step held of one request.
func scheduledOf(msg, id string) (int, bool) {
	_, rest, ok := strings.Cut(msg, "num_scheduled_tokens={")
	rest, _, _ = strings.Cut(rest, "}")
	if id = strings.Trim(id, "'\""); !ok || id == "" {
		return 0, false
	}
	for item := range strings.SplitSeq(rest, ", ") {
		name, n, ok := strings.Cut(item, ": ")
		if v, err := strconv.Atoi(n); ok && err == nil && strings.Trim(name, "'\"") == id {
			return v, true
		}
	}
	return 0, false
}
