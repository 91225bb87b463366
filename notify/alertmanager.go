package notify

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// AlertmanagerOptions configures an Alertmanager sink.
type AlertmanagerOptions struct {
	Name string
	// URL is Alertmanager's root; /api/v2/alerts is added.
	URL string
	// TokenFile holds a bearer token; may be empty.
	TokenFile string
	AllowHTTP bool
	// Keep is how long an alert fires after its last notice when nothing says
	// that the incident is over; 24 h when zero. Alertmanager itself would
	// resolve an alert without an end after its resolve_timeout of 5 min.
	Keep time.Duration

	Now       func() time.Time
	Getenv    func(string) string
	Transport http.RoundTripper
}

// Alertmanager posts an incident as one alert (API v2). The labels name it and
// are bounded; everything else is in the annotations, so that a better
// assessment of the same class does not make a second alert. The return of the
// server, a recovery or a closed incident resolves it; a withdrawn advice makes
// it fire again.
type Alertmanager struct {
	o      AlertmanagerOptions
	client *http.Client
}

const (
	defaultKeep = 24 * time.Hour
	// maxLabel and maxAnnotation keep an alert small: Alertmanager groups and
	// gossips by labels.
	maxLabel      = 128
	maxAnnotation = 2000
)

// alert is one entry of POST /api/v2/alerts (api/v2/openapi.yaml).
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

// alertState is the alert as last posted: what resolves it must have the same
// labels.
type alertState struct {
	Labels   map[string]string `json:"labels,omitempty"`
	StartsAt time.Time         `json:"starts_at,omitzero"`
	EndsAt   time.Time         `json:"ends_at,omitzero"`
}

// NewAlertmanager returns a sink for one Alertmanager.
func NewAlertmanager(o AlertmanagerOptions) *Alertmanager {
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Alertmanager{o: o, client: newClient(guard{base: o.Transport, http: o.AllowHTTP})}
}

// Name implements Notifier.
func (a *Alertmanager) Name() string { return a.o.Name }

// Send implements Notifier.
func (a *Alertmanager) Send(ctx context.Context, n Notice, s State) (State, bool, error) {
	st := decodeState[alertState](s)
	n = prepare(n)
	alerts, next := a.alerts(n, st)
	header := http.Header{}
	var hide []string
	if a.o.TokenFile != "" {
		token, err := secretFile{path: a.o.TokenFile, getenv: a.o.Getenv}.read()
		if err != nil {
			return failed(s, &Error{Sink: a.o.Name, Reason: Misconfigured, Detail: err.Error()})
		}
		header.Set("Authorization", "Bearer "+token)
		hide = append(hide, token)
	}
	body, err := json.Marshal(alerts)
	if err != nil {
		return failed(s, &Error{Sink: a.o.Name, Reason: InvalidPayload, Code: "own_check", Detail: err.Error()})
	}
	target := strings.TrimRight(a.o.URL, "/") + "/api/v2/alerts"
	if u, err := url.Parse(target); err == nil && u.User != nil {
		hide = append(hide, u.User.String())
	}
	if err := postJSON(ctx, a.client, a.o.Name, target, header, body, hide); err != nil {
		return failed(s, err)
	}
	return encodeState(next), false, nil
}

// alerts are the one for n and, when the class or another label changed, the
// end of the one before.
func (a *Alertmanager) alerts(n Notice, st alertState) ([]alert, alertState) {
	now := a.o.Now()
	al := alert{
		Labels: alertLabels(n), Annotations: alertAnnotations(n),
		StartsAt: alertStart(n, st, now), EndsAt: now.Add(a.o.Keep),
	}
	switch {
	case n.Event == EventTest:
		al.EndsAt = now.Add(time.Minute)
	case over(n):
		al.EndsAt = now
	}
	list := []alert{al}
	if st.Labels != nil && !maps.Equal(st.Labels, al.Labels) && st.EndsAt.After(now) {
		list = append(list, alert{Labels: st.Labels, Annotations: al.Annotations, StartsAt: st.StartsAt, EndsAt: now})
	}
	return list, alertState{Labels: al.Labels, StartsAt: al.StartsAt, EndsAt: al.EndsAt}
}

// alertStart stays the same over all notices of an incident, and never lies in
// the future, which Alertmanager refuses for an alert that ends now.
func alertStart(n Notice, st alertState, now time.Time) time.Time {
	start := st.StartsAt
	if start.IsZero() {
		start = n.Time
		if t, err := time.Parse(time.RFC3339, deref(n.Incident.Time.First)); err == nil {
			start = t
		}
	}
	if start.IsZero() || start.After(now) {
		return now
	}
	return start
}

func alertLabels(n Notice) map[string]string {
	i := n.Incident
	labels := map[string]string{}
	add := func(name, value string) {
		if value = cut(foreign(value), maxLabel); value != "" {
			labels[name] = value
		}
	}
	add("alertname", "DiagnoseIncident")
	if n.Event == EventTest {
		add("alertname", "DiagnoseTest")
	}
	add("class", i.Verdict.Class)
	add("family", i.Verdict.Family)
	add("model", modelName(i.Engine))
	add("host", place(i))
	add("severity", severity(n))
	add("incident", i.ID)
	return labels
}

// severity is critical for a server that died, warning for what has not failed.
func severity(n Notice) string {
	switch {
	case n.Event == EventTest:
		return "info"
	case n.Observation:
		return "warning"
	}
	return "critical"
}

func alertAnnotations(n Notice) map[string]string {
	i := n.Incident
	out := map[string]string{}
	add := func(name, value string) {
		if value = cut(foreign(value), maxAnnotation); value != "" {
			out[name] = value
		}
	}
	add("summary", headline(i)+": "+i.Verdict.Summary)
	add("confidence", i.Verdict.Confidence)
	add("mechanism", deref(i.Verdict.Mechanism))
	add("status", condition(n))
	if at := position(n.Sources, i.Root.At); at != "" {
		add("root", at+" "+firstLine(i.Root.Text))
	} else {
		add("root", firstLine(i.Root.Text))
	}
	var steps []string
	for _, r := range i.Remedies[:min(len(i.Remedies), 3)] {
		steps = append(steps, strings.TrimSpace(r.Title+": "+strings.Join(changes(r), "; ")))
	}
	add("remedies", strings.Join(steps, " | "))
	if len(i.DoNot) > 0 {
		add("do_not", i.DoNot[0].Change+": "+i.DoNot[0].Because)
	}
	return out
}

// foreign makes a text harmless in whatever Alertmanager passes it on to: its
// Slack, mail and chat templates do not all escape. Angle brackets are replaced
// by their typographic likes, so neither markup nor a mention can be formed.
func foreign(s string) string {
	s = strings.NewReplacer("<", "‹", ">", "›", "`", "'").Replace(oneLine(s))
	return breakMentions(s)
}

// Preview implements Previewer.
func (a *Alertmanager) Preview(n Notice) ([]byte, error) {
	list, _ := a.alerts(prepare(n), alertState{})
	return json.MarshalIndent(list, "", "  ")
}
