package notify

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"diagnose/matcher"
)

func TestWebhookSigns(t *testing.T) {
	var got []*http.Request
	var bodies [][]byte
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got, bodies = append(got, r), append(bodies, body)
	}))
	defer srv.Close()
	w := NewWebhook(WebhookOptions{
		Name: "w", URL: srv.URL, KeyFile: secretPath(t, "the-key"), Tool: sampleTool,
		Now: func() time.Time { return sampleTime },
	})
	sendAll(t, w, sampleNotice(EventOpened), nil)
	h := got[0].Header
	if h.Get(HeaderTimestamp) != "1796047320" || h.Get(HeaderEvent) != EventOpened || h.Get(HeaderIncident) != "9f86d081884c" {
		t.Errorf("%v", h)
	}
	if want := "sha256=" + Sign([]byte("the-key"), "1796047320", bodies[0]); h.Get(HeaderSignature) != want {
		t.Errorf("want %s, got %s", want, h.Get(HeaderSignature))
	}
	var d matcher.Document
	if err := json.Unmarshal(bodies[0], &d); err != nil || d.Schema != matcher.Schema || d.Tool != sampleTool || d.Inputs[0].Name != "/var/log/vllm/vllm.log" {
		t.Errorf("%v %+v", err, d.Inputs)
	}
	preview, err := w.Preview(sampleNotice(EventOpened))
	if err != nil || string(preview) != string(bodies[0]) {
		t.Errorf("the preview differs: %v", err)
	}
}

// TestSign compares with: printf 1.body | openssl dgst -sha256 -hmac key
func TestSign(t *testing.T) {
	const want = "91b5374b153842ad05b2c4eab9349b8321b14703165bd3fb8b034dfb8be98ae5"
	if got := Sign([]byte("key"), "1", []byte("body")); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

func TestWebhookTellsAnIncidentAsOpenedFirst(t *testing.T) {
	var events []string
	w := NewWebhook(WebhookOptions{Name: "w", URL: "https://w.example", Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
		events = append(events, r.Header.Get(HeaderEvent))
		return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})})
	s := sendAll(t, w, sampleNotice(EventClosed), nil)
	s = sendAll(t, w, sampleNotice(EventClosed), s) // the same again: nothing
	n := sampleNotice(EventUpdated)
	n.Incident.Occurrences = 2
	sendAll(t, w, n, s)
	if want := []string{EventOpened, EventClosed, EventUpdated}; !equal(events, want) {
		t.Errorf("want %v, got %v", want, events)
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestWebhookErrors(t *testing.T) {
	for _, c := range []struct {
		status int
		want   Reason
		retry  bool
	}{{400, InvalidPayload, false}, {401, Auth, false}, {404, NotFound, false}, {408, Timeout, true}, {413, InvalidPayload, false}, {429, RateLimited, true}, {502, Server, true}} {
		w := NewWebhook(WebhookOptions{Name: "w", URL: "https://w.example", Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})})
		_, retry, err := w.Send(context.Background(), sampleNotice(EventOpened), nil)
		var e *Error
		if !errors.As(err, &e) || e.Reason != c.want || retry != c.retry {
			t.Errorf("%d: %v %v", c.status, retry, err)
		}
	}
}
