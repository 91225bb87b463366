package matcher

import (
	"os"
	"strings"
	"testing"
)

func seedLog(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../fixtures/seed/glm52-8xh200.log")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func statements(in Incident) string {
	var b strings.Builder
	for _, e := range in.Evidence {
		b.WriteString(e.Statement + "\n")
	}
	for _, c := range in.Contributing {
		b.WriteString(c.Class + ": " + c.Statement + "\n")
	}
	return b.String()
}

func TestConflictsAreSaid(t *testing.T) {
	cat := embedded(t)
	for _, c := range []struct {
		name, from, to, want string
	}{
		{"a quiet cache conflicts with nothing", "", "", ""},
		{"a full cache", "GPU KV cache usage: 5.4%", "GPU KV cache usage: 97.1%", "two needs pull opposite ways"},
		{"too little left after the step", "GPU KV cache usage: 5.4%", "GPU KV cache usage: 90.0%", "requests would be preempted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := seedLog(t)
			if c.from != "" {
				if !strings.Contains(log, c.from) {
					t.Fatalf("the fixture has no %q", c.from)
				}
				log = strings.ReplaceAll(log, c.from, c.to)
			}
			incidents, _ := diagnoseText(t, cat, []byte(log), Options{})
			if len(incidents) != 1 {
				t.Fatalf("%d incidents", len(incidents))
			}
			said := statements(incidents[0])
			if c.want != "" && !strings.Contains(said, c.want) {
				t.Errorf("not said: %q in\n%s", c.want, said)
			}
			if c.want == "" && (strings.Contains(said, "opposite ways") || strings.Contains(said, "preempted")) {
				t.Errorf("a conflict is invented:\n%s", said)
			}
		})
	}
}

// A second fault of another kind on another rank is told beside the first.
func TestTwoFaultsInOneRun(t *testing.T) {
	log := seedLog(t)
	at := strings.Index(log, "(EngineCore pid=614) ERROR")
	if at < 0 {
		t.Fatal("the fixture has no core record")
	}
	head := "(Worker_TP6_EP6 pid=621) ERROR 08-22 02:06:35 [multiproc_executor.py:1001] "
	second := head + "WorkerProc hit an exception.\r\n" + head + "Traceback (most recent call last):\r\n" +
		head + "  File \"/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_worker.py\", line 896, in execute_model\r\n" +
		head + "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"
	incidents, _ := diagnoseText(t, embedded(t), []byte(log[:at]+second+log[at:]), Options{})
	if len(incidents) != 1 || incidents[0].Verdict.Class != "workspace" {
		t.Fatalf("%d incidents, %+v", len(incidents), incidents)
	}
	if said := statements(incidents[0]); !strings.Contains(said, "illegal_access: another fault stands after it in the same run") {
		t.Errorf("the second fault is not told:\n%s", said)
	}
}

// TestKernelLog binds the kernel's line to the run by pid, by name and time, or
// not at all, and says how.
func TestKernelLog(t *testing.T) {
	server, err := os.ReadFile("../fixtures/vllm-h200/v0251-kill-enginecore.log")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, kernel, class, why string
	}{
		{"by pid", "[ 4242.123456] Out of memory: Killed process 7987 (VLLM::EngineCor) total-vm:200kB, anon-rss:100kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0", "host_memory", "names pid 7987"},
		{"by name and time", "2026-11-30T02:15:45+00:00 gpu-1 kernel: Out of memory: Killed process 99001 (VLLM::EngineCor) total-vm:200kB, anon-rss:100kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0", "host_memory", "the pid is the host's"},
		{"a day apart", "2026-11-28T02:15:45+00:00 gpu-1 kernel: Out of memory: Killed process 99001 (firefox) total-vm:200kB, anon-rss:100kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0", "worker_died", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			incidents := diagnosePair(t, server, []byte(c.kernel+"\n"))
			if len(incidents) != 1 {
				t.Fatalf("%d incidents", len(incidents))
			}
			in := incidents[0]
			if in.Verdict.Class != c.class {
				t.Errorf("class %s, expected %s", in.Verdict.Class, c.class)
			}
			if c.why != "" && !strings.Contains(statements(in), c.why) {
				t.Errorf("the binding is not said: %q in\n%s", c.why, statements(in))
			}
		})
	}
}
