package notify

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func mustURL(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

const (
	leakToken = "xoxb-111-222-TOPSECRETTOKEN"
	leakHook  = "https://hooks.slack.com/services/TLEAK0000/BLEAK0000/TOPSECRETHOOK"
	leakURL   = "https://user:TOPSECRETPW@hook.example/path/TOPSECRETPATH?token=TOPSECRETQUERY"
	leakKey   = "TOPSECRETKEY"
)

// leakySinks is one sink of each kind that has secrets. Each has a transport
// that knows them.
func leakySinks(t testing.TB, rt func(secrets string) http.RoundTripper) []Sink {
	hook, web := mustURL(t, leakHook), mustURL(t, leakURL)
	return []Sink{
		{Notifier: NewSlackBot(SlackBotOptions{Name: "bot", TokenFile: secretPath(t, leakToken), Channel: "C1", Transport: rt(leakToken)})},
		{Notifier: NewSlackWebhook(SlackWebhookOptions{Name: "hook", URLFile: secretPath(t, leakHook), Transport: rt(leakHook + " " + hook.Path)})},
		{Notifier: NewWebhook(WebhookOptions{
			Name: "web", URLFile: secretPath(t, leakURL), KeyFile: secretPath(t, leakKey),
			Transport: rt(leakURL + " " + web.RequestURI() + " " + web.Path + " " + web.User.String() + " " + leakKey),
		})},
		{Notifier: NewAlertmanager(AlertmanagerOptions{Name: "am", URL: "https://am.example", TokenFile: secretPath(t, leakToken), Transport: rt(leakToken)})},
	}
}

// TestNoSecretLeaks makes every sink fail in every way, with answers that throw
// its secrets back, and looks through all that comes out.
func TestNoSecretLeaks(t *testing.T) {
	answer := func(status int, before, after string) func(string) http.RoundTripper {
		return func(secrets string) http.RoundTripper {
			return roundTripFunc(func(r *http.Request) (*http.Response, error) {
				sent, _ := io.ReadAll(r.Body)
				return &http.Response{
					StatusCode: status, Header: http.Header{}, Request: r,
					Body: io.NopCloser(strings.NewReader(before + secrets + after + r.URL.String() + r.Header.Get("Authorization") + string(sent[:min(len(sent), 200)]))),
				}, nil
			})
		}
	}
	for name, rt := range map[string]func(string) http.RoundTripper{
		"refused": func(secrets string) http.RoundTripper {
			return roundTripFunc(func(r *http.Request) (*http.Response, error) {
				return nil, fmt.Errorf("dial %s: refused %s", r.URL, secrets)
			})
		},
		"timeout": func(string) http.RoundTripper {
			return roundTripFunc(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
		},
		"echo 200":    answer(200, "", ""),
		"echo json":   answer(200, `{"ok":false,"error":"`, `"} `),
		"echo detail": answer(200, `{"ok":false,"error":"invalid_auth","response_metadata":{"messages":["`, `"]}} `),
		"echo 400":    answer(400, "", "\n"),
		"echo 403":    answer(403, "<html>", ""),
		"echo 500":    answer(500, "", ""),
		"redirect":    answer(302, "", ""),
		"rate limits": answer(429, "", ""),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				var out strings.Builder
				db := openDB(t, t.TempDir()+"/db")
				sinks := leakySinks(t, rt)
				box, err := NewOutbox(db, sinks, Options{Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range sinks {
					_, _, err := s.Send(context.Background(), sampleNotice(EventOpened), nil)
					fmt.Fprintf(&out, "%v %+v %#v\n", err, err, err)
					_, err = Test(context.Background(), s, sampleTool, sampleTime)
					fmt.Fprintf(&out, "%v %+v %#v\n", err, err, err)
				}
				if err := box.Enqueue(sampleNotice(EventOpened)); err != nil {
					t.Fatal(err)
				}
				sleep(10 * time.Minute)
				fmt.Fprintf(&out, "%+v %v", box.Status(), box.Ready())
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				fmt.Fprint(&out, box.Close(ctx))
				out.WriteString(log.String())
				for _, word := range []string{"TOPSECRET", "TLEAK0000", "BLEAK0000", "verysecretkey", "maria"} {
					if i := strings.Index(out.String(), word); i >= 0 {
						t.Errorf("leaked near %q", out.String()[max(0, i-200):min(out.Len(), i+50)])
					}
				}
			})
		})
	}
}

func TestSecretFile(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"trimmed", "  abc\n\n", ""},
		{"empty", "\n", "empty"},
		{"two words", "abc SECRET", "more than one word"},
		{"control", "abc\x00SECRET", "more than one word"},
		{"huge", strings.Repeat("S", maxSecretBytes+1), "longer than 4096 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := secretPath(t, "")
			rewrite(t, p, c.content)
			got, err := secretFile{path: p}.read()
			switch {
			case c.want == "" && (err != nil || got != "abc"):
				t.Errorf("%q %v", got, err)
			case c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET")):
				t.Errorf("%v", err)
			}
		})
	}
	dir := t.TempDir()
	rewrite(t, dir+"/slack", "abc")
	got, err := secretFile{path: "$CREDENTIALS_DIRECTORY/slack", getenv: func(string) string { return dir }}.read()
	if got != "abc" || err != nil {
		t.Errorf("credential: %q %v", got, err)
	}
}
