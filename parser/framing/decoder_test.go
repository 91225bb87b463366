package framing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// line is an expected inner line.
func line(text string, m Meta) Inner { return Inner{Text: []byte(text), Meta: m, Joined: 1} }

// decode runs lines through a new decoder, marks from 1, with a flush; texts
// are copied.
func decode(lines ...string) []Inner {
	d := NewDecoder(0)
	var out []Inner
	keep := func(ins []Inner) {
		for _, in := range ins {
			in.Text = append([]byte{}, in.Text...)
			out = append(out, in)
		}
	}
	for i, l := range lines {
		keep(d.Decode([]byte(l), uint64(i+1)))
	}
	keep(d.Flush())
	return out
}

func texts(ins []Inner) []string {
	var out []string
	for _, in := range ins {
		out = append(out, string(in.Text))
	}
	return out
}

const (
	engineLine = "(EngineCore pid=614) ERROR 09-17 22:26:58 [core.py:1233] EngineCore encountered a fatal error."
	fileLine   = `  File "/opt/app/vllm/v1/engine/core.py", line 9000, in run_engine_core`
)

func TestDecodeForms(t *testing.T) {
	tests := []struct {
		name, in, text string
		meta           Meta
		kind           Kind
	}{
		{"plain", engineLine, engineLine, Meta{}, Plain},
		{"plain_old", "INFO 11-02 14:03:11 [loggers.py:1] Engine 000", "INFO 11-02 14:03:11 [loggers.py:1] Engine 000", Meta{}, Plain},
		{"plain_colour", "\x1b[1;36m(APIServer pid=1)\x1b[0;0m INFO 11-02", "\x1b[1;36m(APIServer pid=1)\x1b[0;0m INFO 11-02", Meta{}, Plain},
		{"plain_crlf", engineLine + "\r", engineLine + "\r", Meta{}, Plain},
		{"empty", "", "", Meta{}, Plain},
		{"plain_hole", "\x00\x00\x00" + engineLine, engineLine, Meta{}, Plain},
		{"cri_hole", "\x00\x002026-09-17T22:26:58Z stdout F x", "x", Meta{Stream: "stdout", Time: "2026-09-17T22:26:58Z"}, CRI},
		{
			"docker", `{"log":"(APIServer pid=1) INFO \u003cx\u003e \u001b[0m\r\n","stream":"stdout","time":"2026-09-17T22:26:58.123456789Z"}`,
			"(APIServer pid=1) INFO <x> \x1b[0m\r",
			Meta{Stream: "stdout", Time: "2026-09-17T22:26:58.123456789Z"},
			DockerJSON,
		},
		{
			"docker_attrs", `{"log":"x \ud83d\ude00 \"q\" \\n \ud83d\n","stream":"stderr","attrs":{"tag":"a}b"},"time":"2026-09-17T22:26:58Z"}`,
			"x 😀 \"q\" \\n \uFFFD",
			Meta{Stream: "stderr", Time: "2026-09-17T22:26:58Z"},
			DockerJSON,
		},
		{"docker_empty", `{"log":"\n","stream":"stdout","time":"2026-09-17T22:26:58Z"}`, "", Meta{Stream: "stdout", Time: "2026-09-17T22:26:58Z"}, DockerJSON},
		{"docker_torn", `{"log":"(APIServer pid=1) ERR`, "(APIServer pid=1) ERR", Meta{}, DockerJSON},
		{"docker_torn_time", `{"log":"(APIServer pid=1) ERR\n","stream":"std`, "(APIServer pid=1) ERR", Meta{}, DockerJSON},
		{"cri", "2026-09-17T22:26:58.123456789Z stdout F " + engineLine, engineLine, Meta{Stream: "stdout", Time: "2026-09-17T22:26:58.123456789Z"}, CRI},
		{"cri_offset", "2026-09-17T22:26:58.1+02:00 stderr F   File \"x\"", "  File \"x\"", Meta{Stream: "stderr", Time: "2026-09-17T22:26:58.1+02:00"}, CRI},
		{"cri_empty", "2026-09-17T22:26:58Z stderr F", "", Meta{Stream: "stderr", Time: "2026-09-17T22:26:58Z"}, CRI},
		{"cri_tags", "2026-09-17T22:26:58Z stderr F:x x", "x", Meta{Stream: "stderr", Time: "2026-09-17T22:26:58Z"}, CRI},
		{"docker_t", "2024-06-21T15:09:02.358742631+08:00 ERROR 06-21 x", "ERROR 06-21 x", Meta{Time: "2024-06-21T15:09:02.358742631+08:00"}, Timestamps},
		{"docker_t_raw", "2024-06-21T15:09:02Z torch.OutOfMemoryError: CUDA out of memory.", "torch.OutOfMemoryError: CUDA out of memory.", Meta{Time: "2024-06-21T15:09:02Z"}, Timestamps},
		{"docker_t_indent", "2024-06-21T15:09:02Z   File \"x\"", "  File \"x\"", Meta{Time: "2024-06-21T15:09:02Z"}, Timestamps},
		{"docker_t_empty", "2024-06-21T15:09:02Z", "", Meta{Time: "2024-06-21T15:09:02Z"}, Timestamps},
		{"dmesg_iso", "2026-06-24T12:00:00,123456+00:00 NVRM: Xid (PCI:0000:01:00): 79, x", "NVRM: Xid (PCI:0000:01:00): 79, x", Meta{Time: "2026-06-24T12:00:00.123456+00:00", Unit: "kernel"}, Timestamps},
		{"bracket_time", "[2025-08-12T08:42:31Z] (EngineCore_0 pid=13564) DEBUG x", "(EngineCore_0 pid=13564) DEBUG x", Meta{Time: "2025-08-12T08:42:31Z"}, Timestamps},
		{
			"space_time", "2026-03-09 12:00:00.000 (MapWorker(MapBatches(vLLMEngineActor)) pid=1202, ip=10.53.120.118) (EngineCore_DP0 pid=32080) INFO 03-09",
			"(MapWorker(MapBatches(vLLMEngineActor)) pid=1202, ip=10.53.120.118) (EngineCore_DP0 pid=32080) INFO 03-09",
			Meta{},
			Timestamps,
		},
		{"space_time_zone", "2026-03-09 12:00:00+0800 (APIServer pid=1) INFO", "(APIServer pid=1) INFO", Meta{Time: "2026-03-09T12:00:00+08:00"}, Timestamps},
		{"compose", "vllm-mxfp4  | " + engineLine, engineLine, Meta{Container: "vllm-mxfp4"}, Compose},
		{"compose_colour", "\x1b[36mvllm-1  | \x1b[0m(APIServer pid=1) INFO", "(APIServer pid=1) INFO", Meta{Container: "vllm-1"}, Compose},
		{"compose_lost_colour", "[36mvllm-1  |[0m (APIServer pid=1) INFO", "(APIServer pid=1) INFO", Meta{Container: "vllm-1"}, Compose},
		{"compose_no_name", "  | " + engineLine, engineLine, Meta{}, Compose},
		{"ci_page", "  | [2025-03-10T15:07:20Z] " + engineLine, engineLine, Meta{Time: "2025-03-10T15:07:20Z"}, Compose},
		{"exception_group", "  | Traceback (most recent call last):", "  | Traceback (most recent call last):", Meta{}, Plain},
		{"compose_digit", "3vllm_1 | Traceback (most recent call last):", "Traceback (most recent call last):", Meta{Container: "3vllm_1"}, Compose},
		{"kubectl", "[pod/llm-7d9f/vllm] " + engineLine, engineLine, Meta{Pod: "llm-7d9f", Container: "vllm"}, KubectlPrefix},
		{"stern_colour", "\x1b[32mllm-7d9f-x1\x1b[0m \x1b[32mvllm\x1b[0m (APIServer pid=1) INFO", "(APIServer pid=1) INFO", Meta{Pod: "llm-7d9f-x1", Container: "vllm"}, KubectlPrefix},
		{"cloud", "[resource.labels.containerName: vllm] " + engineLine, engineLine, Meta{Container: "vllm"}, KubectlPrefix},
		{"cloud_two", "[resource.labels.podName: a-1] [resource.labels.namespaceName: ml] x", "x", Meta{Pod: "a-1", Namespace: "ml"}, KubectlPrefix},
		{
			"sidecar", "[VllmSidecar x]: 2024-11-13T03:15:08.672Z 1 stdout: CRITICAL 11-12 19:15:08 launcher.py:99] x", "CRITICAL 11-12 19:15:08 launcher.py:99] x",
			Meta{Time: "2024-11-13T03:15:08.672Z", Stream: "stdout", Container: "VllmSidecar x"},
			Timestamps,
		},
		{"journald", "Aug 19 18:34:30 gpu7 vllm[8707]: (APIServer pid=8707)   File \"x\"", "(APIServer pid=8707)   File \"x\"", Meta{Host: "gpu7", Unit: "vllm", PID: 8707}, JournaldShort},
		{"journald_day", "Aug  9 18:34:30.123456 gpu7 vllm[8707]: x", "x", Meta{Host: "gpu7", Unit: "vllm", PID: 8707}, JournaldShort},
		{"journald_no_pid", "Aug 19 18:34:30 gpu7 vllm: x: y", "x: y", Meta{Host: "gpu7", Unit: "vllm"}, JournaldShort},
		{"journald_no_host", "Aug 19 18:34:30 vllm[8707]: x", "x", Meta{Unit: "vllm", PID: 8707}, JournaldShort},
		{"journald_full", "Wed 2026-08-19 18:34:30 UTC gpu7 vllm[8707]: x", "x", Meta{Host: "gpu7", Unit: "vllm", PID: 8707, Time: "2026-08-19T18:34:30Z"}, JournaldShort},
		{"journald_full_zone", "Wed 2026-08-19 18:34:30 CEST gpu7 vllm[8707]: x", "x", Meta{Host: "gpu7", Unit: "vllm", PID: 8707}, JournaldShort},
		{"journald_blob", "Aug 19 18:34:30 gpu7 vllm[8707]: [2 pieces: 82B blob data]", "[2 pieces: 82B blob data]", Meta{Host: "gpu7", Unit: "vllm", PID: 8707}, JournaldShort},
		{"syslog_pri", "<30>Aug 19 18:34:30 gpu7 vllm[8707]: x", "x", Meta{Host: "gpu7", Unit: "vllm", PID: 8707}, JournaldShort},
		{"syslog_octal", "Aug 19 18:34:30 gpu7 vllm[8707]: #033[1;36m(APIServer pid=1)#033[0;0m x", "#033[1;36m(APIServer pid=1)#033[0;0m x", Meta{Host: "gpu7", Unit: "vllm", PID: 8707}, JournaldShort},
		{"syslog_iso", "2026-06-21T12:00:00-07:00 gpu7 docker[3000]: (EngineCore pid=1001) x", "(EngineCore pid=1001) x", Meta{Time: "2026-06-21T12:00:00-07:00", Host: "gpu7", Unit: "docker", PID: 3000}, SyslogISO},
		{"syslog_iso_compact", "2026-06-21T12:00:00-0700 gpu7 vllm[1]:", "", Meta{Time: "2026-06-21T12:00:00-07:00", Host: "gpu7", Unit: "vllm", PID: 1}, SyslogISO},
		{
			"journald_json", `{"__CURSOR":"s=1;i=2","__REALTIME_TIMESTAMP":"1789684018123456","_PID":"77","_SYSTEMD_UNIT":"vllm.service","_HOSTNAME":"gpu7","MESSAGE":"(APIServer pid=77) x \"y\""}`,
			`(APIServer pid=77) x "y"`,
			Meta{Time: "2026-09-17T22:26:58.123456Z", Unit: "vllm.service", Host: "gpu7", PID: 77},
			JournaldJSON,
		},
		{"journald_json_bytes", `{"MESSAGE":[27,91,51,49,109,69],"_PID":"77"}`, "\x1b[31mE", Meta{PID: 77}, JournaldJSON},
		{"journald_json_null", `{"MESSAGE":null,"_PID":"77"}`, "", Meta{PID: 77}, JournaldJSON},
		{"journald_json_kernel", `{"MESSAGE":"NVRM: Xid (PCI:0000:01:00): 79","_TRANSPORT":"kernel","_HOSTNAME":"gpu7"}`, "NVRM: Xid (PCI:0000:01:00): 79", Meta{Host: "gpu7", Unit: "kernel"}, JournaldJSON},
		{"dmesg", "[12345.678901] NVRM: Xid (PCI:0000:01:00): 79", "[12345.678901] NVRM: Xid (PCI:0000:01:00): 79", Meta{Unit: "kernel"}, Plain},
		{"dmesg_short", "[12345.678] NVRM: Xid", "[12345.678] NVRM: Xid", Meta{Unit: "kernel"}, Plain},
		{"dmesg_T", "[Tue Jun 23 12:00:00 2026] NVRM: Xid", "[Tue Jun 23 12:00:00 2026] NVRM: Xid", Meta{Unit: "kernel"}, Plain},
		{"dmesg_r", "<6>[    0.000000] Linux version", "[    0.000000] Linux version", Meta{Unit: "kernel"}, Plain},
		{"kernel", "kernel: NVRM: Xid", "NVRM: Xid", Meta{Unit: "kernel"}, JournaldShort},
		{"kernel_journald", "Aug 19 18:34:30 gpu7 kernel: NVRM: Xid", "NVRM: Xid", Meta{Host: "gpu7", Unit: "kernel"}, JournaldShort},
		{"kernel_syslog", "Aug 19 18:34:30 gpu7 kernel: [123.456789] Out of memory: Killed process 7", "[123.456789] Out of memory: Killed process 7", Meta{Host: "gpu7", Unit: "kernel"}, JournaldShort},
		{"kernel_iso", "2026-06-21T12:00:00+00:00 gpu7 kernel: oom-kill:x", "oom-kill:x", Meta{Time: "2026-06-21T12:00:00+00:00", Host: "gpu7", Unit: "kernel"}, SyslogISO},
		{"nested_compose_time", "vllm-1  | 2026-09-17T22:26:58Z " + engineLine, engineLine, Meta{Container: "vllm-1", Time: "2026-09-17T22:26:58Z"}, Compose},
		{"nested_kubectl_time", "[pod/a-1/vllm] 2026-09-17T22:26:58Z " + engineLine, engineLine, Meta{Pod: "a-1", Container: "vllm", Time: "2026-09-17T22:26:58Z"}, KubectlPrefix},
		{"nested_cri_docker", `2026-09-17T22:26:58Z stdout F {"log":"x\n","stream":"stderr","time":"2026-09-17T22:26:57Z"}`, "x", Meta{Stream: "stdout", Time: "2026-09-17T22:26:58Z"}, CRI},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := NewDecoder(0)
			want := line(tt.text, tt.meta)
			want.At = 7
			got := d.Decode([]byte(tt.in), 7)
			if diff := cmp.Diff([]Inner{want}, got, cmp.Transformer("text", func(b []byte) string { return string(b) })); diff != "" {
				t.Errorf("Decode(%q) (-want +got):\n%s", tt.in, diff)
			}
			if k := d.Kind(); k != tt.kind {
				t.Errorf("kind = %s, want %s", k, tt.kind)
			}
		})
	}
}

// Near misses: what looks like a wrapper and is the log's own text.
func TestDecodeUnchanged(t *testing.T) {
	for name, in := range map[string]string{
		"traceback bar":      `  File "x | y", line 3, in f`,
		"tqdm":               "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.2s/it]",
		"tqdm bar":           "100%|██████████| 67/67 [00:12<00:00,  5.2it/s]",
		"tqdm glued":         "Loading safetensors checkpoint shards: 0% 0/7 [00:00<?, ?it/s](Worker_TP0 pid=231) ERROR 10-15 21:03:27 [x.py:6] y",
		"table":              "| NVIDIA-SMI 550.54 | Driver Version: 550.54 |",
		"name bar text":      "reason | the model is too large",
		"level bar":          "ERROR | (Worker pid=1) INFO 11-02 10:00:00 [x.py:1] loguru",
		"exception group":    `  | Traceback (most recent call last):`,
		"sglang":             "[2025-12-12 12:00:00 TP0] Decode batch, #running-req: 6",
		"sglang no rank":     "[2025-12-12 12:00:00] server_args=x",
		"python time":        "2026-03-09 12:00:00,123 - ray - INFO - x",
		"c10":                "[rank0]:[W205 16:55:27.345399482 ProcessGroupNCCL.cpp:1565] Warning: x",
		"rank":               "[rank0]: torch.OutOfMemoryError: CUDA out of memory.",
		"uvicorn":            `INFO:     10.1.6.81:16983 - "POST /v1 HTTP/1.1" 500 Internal Server Error`,
		"not a month":        "Foo 19 18:34:30 gpu7 vllm[8707]: x",
		"month no tag":       "Aug 19 18:34:30 something happened",
		"month clock":        "Aug 19 28:34:30 gpu7 vllm[8707]: x",
		"later":              "note: 2026-09-17T22:26:58Z stdout F x",
		"no date":            "2026-13-17T22:26:58Z stdout F x",
		"glued to date":      "2026-09-17T22:26:58Zstdout F x",
		"journal end":        "-- Boot 1234 --",
		"json":               `{"log":"x"}`,
		"json of a user":     `{"message":"x","level":"info"}`,
		"json deep":          `{"stream":"stdout","a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `,"log":"x\n"}`,
		"json after":         `{"stream":"stdout","log":"x\n"} x`,
		"pod no slash":       "[pod/a] x",
		"bracket file":       "[core.py:12] x",
		"sidecar no num":     "[a b]: 2024-11-13T03:15:08.672Z stdout: x",
		"two words once":     "some-thing1 failed (Worker pid=1) INFO 11-02 10:00:00 [x.py:1] y",
		"year too short":     "202-09-17T22:26:58Z x",
		"lone brace":         "{",
		"lone bracket":       "[",
		"lone esc":           "\x1b",
		"only colour":        "\x1b[0m",
		"coloured level":     "\x1b[31mERROR\x1b[0m \x1b[90m09-17 22:26:58\x1b[0m x",
		"lone angle":         "<",
		"dictionary of repr": "{'log': 'x', 'stream': 'stdout'}",
		"raylet":             "(raylet) A worker died or was killed while executing a task",
	} {
		t.Run(name, func(t *testing.T) {
			got := decode(in)
			if len(got) != 1 || string(got[0].Text) != in || got[0].Meta != (Meta{}) {
				t.Errorf("Decode(%q) = %q %+v, want it unchanged", in, texts(got), got)
			}
		})
	}
}

// A name, once believed, is taken off raw lines too; another one is not.
func TestDecodeLearnsNames(t *testing.T) {
	for _, tt := range []struct {
		name     string
		in, want []string
	}{
		{
			"compose",
			[]string{"vllm-1  |   raw", "vllm-1  | " + engineLine, "vllm-1  |   raw", "vllm-1  |", "vllm-1  | a | b", "db-1    | raw"},
			[]string{"vllm-1  |   raw", engineLine, "  raw", "", "a | b", "db-1    | raw"},
		},
		{
			"stern",
			[]string{"llm-7d9f vllm " + engineLine, "llm-7d9f vllm " + fileLine, "llm-7d9f vllm " + engineLine, "llm-7d9f vllm " + fileLine},
			[]string{"llm-7d9f vllm " + engineLine, "llm-7d9f vllm " + fileLine, engineLine, fileLine},
		},
		{
			"kubetail",
			[]string{"[llm-7d9f] " + engineLine, "[llm-7d9f] " + engineLine, "[llm-7d9f] raw", "[llm-8] raw"},
			[]string{"[llm-7d9f] " + engineLine, engineLine, "raw", "[llm-8] raw"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, texts(decode(tt.in...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The same log gives the same lines in every wrapper.
func TestWrappedEqualsPlain(t *testing.T) {
	log := []string{
		"INFO 09-17 22:26:40 [__init__.py:1] Automatically detected platform cuda.",
		"(APIServer pid=1) INFO 09-17 22:26:41 [api_server.py:2] vLLM API server version 0.24.0",
		"(EngineCore pid=614) ERROR 09-17 22:26:58 [core.py:1233] Traceback (most recent call last):\r",
		"(EngineCore pid=614) ERROR 09-17 22:26:58 [core.py:1233]   File \"/opt/app/x.py\", line 3, in f\r",
		"(EngineCore pid=614) ERROR 09-17 22:26:58 [core.py:1233] \r",
		"(EngineCore pid=614) ERROR 09-17 22:26:58 [core.py:1233] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.38 GiB.",
		"Process EngineCore:",
		"Traceback (most recent call last):",
		fileLine,
		"    x = a | b",
		"",
		"[rank0]:[W917 22:26:59.345399482 ProcessGroupNCCL.cpp:1565] Warning: destroy_process_group() was not called",
		`INFO:     10.1.6.81:16983 - "POST /v1/messages HTTP/1.1" 500 Internal Server Error`,
		"Capturing CUDA graphs: 100%|██████████| 67/67 [00:12<00:00,  5.2it/s]",
		"\x1b[0;36m(Worker_TP0 pid=615)\x1b[0;0m INFO 09-17 22:27:01 [x.py:3] tab\t\"quoted\" \\ <&> ☃",
	}
	for name, wrap := range map[string]func(string) string{
		"docker":       func(l string) string { return dockerLine(l+"\n", "stdout") },
		"cri":          func(l string) string { return "2026-09-17T22:26:58.1Z stderr F " + l },
		"docker_t":     func(l string) string { return "2026-09-17T22:26:58.1Z " + l },
		"compose":      func(l string) string { return "vllm-1  | " + l },
		"journald":     func(l string) string { return "Sep 17 22:26:58 gpu7 vllm[12]: " + l },
		"iso":          func(l string) string { return "2026-09-17T22:26:58+00:00 gpu7 vllm[12]: " + l },
		"kubectl":      func(l string) string { return "[pod/llm-0/vllm] " + l },
		"json":         func(l string) string { return `{"_PID":"12","MESSAGE":"` + jsonEscape(l) + `"}` },
		"nested":       func(l string) string { return "vllm-1  | 2026-09-17T22:26:58.1Z " + l },
		"lemonade":     func(l string) string { return "2026-05-08 10:14:02.137 [Info] (vllm) " + l },
		"old lemonade": func(l string) string { return "2026-05-08 10:14:02.137 [Error] (Process) " + l },
		"fluent":       func(l string) string { return collectedLine(`"date":1796005653.123456,"_p":"F","log":`, l, "") },
		"loki":         func(l string) string { return collectedLine(`"labels":{"app":"vllm"},"timestamp":"x","line":`, l, "") },
		"vector": func(l string) string {
			return collectedLine(`"source_type":"file","file":"/x","timestamp":"x","message":`, l, "")
		},
		"gcloud": func(l string) string {
			return collectedLine(`"insertId":"a","timestamp":"x","textPayload":`, l, `,"severity":"ERROR"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var in []string
			for _, l := range log {
				in = append(in, wrap(l))
			}
			if diff := cmp.Diff(log, texts(decode(in...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestKind(t *testing.T) {
	for _, tt := range []struct {
		lines []string
		want  Kind
	}{
		{nil, Plain},
		{[]string{"", "", "2026-09-17T22:26:58Z stdout F x"}, CRI},
		{[]string{"x", "2026-09-17T22:26:58Z stdout F x"}, Mixed},
		{[]string{"x", "y", "2026-09-17T22:26:58Z stdout F x"}, Plain},
		{[]string{"x", "2026-09-17T22:26:58Z x", "2026-09-17T22:26:58Z stdout F x"}, Mixed},
	} {
		d := NewDecoder(0)
		for _, l := range tt.lines {
			d.Decode([]byte(l), 0)
		}
		if got := d.Kind(); got != tt.want {
			t.Errorf("Kind after %q = %s, want %s", tt.lines, got, tt.want)
		}
	}
}

// The quick test of the commonest lines agrees with the long way.
func TestBareAgrees(t *testing.T) {
	for _, in := range []string{
		engineLine, fileLine, "INFO 11-02 14:03:11 [x.py:1] y", "INFO:     1.2.3.4", "\tx", "\x1b[0m", "\x1b[36m(W pid=1)\x1b[0m x",
		"ERROR | (Worker pid=1) INFO", "WARNING  | " + engineLine, "\x1b[31mERROR\x1b[0m x",
	} {
		b := []byte(in)
		if l, ok := NewDecoder(0).peelName(b, &Meta{}); ok {
			t.Errorf("%q has the name of a wrapper before %q", in, l.text)
		}
		if !isBare(b) && in[0] != esc {
			t.Errorf("isBare(%q) = false", in)
		}
	}
	for _, in := range []string{"ERROR-1  | " + engineLine, "INFO", "Dec 19 18:34:30 h t[1]: x", "(W pid=1) {\"asctime\":1}"} {
		if isBare([]byte(in)) {
			t.Errorf("isBare(%q) = true", in)
		}
	}
}

// A plain line is not copied and costs nothing.
func TestPlainAllocatesNothing(t *testing.T) {
	d := NewDecoder(0)
	in := []byte(engineLine)
	if n := testing.AllocsPerRun(100, func() { d.Decode(in, 1) }); n != 0 {
		t.Errorf("%v allocations a line, want none", n)
	}
	if got := d.Decode(in, 1); &got[0].Text[0] != &in[0] {
		t.Error("the text of a plain line is a copy")
	}
}

func TestObjectWithManyLines(t *testing.T) {
	in := `{"log":"` + strings.Repeat(`x\n`, 3*maxLines) + `","stream":"stdout"}`
	got := decode(in)
	if len(got) != maxLines {
		t.Fatalf("%d lines, want %d", len(got), maxLines)
	}
	var cut int64
	for _, in := range got {
		cut += in.Cut
	}
	if want := int64(2 * maxLines * 2); cut != want {
		t.Errorf("cut = %d, want %d", cut, want)
	}
}

func dockerLine(log, stream string) string {
	return fmt.Sprintf(`{"log":"%s","stream":"%s","time":"2026-09-17T22:26:58.123456789Z"}`, jsonEscape(log), stream)
}

// jsonEscape escapes as docker does, but leaves bytes that are no UTF-8.
func jsonEscape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c < 0x20 || c == '<' || c == '>' || c == '&':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
