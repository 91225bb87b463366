package e2e

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"diagnose/notify/slacktest"
)

// newSlackDaemon is a daemon whose only sink is a fake Slack on loopback.
func newSlackDaemon(t *testing.T) (*daemon, *slacktest.Server) {
	t.Helper()
	f := &slacktest.Server{}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections) // first: a hanging call would hold Close
	d := newDaemon(t, fmt.Sprintf(`  sinks:
    - name: slack
      slack_bot:
        token_file: token
        channel: C0123456789
        api_url: %s/api/
        allow_http: true
        allow_hosts: [127.0.0.1]
`, srv.URL))
	write(t, d.path("token"), slacktest.Token+"\n")
	config := read(t, d.path("config.yaml"))
	write(t, d.path("config.yaml"), strings.Replace(config, "token_file: token", "token_file: "+d.path("token"), 1))
	t.Cleanup(func() {
		if strings.Contains(d.said(), slacktest.Token) {
			t.Error("the token is in the daemon's log or output")
		}
		if len(f.Refusals) > 0 || len(f.Paged) > 0 {
			t.Errorf("refused %q, paged %q", f.Refusals, f.Paged)
		}
		if t.Failed() {
			t.Log(d.said())
		}
	})
	return d, f
}

// split parts messages into those of the channel and those of threads.
func split(list []slacktest.Message) (roots []slacktest.Message, replies map[string][]slacktest.Message) {
	replies = map[string][]slacktest.Message{}
	for _, m := range list {
		if m.Thread == "" {
			roots = append(roots, m)
			continue
		}
		replies[m.Thread] = append(replies[m.Thread], m)
	}
	return roots, replies
}

var part = regexp.MustCompile(`^Diagnosis of ([0-9a-f]{12}), part (\d+) of (\d+)$`)

// wholeThread tells whether every part of a diagnosis is among the replies.
func wholeThread(replies []slacktest.Message) bool {
	seen, of := map[string]bool{}, ""
	for _, m := range replies {
		if p := part.FindStringSubmatch(m.Text); p != nil {
			seen[p[2]], of = true, p[3]
		}
	}
	return of != "" && fmt.Sprint(len(seen)) == of
}

// textOf is the text of the blocks of some messages, as a reader sees it.
func textOf(t *testing.T, list []slacktest.Message) string {
	t.Helper()
	var b strings.Builder
	for _, m := range list {
		var blocks []struct {
			Text *struct{ Text string }
		}
		if err := json.Unmarshal([]byte(m.Blocks), &blocks); err != nil {
			t.Fatal(err)
		}
		for _, k := range blocks {
			if k.Text != nil {
				b.WriteString(k.Text.Text + "\n")
			}
		}
	}
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(b.String())
}

func TestWatchTellsSlackOnce(t *testing.T) {
	d, f := newSlackDaemon(t)
	s := newServer(t, 4200)
	log := d.path("logs/vllm.log")
	write(t, log, s.start)
	d.start()
	eventually(t, "the daemon follows", func() bool { return strings.Contains(d.said(), "following") })

	began := time.Now()
	appendTo(t, log, s.crash)
	eventually(t, "a message", func() bool { return len(f.Snapshot()) > 0 })
	t.Logf("first message after %s", time.Since(began).Round(10*time.Millisecond))
	eventually(t, "the whole diagnosis in its thread", func() bool {
		roots, replies := split(f.Snapshot())
		return len(roots) == 1 && wholeThread(replies[roots[0].TS])
	})
	roots, replies := split(f.Snapshot())
	for _, want := range []string{"GPU OOM (workspace)", "glm-dsa-mini", "node17", "8.00 GiB"} {
		if !strings.Contains(roots[0].Text, want) {
			t.Errorf("%q is not in %q", want, roots[0].Text)
		}
	}
	thread := textOf(t, replies[roots[0].TS])
	for _, want := range []string{"do this first", "--max-num-batched-tokens 16384 --kv-cache-memory-bytes 131425999257", "why not", "not this", "numbers", "vllm.log:", "how to verify", "references"} {
		if !strings.Contains(thread, want) {
			t.Errorf("%q is not in the thread:\n%s", want, thread)
		}
	}

	// News of the same incident changes the message and adds none.
	for range 3 {
		appendTo(t, log, `(APIServer pid=4200) INFO:     127.0.0.1:59178 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error`+"\n")
	}
	eventually(t, "the record is closed", func() bool { return strings.Contains(d.said(), `"event":"closed"`) })

	// The server comes back with the advised change: that is told in the thread,
	// and the message says so.
	appendTo(t, log, s.restarted(t, "max_num_batched_tokens", "16384", "kv_cache_memory_bytes", "131425999257"))
	eventually(t, "the restart in the thread and in the message", func() bool {
		roots, replies := split(f.Snapshot())
		return strings.Contains(textOf(t, replies[roots[0].TS]), "Restarted") && roots[0].Edits > 0 && strings.Contains(roots[0].Blocks, "server is back")
	})
	roots, replies = split(f.Snapshot())
	if len(roots) != 1 || !strings.Contains(roots[0].Blocks, "🟢") {
		t.Errorf("%d messages, the first: %s", len(roots), roots[0].Blocks)
	}
	thread = textOf(t, replies[roots[0].TS])
	if !strings.Contains(thread, "Applied: --kv-cache-memory-bytes 131425999257, --max-num-batched-tokens 16384") &&
		!strings.Contains(thread, "Applied: --max-num-batched-tokens 16384, --kv-cache-memory-bytes 131425999257") {
		t.Errorf("the applied change is not told: %s", thread[max(0, len(thread)-500):])
	}
	counts := map[string]int{}
	for _, m := range f.Snapshot() {
		if counts[m.Text]++; counts[m.Text] > 1 {
			t.Errorf("told twice: %q", m.Text)
		}
	}
	// After an orderly stop and a start nothing is told again.
	d.stop()
	before := len(f.Snapshot())
	d.start()
	appendTo(t, log, "(APIServer pid=4200) INFO:     127.0.0.1:59178 - \"GET /health HTTP/1.1\" 200 OK\n")
	eventually(t, "the second life follows", func() bool { return strings.Count(d.said(), "following") > 1 })
	d.stop()
	if after := len(f.Snapshot()); after != before {
		t.Errorf("%d messages after a restart, %d before", after, before)
	}
}
