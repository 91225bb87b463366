package matcher

import (
	"strings"
	"testing"
)

// What public reports of dead servers taught about reading them.
func TestFieldReports(t *testing.T) {
	const oomTail = " Including non-PyTorch memory, this process has 5.02 GiB memory in use. Of the allocated memory 4.81 GiB is allocated by PyTorch, and 18.97 MiB is reserved by PyTorch but unallocated."
	for _, c := range []struct {
		name, log                           string
		class, confidence, phase, statement string
	}{
		{
			"the front end says that the start failed",
			"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0 has a total capacity of 31.98 GiB of which 136.00 MiB is free.\n" +
				"(APIServer pid=1) Traceback (most recent call last):\n" +
				"(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
			"unknown", "low", "startup", "",
		},
		{
			"the method above a worker's traceback",
			"(VllmWorkerProcess pid=20) ERROR 01-02 03:04:05 multiproc_worker_utils.py:240] Exception in worker VllmWorkerProcess while processing method load_model.\n" +
				"(VllmWorkerProcess pid=20) ERROR 01-02 03:04:05 multiproc_worker_utils.py:240] Traceback (most recent call last):\n" +
				"(VllmWorkerProcess pid=20) ERROR 01-02 03:04:05 multiproc_worker_utils.py:240]   File \"/opt/vllm/model_executor/models/llama.py\", line 12, in __init__\n" +
				"(VllmWorkerProcess pid=20) ERROR 01-02 03:04:05 multiproc_worker_utils.py:240] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0 has a total capacity of 31.98 GiB of which 136.00 MiB is free. Including non-PyTorch memory, this process has 31.80 GiB memory in use. Of the allocated memory 31.20 GiB is allocated by PyTorch, and 18.97 MiB is reserved by PyTorch but unallocated.",
			"weights", "high", "startup", "",
		},
		{
			"memory that nobody is named for",
			"ERROR 01-02 03:04:05 [core.py:330] EngineCore hit an exception: Traceback (most recent call last):\n" +
				"ERROR 01-02 03:04:05 [core.py:330]   File \"/opt/vllm/v1/worker/gpu_worker.py\", line 134, in load_model\n" +
				"ERROR 01-02 03:04:05 [core.py:330] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 7.75 GiB of which 1.10 GiB is free." + oomTail,
			"weights", "high", "startup", "other_process: 1.63 GiB of this GPU are in use and belong to no process",
		},
		{
			"a printed head of a traceback with nothing below it",
			"x Traceback (most recent call last):\n" +
				"(EngineCore pid=9) ERROR 01-02 03:04:05 [core.py:710] EngineCore encountered a fatal error.\n" +
				"(EngineCore pid=9) ERROR 01-02 03:04:05 [core.py:710] torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
			"illegal_access", "high", "runtime", "",
		},
		{
			"a masked out-of-memory of the dummy step",
			"(EngineCore pid=9) ERROR 01-02 03:04:05 [core.py:866] EngineCore failed to start.\n" +
				"(EngineCore pid=9) ERROR 01-02 03:04:05 [core.py:866] Traceback (most recent call last):\n" +
				"(EngineCore pid=9) ERROR 01-02 03:04:05 [core.py:866]   File \"/opt/vllm/v1/engine/core.py\", line 240, in _initialize_kv_caches\n" +
				"(EngineCore pid=9) ERROR 01-02 03:04:05 [core.py:866]     available = self.model_executor.determine_available_memory()\n" +
				"(EngineCore pid=9) ERROR 01-02 03:04:05 [core.py:866] RuntimeError: CUDA driver error: out of memory",
			"profiling", "medium", "startup", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := diagnosePair(t, []byte(c.log), nil)
			if len(in) != 1 {
				t.Fatalf("%d incidents", len(in))
			}
			if v := in[0].Verdict; v.Class != c.class || v.Confidence != c.confidence || in[0].Phase != c.phase {
				t.Errorf("%s %s %s, want %s %s %s", v.Class, v.Confidence, in[0].Phase, c.class, c.confidence, c.phase)
			}
			if s := statements(in[0]); !strings.Contains(s, c.statement) {
				t.Errorf("%q is not said:\n%s", c.statement, s)
			}
		})
	}
}
