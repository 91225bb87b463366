package notify

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"diagnose/notify/slacktest"
)

func rewrite(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnswers(t *testing.T) {
	const page = "<html><head><title>Sign in</title></head></html>"
	for _, c := range []struct {
		name     string
		hook     bool
		fault    slacktest.Fault
		want     string
		retry    bool
		maybe    bool
		askedFor time.Duration
	}{
		{"429", false, slacktest.Fault{Status: 429, Header: map[string]string{"Retry-After": "30"}}, "bot: rate_limited (429)", true, false, 30 * time.Second},
		{"429 without a time", false, slacktest.Fault{Status: 429, Body: "message_limit_exceeded"}, "bot: rate_limited (message_limit_exceeded)", true, false, 0},
		{"429 with a date", false, slacktest.Fault{Status: 429, Header: map[string]string{"Retry-After": "Mon, 30 Nov 2026 00:00:00 GMT"}}, "bot: rate_limited (429)", true, false, 0},
		{"429 for ever", false, slacktest.Fault{Status: 429, Header: map[string]string{"Retry-After": "99999999999"}}, "bot: rate_limited (429)", true, false, 24 * time.Hour},
		{"408", false, slacktest.Fault{Status: 408}, "bot: timeout (408)", true, true, 0},
		{"500", false, slacktest.Fault{Status: 500, Body: page}, "bot: server (500): " + page, true, true, 0},
		{"503", false, slacktest.Fault{Status: 503}, "bot: server (503)", true, true, 0},
		{"302", false, slacktest.Fault{Status: 302, Header: map[string]string{"Location": "https://evil.example/"}}, "bot: misconfigured (302): redirects are not followed", false, false, 0},
		{"403", false, slacktest.Fault{Status: 403, Body: page}, "bot: auth (403): " + page, false, false, 0},
		{"404", false, slacktest.Fault{Status: 404}, "bot: not_found (404)", false, false, 0},
		{"200 with a page", false, slacktest.Fault{Status: 200, Body: page}, "bot: server (200): the answer is not JSON", true, true, 0},
		{"200 cut short", false, slacktest.Fault{Status: 200, Body: `{"ok":tr`}, "bot: network: unexpected EOF", true, true, 0},
		{"invalid_auth", false, slacktest.Fault{Status: 200, Body: `{"ok":false,"error":"invalid_auth"}`}, "bot: auth (invalid_auth)", false, false, 0},
		{"scope", false, slacktest.Fault{Status: 200, Body: `{"ok":false,"error":"missing_scope","needed":"chat:write","provided":"x"}`}, "bot: auth (missing_scope): needs scope chat:write", false, false, 0},
		{"ratelimited in a body", false, slacktest.Fault{Status: 200, Body: `{"ok":false,"error":"ratelimited"}`}, "bot: rate_limited (ratelimited)", true, false, 0},
		{"internal_error", false, slacktest.Fault{Status: 200, Body: `{"ok":false,"error":"internal_error"}`}, "bot: server (internal_error)", true, true, 0},
		{"archived", false, slacktest.Fault{Status: 200, Body: `{"ok":false,"error":"is_archived"}`}, "bot: not_found (is_archived)", false, false, 0},
		{"a new word", false, slacktest.Fault{Status: 200, Body: `{"ok":false,"error":"invalid_zodiac"}`}, "", true, false, 0},
		{"cut", false, slacktest.Fault{Cut: true}, "bot: network: unexpected EOF", true, true, 0},
		{"hang", false, slacktest.Fault{Hang: true}, "bot: timeout: no answer in time", true, true, 0},
		{"hook gone", true, slacktest.Fault{Status: 404, Body: "no_service"}, "hook: not_found (no_service)", false, false, 0},
		{"hook's channel archived", true, slacktest.Fault{Status: 410, Body: "channel_is_archived"}, "hook: not_found (channel_is_archived)", false, false, 0},
		{"hook prohibited", true, slacktest.Fault{Status: 403, Body: "action_prohibited"}, "hook: auth (action_prohibited)", false, false, 0},
		{"hook general", true, slacktest.Fault{Status: 400, Body: "posting_to_general_channel_denied"}, "hook: auth (posting_to_general_channel_denied)", false, false, 0},
		{"hook 200 not ok", true, slacktest.Fault{Status: 200, Body: "not ok at all"}, "hook: server (200): the answer is not ok", true, true, 0},
		{"hook rollup", true, slacktest.Fault{Status: 500, Body: "rollup_error"}, "hook: server (rollup_error)", true, true, 0},
		{"hook 429", true, slacktest.Fault{Status: 429, Header: map[string]string{"Retry-After": "1"}}, "hook: rate_limited (429)", true, false, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &slacktest.Server{Fault: func(*slacktest.Call) *slacktest.Fault { return &c.fault }}
				var sink Notifier = newTestBot(t, f)
				if c.hook {
					sink = newTestHook(t, f)
				}
				_, retry, err := sink.Send(context.Background(), sampleNotice(EventOpened), nil)
				if c.want == "" {
					if !errors.Is(err, ErrMore) { // refused blocks: plain text next
						t.Errorf("got %v", err)
					}
					return
				}
				var e *Error
				if !errors.As(err, &e) {
					t.Fatalf("got %v", err)
				}
				if e.Error() != c.want || retry != c.retry || e.MaybeDelivered != c.maybe || e.RetryAfter != c.askedFor {
					t.Errorf("\nwant %s, retry %v, maybe %v, after %v\ngot  %s, retry %v, maybe %v, after %v",
						c.want, c.retry, c.maybe, c.askedFor, e, retry, e.MaybeDelivered, e.RetryAfter)
				}
			})
		})
	}
}

func TestGuardRefuses(t *testing.T) {
	called := false
	base := roundTripFunc(func(*http.Request) (*http.Response, error) { called = true; return nil, errors.New("called") })
	for _, c := range []struct {
		name, url string
		g         guard
		want      string
	}{
		{"http", "http://slack.com/api/x", guard{hosts: []string{"slack.com"}}, "only https is allowed"},
		{"other host", "https://evil.example/x", guard{hosts: []string{"slack.com"}}, "the host of the URL is not an allowed one"},
		{"file", "file:///etc/passwd", guard{http: true}, "only https is allowed"},
		{"suffix", "https://slack.com.evil.example/x", guard{hosts: []string{"slack.com"}}, "the host of the URL is not an allowed one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.g.base = base
			err := postJSON(context.Background(), newClient(c.g), "s", c.url, nil, nil, nil)
			if err == nil || err.Reason != Misconfigured || err.Detail != c.want || called {
				t.Errorf("%v, called %v", err, called)
			}
		})
	}
	if g := (guard{hosts: []string{"Slack.com"}}); g.allowed(mustURL(t, "https://SLACK.com/x")) != nil || (&guard{}).allowed(mustURL(t, "http://127.0.0.1/")) != nil {
		t.Error("a good URL is refused")
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestOverASocket runs the real transport: redirects, cut connections, endless
// bodies.
func TestOverASocket(t *testing.T) {
	hits := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(http.ResponseWriter, *http.Request) { hits++ })
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect) })
	mux.HandleFunc("/cut", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		for range 4096 {
			if _, err := w.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/refused", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		_, _ = w.Write([]byte(strings.Repeat("x", 1<<20)))
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	client := newClient(guard{})
	for _, c := range []struct{ path, want string }{
		{"/ok", ""},
		{"/redirect", "s: misconfigured (307): redirects are not followed"},
		{"/cut", "s: network: EOF"},
		{"/endless", "s: server (200): the answer is too long"},
	} {
		t.Run(c.path, func(t *testing.T) {
			got := ""
			if err := postJSON(context.Background(), client, "s", srv.URL+c.path, nil, []byte("{}"), nil); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("want %q, got %q", c.want, got)
			}
		})
	}
	if hits != 1 {
		t.Errorf("%d hits: a redirect was followed", hits)
	}
	if err := postJSON(context.Background(), client, "s", srv.URL+"/refused", nil, []byte("{}"), nil); err == nil || len(err.Error()) > 300 {
		t.Errorf("%v", err)
	}
	srv.Close()
	err := postJSON(context.Background(), client, "s", srv.URL+"/ok", nil, []byte("{}"), nil)
	if err == nil || err.Reason != Network || err.MaybeDelivered {
		t.Errorf("a refused connection: %+v", err)
	}
}
