package notify

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"diagnose/matcher"
)

// SlackBotOptions configures a SlackBot.
type SlackBotOptions struct {
	Name string
	// TokenFile holds the bot token (scope chat:write). It is read at each send.
	TokenFile string
	// Channel is the channel's id.
	Channel string
	// APIURL is Slack's own when empty.
	APIURL string
	// AllowHosts replaces the known hosts; AllowHTTP permits plain http.
	AllowHosts []string
	AllowHTTP  bool
	// UpdateEvery is the least time between two updates of one message; 5 s
	// when zero.
	UpdateEvery time.Duration
	// Tool is named in the message.
	Tool matcher.Tool
	// Render gives the whole diagnosis as plain text for the thread; without it
	// there is none.
	Render func(Notice) string

	Now       func() time.Time
	Getenv    func(string) string
	Transport http.RoundTripper
}

// SlackBot posts each incident once by bot token and keeps that message up to
// date: better assessments and repeats change it, what happens afterwards is
// told in its thread too. When Slack no longer has the message, it is posted
// afresh.
type SlackBot struct {
	o      SlackBotOptions
	client *http.Client
}

// slackBotState is what is remembered of one incident.
type slackBotState struct {
	Channel string    `json:"channel,omitempty"`
	TS      string    `json:"ts,omitempty"`
	Root    string    `json:"root,omitempty"` // digest of the message as it stands
	RootAt  time.Time `json:"root_at,omitzero"`
	// Told lists the keys of replies and paged escalations, oldest first.
	Told []string `json:"told,omitempty"`
	// Details is the assessment whose text is, or is being, told in the thread:
	// Next of its replies are.
	Details string `json:"details,omitempty"`
	Render  string `json:"render,omitempty"`
	Next    int    `json:"next,omitempty"`
	Whole   bool   `json:"whole,omitempty"`
	// Afresh counts how often the message was lost. Where it is lost again and
	// again (a workspace that forbids edits, a channel without threads), the
	// last one is left as it is: Frozen.
	Afresh int  `json:"afresh,omitempty"`
	Frozen bool `json:"frozen,omitempty"`
	// Plain is set when Slack refused the blocks.
	Plain bool `json:"plain,omitempty"`
	// Paged is set once the first message was posted with its mentions.
	Paged bool `json:"paged,omitempty"`
}

const (
	maxAfresh = 2
	// maxRender bounds the text of a whole diagnosis; the thread shows less.
	maxRender = 256 << 10
	// maxTold bounds the memory of an incident that goes on for ever.
	maxTold = 100
	// defaultUpdateEvery keeps far below chat.update's 50 a minute.
	defaultUpdateEvery = 5 * time.Second
)

// NewSlackBot returns a sink for one channel.
func NewSlackBot(o SlackBotOptions) *SlackBot {
	if o.APIURL == "" {
		o.APIURL = slackAPI
	}
	if o.UpdateEvery == 0 {
		o.UpdateEvery = defaultUpdateEvery
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &SlackBot{o: o, client: newClient(guard{
		base: o.Transport, hosts: slackHosts(o.AllowHosts), http: o.AllowHTTP, accept: answerJSON,
	})}
}

// slackHosts are the hosts that may see a token or a hook.
func slackHosts(configured []string) []string {
	if len(configured) > 0 {
		return configured
	}
	return []string{"slack.com", "hooks.slack.com", "slack-gov.com", "hooks.slack-gov.com"}
}

// Name implements Notifier.
func (b *SlackBot) Name() string { return b.o.Name }

// Send implements Notifier.
func (b *SlackBot) Send(ctx context.Context, n Notice, s State) (State, bool, error) {
	st := decodeState[slackBotState](s)
	n = prepare(n)
	next, again, err := b.step(ctx, n, st)
	switch e := (*Error)(nil); {
	case err == nil && again:
		return encodeState(next), true, ErrMore
	case err == nil:
		return encodeState(next), false, nil
	case errors.As(err, &e):
		return failed(encodeState(next), e)
	}
	return encodeState(next), true, err // *Later
}

// step makes at most one request; again says that another one is due.
func (b *SlackBot) step(ctx context.Context, n Notice, st slackBotState) (next slackBotState, again bool, err error) {
	root, sum := b.root(n, st)
	if st.TS == "" {
		return b.postRoot(ctx, n, st, root, sum)
	}
	if n.Event == EventTest {
		return st, false, nil
	}
	if m, then, broadcast, ok := b.reply(n, st); ok {
		return b.postReply(ctx, st, m, then, broadcast)
	}
	if st.Root != sum && !st.Frozen {
		return b.updateRoot(ctx, st, root, sum)
	}
	return st, false, nil
}

// root builds the message and its digest, which leaves out what may differ
// without being news: mentions and the delay of this delivery.
func (b *SlackBot) root(n Notice, st slackBotState) (slackMessage, string) {
	v := slackView{Notice: n, tool: b.o.Tool}
	v.Delayed, v.Time = 0, time.Time{}
	raw, _ := json.Marshal(v.build()) // strings only: cannot fail
	v = slackView{Notice: n, tool: b.o.Tool}
	if !st.Paged {
		v.mentions = mentionsOf(n)
	}
	m := v.build()
	if st.Plain {
		m.Blocks = nil
	}
	return m, digest(string(raw))
}

func mentionsOf(n Notice) []string {
	var out []string
	for _, id := range n.Hints.Mentions {
		if m := slackMention(id); m != "" {
			out = append(out, m)
		}
	}
	return out
}

func (b *SlackBot) postRoot(ctx context.Context, n Notice, st slackBotState, m slackMessage, sum string) (slackBotState, bool, error) {
	c, err := b.connect()
	if err != nil {
		return st, false, err
	}
	channel, ts, err := c.post(ctx, b.o.Channel, "", false, m)
	if err != nil {
		return b.refused(st, err)
	}
	st.Channel, st.TS, st.Root, st.RootAt, st.Paged = channel, ts, sum, b.o.Now(), true
	if n.Event == EventTest {
		return st, false, nil
	}
	_, _, _, more := b.reply(n, st)
	return st, more, nil
}

func (b *SlackBot) updateRoot(ctx context.Context, st slackBotState, m slackMessage, sum string) (slackBotState, bool, error) {
	if due := st.RootAt.Add(b.o.UpdateEvery); b.o.Now().Before(due) {
		return st, false, &Later{Until: due}
	}
	c, err := b.connect()
	if err != nil {
		return st, false, err
	}
	if err := c.update(ctx, st.Channel, st.TS, m); err != nil {
		return b.lost(st, err)
	}
	st.Root, st.RootAt = sum, b.o.Now()
	return st, false, nil
}

// reply picks the next reply and the memory once it is told: what needs a
// person first, then the whole diagnosis, then what else happened.
func (b *SlackBot) reply(n Notice, st slackBotState) (m slackMessage, then slackBotState, broadcast, ok bool) {
	var rest *happening
	for _, h := range happenings(n) {
		if slices.Contains(st.Told, h.key) || st.Frozen && !h.escalate && !h.recovery {
			continue
		}
		if h.escalate {
			m, then = tell(n, st, h, mentionsOf(n))
			return m, then, true, true
		}
		if rest == nil {
			rest = &h
		}
	}
	then = st
	if m, ok := b.nextDetail(n, &then); ok {
		return plainIf(st.Plain, m), then, false, true
	}
	if rest == nil {
		return slackMessage{}, st, false, false
	}
	m, then = tell(n, st, *rest, nil)
	return m, then, false, true
}

func tell(n Notice, st slackBotState, h happening, mentions []string) (slackMessage, slackBotState) {
	told := append(slices.Clone(st.Told), h.key)
	st.Told = told[max(0, len(told)-maxTold):]
	return plainIf(st.Plain, slackReply(n.Incident.ID, h.text, mentions)), st
}

// nextDetail is the next part of the whole diagnosis. A diagnosis that changed
// in the middle is told from its start again.
func (b *SlackBot) nextDetail(n Notice, then *slackBotState) (slackMessage, bool) {
	if b.o.Render == nil || then.Frozen {
		return slackMessage{}, false
	}
	sum := assessment(n.Incident)
	if then.Whole && then.Details == sum {
		return slackMessage{}, false
	}
	// The renderer is not ours: its text is treated as a log's.
	text := scrub(clean(headBytes(b.o.Render(n), maxRender)))
	parts := slackDetails(n.Incident.ID, text)
	if render := digest(text); then.Details != sum || then.Render != render {
		then.Details, then.Render, then.Next, then.Whole = sum, render, 0, false
	}
	if then.Next >= len(parts) {
		then.Whole = true
		return slackMessage{}, false
	}
	m := parts[then.Next]
	then.Next++
	then.Whole = then.Next == len(parts)
	return m, true
}

func plainIf(plain bool, m slackMessage) slackMessage {
	if plain && len(m.Blocks) > 0 && m.Blocks[0].Text != nil {
		m.Text, m.Blocks = m.Text+"\n"+m.Blocks[0].Text.Text, nil
	}
	return m
}

func (b *SlackBot) postReply(ctx context.Context, st slackBotState, m slackMessage, then slackBotState, broadcast bool) (slackBotState, bool, error) {
	c, err := b.connect()
	if err != nil {
		return st, false, err
	}
	thread := st.TS
	if st.Frozen {
		thread = ""
	}
	if _, _, err := c.post(ctx, st.Channel, thread, broadcast, m); err != nil {
		return b.lost(st, err)
	}
	// The next step decides whether this was all.
	return then, true, nil
}

// lost handles the refusal of an update or a reply: when the message is gone,
// the incident is told afresh.
func (b *SlackBot) lost(st slackBotState, err error) (slackBotState, bool, error) {
	var e *Error
	if !errors.As(err, &e) || !rootGone(e.Code) || st.Frozen {
		return b.refused(st, err)
	}
	if st.Afresh == maxAfresh {
		st.Frozen = true
		return st, true, nil
	}
	return slackBotState{Afresh: st.Afresh + 1, Plain: st.Plain, Paged: st.Paged, Told: st.Told}, true, nil
}

// refused falls back to plain text when Slack does not take the blocks.
func (b *SlackBot) refused(st slackBotState, err error) (slackBotState, bool, error) {
	var e *Error
	if errors.As(err, &e) && e.Reason == InvalidPayload && !st.Plain {
		st.Plain = true
		return st, true, nil
	}
	return st, false, err
}

func (b *SlackBot) connect() (slackBotClient, error) {
	token, err := secretFile{path: b.o.TokenFile, getenv: b.o.Getenv}.read()
	if err != nil {
		return slackBotClient{}, &Error{Sink: b.o.Name, Reason: Misconfigured, Detail: err.Error()}
	}
	return newSlackBotClient(b.client, b.o.Name, b.o.APIURL, token), nil
}

// Preview implements Previewer: the message in the JSON that Slack's Block Kit
// builder reads.
func (b *SlackBot) Preview(n Notice) ([]byte, error) {
	m, _ := b.root(prepare(n), slackBotState{})
	return json.MarshalIndent(m, "", "  ")
}
