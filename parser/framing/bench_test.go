package framing

import (
	"strings"
	"testing"
)

func BenchmarkDecode(b *testing.B) {
	for name, in := range map[string]string{
		"plain":     engineLine + " Avg prompt throughput: 0.0 tokens/s",
		"old":       strings.Replace(engineLine, "(EngineCore pid=614) ", "", 1),
		"traceback": fileLine,
		"coloured":  "\x1b[1;36m(EngineCore pid=614)\x1b[0;0m " + engineLine,
		"docker":    dockerLine(engineLine+"\n", "stdout"),
		"cri":       cri("stdout", "F", engineLine),
		"compose":   "vllm-1  | " + engineLine,
		"journald":  "Aug 19 18:34:30 gpu7 vllm[8707]: " + engineLine,
		"record":    `{"asctime":"09-17 22:26:58","levelname":"ERROR","name":"v","process":614,"vllm_process_name":"EngineCore","message":"EngineCore failed"}`,
	} {
		b.Run(name, func(b *testing.B) {
			d := NewDecoder(0)
			line := []byte(in)
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				d.Decode(line, 1)
			}
		})
	}
}

func BenchmarkStripANSI(b *testing.B) {
	for name, in := range map[string]string{
		"plain":    engineLine,
		"coloured": "\x1b[31mERROR\x1b[0m \x1b[90m09-17 22:26:58\x1b[0m \x1b[90m[core.py:1233]\x1b[0m EngineCore failed",
	} {
		b.Run(name, func(b *testing.B) {
			src, dst := []byte(in), make([]byte, 0, 200)
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				dst = StripANSI(dst[:0], src)
			}
		})
	}
}
