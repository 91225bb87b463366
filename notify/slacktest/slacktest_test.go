package slacktest

import (
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestLimits(t *testing.T) {
	section := func(text string) string {
		return fmt.Sprintf(`[{"type":"section","text":{"type":"mrkdwn","text":%q}}]`, text)
	}
	tests := []struct{ name, text, blocks, want string }{
		{"plain", "t", "", ""},
		{"no text", "", section("a"), "no_text"},
		{"text at its limit", strings.Repeat("x", 4000), "", ""},
		{"text", strings.Repeat("x", 4001), "", "msg_too_long"},
		{"section at its limit", "t", section(strings.Repeat("x", 3000)), ""},
		{"section", "t", section(strings.Repeat("x", 3001)), "invalid_blocks"},
		{"an emoji counts two", "t", `[{"type":"header","text":{"type":"plain_text","text":"` + strings.Repeat("😀", 76) + `"}}]`, "invalid_blocks"},
		{"empty section", "t", section(""), "invalid_blocks"},
		{"markup in a header", "t", `[{"type":"header","text":{"type":"mrkdwn","text":"a"}}]`, "invalid_blocks"},
		{"open fence", "t", section("```\na"), "invalid_blocks"},
		{"unknown block", "t", `[{"type":"poem"}]`, "invalid_blocks"},
		{"no list", "t", `{}`, "invalid_blocks_format"},
		{"51 blocks", "t", "[" + strings.Repeat(`{"type":"divider"},`, 50) + `{"type":"divider"}]`, "invalid_blocks_format"},
		{"all together", "t", "[" + strings.Repeat(strings.Trim(section(strings.Repeat("x", 2800)), "[]")+",", 4) + strings.Trim(section(strings.Repeat("x", 2800)), "[]") + "]", "msg_blocks_too_long"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			word, _, _ := strings.Cut(Limits(c.text, c.blocks), " ")
			if word != c.want {
				t.Errorf("%q, want %q", word, c.want)
			}
		})
	}
}

func TestPages(t *testing.T) {
	tests := []struct {
		name, text, blocks string
		want               int
	}{
		{"a mention in the text", "<!channel> down", "", 1},
		{"a bare word", "@here", "", 1},
		{"a user in a section", "t", `[{"type":"section","text":{"type":"mrkdwn","text":"<@U1>"}}]`, 1},
		{"a header is no markup", "t", `[{"type":"header","text":{"type":"plain_text","text":"<!channel>"}}]`, 0},
		{"escaped", "&lt;!channel&gt;", "", 0},
		{"a broken word", "@\u2060channel", "", 0},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			if got := Pages(c.text, c.blocks); len(got) != c.want {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestCalls(t *testing.T) {
	f := &Server{}
	srv := httptest.NewServer(f)
	defer srv.Close()
	call := func(method string, kv ...string) string {
		t.Helper()
		form := url.Values{"token": {Token}}
		for i := 0; i < len(kv); i += 2 {
			form.Set(kv[i], kv[i+1])
		}
		resp, err := srv.Client().PostForm(srv.URL+"/api/"+method, form)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", string(body))
	}
	expect := func(got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("%s\nwithout %s", got, want)
		}
	}
	expect(call("chat.postMessage", "token", "wrong", "channel", "C1", "text", "a"), "invalid_auth")
	expect(call("chat.postMessage", "channel", "general", "text", "a"), "channel_not_found")
	expect(call("chat.postMessage", "channel", "C1", "text", "a"), `"ts":"1700000000.000002"`)
	ts := "1700000000.000002"
	expect(call("chat.postMessage", "channel", "C1", "text", "b", "thread_ts", ts), `"ok":true`)
	expect(call("chat.update", "channel", "C1", "ts", ts, "text", "c"), `"ok":true`)
	expect(call("chat.update", "channel", "C1", "ts", "1.1", "text", "c"), "message_not_found")
	f.SetFault(func(c *Call) *Fault { return &Fault{Accept: true, Cut: true} })
	expect(call("chat.postMessage", "channel", "C1", "text", "d"), "EOF")
	f.SetFault(func(c *Call) *Fault { return &Fault{Status: 429, Header: map[string]string{"Retry-After": "1"}} })
	expect(call("chat.postMessage", "channel", "C1", "text", "e"), "429")
	f.SetFault(nil)

	var got []string
	for _, m := range f.Snapshot() {
		got = append(got, m.Text)
	}
	if len(got) != 3 || got[0] != "c" || f.Replies(ts)[0].Text != "b" || len(f.Roots()) != 2 || f.Count("chat.update") != 2 {
		t.Errorf("%q", got)
	}
	f.Delete(ts)
	expect(call("chat.update", "channel", "C1", "ts", ts, "text", "c"), "message_not_found")
}
