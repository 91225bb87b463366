package framing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFromJSONRecord(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{
			"vllm", `{"asctime": "09-17 22:26:58", "levelname": "ERROR", "name": "vllm.v1.engine.core", "processName": "EngineCore", "process": 614, "message": "EngineCore failed.", "vllm_process_name": "EngineCore_DP0"}`,
			"(EngineCore_DP0 pid=614) ERROR 09-17 22:26:58 [vllm.v1.engine.core] EngineCore failed.",
		},
		{
			"exc_info", `{"asctime":"09-17 22:26:58","levelname":"ERROR","name":"v","process":614,"vllm_process_name":"EngineCore","message":"a\nb","exc_info":"Traceback (most recent call last):\r\n  File \"x\"\nE: y\n"}`,
			"(EngineCore pid=614) ERROR 09-17 22:26:58 [v] a\n" +
				"(EngineCore pid=614) ERROR 09-17 22:26:58 [v] b\n" +
				"(EngineCore pid=614) ERROR 09-17 22:26:58 [v] Traceback (most recent call last):\n" +
				"(EngineCore pid=614) ERROR 09-17 22:26:58 [v]   File \"x\"\n" +
				"(EngineCore pid=614) ERROR 09-17 22:26:58 [v] E: y",
		},
		{
			"glued", `(Worker_DP0 pid=12345) {"message": "x", "asctime": "2026-09-17 22:26:58,123", "levelname": "INFO", "name": "vllm", "process": 12345}`,
			"(Worker_DP0 pid=12345) INFO 09-17 22:26:58 [vllm] x",
		},
		{
			"glued_other", `(RayWorkerWrapper pid=9, ip=10.0.0.1) {"message":"x","asctime":"2026-09-17T22:26:58Z","levelname":"INFO","name":"vllm","process":91,"vllm_process_name":"Worker"}`,
			"(RayWorkerWrapper pid=9, ip=10.0.0.1) (Worker pid=91) INFO 09-17 22:26:58 [vllm] x",
		},
		{
			"coloured", "\x1b[0;36m(Worker pid=7)\x1b[0;0m " + `{"message":"x","asctime":"09-17 22:26:58","levelname":"INFO"}`,
			"\x1b[0;36m(Worker pid=7)\x1b[0;0m INFO 09-17 22:26:58 [-] x",
		},
		{
			"place", `{"message":"x","asctime":"09-17 22:26:58","levelname":"INFO","filename":"core.py","lineno":12,"processName":"Main Process","process":7}`,
			"(Main_Process pid=7) INFO 09-17 22:26:58 [core.py:12] x",
		},
		{
			"hostile_name", `{"message":"x","asctime":"09-17 22:26:58","levelname":"INFO","name":"a] b\n"}`,
			"INFO 09-17 22:26:58 [a__b_n] x",
		},
		{"no_level", `{"message":"x","asctime":"09-17 22:26:58","name":"v"}`, ""},
		{"odd_level", `{"message":"x","asctime":"09-17 22:26:58","levelname":"INFO x"}`, ""},
		{"no_time", `{"message":"x","levelname":"INFO"}`, ""},
		{"odd_time", `{"message":"x","levelname":"INFO","asctime":"yesterday"}`, ""},
		{"message_number", `{"message":1,"levelname":"INFO","asctime":"09-17 22:26:58"}`, ""},
		{"cut_off", `{"message":"x","levelname":"INFO","asctime":"09-17 22:26:58"`, ""},
		{"plain", "(Worker pid=7) INFO 09-17 22:26:58 [x.py:1] y", ""},
		{"empty", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, ok := FromJSONRecord([]byte(tt.in))
			if ok != (tt.want != "") || string(text) != tt.want {
				t.Fatalf("FromJSONRecord = %q, %v, want %q", text, ok, tt.want)
			}
			if !ok {
				return
			}
			got := decode(tt.in)
			if diff := cmp.Diff(strings.Split(tt.want, "\n"), texts(got)); diff != "" {
				t.Errorf("Decode (-want +got):\n%s", diff)
			}
			wrapped := decode("2026-09-17T22:26:58Z stderr F " + tt.in)
			if diff := cmp.Diff(texts(got), texts(wrapped)); diff != "" {
				t.Errorf("Decode of it in CRI (-want +got):\n%s", diff)
			}
		})
	}
}

// A message of nothing but line ends must not grow without bound by its head.
func TestRecordBounded(t *testing.T) {
	in := `{"asctime":"09-17 22:26:58","levelname":"ERROR","message":"` + strings.Repeat(`\n`, 1<<19) + `","exc_info":"E: last"}`
	text, ok := FromJSONRecord([]byte(in))
	if !ok || len(text) > 200*maxLines || !strings.HasSuffix(string(text), "E: last") {
		t.Errorf("ok %v, %d bytes, want the end kept", ok, len(text))
	}
}
