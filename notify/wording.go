package notify

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"diagnose/matcher"
)

// classTitle is a class for a headline.
func classTitle(class string) string {
	switch class {
	case "workspace":
		return "GPU OOM (workspace)"
	case "sampler_logits":
		return "GPU OOM (sampler logits)"
	case "multimodal_encoder":
		return "GPU OOM (multimodal encoder)"
	case "speculative":
		return "GPU OOM (speculative decoding)"
	case "lora":
		return "GPU OOM (LoRA)"
	case "comm_buffers":
		return "GPU OOM (communication buffers)"
	case "cudagraph":
		return "GPU OOM (CUDA graphs)"
	case "kv_pressure":
		return "KV cache pressure"
	case "kv_allocation":
		return "KV cache does not fit"
	case "profiling":
		return "GPU OOM (start-up profiling)"
	case "weights":
		return "GPU OOM (weights)"
	case "fragmentation":
		return "GPU OOM (fragmentation)"
	case "other_process":
		return "GPU OOM (another process)"
	case "process_limit":
		return "GPU OOM (process limit)"
	case "host_memory":
		return "Host out of memory"
	case "workspace_locked":
		return "Workspace locked"
	case "illegal_access":
		return "Illegal GPU memory access"
	case "device_assert":
		return "GPU device assert"
	case "nccl":
		return "NCCL failure"
	case "hardware":
		return "GPU hardware fault"
	case "rpc_timeout":
		return "RPC timeout"
	case "worker_died":
		return "Worker died"
	case "assertion":
		return "Assertion failed"
	case "software_fault":
		return "Software fault"
	case "config":
		return "Configuration refused"
	case "dependency":
		return "Dependency failed"
	case "unknown", "":
		return "Crash, cause unknown"
	}
	return class
}

// modelName shortens a model's path or repository to its last element.
func modelName(e matcher.Engine) string {
	if e.Model == nil {
		return ""
	}
	return path.Base(strings.TrimRight(oneLine(*e.Model), "/"))
}

// place says where the server ran, as closely as the log tells.
func place(i matcher.Incident) string {
	for _, s := range []*string{i.Host, i.Pod, i.Container, i.Unit} {
		if s != nil && *s != "" {
			return oneLine(*s)
		}
	}
	return ""
}

// headline is class, model and place.
func headline(i matcher.Incident) string {
	parts := []string{classTitle(i.Verdict.Class)}
	for _, s := range []string{modelName(i.Engine), place(i)} {
		if s != "" && s != "." {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, " · ")
}

// bytesText prints a size as the allocator does: GiB or MiB, two decimals.
func bytesText(n int64) string {
	const gib, mib = 1 << 30, 1 << 20
	switch {
	case n >= gib || n <= -gib:
		return strconv.FormatFloat(float64(n)/gib, 'f', 2, 64) + " GiB"
	case n >= mib || n <= -mib:
		return strconv.FormatFloat(float64(n)/mib, 'f', 2, 64) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// position prints file:line, or file@offset where lines were not counted; the
// file without its folder.
func position(sources []string, at *matcher.At) string {
	return positionIn(sources, at, path.Base)
}

// wholePosition is position with the file's folder, where it is known.
func wholePosition(sources []string, at *matcher.At) string {
	return positionIn(sources, at, func(name string) string { return name })
}

func positionIn(sources []string, at *matcher.At, show func(string) string) string {
	if at == nil {
		return ""
	}
	name := fmt.Sprintf("input %d", at.Source)
	if at.Source >= 0 && at.Source < len(sources) && sources[at.Source] != "" {
		name = show(oneLine(sources[at.Source]))
	}
	switch {
	case at.Line != nil:
		return name + ":" + strconv.FormatInt(*at.Line, 10)
	case at.Offset != nil:
		return name + "@" + strconv.FormatInt(*at.Offset, 10)
	}
	return name
}

// waited prints a delay coarsely: "14 min", "3 h 5 min".
func waited(d time.Duration) string {
	d = d.Round(time.Minute)
	h, m := int(d/time.Hour), int(d%time.Hour/time.Minute)
	switch {
	case h == 0:
		return fmt.Sprintf("%d min", m)
	case m == 0:
		return fmt.Sprintf("%d h", h)
	}
	return fmt.Sprintf("%d h %d min", h, m)
}

// sentences keeps whole sentences of a text up to limit bytes, at least the
// first. A sentence ends with a full stop before a space and a capital letter,
// so that neither "8.00 GiB" nor "e.g. this" ends one.
func sentences(s string, limit int) string {
	s = oneLine(s)
	end := 0
	for k := 0; k+2 < len(s); k++ {
		if s[k] != '.' || s[k+1] != ' ' || s[k+2] < 'A' || s[k+2] > 'Z' {
			continue
		}
		if end > 0 && k+1 > limit {
			break
		}
		end = k + 1
		if end >= limit {
			break
		}
	}
	if end == 0 || len(s) <= limit {
		return s
	}
	return s[:end]
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
