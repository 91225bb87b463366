package report

import (
	"strings"

	"diagnose/matcher"
)

// Headline says in one line what died and of what, without "error:". title is
// that of the verdict's mechanism; where it is empty the mechanism's id stands,
// or, without a mechanism, the class in words.
func Headline(i matcher.Incident, title string) string {
	cause := prose(title)
	if cause == "" && i.Verdict.Mechanism != nil {
		cause = word(*i.Verdict.Mechanism)
	}
	what := failed(i)
	if i.Verdict.Family == "unknown" {
		return what
	}
	if cause == "" {
		cause = className(i.Verdict.Class)
	}
	if strings.EqualFold(what, cause) {
		return what
	}
	return what + ": " + cause
}

func failed(i matcher.Incident) string {
	masked := ""
	if i.Root.Kind == "masked_oom" {
		masked = " (masked)"
	}
	refused := i.Root.Kind == "startup_refused"
	ranOut := "GPU out of memory" + masked
	if !saidOOM(i) {
		if i.Phase == "startup" && i.Verdict.Family == "capacity" && !refused {
			return "the server did not start"
		}
		ranOut = "the server died, likely of GPU memory"
	}
	switch i.Verdict.Family {
	case "workspace_driven":
		return ranOut + ", workspace-driven"
	case "kv_pressure":
		if refused {
			return "start refused, too little KV cache"
		}
		return "KV cache pressure"
	case "capacity":
		if refused {
			return "start refused, it does not fit the GPU"
		}
		return ranOut + ", it does not fit"
	case "other_oom":
		if refused {
			return "start refused, too little free GPU memory"
		}
		return ranOut
	case "host":
		return "host out of memory"
	case "not_oom":
		if refused {
			return "start refused, not for memory"
		}
		if i.Verdict.Class == "worker_died" || i.Verdict.Class == "rpc_timeout" {
			return "the server died" // of what is open, and memory is not ruled out
		}
		return "the server died, not of memory"
	}
	if refused {
		return "start refused, cause unknown"
	}
	return "the server died, cause unknown"
}

// saidOOM tells whether the root itself speaks of memory that ran out, as
// against a traceback that was cut before it.
func saidOOM(i matcher.Incident) bool {
	return i.Root.Kind == "oom" || i.Root.Kind == "masked_oom" || strings.Contains(strings.ToLower(i.Root.Text), "out of memory")
}

// className is a class in words.
func className(class string) string {
	switch class {
	case "workspace":
		return "workspace of a kernel"
	case "sampler_logits":
		return "logits and sampler"
	case "multimodal_encoder":
		return "multimodal encoder"
	case "cudagraph":
		return "CUDA graphs"
	case "speculative":
		return "speculative decoding"
	case "lora":
		return "LoRA adapters"
	case "kv_pressure":
		return "KV cache pressure"
	case "kv_allocation":
		return "allocation of the KV cache"
	case "weights":
		return "weights of the model"
	case "profiling":
		return "memory profiling at start"
	case "fragmentation":
		return "fragmentation"
	case "other_process":
		return "another process on the GPU"
	case "process_limit":
		return "memory limit of the process"
	case "comm_buffers":
		return "communication buffers"
	case "host_memory":
		return "host memory"
	case "workspace_locked":
		return "locked workspace"
	case "illegal_access":
		return "illegal memory access in a kernel"
	case "device_assert":
		return "assertion in a kernel"
	case "nccl":
		return "NCCL failure"
	case "hardware":
		return "hardware fault"
	case "rpc_timeout":
		return "timeout between the engine's processes"
	case "worker_died":
		return "a process of the engine was killed"
	case "assertion":
		return "failed assertion"
	case "software_fault":
		return "software fault"
	case "config":
		return "configuration"
	case "dependency":
		return "dependency"
	case "unknown", "":
		return "unknown cause"
	}
	return word(class)
}

// gradeName marks how sure a remedy is.
func gradeName(grade string) string {
	switch grade {
	case "upstream_fix":
		return "upstream fix, not run"
	case "field_report":
		return "field report"
	}
	return word(grade)
}

// phaseName says when it happened; the usual case, at run time, goes without
// saying.
func phaseName(phase string) string {
	switch phase {
	case "startup":
		return "while starting"
	case "shutdown":
		return "while stopping"
	}
	return ""
}
