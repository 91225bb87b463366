package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"diagnose/notify/slacktest"

	"github.com/google/go-cmp/cmp"
)

// newSlackDaemon is a daemon whose only sink is a fake Slack on loopback.
func newSlackDaemon(t *testing.T) (*daemon, *slacktest.Server) {
	t.Helper()
	t.TempDir() // removed after all else
	f := &slacktest.Server{}
	srv := httptest.NewServer(f)
	var d *daemon
	t.Cleanup(func() { // after the daemon was killed, and so without a call
		srv.CloseClientConnections()
		srv.Close()
		if strings.Contains(d.said(), slacktest.Token) {
			t.Error("the token is in the daemon's log or output")
		}
		if len(f.Refusals) > 0 || len(f.Paged) > 0 {
			t.Errorf("refused %q, paged %q", f.Refusals, f.Paged)
		}
		if t.Failed() {
			t.Log(read(t, d.path("stderr")))
		}
	})
	d = newDaemon(t, fmt.Sprintf(`  sinks:
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
	for _, want := range []string{"do this first", "--max-num-batched-tokens 16384 --kv-cache-memory-bytes 131425999257", "why not", "not this", "numbers", "vllm.log:209", "how to verify", "references"} {
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
	if !strings.Contains(thread, "Applied: --kv-cache-memory-bytes default -> 131425999257, --max-num-batched-tokens 32768 -> 16384.") {
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

// TestKilledWhileDelivering ends the daemon with SIGKILL at random times after a
// crash and at random points of the delivery, while Slack hangs, cuts
// connections and answers with errors. Every incident must arrive whole. What arrives twice is what Slack had
// accepted when its answer was lost; the id in it shows that.
func TestKilledWhileDelivering(t *testing.T) {
	slow(t)
	const servers, kills = 3, 8
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random, slacks := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))

	d, f := newSlackDaemon(t)
	var mu sync.Mutex
	lost := 0 // messages that Slack took and could not say so
	struck := make(chan struct{}, 1)
	strike := 0 // the call at which the daemon is to die
	f.SetFault(func(c *slacktest.Call) *slacktest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if strike--; strike == 0 {
			select {
			case struck <- struct{}{}:
			default:
			}
			accept := slacks.IntN(2) == 0
			if accept {
				lost++
			}
			return &slacktest.Fault{Accept: accept, Hang: true}
		}
		switch slacks.IntN(6) {
		case 0:
			return &slacktest.Fault{Status: 503, Body: "<html>down</html>"}
		case 1:
			lost++
			return &slacktest.Fault{Accept: true, Cut: true}
		case 2:
			return &slacktest.Fault{Status: 429, Header: map[string]string{"Retry-After": "1"}}
		}
		return nil
	})

	for i := range servers {
		s := newServer(t, 5000+100*i)
		write(t, d.path(fmt.Sprintf("logs/vllm-%d.log", i)), s.start)
		if i == 0 {
			d.start()
			eventually(t, "the daemon follows", func() bool { return strings.Contains(d.said(), "following") })
		}
		appendTo(t, d.path(fmt.Sprintf("logs/vllm-%d.log", i)), s.crash)
		// At any time between the crash and its first notice, too.
		time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond)
		d.kill()
		d.start()
	}
	for range kills {
		mu.Lock()
		strike = 1 + random.IntN(4)
		mu.Unlock()
		select {
		case <-struck:
		case <-time.After(patience):
			t.Fatal("no call to strike at")
		}
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		d.kill()
		d.start()
	}
	f.SetFault(nil)

	whole := func() int {
		n := 0
		roots, replies := split(f.Snapshot())
		for _, r := range roots {
			if wholeThread(replies[r.TS]) {
				n++
			}
		}
		return n
	}
	eventually(t, "each incident with its whole thread", func() bool { return whole() >= servers })
	d.stop()

	ids, counts := map[string]int{}, map[string]int{}
	roots, _ := split(f.Snapshot())
	for _, r := range roots {
		id := r.Text[strings.LastIndexByte(r.Text, '[')+1:]
		ids[id]++
	}
	if len(ids) != servers {
		t.Errorf("%d incidents, want %d: %v", len(ids), servers, ids)
	}
	twice := 0
	first := map[string]string{}
	for _, m := range f.Snapshot() {
		if m.Thread == "" {
			continue
		}
		key := m.Thread + " " + m.Text
		if counts[key]++; counts[key] == 1 {
			first[key] = m.Blocks
		} else if first[key] != m.Blocks {
			t.Errorf("the second life words it otherwise: %s\n%s", key, cmp.Diff(first[key], m.Blocks))
		}
	}
	for _, n := range counts {
		twice += n - 1
	}
	for _, n := range ids {
		twice += n - 1
	}
	// The kills that waited for no call can fall between an answer and the write
	// of it, one message each.
	if twice > lost+servers {
		t.Errorf("%d messages came twice, %d answers were lost: %v", twice, lost, counts)
	}
	t.Logf("%d posts, %d answers lost, %d told twice", f.Count("chat.postMessage"), lost, twice)
}
