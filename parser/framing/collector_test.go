package framing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// collectedLine is an object whose text stands between two parts.
func collectedLine(before, text, after string) string {
	return "{" + before + `"` + jsonEscape(text) + `"` + after + "}"
}

func TestCollected(t *testing.T) {
	const at = "2026-11-30T02:27:33Z"
	for _, tt := range []struct {
		name, in string
		want     []string
		meta     Meta
	}{
		{
			"fluent_kubernetes", `{"@timestamp": "` + at + `", "log": "  a \u2588\n", "kubernetes": {"pod_name": "vllm-0", "namespace_name": "ml", "container_name": "vllm", "labels": {"pod": "x"}}}`,
			[]string{"  a █"},
			Meta{Time: at, Pod: "vllm-0", Namespace: "ml", Container: "vllm"},
		},
		{
			"fluent_date", `{"date":1796005653.123456,"stream":"stderr","_p":"F","log":"a"}`,
			[]string{"a"},
			Meta{Time: "2026-11-30T02:27:33.123456Z", Stream: "stderr"},
		},
		{
			"fluent_message", `{"date":1796005653.5,"time":"` + at + `","stream":"stdout","logtag":"F","message":"a"}`,
			[]string{"a"},
			Meta{Time: "2026-11-30T02:27:33.500000Z", Stream: "stdout"},
		},
		{"fluentd", `{"container_id":"7","container_name":"/vllm","source":"stderr","log":"a","@timestamp":"x"}`, []string{"a"}, Meta{Container: "/vllm"}},
		{"loki", `{"labels":{"pod":"vllm-0","namespace":"ml","container":"c"},"line":"a","timestamp":"` + at + `"}`, []string{"a"}, Meta{Time: at, Pod: "vllm-0", Namespace: "ml", Container: "c"}},
		{"loki_ts", `{"ts":"` + at + `","labels":{},"line":"a"}`, []string{"a"}, Meta{Time: at}},
		{
			"vector", `{"file":"/var/log/pods/x","kubernetes":{"pod_name":"vllm-0","pod_namespace":"ml"},"message":"a","source_type":"kubernetes_logs","stream":"stdout","timestamp":"` + at + `"}`,
			[]string{"a"},
			Meta{Time: at, Stream: "stdout", Pod: "vllm-0", Namespace: "ml"},
		},
		{"filebeat", `{"@timestamp":"` + at + `","log":{"offset":1},"message":"a","agent":{"type":"filebeat"},"ecs":{}}`, []string{"a"}, Meta{Time: at}},
		{
			"gcloud", `{"insertId":"q","labels":{},"logName":"projects/p/logs/stderr","receiveTimestamp":"x","resource":{"labels":{"container_name":"vllm","namespace_name":"ml","pod_name":"vllm-0"},"type":"k8s_container"},"severity":"ERROR","textPayload":"a","timestamp":"` + at + `"}`,
			[]string{"a"},
			Meta{Time: at, Pod: "vllm-0", Namespace: "ml", Container: "vllm"},
		},
		{"several_lines", `{"source_type":"file","timestamp":"` + at + `","message":"a\n  b\n"}`, []string{"a", "  b"}, Meta{Time: at}},
		{"inner_cri", `{"source_type":"file","timestamp":"x","message":"` + at + ` stderr F a"}`, []string{"a"}, Meta{Time: at, Stream: "stderr"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := NewDecoder(0)
			got := d.Decode([]byte(tt.in), 1)
			if diff := cmp.Diff(tt.want, texts(got)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.meta, got[0].Meta); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if k := d.Kind(); k != CollectorJSON {
				t.Errorf("kind %s", k)
			}
		})
	}
	got := decode(`{"date":1,"_p":"P","log":"a"}`, `{"date":1,"_p":"F","log":"b"}`)
	if len(got) != 1 || string(got[0].Text) != "ab" || got[0].Joined != 2 {
		t.Errorf("pieces: %q", texts(got))
	}
}

// An application's own JSON stays JSON, whatever its text says, and so does an
// object with two texts.
func TestCollectedUnchanged(t *testing.T) {
	text := `"` + engineLine + `"`
	for name, in := range map[string]string{
		"message and level":    `{"timestamp":"x","level":"info","message":` + text + `}`,
		"message and severity": `{"timestamp":"x","severity":"INFO","message":` + text + `}`,
		"logger":               `{"date":"x","logger":"gateway","log":` + text + `}`,
		"merged by Vector":     `{"timestamp":"x","source_type":"kubernetes_logs","kubernetes":{},"level":"info","message":` + text + `}`,
		"merged by fluent-bit": `{"@timestamp":"x","kubernetes":{},"path":"/v1","log":` + text + `}`,
		"line of a request":    `{"timestamp":"x","labels":{},"path":"/v1","line":` + text + `}`,
		"labels no object":     `{"timestamp":"x","labels":"a","line":` + text + `}`,
		"payload alone":        `{"textPayload":` + text + `}`,
		"two texts":            `{"timestamp":"x","source_type":"file","line":"a","message":` + text + `}`,
		"no time":              `{"kubernetes":{},"log":` + text + `}`,
		"no text":              `{"kubernetes":{},"log":{"a":` + text + `},"date":1}`,
		"body":                 `{"ts":"x","request_body":` + text + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			for i, got := range decode(in, in, in, in, in) {
				if string(got.Text) != in || got.Meta != (Meta{}) {
					t.Errorf("line %d = %q %+v", i, got.Text, got.Meta)
				}
			}
		})
	}
}

// Where only a time stands beside the text, the form has to be steady before
// any of it is read: a request log quotes heads.
func TestCollectedBare(t *testing.T) {
	for _, o := range [][2]string{
		{`"timestamp":"2026-11-30T02:27:33Z","message":`, ""},
		{`"log":`, `,"@timestamp":"2026-11-30T02:27:33Z","host":"gpu7"`},
		{`"date":1796005653.123456,"log":`, ""},
		{`"line":`, `,"timestamp":"1796005653123456789"`},
	} {
		obj := func(s string) string { return collectedLine(o[0], s, o[1]) }
		head, raw := obj(engineLine), obj("  raw")
		for _, tt := range []struct {
			name, in, want string // h head, r raw, p plain head, o other object; upper case: taken off
		}{
			{"steady", "hhhrhrr", "hhHRHRR"},
			{"mixed", "hhphhprr", "hhphhprr"},
			{"requests between", "hhrhrhhr", "hhrhrhhr"},
			{"plain after", "hhhrprh", "hhHRprh"},
			{"another object", "hhhorh", "hhHorh"},
			{"plain server", "pppphhhr", "pppphhHR"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				var in, want []string
				for i := range tt.in {
					l := map[byte]string{'h': head, 'r': raw, 'p': engineLine, 'o': `{"level":"info","message":"x"}`}[tt.in[i]]
					in = append(in, l)
					want = append(want, map[byte]string{'H': engineLine, 'R': "  raw"}[tt.want[i]])
					if want[i] == "" {
						want[i] = l
					}
				}
				if diff := cmp.Diff(want, texts(decode(in...))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", strings.Join(o[:], ""), diff)
				}
			})
		}
	}
}
