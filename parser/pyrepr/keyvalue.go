package pyrepr

import (
	"slices"
	"strings"
)

// known are names that VllmConfig.__str__ prints (vllm/config), in printed
// order over all releases, without those that its nested values use too. They
// are needed only where a value holds a bracket that nothing closes.
var known = []string{
	"speculative_config", "skip_tokenizer_init", "tokenizer_mode", "revision", "override_neuron_config",
	"tokenizer_revision", "trust_remote_code", "dtype", "max_seq_len", "download_dir", "load_format",
	"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "decode_context_parallel_size",
	"dcp_comm_backend", "disable_custom_all_reduce", "quantization", "quantization_config", "enforce_eager",
	"enable_return_routed_experts", "aux_output_config", "kv_cache_dtype", "device_config", "decoding_config",
	"structured_outputs_config", "observability_config", "seed", "served_model_name", "num_scheduler_steps",
	"multi_step_stream_outputs", "enable_prefix_caching", "chunked_prefill_enabled", "enable_chunked_prefill",
	"use_async_output_proc", "disable_mm_preprocessor_cache", "mm_processor_kwargs", "pooler_config",
	"compilation_config", "kernel_config",
}

// ParseKV reads a list such as "model='m', dtype=torch.bfloat16, max_seq_len=8192"
// into the raw text of each value, and the names in printed order. A value ends
// before the next name of the outermost level; of a repeated name the first
// value counts, since a later one may be text inside a value. Text before the
// first name is left out.
func ParseKV(s string) (values map[string]string, order []string) {
	values = map[string]string{}
	s = s[:min(len(s), maxText)]
	keys := starts(s)
	for i, at := range keys {
		end := len(s)
		if i+1 < len(keys) {
			end = keys[i+1]
		}
		n := argument(s[at:])
		name, value := s[at:at+n], strings.TrimRight(s[at+n+1:end], ", \t\r\n")
		if i == len(keys)-1 {
			value = withoutCutName(value)
		}
		if _, seen := values[name]; !seen {
			order = append(order, name)
			values[name] = value
		}
	}
	return values, order
}

// withoutCutName drops the beginning of a known name from the end of the last
// value: the text was cut within it.
func withoutCutName(value string) string {
	i := strings.LastIndex(value, ", ")
	if i < 0 {
		return value
	}
	tail := value[i+2:]
	if slices.ContainsFunc(known, func(name string) bool { return strings.HasPrefix(name, tail) }) {
		return value[:i]
	}
	return value
}

// maxRepairs bounds how often a scan is taken up behind an open bracket.
const maxRepairs = 4

// starts gives the offset of every name that begins a pair.
func starts(s string) []int {
	keys, open := scanKeys(s, 0)
	for range maxRepairs {
		if open < 0 || len(keys) == 0 {
			break
		}
		// The text was cut within a bracket, or a value holds a bracket that
		// nothing closes. In the latter case names that come later in vLLM's
		// order follow it.
		last := keys[len(keys)-1]
		next := nextKnown(s, open, s[last:last+argument(s[last:])])
		if next < 0 {
			break
		}
		var more []int
		more, open = scanKeys(s, next)
		keys = append(keys, more...)
	}
	return keys
}

// scanKeys finds the names of the outermost level from an offset on. open is
// that of a bracket which is never closed, else -1.
func scanKeys(s string, from int) (keys []int, open int) {
	p := parser{s: s, pos: from}
	var stack []int
	for p.pos < len(s) {
		c := s[p.pos]
		switch c {
		case '\'', '"':
			p.skipQuoted()
			continue
		case '(', '[', '{':
			stack = append(stack, p.pos)
		case ')', ']', '}':
			if len(stack) > 0 {
				stack = stack[:len(stack)-1]
			}
		default:
			if len(stack) == 0 && isWord(c) && boundary(s, p.pos, from == 0 && len(keys) == 0) {
				if argument(s[p.pos:]) > 0 {
					keys = append(keys, p.pos)
				}
				for p.pos < len(s) && isWord(s[p.pos]) {
					p.pos++
				}
				continue
			}
		}
		p.pos++
	}
	if len(stack) > 0 {
		return keys, stack[0]
	}
	return keys, -1
}

// boundary tells whether a name can begin at i: at the start or after a comma
// and a space. The first one may follow any space, as in "config: model=".
func boundary(s string, i int, first bool) bool {
	before := strings.TrimRight(s[:i], " \t\r\n")
	return before == "" || len(before) < i && (first || before[len(before)-1] == ',')
}

// nextKnown finds the first name after an offset that vLLM prints after the
// given one; -1 if there is none.
func nextKnown(s string, from int, name string) int {
	first := slices.Index(known, name) + 1
	best := -1
	for _, k := range known[first:] {
		if i := strings.Index(s[from:], ", "+k+"="); i >= 0 && (best < 0 || from+i+2 < best) {
			best = from + i + 2
		}
	}
	return best
}
