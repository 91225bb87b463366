// Package slacktest is Slack as far as this program can see it, for tests:
// chat.postMessage, chat.update and an incoming webhook.
//
// It enforces Slack's limits with code that shares nothing with the check that
// package notify makes before it sends, misbehaves as a test scripts it, and
// records every call, every message that stands, and everything that would have
// notified people. It knows no other part of Slack: no scopes, no channels
// beyond the shape of their ids, no markup beyond what pages or links.
package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
)

// Server is the fake. The zero value works, as an http.Handler and as an
// http.RoundTripper. Its exported fields may be read while no call is being
// made; Snapshot, Roots, Replies and Count can be used at any time.
type Server struct {
	mu       sync.Mutex
	Calls    []*Call
	Messages []*Message
	Paged    []string // mentions, links and bare words that Slack would have acted on
	Refusals []string // payloads beyond a limit
	next     int
	// Fault decides what goes wrong with a call; nil, or a nil answer, nothing.
	// While calls are made it is changed by SetFault only.
	Fault func(c *Call) *Fault
	// Pace answers 429 to more than four posts in one second.
	Pace  bool
	times []time.Time
}

// Call is one request.
type Call struct {
	Method string // chat.postMessage, chat.update, webhook
	Token  string
	N      int // its number, from 0
	Form   url.Values
}

// Message is a message as it stands. A webhook's has no channel, ts and thread.
type Message struct {
	Channel, TS, Thread string
	Text, Blocks        string
	Edits               int
	Broadcast           bool
	Gone                bool // deleted by somebody
}

// Fault is one scripted misbehaviour. With Accept the message is processed
// first, so that only its answer is lost.
type Fault struct {
	Accept bool
	Status int
	Header map[string]string
	Body   string
	Hang   bool   // no answer until the client gives up
	Cut    bool   // the connection ends without an answer
	Before func() // called before anything else
}

// Token is the bot token that the server accepts, Hook the path of its webhook.
const (
	Token = "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy"
	Hook  = "/services/T0000000/B1111111/hook5ecretXXXXXXXXXXXXXX"
)

func (f *Server) serve(req *http.Request) (*Fault, int, http.Header, string) {
	body, _ := io.ReadAll(req.Body)
	c := &Call{}
	switch {
	case req.URL.Path == Hook:
		c.Method = "webhook"
		var m struct {
			Text   string          `json:"text"`
			Blocks json.RawMessage `json:"blocks"`
		}
		if json.Unmarshal(body, &m) != nil {
			return nil, 400, nil, "invalid_payload"
		}
		c.Form = url.Values{"text": {m.Text}, "blocks": {string(m.Blocks)}}
	case strings.HasPrefix(req.URL.Path, "/api/"):
		c.Method = strings.TrimPrefix(req.URL.Path, "/api/")
		c.Form, _ = url.ParseQuery(string(body))
		c.Token = c.Form.Get("token")
		if c.Token == "" {
			c.Token = strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
		}
	default:
		return nil, 404, nil, "no_service"
	}
	f.mu.Lock()
	c.N = len(f.Calls)
	f.Calls = append(f.Calls, c)
	fault := f.Fault
	f.mu.Unlock()
	var bad *Fault
	if fault != nil {
		bad = fault(c)
	}
	if bad != nil && bad.Before != nil {
		bad.Before()
	}
	if bad != nil && !bad.Accept {
		return bad, bad.Status, header(bad.Header), bad.Body
	}
	status, h, answer := f.handle(c)
	return bad, status, h, answer
}

func header(m map[string]string) http.Header {
	h := http.Header{}
	for k, v := range m {
		h.Set(k, v)
	}
	return h
}

func (f *Server) handle(c *Call) (int, http.Header, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	refuse := func(word string) (int, http.Header, string) {
		if c.Method == "webhook" {
			return 400, nil, word
		}
		return 200, nil, fmt.Sprintf(`{"ok":false,"error":%q}`, word)
	}
	if c.Method != "webhook" && c.Token != Token {
		return refuse("invalid_auth")
	}
	if f.Pace && c.Method != "chat.update" {
		now := time.Now()
		recent := 0
		for _, t := range f.times {
			if now.Sub(t) < time.Second {
				recent++
			}
		}
		if recent >= 4 {
			return 429, header(map[string]string{"Retry-After": "5"}), "ratelimited"
		}
		f.times = append(f.times, now)
	}
	if word := Limits(c.Form.Get("text"), c.Form.Get("blocks")); word != "" {
		f.Refusals = append(f.Refusals, word)
		return refuse(strings.Fields(word)[0])
	}
	f.Paged = append(f.Paged, Pages(c.Form.Get("text"), c.Form.Get("blocks"))...)
	switch c.Method {
	case "webhook":
		f.Messages = append(f.Messages, &Message{Text: c.Form.Get("text"), Blocks: c.Form.Get("blocks")})
		return 200, nil, "ok"
	case "chat.update":
		for _, m := range f.Messages {
			if m.TS == c.Form.Get("ts") && m.Channel == c.Form.Get("channel") && !m.Gone {
				m.Text, m.Blocks = c.Form.Get("text"), c.Form.Get("blocks")
				m.Edits++
				return 200, nil, fmt.Sprintf(`{"ok":true,"channel":%q,"ts":%q,"text":"x"}`, m.Channel, m.TS)
			}
		}
		return refuse("message_not_found")
	}
	f.next++
	m := &Message{
		Channel: c.Form.Get("channel"), TS: fmt.Sprintf("1700000000.%06d", f.next), Thread: c.Form.Get("thread_ts"),
		Text: c.Form.Get("text"), Blocks: c.Form.Get("blocks"), Broadcast: c.Form.Get("reply_broadcast") == "true",
	}
	if !strings.HasPrefix(m.Channel, "C") {
		return refuse("channel_not_found")
	}
	if m.Thread != "" && !f.has(m.Thread) {
		m.Thread = "" // posted outside, as Slack does
	}
	f.Messages = append(f.Messages, m)
	return 200, nil, fmt.Sprintf(`{"ok":true,"channel":%q,"ts":%q,"message":{"text":"x","thread_ts":%q}}`, m.Channel, m.TS, m.Thread)
}

func (f *Server) has(ts string) bool {
	for _, m := range f.Messages {
		if m.TS == ts && !m.Gone {
			return true
		}
	}
	return false
}

// Roots are the messages outside of threads that still stand.
func (f *Server) Roots() []*Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*Message
	for _, m := range f.Messages {
		if m.Thread == "" && !m.Gone {
			out = append(out, m)
		}
	}
	return out
}

// Snapshot copies the messages that stand, in the order in which they came.
func (f *Server) Snapshot() []Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Message, 0, len(f.Messages))
	for _, m := range f.Messages {
		if !m.Gone {
			out = append(out, *m)
		}
	}
	return out
}

// Replies are the messages in a thread, oldest first.
func (f *Server) Replies(ts string) []*Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*Message
	for _, m := range f.Messages {
		if m.Thread == ts && ts != "" {
			out = append(out, m)
		}
	}
	return out
}

// Delete removes a message, as somebody in the channel can.
func (f *Server) Delete(ts string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.Messages {
		m.Gone = m.Gone || m.TS == ts
	}
}

// Count counts the calls of a method.
func (f *Server) Count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.Calls {
		if c.Method == method {
			n++
		}
	}
	return n
}

// SetFault changes Fault; nil ends all faults.
func (f *Server) SetFault(fn func(*Call) *Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Fault = fn
}

// RoundTrip serves in memory, for tests with a fake clock.
func (f *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	fault, status, h, body := f.serve(req)
	if fault != nil && fault.Hang {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	if fault != nil && fault.Cut {
		return nil, io.ErrUnexpectedEOF
	}
	w := httptest.NewRecorder()
	for k, v := range h {
		w.Header()[k] = v
	}
	w.WriteHeader(status)
	_, _ = w.WriteString(body)
	resp := w.Result()
	resp.Request = req
	return resp, nil
}

// ServeHTTP serves over a socket, where connections can really be cut.
func (f *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	fault, status, h, body := f.serve(req)
	if fault != nil && fault.Hang {
		<-req.Context().Done()
		return
	}
	if fault != nil && fault.Cut {
		panic(http.ErrAbortHandler)
	}
	for k, v := range h {
		w.Header()[k] = v
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// Limits returns Slack's word for a payload that it would refuse, with the
// place behind it.
func Limits(text, blocks string) string {
	length := func(v any) int { s, _ := v.(string); return len(utf16.Encode([]rune(s))) }
	if text == "" {
		return "no_text"
	}
	if length(text) > 4000 {
		return "msg_too_long text"
	}
	if blocks == "" || blocks == "null" || blocks == "[]" {
		return ""
	}
	if length(blocks) > 13200 {
		return "msg_blocks_too_long " + strconv.Itoa(length(blocks))
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(blocks), &list); err != nil || len(list) > 50 {
		return "invalid_blocks_format list"
	}
	textOf := func(v any, most int) string {
		m, _ := v.(map[string]any)
		if n := length(m["text"]); n == 0 || n > most || m["type"] != "mrkdwn" && m["type"] != "plain_text" {
			return fmt.Sprintf("invalid_blocks text of %d, at most %d", n, most)
		}
		if m["type"] == "mrkdwn" && strings.Count(m["text"].(string), "```")%2 != 0 {
			return "invalid_blocks open fence" // Slack takes it; a reader does not
		}
		return ""
	}
	for _, b := range list {
		var problems []string
		switch b["type"] {
		case "header":
			problems = append(problems, textOf(b["text"], 150))
			if m, _ := b["text"].(map[string]any); m["type"] != "plain_text" {
				problems = append(problems, "invalid_blocks header type")
			}
		case "section":
			fields, _ := b["fields"].([]any)
			if b["text"] == nil && len(fields) == 0 || len(fields) > 10 {
				problems = append(problems, "invalid_blocks section")
			}
			if b["text"] != nil {
				problems = append(problems, textOf(b["text"], 3000))
			}
			for _, v := range fields {
				problems = append(problems, textOf(v, 2000))
			}
		case "context":
			list, _ := b["elements"].([]any)
			if len(list) == 0 || len(list) > 10 {
				problems = append(problems, "invalid_blocks context")
			}
			for _, v := range list {
				problems = append(problems, textOf(v, 3000))
			}
		default:
			problems = append(problems, fmt.Sprintf("invalid_blocks type %v", b["type"]))
		}
		for _, p := range problems {
			if p != "" {
				return p
			}
		}
	}
	return ""
}

var (
	fakeMarkup = regexp.MustCompile(`<[!@#]?[^<>]*>`)
	fakeBare   = regexp.MustCompile(`(?i)@(channel|here|everyone|group)`)
)

// Pages finds mentions, links and bare words in everything that Slack would
// interpret: all but plain_text.
func Pages(text, blocks string) []string {
	texts := []string{text}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if s, ok := v["text"].(string); ok && v["type"] == "mrkdwn" {
				texts = append(texts, s)
			}
			for _, w := range v {
				walk(w)
			}
		case []any:
			for _, w := range v {
				walk(w)
			}
		}
	}
	var v any
	if json.Unmarshal([]byte(blocks), &v) == nil {
		walk(v)
	}
	var out []string
	for _, s := range texts {
		out = append(out, fakeMarkup.FindAllString(s, -1)...)
		out = append(out, fakeBare.FindAllString(s, -1)...)
	}
	return out
}
