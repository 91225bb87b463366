package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/slack-go/slack"
)

// This file alone imports slack-go, which is before its version 1 and breaks
// often. It gets messages in our own types and gives *Error back.

// slackAPI is where Slack's Web API lives.
const slackAPI = slack.APIURL

// slackWire checks a message and converts it.
func slackWire(m slackMessage) (slack.Blocks, error) {
	if err := m.validate(); err != nil {
		return slack.Blocks{}, &Error{Reason: InvalidPayload, Code: "own_check", Detail: oneLine(err.Error())}
	}
	var blocks slack.Blocks
	raw, err := json.Marshal(m.Blocks)
	if err == nil && len(m.Blocks) > 0 {
		err = json.Unmarshal(raw, &blocks)
	}
	if err != nil {
		return slack.Blocks{}, &Error{Reason: InvalidPayload, Code: "own_check", Detail: err.Error()}
	}
	return blocks, nil
}

func slackWebhookMessage(m slackMessage) (*slack.WebhookMessage, error) {
	blocks, err := slackWire(m)
	if err != nil {
		return nil, err
	}
	no := false
	out := &slack.WebhookMessage{Text: m.Text, UnfurlLinks: &no, UnfurlMedia: &no}
	if len(blocks.BlockSet) > 0 {
		out.Blocks = &blocks
	}
	return out, nil
}

// slackPostWebhook posts to an incoming webhook.
func slackPostWebhook(ctx context.Context, client *http.Client, sink, hook string, m slackMessage) error {
	msg, err := slackWebhookMessage(m)
	if err == nil {
		err = slack.PostWebhookCustomHTTPContext(ctx, hook, client, msg)
	}
	if err != nil {
		return slackError(sink, err, urlSecrets(hook))
	}
	return nil
}

// slackBotClient calls the Web API with a bot token.
type slackBotClient struct {
	sink  string
	token string
	api   *slack.Client
}

func newSlackBotClient(client *http.Client, sink, apiURL, token string) slackBotClient {
	return slackBotClient{
		sink:  sink,
		token: token,
		api:   slack.New(token, slack.OptionHTTPClient(client), slack.OptionAPIURL(strings.TrimRight(apiURL, "/")+"/")),
	}
}

// post posts a message, or a reply when thread is set, and returns where it is.
func (c slackBotClient) post(ctx context.Context, channel, thread string, broadcast bool, m slackMessage) (id, ts string, err error) {
	opts, err := slackOptions(m)
	if err != nil {
		return "", "", slackError(c.sink, err, nil)
	}
	opts = append(opts, slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())
	if thread != "" {
		opts = append(opts, slack.MsgOptionTS(thread))
		if broadcast {
			opts = append(opts, slack.MsgOptionBroadcast())
		}
	}
	id, ts, sent, err := c.api.PostMessageWithResponseContext(ctx, channel, opts...)
	switch {
	case err != nil:
		return "", "", slackError(c.sink, err, []string{c.token})
	case ts == "":
		// slack-go takes {"ok":false} without a word for success.
		return "", "", &Error{Sink: c.sink, Reason: Server, Detail: "an answer without a ts", MaybeDelivered: true}
	case thread != "" && sent.ThreadTimestamp == "":
		// Slack posts a reply outside when the message it answers is gone.
		return "", "", &Error{Sink: c.sink, Reason: NotFound, Code: "thread_not_found", MaybeDelivered: true}
	}
	return id, ts, nil
}

// update replaces a message; Slack wants text and blocks again.
func (c slackBotClient) update(ctx context.Context, channel, ts string, m slackMessage) error {
	opts, err := slackOptions(m)
	if err != nil {
		return slackError(c.sink, err, nil)
	}
	_, got, _, err := c.api.UpdateMessageContext(ctx, channel, ts, opts...)
	if err != nil {
		return slackError(c.sink, err, []string{c.token})
	}
	if got == "" {
		return &Error{Sink: c.sink, Reason: Server, Detail: "an answer without a ts", MaybeDelivered: true}
	}
	return nil
}

func slackOptions(m slackMessage) ([]slack.MsgOption, error) {
	blocks, err := slackWire(m)
	if err != nil {
		return nil, err
	}
	return []slack.MsgOption{slack.MsgOptionText(m.Text, false), slack.MsgOptionBlocks(blocks.BlockSet...)}, nil
}

// slackError classifies what slack-go returned.
func slackError(sink string, err error, hide []string) *Error {
	var answer slack.SlackErrorResponse // by value, RateLimitedError by pointer
	if errors.As(err, &answer) {
		reason, known := slackReason(answer.Err)
		if !known {
			reason = slackUnknown(answer.Err)
		}
		detail := strings.Join(answer.ResponseMetadata.Messages, "; ")
		if answer.Needed != "" {
			detail = strings.TrimSpace(fmt.Sprintf("%s needs scope %s", detail, answer.Needed))
		}
		return &Error{
			Sink: sink, Reason: reason, Code: conceal(answer.Err, hide), Detail: conceal(detail, hide),
			MaybeDelivered: reason == Server,
		}
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return &Error{Sink: sink, Reason: Server, Detail: "the answer is not JSON", MaybeDelivered: true}
	}
	e := classify(sink, err, hide...)
	e.Sink = sink
	return e
}

// slackUnknown sorts words that Slack may add: by what they begin with, else as
// this message's fault, so that one odd refusal does not stop all others.
func slackUnknown(word string) Reason {
	switch {
	case strings.HasPrefix(word, "invalid_auth"), strings.HasPrefix(word, "token_"), strings.HasPrefix(word, "restricted_"), strings.HasPrefix(word, "not_allowed"):
		return Auth
	case strings.HasSuffix(word, "_not_found"), strings.HasSuffix(word, "_archived"):
		return NotFound
	}
	return InvalidPayload
}
