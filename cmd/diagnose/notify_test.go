package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"diagnose/notify"
	"diagnose/notify/slacktest"
)

// slackConfig writes a configuration with a fake Slack as its bot sink, and
// whatever else is given.
func slackConfig(t *testing.T, token, more string) (path string, f *slacktest.Server) {
	t.Helper()
	f = &slacktest.Server{}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	return file("config.yaml", fmt.Sprintf(`paths: [/var/log/vllm/*.log]
state_dir: %s
notify:
  sinks:
    - name: oncall
      slack_bot: {token_file: %s, channel: C0123456789, api_url: %s/api/, allow_http: true, allow_hosts: [127.0.0.1]}
%s`, dir, file("token", token), srv.URL, more)), f
}

func TestNotifyTestPrintsTheAnswer(t *testing.T) {
	cfg, f := slackConfig(t, slacktest.Token, "")
	r := call(t, "", "notify", "test", "--config", cfg)
	if want := "oncall: accepted: channel C0123456789, ts 1700000000.000001\n"; r.status != 0 || r.out != want || r.errors != "" {
		t.Errorf("status %d, %q, %q", r.status, r.out, r.errors)
	}
	m := f.Snapshot()
	if len(m) != 1 || !strings.HasPrefix(m[0].Text, "Test: ") || !strings.Contains(m[0].Text, "Nothing has failed") {
		t.Errorf("%+v", m)
	}
}

// TestNotifyTestErrors: what Slack refused is said in its own word, the other
// sinks are tried all the same, and no secret is in it.
func TestNotifyTestErrors(t *testing.T) {
	more := func(dir string) string {
		return fmt.Sprintf("    - {name: nobody, webhook: {url: \"http://user:TOPSECRET@127.0.0.1:1/x?key=TOPSECRET\"}}\n    - {name: file, file: {path: %s/notices.jsonl}}\n", dir)
	}
	for _, c := range []struct {
		name, token string
		fault       *slacktest.Fault
		want        string
	}{
		{"a wrong token", "xoxb-TOPSECRET-TOPSECRET", nil, "diagnose: error: oncall: auth (invalid_auth)\n"},
		{"no token", "", nil, "diagnose: error: oncall: misconfigured: read secret: "},
		{"channel", slacktest.Token, &slacktest.Fault{Status: 200, Body: `{"ok":false,"error":"channel_not_found"}`}, "diagnose: error: oncall: not_found (channel_not_found)\n"},
		{"rate", slacktest.Token, &slacktest.Fault{Status: 429, Header: map[string]string{"Retry-After": "7"}}, "diagnose: error: oncall: rate_limited (429)\n"},
		{"a page", slacktest.Token, &slacktest.Fault{Status: 200, Body: "<html>portal</html>"}, "diagnose: error: oncall: server (200): the answer is not JSON\n"},
		{"cut", slacktest.Token, &slacktest.Fault{Cut: true}, "diagnose: error: oncall: network: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			cfg, f := slackConfig(t, c.token, more(dir))
			f.SetFault(func(*slacktest.Call) *slacktest.Fault { return c.fault })
			r := call(t, "", "notify", "test", "--config", cfg)
			if r.status != exitUsage || !strings.Contains(r.errors, c.want) {
				t.Errorf("status %d, %q, want %q", r.status, r.errors, c.want)
			}
			if !strings.Contains(r.errors, "diagnose: error: nobody: network: ") || r.out != "file: accepted\n" {
				t.Errorf("the other sinks: %q, %q", r.out, r.errors)
			}
			if all := r.out + r.errors; strings.Contains(all, "TOPSECRET") || strings.Contains(all, slacktest.Token) {
				t.Errorf("a secret is out: %q", all)
			}
		})
	}
}

// TestNotifyByHand sends a post-mortem: the message, and the whole diagnosis in
// its thread, as the text report says it.
func TestNotifyByHand(t *testing.T) {
	t.Parallel() // Slack is sent one message a second
	cfg, f := slackConfig(t, slacktest.Token, "")
	r := call(t, "", filepath.Join(fixtures, "vllm-h200/v0240-dsa-32768-0.92.log"), "--notify", cfg)
	if r.status != exitFailure || !strings.Contains(r.errors, "diagnose: incident 442818039300 sent to oncall\n") {
		t.Errorf("status %d, %q", r.status, r.errors)
	}
	var thread strings.Builder
	roots := 0
	for _, m := range f.Snapshot() {
		if m.Thread == "" {
			roots++
			if !strings.Contains(m.Text, "[442818039300]") {
				t.Errorf("no id in %q", m.Text)
			}
			continue
		}
		thread.WriteString(m.Blocks)
	}
	for _, want := range []string{"do this first", "v0240-dsa-32768-0.92.log:209", "how to verify", "references"} {
		if !strings.Contains(thread.String(), want) {
			t.Errorf("%q is not in the thread", want)
		}
	}
	if roots != 1 || len(f.Refusals) != 0 || len(f.Paged) != 0 {
		t.Errorf("%d messages, refused %q, paged %q", roots, f.Refusals, f.Paged)
	}

	// A healthy log sends nothing, a route to nowhere says so, and a sink that
	// fails makes the status that of an I/O error.
	before := len(f.Snapshot())
	if r := call(t, "", filepath.Join(fixtures, "vllm-h200/v0240-clean-stop.log"), "--notify", cfg); r.status != 0 || len(f.Snapshot()) != before {
		t.Errorf("a healthy log: status %d, %d messages", r.status, len(f.Snapshot()))
	}
	nowhere, f2 := slackConfig(t, slacktest.Token, "  routes: [{sinks: [none]}]\n")
	r = call(t, "", filepath.Join(fixtures, "vllm-h200/v0240-dsa-32768-0.92.log"), "--notify", nowhere)
	if r.status != exitFailure || !strings.Contains(r.errors, "goes to no sink, as the configuration says") || len(f2.Snapshot()) != 0 {
		t.Errorf("a route to nowhere: status %d, %q", r.status, r.errors)
	}
	refused, _ := slackConfig(t, "xoxb-TOPSECRET-wrong", "")
	r = call(t, "", filepath.Join(fixtures, "vllm-h200/v0240-dsa-32768-0.92.log"), "--notify", refused)
	if r.status != exitUsage || !strings.Contains(r.errors, "oncall: auth (invalid_auth)") || strings.Contains(r.errors, "TOPSECRET") {
		t.Errorf("a refusal: status %d, %q", r.status, r.errors)
	}
	if !strings.Contains(r.out, "do this first") {
		t.Error("the report is not printed when the notice fails")
	}
}

// slackMessages reads what --format slack printed, and holds each message
// against Slack's limits and against what would page somebody.
func slackMessages(t *testing.T, out string) (texts []string) {
	t.Helper()
	for dec := json.NewDecoder(strings.NewReader(out)); ; {
		var raw json.RawMessage
		if err := dec.Decode(&raw); errors.Is(err, io.EOF) {
			return texts
		} else if err != nil {
			t.Fatalf("no JSON: %v\n%s", err, out)
		}
		if err := notify.Validate(raw); err != nil {
			t.Errorf("own check: %v", err)
		}
		var m struct {
			Text   string
			Blocks json.RawMessage
		}
		var compact bytes.Buffer
		if err := errors.Join(json.Unmarshal(raw, &m), json.Compact(&compact, m.Blocks)); err != nil {
			t.Fatal(err)
		}
		if word := slacktest.Limits(m.Text, compact.String()); word != "" {
			t.Errorf("Slack would answer %s", word)
		}
		if pages := slacktest.Pages(m.Text, compact.String()); len(pages) > 0 {
			t.Errorf("would page or link %q", pages)
		}
		texts = append(texts, m.Text)
	}
}

// TestHostileLogs: a prompt, a model's name or an exception can hold anything.
func TestHostileLogs(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(fixtures, "vllm-h200/v0240-dsa-32768-0.92.log"))
	if err != nil {
		t.Fatal(err)
	}
	crash := string(data)
	const oom = "torch.OutOfMemoryError: CUDA out of memory."
	in := func(old, repl string) string { return strings.ReplaceAll(crash, old, repl) }
	last := strings.LastIndex(crash, oom)
	other := crash[:last] + "RuntimeError: " // the same crash with other last words
	end := crash[last+strings.IndexByte(crash[last:], '\n'):]
	unknown := func(words string) string { return strings.ReplaceAll(other, oom, "RuntimeError: ") + words + end }
	for _, c := range []struct{ name, file, log string }{
		{"a model named for the channel", "vllm.log", in("/models/glm-dsa-mini", "/models/<!channel>")},
		{"a model that is a link", "vllm.log", in("/models/glm-dsa-mini", "<https://evil.example|glm>")},
		{"a model with a bare word", "vllm.log", in("/models/glm-dsa-mini", "/models/@channel@here@everyone")},
		{"a model with markup", "vllm.log", in("/models/glm-dsa-mini", "/models/*_~`x`~_*&lt;!here&gt;")},
		{"a log named for everyone", "<!everyone>.log", crash},
		{"a log named as a fence", "```.log", crash},
		{"an exception that pages", "vllm.log", unknown("<!subteam^S012ABC|@oncall> <@U012ABC> <!here> @channel")},
		{"an exception that ends the fence", "vllm.log", unknown("``` *bold* <!channel> ```")},
		{"colours and titles", "vllm.log", unknown("\x1b[31;1mred\x1b[0m\x1b]0;owned\x07 \x1b]8;;https://evil.example\x1b\\x\x1b]8;;\x1b\\")},
		{"right to left", "vllm.log", unknown("\u202egpj.exe\u202c \u2066<!channel>\u2069 \u200b\U000E0068")},
		{"broken bytes and nulls", "vllm.log", unknown("\xff\xfe\x00\x00\xed\xa0\x80 <!channel>")},
		{"a megabyte of brackets", "vllm.log", unknown(strings.Repeat("<", 1<<20))},
		{"a megabyte of emoji", "vllm.log", unknown(strings.Repeat("😀", 1<<18))},
		{"secrets", "vllm.log", unknown("api_key=sk-TOPSECRETkey12345 Authorization: Bearer TOPSECRETtoken0001 http://u:TOPSECRETpw@proxy.example/ /home/TOPSECRETname/x hf_TOPSECRETabcdefghijkl")},
		{"breaking JSON", "vllm.log", unknown(`"}],"text":"<!channel>","x":[{" {{ .Alerts }} ${jndi:ldap://x}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(path, []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"--format", "slack", path}, {"notify", "preview", path}} {
				r := call(t, "", args...)
				if r.status == exitUsage {
					t.Fatalf("%q: %s", args, r.errors)
				}
				if n := len(slackMessages(t, r.out)); n != 1 {
					t.Errorf("%d messages", n)
				}
				if strings.Contains(r.out, "TOPSECRET") {
					t.Error("a secret is out")
				}
				if i := strings.IndexFunc(r.out, func(r rune) bool {
					return r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf) && r != '\u2060')
				}); i >= 0 {
					t.Errorf("unclean: %q", r.out[i:min(len(r.out), i+40)])
				}
			}
		})
	}
}

// TestFakeCrashes: the words of a crash in a prompt, in a request's log or in
// another program's JSON are no crash.
func TestFakeCrashes(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(fixtures, "vllm-h200/v0240-clean-stop.log"))
	if err != nil {
		t.Fatal(err)
	}
	healthy := string(data)
	const ready = "Application startup complete.\n"
	const words = `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 6.42 GiB is free. <!channel>`
	with := func(line string) string { return strings.Replace(healthy, ready, ready+line+"\n", 1) }
	for _, c := range []struct{ name, log string }{
		{"in a prompt", with(`(APIServer pid=2476) INFO 11-30 02:27:33 [logger.py:39] Received request cmpl-1: prompt: 'why? ` + words + `', params: SamplingParams(n=1)`)},
		{"in a prompt with line ends", with(`(APIServer pid=2476) INFO 11-30 02:27:33 [logger.py:39] Received request cmpl-1: prompt: 'why?\nTraceback (most recent call last):\n` + words + `', params: SamplingParams(n=1)`)},
		{"in a JSON request log", with(`{"prompt": "(EngineCore pid=2643) ERROR 11-30 02:27:33 [core.py:1233] ` + words + `"}`)},
		{"in an access log", with(`(APIServer pid=2476) INFO:     127.0.0.1:59178 - "POST /v1/completions?q=` + words + ` HTTP/1.1" 200 OK`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, format := range []string{"slack", "json"} {
				r := call(t, c.log, "--format", format, "-")
				if r.status != 0 || format == "slack" && r.out != "" {
					t.Errorf("status %d, %.300s%s", r.status, r.out, r.errors)
				}
			}
		})
	}
}
