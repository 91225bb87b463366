package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"diagnose/matcher"
)

// The headers of a generic webhook. The signature is the HMAC-SHA256, in hex,
// of the timestamp as sent (Unix seconds), a dot, and the body.
const (
	HeaderSignature = "X-Diagnose-Signature" // sha256=<hex>
	HeaderTimestamp = "X-Diagnose-Timestamp"
	HeaderEvent     = "X-Diagnose-Event"
	HeaderIncident  = "X-Diagnose-Incident"
)

// WebhookOptions configures a Webhook.
type WebhookOptions struct {
	Name string
	// URL, or URLFile for one that is a secret itself.
	URL, URLFile string
	// KeyFile holds the key of the signature; without it nothing is signed.
	KeyFile string
	// AllowHosts bounds where URLFile may point to.
	AllowHosts []string
	AllowHTTP  bool
	Tool       matcher.Tool

	Now       func() time.Time
	Getenv    func(string) string
	Transport http.RoundTripper
}

// Webhook posts the JSON contract's document, with the one incident, to a URL.
// Any 2xx answer is an acceptance. A receiver that has not seen an incident
// always gets it as opened first.
type Webhook struct {
	o      WebhookOptions
	client *http.Client
}

// eventState is the memory of the sinks that tell every notice as an event.
type eventState struct {
	Opened bool   `json:"opened,omitempty"`
	Last   string `json:"last,omitempty"` // digest of the last event
}

// NewWebhook returns a sink for one URL.
func NewWebhook(o WebhookOptions) *Webhook {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Webhook{o: o, client: newClient(guard{base: o.Transport, hosts: o.AllowHosts, http: o.AllowHTTP})}
}

// Name implements Notifier.
func (w *Webhook) Name() string { return w.o.Name }

// Send implements Notifier.
func (w *Webhook) Send(ctx context.Context, n Notice, s State) (State, bool, error) {
	st := decodeState[eventState](s)
	n = prepare(n)
	wanted := n.Event
	if !st.Opened && wanted != EventTest {
		n.Event = EventOpened
	}
	body, err := w.document(n)
	if err != nil {
		return failed(s, &Error{Sink: w.o.Name, Reason: InvalidPayload, Code: "own_check", Detail: err.Error()})
	}
	sum := digest(n.Event + "\x00" + string(body))
	if st.Last == sum {
		return s, false, nil
	}
	if err := w.post(ctx, n, body); err != nil {
		return failed(s, err)
	}
	next := encodeState(eventState{Opened: true, Last: sum})
	if wanted == n.Event || wanted == EventUpdated {
		return next, false, nil
	}
	return next, true, ErrMore
}

func (w *Webhook) document(n Notice) ([]byte, error) {
	inputs := make([]matcher.Input, len(n.Sources))
	for i, name := range n.Sources {
		inputs[i] = matcher.Input{Name: name, Skipped: []matcher.Skipped{}}
	}
	return json.Marshal(matcher.Document{
		Schema: matcher.Schema, Tool: w.o.Tool, Inputs: inputs,
		Observations: []matcher.Incident{}, Incidents: []matcher.Incident{n.Incident},
	})
}

func (w *Webhook) post(ctx context.Context, n Notice, body []byte) *Error {
	url, key := w.o.URL, ""
	var hide []string
	for _, f := range []struct {
		path string
		into *string
	}{{w.o.URLFile, &url}, {w.o.KeyFile, &key}} {
		if f.path == "" {
			continue
		}
		secret, err := secretFile{path: f.path, getenv: w.o.Getenv}.read()
		if err != nil {
			return &Error{Sink: w.o.Name, Reason: Misconfigured, Detail: err.Error()}
		}
		*f.into = secret
	}
	hide = append(urlSecrets(url), key)
	header := http.Header{}
	header.Set(HeaderEvent, n.Event)
	header.Set(HeaderIncident, headerSafe(n.Incident.ID))
	stamp := strconv.FormatInt(w.o.Now().Unix(), 10)
	header.Set(HeaderTimestamp, stamp)
	if key != "" {
		header.Set(HeaderSignature, "sha256="+Sign([]byte(key), stamp, body))
	}
	return postJSON(ctx, w.client, w.o.Name, url, header, body, hide)
}

// Sign is the signature of a body that was sent at a timestamp; a receiver
// compares it with hmac.Equal.
func Sign(key []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// postJSON makes one request and returns nil for a 2xx answer.
func postJSON(ctx context.Context, client *http.Client, sink, url string, header http.Header, body []byte, hide []string) *Error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		// The error would quote the URL.
		return &Error{Sink: sink, Reason: Misconfigured, Detail: "the URL cannot be parsed"}
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "diagnose")
	resp, err := client.Do(req)
	if err != nil {
		return classify(sink, err, hide...)
	}
	_ = resp.Body.Close()
	return nil
}

// headerSafe keeps what may stand in a header's value.
func headerSafe(s string) string {
	b := []byte(cut(s, 64))
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}

// Preview implements Previewer.
func (w *Webhook) Preview(n Notice) ([]byte, error) { return w.document(prepare(n)) }
