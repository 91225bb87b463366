package notify

import (
	"reflect"
	"strings"
	"testing"

	"diagnose/matcher"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestRedactText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"openai key", "key sk-proj-abcDEF123456 used", "key [redacted] used"},
		{"hub token", "hf_abcdefghijklmnopqrstuvwxyz012345", "[redacted]"},
		{"slack token", "xoxb-1234-abcd", "[redacted]"},
		{"slack app token", "xapp-1-A0-1-abc", "[redacted]"},
		{"bearer", "Authorization: Bearer abc.def", "Authorization: [redacted]"},
		{"bearer alone", "sent Bearer abcdef12 twice", "sent Bearer [redacted] twice"},
		{"header in a dict", "{'authorization': 'Bearer abc', 'host': 'x'}", "{'authorization': [redacted], 'host': 'x'}"},
		{"ASGI header", "(b'x-api-key', b'hunter22')", "(b'x-api-key', [redacted])"},
		{"basic", "Basic dXNlcjpwYXNz=", "Basic [redacted]"},
		{"cookie", "cookie: session=abc; id=1", "cookie: [redacted]"},
		{"url credentials", "http://user:pw@proxy:3128/x", "http://[redacted]@proxy:3128/x"},
		{"url user", "https://ghtoken@host/x.git", "https://[redacted]@host/x.git"},
		{"query", "https://s3/x?X-Amz-Signature=abc&part=1", "https://s3/x?X-Amz-Signature=[redacted]&part=1"},
		{"hook", "https://hooks.slack.com/services/T0/B0/abc", "https://hooks.slack.com/[redacted]"},
		{"flag", "vllm serve m --api-key abc --max-num-seqs 8", "vllm serve m --api-key [redacted] --max-num-seqs 8"},
		{"flag of many", "--api-key one two three --port 1", "--api-key [redacted] --port 1"},
		{"flag with =", "--hf-token=abc", "--hf-token=[redacted]"},
		{"python argument", "api_key=['abc', 'def'], dtype='auto'", "api_key=[redacted], dtype='auto'"},
		{"python dict", "'api_key': 'abc', 'seed': 0", "'api_key': [redacted], 'seed': 0"},
		{"json", `{"hf_token": "abc", "n": 1}`, `{"hf_token": [redacted], "n": 1}`},
		{"json in json", `{\"password\": \"abc\"}`, `{\"password\": [redacted]}`},
		{"environment", "HF_TOKEN=abc AWS_SECRET_ACCESS_KEY=def", "HF_TOKEN=[redacted] AWS_SECRET_ACCESS_KEY=[redacted]"},
		{"camel case", "clientSecret: abc", "clientSecret: [redacted]"},
		{"none is no secret", "hf_token=None, api_key=None", "hf_token=None, api_key=None"},
		{"jwt", "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abc", "[redacted]"},
		{"aws", "AKIAIOSFODNN7EXAMPLE", "[redacted]"},
		{"private key", "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "[redacted]"},
		{"home", `File "/home/maria/vllm/x.py", line 3`, `File "~/vllm/x.py", line 3`},
		{"root's home", "load /root/models", "load ~/models"},
		{"hidden in colour", "sk-\x1b[1mabcdef123456", "[redacted]"},
		// Near-misses: what explains a crash must stay.
		{"budget", "max_num_batched_tokens=32768", "max_num_batched_tokens=32768"},
		{"flag budget", "--max-num-batched-tokens 16384", "--max-num-batched-tokens 16384"},
		{"special tokens", "eos_token_id=2, bos_token='<s>'", "eos_token_id=2, bos_token='<s>'"},
		{"tokenizer", "tokenizer='org/model', tokenizer_mode=auto", "tokenizer='org/model', tokenizer_mode=auto"},
		{"token as unit", "bytes per token: 1536", "bytes per token: 1536"},
		{"kv cache key", "kv_cache_dtype: fp8, key=value", "kv_cache_dtype: fp8, key=value"},
		{"hf settings", "hf_overrides={}, hf_config_path=None", "hf_overrides={}, hf_config_path=None"},
		{"task-", "task-specific risk-free", "task-specific risk-free"},
		{"basic prose", "a basic configuration", "a basic configuration"},
		{"frame", "at flash_mla/flash_mla_interface.py:92 sparse_decode_fwd", "at flash_mla/flash_mla_interface.py:92 sparse_decode_fwd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := redactText(c.in); got != c.want {
				t.Errorf("\n in   %s\n want %s\n got  %s", c.in, c.want, got)
			}
		})
	}
}

var everyField = cmp.Exporter(func(reflect.Type) bool { return true })

func TestRedactIncident(t *testing.T) {
	in := sample()
	in.Remedies[0].Set["--hf-token"] = "plain"
	before := sample()
	before.Remedies[0].Set["--hf-token"] = "plain"
	got := Redact(in)
	if d := cmp.Diff(before, in, everyField); d != "" {
		t.Errorf("the input was changed:\n%s", d)
	}
	for name, want := range map[string]string{
		"api-key": redacted, "chat-template": notShown, "max-num-batched-tokens": "32768",
	} {
		if v := got.Engine.Flags[name].Value; v != want {
			t.Errorf("flag %s: want %q, got %q", name, want, v)
		}
	}
	if v := got.Remedies[0].Set["--hf-token"]; v != redacted {
		t.Errorf("remedy keeps %q", v)
	}
	if d := cmp.Diff(got, Redact(got), everyField); d != "" {
		t.Errorf("redacting twice changes:\n%s", d)
	}
}

func TestRedactBounds(t *testing.T) {
	in := matcher.Incident{ID: "x", Root: matcher.Root{Text: strings.Repeat("x", 1<<20)}}
	in.Evidence = make([]matcher.Evidence, 5000)
	got := Redact(in)
	if len(got.Root.Text) > maxString || len(got.Evidence) != maxList {
		t.Errorf("%d bytes, %d entries", len(got.Root.Text), len(got.Evidence))
	}
	// A key across the end of what is searched is not shown in part.
	in.Root.Text = strings.Repeat("x", maxScan-8) + " sk-abcdefghijklmnop"
	if strings.Contains(Redact(in).Root.Text, "sk-") {
		t.Error("a cut key is shown")
	}
}

func TestRedactTextIsStable(t *testing.T) {
	parts := []string{" sk-abcdef123", "hf_", "token", "=", ": ", "'", `"`, "[", "]", "api_key", "--password", " ", "\n", "/home/x/", "https://", "@", "Bearer ", "abc", "1", "Authorization", ",", "\\"}
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "parts"), "")
		once := redactText(s)
		if twice := redactText(once); twice != once {
			t.Fatalf("%q: %q, then %q", s, once, twice)
		}
		if strings.Contains(once, "sk-abcdef123") {
			t.Fatalf("%q keeps the key: %q", s, once)
		}
	})
}

func FuzzRedactText(f *testing.F) {
	for _, s := range []string{"--api-key a b", "token=x", "https://u:p@h/", "Authorization: Bearer x", "\x1b]0;", "-----BEGIN PRIVATE KEY-----"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := redactText("sk-abcdef1234567890 " + s)
		if strings.Contains(out, "abcdef1234567890") || len(out) > maxString {
			t.Errorf("%q", out)
		}
	})
}
