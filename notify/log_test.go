package notify

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"diagnose/matcher"

	"github.com/google/go-cmp/cmp"
)

// TestLogLine: a line says what died, where, whether it is known, and the first
// step whole; the end of an incident repeats none of it.
func TestLogLine(t *testing.T) {
	const head = `class=workspace mechanism=flashmla-sparse-mixed-batch confidence=high model=GLM-5.2-FP8 host=node17 occurrences=`
	const summary = ` at=/var/log/vllm/vllm.log:812 summary="Worker_TP0 died of a GPU OOM: the sparse decode kernel asked for 8.00 GiB of workspace and 6.40 GiB were free. The KV cache was 5.4 % full, so this is no KV pressure."`
	const remedy = ` remedy="Halve the token budget and pin the KV cache: --max-num-batched-tokens 16384 --kv-cache-memory-bytes 128228396105"`
	for _, c := range []struct {
		name, event string
		change      func(*matcher.Incident)
		want        string
	}{
		{
			"opened", EventOpened, func(*matcher.Incident) {},
			`level=ERROR msg="incident opened" incident=9f86d081884c event=opened ` + head + `1 status=open` + summary + remedy,
		},
		{
			"again, and nothing known", EventOpened, func(i *matcher.Incident) {
				i.Occurrences, i.RecurrenceOf, i.Verdict.Mechanism, i.Remedies = 2, ptr("8e75c070773b"), nil, nil
			},
			`level=ERROR msg="incident opened" incident=9f86d081884c event=opened class=workspace confidence=high model=GLM-5.2-FP8 host=node17 occurrences=2 recurrence_of=8e75c070773b status=open` + summary,
		},
		{
			"a step without values", EventOpened, func(i *matcher.Incident) { i.Remedies = []matcher.Remedy{{Title: "Ask"}} },
			`level=ERROR msg="incident opened" incident=9f86d081884c event=opened ` + head + `1 status=open` + summary + ` remedy=Ask`,
		},
		{
			"closed", EventClosed, func(*matcher.Incident) {},
			`level=INFO msg="incident closed" incident=9f86d081884c event=closed ` + head + `1 status=closed at=/var/log/vllm/vllm.log:812`,
		},
		{
			"followed", EventFollowup, func(i *matcher.Incident) {
				i.Followup = &matcher.Followup{
					RestartedAt: ptr("2026-11-30T14:10:00Z"), ChangesMade: []string{"--max-num-batched-tokens 32768 -> 16384"},
					ChangesMissing: []string{"--kv-cache-memory-bytes 128228396105", "env:A=1"},
				}
			},
			`level=INFO msg="incident followup" incident=9f86d081884c event=followup ` + head + `1 status="server is back, change not applied whole"` + summary +
				` made="--max-num-batched-tokens 32768 -> 16384" missing="--kv-cache-memory-bytes 128228396105, env:A=1"` + remedy,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			h := slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}})
			n := sampleNotice(c.event)
			c.change(&n.Incident)
			if _, _, err := NewLog("l", slog.New(h)).Send(context.Background(), n, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want+"\n", b.String()); diff != "" {
				t.Errorf("(-expected +said):\n%s", diff)
			}
		})
	}
}
