package matcher

import (
	"strings"
)

// engine describes the server. Secret-valued flags are left out whole.
func (t *Tracker) engine(r *run, s *scope) Engine {
	e := Engine{Name: r.engine, Version: text(r.version), Model: text(r.model), Flags: map[string]Flag{}}
	add := func(name string, f fact) {
		if secretFlag(name) || len(f.text) > 512 {
			return
		}
		v := f.text
		if v == "" {
			v = formatValue(f.Value, "")
		}
		fl := Flag{Value: v, Basis: f.basis}
		if len(f.at) > 0 {
			fl.At = atOf(f.at[0])
		}
		e.Flags[strings.ReplaceAll(name, "_", "-")] = fl
	}
	for name, f := range r.args {
		if name == "model_tag" {
			continue
		}
		add(name, f)
	}
	for _, name := range []string{
		"gpu_memory_utilization", "max_num_batched_tokens", "max_num_seqs", "max_model_len", "kv_cache_dtype",
		"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "enforce_eager", "quantization",
	} {
		if f, ok := s.facts["flags."+name]; ok && f.Known() {
			if f.basis == "log" {
				f.basis = "config"
			}
			if _, typed := e.Flags[strings.ReplaceAll(name, "_", "-")]; !typed {
				add(name, f)
			}
		}
	}
	for name := range t.opt.Set {
		n := strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
		if f, ok := s.facts["flags."+n]; ok {
			add(n, f)
		}
	}
	return e
}

// secretFlags are never shown, in no format.
func secretFlag(name string) bool {
	for _, w := range []string{"api_key", "token", "password", "secret", "credential", "ssl_key", "auth"} {
		if strings.Contains(name, w) && !strings.Contains(name, "tokens") && !strings.Contains(name, "tokenizer") {
			return true
		}
	}
	return false
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
