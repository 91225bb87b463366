package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"diagnose/matcher"
)

// SlackWebhookOptions configures a SlackWebhook.
type SlackWebhookOptions struct {
	Name string
	// URLFile holds the hook's URL, which is a secret. It is read at each send.
	URLFile    string
	AllowHosts []string
	AllowHTTP  bool
	// RollUp is the least time between two messages about repeats of one
	// incident; 10 min when zero.
	RollUp time.Duration
	Tool   matcher.Tool

	Now       func() time.Time
	Getenv    func(string) string
	Transport http.RoundTripper
}

// SlackWebhook posts to an incoming webhook. Slack returns no ts there, so a
// message can be neither updated nor answered: the first notice of an incident
// goes out at once, repeats are rolled up into short messages, a changed
// assessment and a withdrawn advice are told once each, and so is one recovery.
type SlackWebhook struct {
	o      SlackWebhookOptions
	client *http.Client
}

type slackWebhookState struct {
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Count is the number of occurrences that were told.
	Count int `json:"count,omitempty"`
	// Assessment is what the last full message said.
	Assessment string   `json:"assessment,omitempty"`
	Told       []string `json:"told,omitempty"`
	Recovered  bool     `json:"recovered,omitempty"`
	Plain      bool     `json:"plain,omitempty"`
}

const defaultRollUp = 10 * time.Minute

// NewSlackWebhook returns a sink for one incoming webhook.
func NewSlackWebhook(o SlackWebhookOptions) *SlackWebhook {
	if o.RollUp == 0 {
		o.RollUp = defaultRollUp
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &SlackWebhook{o: o, client: newClient(guard{
		base: o.Transport, hosts: slackHosts(o.AllowHosts), http: o.AllowHTTP, accept: answerOK,
	})}
}

// Name implements Notifier.
func (w *SlackWebhook) Name() string { return w.o.Name }

// Send implements Notifier.
func (w *SlackWebhook) Send(ctx context.Context, n Notice, s State) (State, bool, error) {
	st := decodeState[slackWebhookState](s)
	n = prepare(n)
	m, then, err := w.next(n, st)
	if err != nil {
		return encodeState(st), true, err // *Later
	}
	if m.Text == "" {
		return encodeState(then), false, nil
	}
	if err := w.post(ctx, plainIf(st.Plain, m)); err != nil {
		var e *Error
		if errors.As(err, &e) && e.Reason == InvalidPayload && !st.Plain {
			st.Plain = true
			return encodeState(st), true, ErrMore
		}
		return failed(encodeState(st), e)
	}
	if m, _, err := w.next(n, then); err == nil && m.Text == "" {
		return encodeState(then), false, nil
	}
	return encodeState(then), true, ErrMore
}

// next picks the message that is due and the memory once it is sent; no text
// means that nothing is.
func (w *SlackWebhook) next(n Notice, st slackWebhookState) (slackMessage, slackWebhookState, error) {
	now, i := w.o.Now(), n.Incident
	count := max(i.Occurrences, 1)
	view := slackView{Notice: n, tool: w.o.Tool}
	then := st
	then.Last, then.Count = now, count
	if st.First.IsZero() {
		view.mentions = mentionsOf(n)
		then.First, then.Assessment = now, assessment(i)
		for _, h := range happenings(n) {
			then.Told = append(then.Told, h.key)
			then.Recovered = then.Recovered || h.recovery
		}
		return view.build(), then, nil
	}
	for _, h := range happenings(n) {
		if slices.Contains(st.Told, h.key) || !h.escalate && !h.recovery {
			continue
		}
		then := st
		then.Told = append(slices.Clone(st.Told), h.key)
		then.Told = then.Told[max(0, len(then.Told)-maxTold):]
		if h.recovery {
			if then.Recovered {
				continue
			}
			then.Recovered, then.Last, then.Count = true, now, count
			return w.short(n, h.text, nil), then, nil
		}
		then.Recovered = false
		return w.short(n, h.text, mentionsOf(n)), then, nil
	}
	if sum := assessment(i); sum != st.Assessment {
		if due := st.Last.Add(min(w.o.RollUp, time.Minute)); now.Before(due) {
			return slackMessage{}, st, &Later{Until: due}
		}
		then.Assessment = sum
		return view.build(), then, nil
	}
	if more := count - st.Count; more > 0 {
		if due := st.Last.Add(w.o.RollUp); now.Before(due) {
			return slackMessage{}, st, &Later{Until: due}
		}
		then.Recovered = false
		return w.short(n, fmt.Sprintf("%d more since %s.", more, st.Last.UTC().Format("15:04 UTC")), nil), then, nil
	}
	return slackMessage{}, st, nil
}

// short is a message about an incident that was told before: its headline, for
// nobody can look it up by a thread.
func (w *SlackWebhook) short(n Notice, text string, mentions []string) slackMessage {
	if n.Delayed > 0 {
		text += " This notice was delayed " + waited(n.Delayed) + "."
	}
	m := slackReply(n.Incident.ID, headline(n.Incident)+": "+text, mentions)
	m.Blocks = append(m.Blocks, slackBlock{Type: "context", Elements: []slackText{
		mrkdwn("incident " + slackInline(n.Incident.ID, 64) + " · " + plural(max(n.Incident.Occurrences, 1), "occurrence", "occurrences")),
	}})
	return m
}

func (w *SlackWebhook) post(ctx context.Context, m slackMessage) error {
	hook, err := secretFile{path: w.o.URLFile, getenv: w.o.Getenv}.read()
	if err != nil {
		return &Error{Sink: w.o.Name, Reason: Misconfigured, Detail: err.Error()}
	}
	return slackPostWebhook(ctx, w.client, w.o.Name, hook, m)
}

// Preview implements Previewer.
func (w *SlackWebhook) Preview(n Notice) ([]byte, error) {
	m, _, err := w.next(prepare(n), slackWebhookState{})
	if err != nil {
		return nil, err
	}
	msg, err := slackWebhookMessage(m)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(msg, "", "  ")
}
