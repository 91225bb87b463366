package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"diagnose/matcher"
	"diagnose/notify/slacktest"
)

// hostileTexts are what a log can hold, because prompts reach it.
func hostileTexts() []struct{ name, text string } {
	return []struct{ name, text string }{
		{"page the channel", "<!channel> server down"},
		{"page here", "<!here|here>"},
		{"page everyone", "<!everyone>"},
		{"page a group", "<!subteam^S012ABC|@oncall>"},
		{"page a user", "<@U012ABC>"},
		{"link a channel", "<#C012ABC|general>"},
		{"bare channel", "@channel @here @everyone @group"},
		{"bare in capitals", "@CHANNEL @Here"},
		{"zero width in it", "@\u200bchannel @\u2060here"},
		{"escaped twice", "&lt;!channel&gt; &amp;lt;!here&amp;gt;"},
		{"date command", "<!date^0^{date}|<!channel>>"},
		{"link", "<https://evil.example|https://good.example>"},
		{"mailto", "<mailto:a@b.example|click>"},
		{"bare URL", "https://evil.example/?q=<script>"},
		{"fence", "``` out of the fence <!channel> ```"},
		{"many fences", strings.Repeat("```", 1000)},
		{"backticks", "`code` ``more`` ```"},
		{"emphasis", "*bold* _it_ ~strike~ >quote"},
		{"colours", "\x1b[31;1mred\x1b[0m \x1b[2J\x1b[H"},
		{"window title", "\x1b]0;owned\x07after"},
		{"hyperlink escape", "\x1b]8;;https://evil.example\x1b\\text\x1b]8;;\x1b\\"},
		{"C1 controls", "\u009b31mred\u009d0;x\u009c"},
		{"right to left", "\u202etxet desrever\u202c \u2066x\u2069 \u200f"},
		{"nulls", "a\x00\x00b\x00"},
		{"bell and backspace", "\x07\x08\x08\x7f"},
		{"carriage returns", "10%\r20%\r30%"},
		{"broken UTF-8", "\xff\xfe\xc3\x28 \xf0\x28\x8c\xbc"},
		{"surrogate bytes", "\xed\xa0\x80\xed\xb0\x80"},
		{"unicode tags", "a\U000E0068\U000E0069b"},
		{"combining", "a" + strings.Repeat("\u0301", 5000)},
		{"wide", strings.Repeat("日本語", 3000)},
		{"astral", strings.Repeat("😀", 4000)},
		{"a megabyte", strings.Repeat("x", 1<<20)},
		{"a megabyte of brackets", strings.Repeat("<", 1<<20)},
		{"many lines", strings.Repeat("line\n", 20000)},
		{"blank", " \n\t \n"},
		{"fake crash", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB."},
		{"fake crash in JSON", `{"prompt": "(EngineCore pid=1) ERROR torch.OutOfMemoryError", "api_key": "sk-TOPSECRETkey12345"}`},
		{"JSON breakers", `"}],"text":"<!channel>","x":[{"`},
		{"backslashes", `\\\" \u003c!channel\u003e \n`},
		{"template", "{{ range .Alerts }}{{ .Labels }}{{ end }} ${jndi:ldap://x}"},
		{"HTML", `<img src=x onerror=alert(1)><script>alert("x")</script>`},
		{"shell", "$(reboot); `reboot` && rm -rf / #"},
		{"header injection", "x\r\nX-Evil: 1\r\n\r\nGET / HTTP/1.1"},
		{"JSON lines injection", "x\"}\n{\"event\":\"closed\"}"},
		{"API key", "key sk-TOPSECRETkey12345 hf_TOPSECRETabcdefghijklmnop"},
		{"authorization header", "Authorization: Bearer TOPSECRET.token"},
		{"key in colour", "sk-\x1b[0mTOPSECRETkey12345"},
		{"key behind zero width", "Bearer\u200b TOPSECRETtoken and sk-\u200bTOPSECRETkey"},
		{"flags", "vllm serve m --api-key TOPSECRET --hf-token=TOPSECRET"},
		{"URL with password", "http://user:TOPSECRET@proxy.example:3128/"},
		{"home directory", "/home/TOPSECRETname/models/x"},
		{"Slack hook", "https://hooks.slack.com/services/T0/B0/TOPSECRET"},
	}
}

// poisoned has the text in every string that a log can reach.
func poisoned(text string) Notice {
	n := sampleNotice(EventOpened)
	keep := n.Incident
	i := mapStrings(keep, func(string) string { return text })
	i.Verdict.Family, i.Verdict.Class, i.Verdict.Confidence = keep.Verdict.Family, keep.Verdict.Class, keep.Verdict.Confidence
	i.ID, i.Status, i.Phase = keep.ID, keep.Status, keep.Phase
	i.Engine.Flags = map[string]matcher.Flag{"max-num-batched-tokens": {Value: text, Basis: text}, text: {Value: text}}
	i.Remedies[0].Set = map[string]string{"--max-num-batched-tokens": text, text: text}
	i.Followup = &matcher.Followup{RestartedAt: &text, ChangesMade: []string{text}, ChangesMissing: []string{text}, Withdrawn: []string{text}, HeldSince: &text}
	n.Incident, n.Sources = i, []string{text}
	return n
}

// recorder accepts everything and keeps the bodies.
type recorder struct{ bodies []string }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(req.Body)
	r.bodies = append(r.bodies, string(body))
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: req}, nil
}

func TestHostileTexts(t *testing.T) {
	if n := len(hostileTexts()); n < 40 {
		t.Fatalf("only %d texts", n)
	}
	for _, c := range hostileTexts() {
		t.Run(c.name, func(t *testing.T) {
			n := poisoned(c.text)
			t.Run("slack", func(t *testing.T) {
				f := &slacktest.Server{}
				render := func(Notice) string { return headBytes(c.text, 20000) }
				sendAll(t, newTestBot(t, f, func(o *SlackBotOptions) { o.Render = render }), n, nil)
				sendAll(t, newTestHook(t, f), n, nil)
				if len(f.Refusals) > 0 || len(f.Paged) > 0 {
					t.Errorf("refused %q, pages %q", f.Refusals, f.Paged)
				}
				for _, m := range f.Messages {
					checkOutput(t, m.Text+m.Blocks)
				}
				if len(f.Messages) < 2 {
					t.Errorf("%d messages", len(f.Messages))
				}
			})
			t.Run("webhook", func(t *testing.T) {
				r := &recorder{}
				sendAll(t, NewWebhook(WebhookOptions{Name: "w", URL: "https://w.example", Transport: r}), n, nil)
				var d matcher.Document
				if err := json.Unmarshal([]byte(r.bodies[0]), &d); err != nil || len(d.Incidents) != 1 {
					t.Error(err)
				}
				checkOutput(t, r.bodies[0])
			})
			t.Run("alertmanager", func(t *testing.T) {
				r := &recorder{}
				sendAll(t, NewAlertmanager(AlertmanagerOptions{Name: "a", URL: "https://a.example", Transport: r}), n, nil)
				var list []alert
				if err := json.Unmarshal([]byte(r.bodies[0]), &list); err != nil || len(list) != 1 {
					t.Fatal(err)
				}
				for k, v := range list[0].Labels {
					if v == "" || len(v) > maxLabel || strings.Contains(v, "\n") {
						t.Errorf("label %s: %d bytes %q", k, len(v), cut(v, 100))
					}
					checkForeign(t, v)
				}
				for k, v := range list[0].Annotations {
					if len(v) > maxAnnotation {
						t.Errorf("annotation %s: %d bytes", k, len(v))
					}
					checkForeign(t, v)
				}
				checkOutput(t, r.bodies[0])
			})
			t.Run("file", func(t *testing.T) {
				path := t.TempDir() + "/f"
				file, err := NewFile("f", path)
				if err != nil {
					t.Fatal(err)
				}
				sendAll(t, file, n, nil)
				raw, _ := os.ReadFile(path)
				if bytes.Count(raw, []byte("\n")) != 1 || !json.Valid(raw) {
					t.Errorf("not one line of JSON: %q", cut(string(raw), 200))
				}
				checkOutput(t, string(raw))
			})
			t.Run("log", func(t *testing.T) {
				var text, js bytes.Buffer
				for _, h := range []slog.Handler{slog.NewTextHandler(&text, nil), slog.NewJSONHandler(&js, nil)} {
					if _, _, err := NewLog("l", slog.New(h)).Send(context.Background(), n, nil); err != nil {
						t.Error(err)
					}
				}
				if strings.Count(text.String(), "\n") != 1 || strings.Count(js.String(), "\n") != 1 || !json.Valid(js.Bytes()) {
					t.Error("not one line each")
				}
				checkOutput(t, text.String()+js.String())
			})
		})
	}
}

func FuzzSlackMessage(f *testing.F) {
	for _, c := range hostileTexts() {
		f.Add(headBytes(c.text, 2000))
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := SlackPayload(poisoned(text), sampleTool)
		if err != nil || Validate(raw) != nil {
			t.Fatalf("%v %v", err, Validate(raw))
		}
		var m struct {
			Text   string
			Blocks json.RawMessage
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		if pages := slacktest.Pages(m.Text, string(m.Blocks)); len(pages) > 0 || len(m.Blocks) == 0 {
			t.Errorf("pages %q, %d bytes of blocks", pages, len(m.Blocks))
		}
	})
}

// checkOutput looks for what may be in no sink's bytes.
func checkOutput(t *testing.T, s string) {
	t.Helper()
	if strings.Contains(s, "TOPSECRET") {
		k := strings.Index(s, "TOPSECRET")
		t.Errorf("a secret is out: %q", s[max(0, k-60):min(len(s), k+30)])
	}
	if !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\x1b\x07\u202e\u009b") || strings.Contains(s, `\u001b`) || strings.Contains(s, `\u0000`) {
		t.Errorf("unclean: %q", cut(s, 300))
	}
	if len(s) > 2<<20 {
		t.Errorf("%d bytes", len(s))
	}
}

// checkForeign looks for what the templates of others would act on.
func checkForeign(t *testing.T, s string) {
	t.Helper()
	if pages := slacktest.Pages(s, ""); len(pages) > 0 || strings.ContainsAny(s, "<>`") {
		t.Errorf("%q in %q", pages, cut(s, 200))
	}
}
