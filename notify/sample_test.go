package notify

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/matcher"
	"diagnose/notify/slacktest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ptr[T any](v T) *T { return &v }

var sampleTool = matcher.Tool{Version: "1.2.0", Catalog: "2026.11"}

var sampleTime = time.Date(2026, 11, 30, 14, 2, 0, 0, time.UTC)

// sample is a whole incident as the matcher makes it.
func sample() matcher.Incident {
	at := func(line int64) *matcher.At { return &matcher.At{Source: 0, Line: ptr(line), Offset: ptr(line * 100)} }
	const gib = 1 << 30
	return matcher.Incident{
		ID: "9f86d081884c", Status: matcher.StatusNew, Occurrences: 1, Host: ptr("node17"), Phase: "runtime",
		Time: matcher.Time{First: ptr("2026-11-30T14:01:58Z"), Last: ptr("2026-11-30T14:01:58Z"), Basis: "given"},
		Engine: matcher.Engine{
			Name: "vllm", Version: ptr("0.24.0"), Model: ptr("zai-org/GLM-5.2-FP8"),
			Flags: map[string]matcher.Flag{
				"max-num-batched-tokens": {Value: "32768", Basis: "arguments", At: at(3)},
				"gpu-memory-utilization": {Value: "0.94", Basis: "arguments", At: at(3)},
				"api-key":                {Value: "sk-verysecretkey123456", Basis: "arguments", At: at(3)},
				"chat-template":          {Value: "/home/maria/template.jinja", Basis: "arguments", At: at(3)},
			},
		},
		Ranks: []matcher.Rank{{Process: "Worker_TP0", PID: ptr(615), GPU: ptr(0), At: at(812)}, {Process: "Worker_TP1", PID: ptr(616), GPU: ptr(1), At: at(840)}},
		Verdict: matcher.Verdict{
			Family: "workspace_driven", Class: "workspace", Mechanism: ptr("flashmla-sparse-mixed-batch"), Confidence: "high",
			Summary: "Worker_TP0 died of a GPU OOM: the sparse decode kernel asked for 8.00 GiB of workspace and 6.40 GiB were free. The KV cache was 5.4 % full, so this is no KV pressure.",
		},
		Root: matcher.Root{
			Kind: "oom", Frame: ptr("sparse_decode_fwd"), At: at(812),
			Text: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 6.40 GiB is free.",
		},
		OOM:     []matcher.OOM{{Process: "Worker_TP0", GPU: ptr(0), TriedBytes: ptr(int64(8 * gib)), TotalBytes: ptr(int64(150109093068)), FreeBytes: ptr(int64(6871947673)), At: at(812)}},
		KVCache: &matcher.KVCache{UsagePct: ptr(5.4), Running: ptr(8), Waiting: ptr(0), At: at(640)},
		Evidence: []matcher.Evidence{
			{Grade: matcher.Established, Statement: "tried 8.00 GiB, free 6.40 GiB", At: []matcher.At{*at(812)}},
			{Grade: matcher.Established, Statement: "the traceback passes sparse_decode_fwd", At: []matcher.At{*at(805)}},
			{Grade: matcher.Computed, Statement: "32768 tokens x 2048 x 128 = 8.00 GiB", Formula: ptr("tokens * 2048 * 128"), At: []matcher.At{*at(3)}},
		},
		RuledOut: []matcher.RuledOut{{Class: "kv_pressure", Because: "usage was 5.4 %", At: []matcher.At{*at(640)}}},
		Remedies: []matcher.Remedy{
			{
				Rank: 1, Title: "Halve the token budget and pin the KV cache", Grade: "computed",
				Set: map[string]string{"--max-num-batched-tokens": "16384", "--kv-cache-memory-bytes": "128228396105"},
				Why: "16384 tokens x 2048 x 128 = 4.00 GiB, below 6.40 GiB free minus 1.40 GiB margin.", Expect: "The same load fits.", Costs: "Longer prefills.",
				Refs: []string{"vllm#53413"},
			},
			{Rank: 2, Title: "Upgrade", UpgradeTo: ptr("0.29.1"), Why: "The kernel allocates in tiles since vllm#53755.", Grade: "upstream_fix"},
		},
		DoNot:      []matcher.DoNot{{Change: "raise --gpu-memory-utilization alone", Because: "it goes to the KV cache & leaves less for the workspace."}},
		Missing:    []string{"whether other processes used GPU 0: nvidia-smi"},
		References: []string{"vllm#53413", "vllm#53755"},
	}
}

func sampleNotice(event string) Notice {
	return Notice{Event: event, Incident: sample(), Time: sampleTime, Sources: []string{"/var/log/vllm/vllm.log"}}
}

// renderSample stands for the text report.
func renderSample(n Notice) string {
	i := n.Incident
	return "incident " + i.ID + "\n" + i.Verdict.Summary + "\n" + strings.Repeat("a line of the whole diagnosis\n", 200)
}

// secretPath writes a secret to a file.
func secretPath(t testing.TB, content string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(p, []byte(content+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func newTestBot(t testing.TB, f *slacktest.Server, change ...func(*SlackBotOptions)) *SlackBot {
	o := SlackBotOptions{
		Name: "bot", TokenFile: secretPath(t, slacktest.Token), Channel: "C0123456", Tool: sampleTool,
		Render: renderSample, Transport: f,
	}
	for _, c := range change {
		c(&o)
	}
	return NewSlackBot(o)
}

func newTestHook(t testing.TB, f *slacktest.Server) *SlackWebhook {
	return NewSlackWebhook(SlackWebhookOptions{
		Name: "hook", URLFile: secretPath(t, "https://hooks.slack.com"+slacktest.Hook), Tool: sampleTool, Transport: f,
	})
}

// sendAll drives a sink until it has everything, without waiting, and fails on
// any error.
func sendAll(t testing.TB, sink Notifier, n Notice, s State) State {
	t.Helper()
	for range 100 {
		next, _, err := sink.Send(context.Background(), n, s)
		s = next
		if err == nil {
			return s
		}
		if !errors.Is(err, ErrMore) {
			t.Fatalf("Send: %v", err)
		}
	}
	t.Fatal("Send never ends")
	return nil
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	p := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (run with -update and read the diff):\n%s", name, d)
	}
}
