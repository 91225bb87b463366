package notify

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

// fakeSlack is Slack as far as this package can see it: chat.postMessage,
// chat.update and an incoming webhook, with Slack's limits counted by code that
// shares nothing with the package's own check. It records everything.
type fakeSlack struct {
	mu       sync.Mutex
	calls    []*slackCall
	messages []*slackMsg
	pages    []string // what would have notified people
	refusals []string // payloads beyond a limit
	next     int
	// fault decides what goes wrong with a call; nil, or a nil answer, nothing.
	fault func(c *slackCall) *slackFault
	// pace answers 429 to more than four posts in one second.
	pace  bool
	times []time.Time
}

type slackCall struct {
	method string // chat.postMessage, chat.update, webhook
	token  string
	n      int
	form   url.Values
}

type slackMsg struct {
	channel, ts, thread string
	text, blocks        string
	edits               int
	broadcast, gone     bool
}

// slackFault is one scripted misbehaviour. accept processes the message first.
type slackFault struct {
	accept bool
	status int
	header map[string]string
	body   string
	hang   bool // no answer until the client gives up
	cut    bool // the connection ends without an answer
	before func()
}

const (
	fakeToken = "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy"
	fakeHook  = "/services/T0000000/B1111111/hook5ecretXXXXXXXXXXXXXX"
)

func (f *fakeSlack) serve(req *http.Request) (*slackFault, int, http.Header, string) {
	body, _ := io.ReadAll(req.Body)
	c := &slackCall{}
	switch {
	case req.URL.Path == fakeHook:
		c.method = "webhook"
		var m struct {
			Text   string          `json:"text"`
			Blocks json.RawMessage `json:"blocks"`
		}
		if json.Unmarshal(body, &m) != nil {
			return nil, 400, nil, "invalid_payload"
		}
		c.form = url.Values{"text": {m.Text}, "blocks": {string(m.Blocks)}}
	case strings.HasPrefix(req.URL.Path, "/api/"):
		c.method = strings.TrimPrefix(req.URL.Path, "/api/")
		c.form, _ = url.ParseQuery(string(body))
		c.token = c.form.Get("token")
		if c.token == "" {
			c.token = strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
		}
	default:
		return nil, 404, nil, "no_service"
	}
	f.mu.Lock()
	c.n = len(f.calls)
	f.calls = append(f.calls, c)
	fault := f.fault
	f.mu.Unlock()
	var bad *slackFault
	if fault != nil {
		bad = fault(c)
	}
	if bad != nil && bad.before != nil {
		bad.before()
	}
	if bad != nil && !bad.accept {
		return bad, bad.status, header(bad.header), bad.body
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

func (f *fakeSlack) handle(c *slackCall) (int, http.Header, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	refuse := func(word string) (int, http.Header, string) {
		if c.method == "webhook" {
			return 400, nil, word
		}
		return 200, nil, fmt.Sprintf(`{"ok":false,"error":%q}`, word)
	}
	if c.method != "webhook" && c.token != fakeToken {
		return refuse("invalid_auth")
	}
	if f.pace && c.method != "chat.update" {
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
	if word := fakeLimits(c.form.Get("text"), c.form.Get("blocks")); word != "" {
		f.refusals = append(f.refusals, word)
		return refuse(strings.Fields(word)[0])
	}
	f.pages = append(f.pages, fakePages(c.form.Get("text"), c.form.Get("blocks"))...)
	switch c.method {
	case "webhook":
		f.messages = append(f.messages, &slackMsg{text: c.form.Get("text"), blocks: c.form.Get("blocks")})
		return 200, nil, "ok"
	case "chat.update":
		for _, m := range f.messages {
			if m.ts == c.form.Get("ts") && m.channel == c.form.Get("channel") && !m.gone {
				m.text, m.blocks = c.form.Get("text"), c.form.Get("blocks")
				m.edits++
				return 200, nil, fmt.Sprintf(`{"ok":true,"channel":%q,"ts":%q,"text":"x"}`, m.channel, m.ts)
			}
		}
		return refuse("message_not_found")
	}
	f.next++
	m := &slackMsg{
		channel: c.form.Get("channel"), ts: fmt.Sprintf("1700000000.%06d", f.next), thread: c.form.Get("thread_ts"),
		text: c.form.Get("text"), blocks: c.form.Get("blocks"), broadcast: c.form.Get("reply_broadcast") == "true",
	}
	if !strings.HasPrefix(m.channel, "C") {
		return refuse("channel_not_found")
	}
	if m.thread != "" && !f.has(m.thread) {
		m.thread = "" // posted outside, as Slack does
	}
	f.messages = append(f.messages, m)
	return 200, nil, fmt.Sprintf(`{"ok":true,"channel":%q,"ts":%q,"message":{"text":"x","thread_ts":%q}}`, m.channel, m.ts, m.thread)
}

func (f *fakeSlack) has(ts string) bool {
	for _, m := range f.messages {
		if m.ts == ts && !m.gone {
			return true
		}
	}
	return false
}

// roots are the messages outside of threads that still stand.
func (f *fakeSlack) roots() []*slackMsg {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*slackMsg
	for _, m := range f.messages {
		if m.thread == "" && !m.gone {
			out = append(out, m)
		}
	}
	return out
}

func (f *fakeSlack) replies(ts string) []*slackMsg {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*slackMsg
	for _, m := range f.messages {
		if m.thread == ts && ts != "" {
			out = append(out, m)
		}
	}
	return out
}

func (f *fakeSlack) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c.method == method {
			n++
		}
	}
	return n
}

func (f *fakeSlack) setFault(fn func(*slackCall) *slackFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fn
}

// RoundTrip serves in memory, for tests with a fake clock.
func (f *fakeSlack) RoundTrip(req *http.Request) (*http.Response, error) {
	fault, status, h, body := f.serve(req)
	if fault != nil && fault.hang {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	if fault != nil && fault.cut {
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
func (f *fakeSlack) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	fault, status, h, body := f.serve(req)
	if fault != nil && fault.hang {
		<-req.Context().Done()
		return
	}
	if fault != nil && fault.cut {
		panic(http.ErrAbortHandler)
	}
	for k, v := range h {
		w.Header()[k] = v
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// fakeLimits returns Slack's word for a payload that it would refuse, with the
// place behind it.
func fakeLimits(text, blocks string) string {
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

// fakePages finds mentions, links and bare words in everything that Slack would
// interpret: all but plain_text.
func fakePages(text, blocks string) []string {
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
