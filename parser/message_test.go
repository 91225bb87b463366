package parser

import (
	"strings"
	"testing"
)

// The messages of vLLM's start, as each release words them.
func TestStartMessages(t *testing.T) {
	const (
		worker = "(Worker_TP0 pid=9) INFO 11-30 02:00:00 [gpu_worker.py:1] "
		core   = "(EngineCore pid=8) INFO 11-30 02:00:00 [core.py:1] "
		v0     = "INFO 11-02 10:00:00 worker.py:267] "
	)
	for _, c := range []struct{ version, line, want string }{
		// version and arguments
		{"0.6.0", "INFO 08-20 10:00:00 api_server.py:459] vLLM API server version 0.6.0", ": banner 0.6.0"},
		{"0.8.5", "INFO 04-28 10:00:00 [api_server.py:1043] vLLM API server version 0.8.5.post1", ": banner 0.8.5.post1"},
		{"0.14", "(APIServer pid=1) INFO 01-20 10:00:00 [api_server.py:1] vLLM API server version 0.14.0", "APIServer/1: banner 0.14.0"},
		{"0.15", "(APIServer pid=1) INFO 01-30 10:00:00 [utils.py:1] vLLM server version 0.15.0, serving model org/model", "APIServer/1: banner 0.15.0 org/model"},
		{"0.24", "(APIServer pid=1) INFO 06-30 10:00:00 [api_utils.py:339]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.24.0\r", "APIServer/1: banner 0.24.0"},
		{"0.24", "(APIServer pid=1) INFO 06-30 10:00:00 [api_utils.py:339]   █▄█▀ █     █     █     █  model   /models/a b\r", "APIServer/1: banner  /models/a b"},
		{"0.16, colour", "\x1b[0;36m(APIServer pid=1)\x1b[0;0m \x1b[32mINFO\x1b[0m \x1b[90m02-15 10:00:00\x1b[0m \x1b[90m[utils.py:325]\x1b[0m  \x1b[93m▄▄\x1b[0m \x1b[94m▄█ █     █     █ ▀▄▀ █\x1b[0m  version \x1b[1m0.16.0\x1b[0m\r", "APIServer/1: banner 0.16.0"},
		{"0.24, prompt", "(APIServer pid=1) INFO 06-30 10:00:00 [logger.py:1] Received request a: prompt: '█  version 9.9'", ""},
		{"0.8.5", "INFO 04-28 10:00:00 [api_server.py:1044] args: Namespace(host=None, port=8000, model='org/m', gpu_memory_utilization=0.9, lora_modules=None)", ": args full=true gpu_memory_utilization=0.9 host=None lora_modules=None model=org/m port=8000"},
		{"0.9.0", "INFO 05-28 10:00:00 [cli_args.py:297] non-default args: {'model': 'org/m', 'max_num_seqs': 8}", ": args full=false max_num_seqs=8 model=org/m"},
		{"0.33.0", "(APIServer pid=1) INFO 11-02 10:00:00 [startup.py:273] non-default args: {'model': 'org/m', 'api_key': ['***'], 'enforce_eager': True}", "APIServer/1: args full=false api_key=['***'] enforce_eager=True model=org/m"},
		{"0.11, several", "(ApiServer_0 pid=7) INFO 10-02 10:00:00 [utils.py:1] non-default args: {'api_server_count': 2}", "ApiServer_0/7: args full=false api_server_count=2"},
		// engine
		{"0.6.0", "INFO 08-20 10:00:00 llm_engine.py:184] Initializing an LLM engine (v0.6.0) with config: model='org/m', seed=0", ": config 0.6.0 dump=false model='org/m' seed=0"},
		{"0.10.2", "INFO 09-20 10:00:00 [llm_engine.py:228] Initializing a V0 LLM engine (v0.10.2) with config: model='org/m', max_seq_len=4096, use_cached_outputs=True, ", ": config 0.10.2 dump=false max_seq_len=4096 model='org/m' use_cached_outputs=True"},
		{"0.24", core + "Initializing a V1 LLM engine (v0.24.0) with config: model='org/m', max_seq_len=4096, dtype=torch.bfloat16", "EngineCore/8: config 0.24.0 dump=false dtype=torch.bfloat16 max_seq_len=4096 model='org/m'"},
		{"0.10.1", core + "Resolved architecture: GlmMoeDsaForCausalLM", "EngineCore/8: facts architecture=GlmMoeDsaForCausalLM"},
		{"0.9.2", core + "Using max model len 131072", "EngineCore/8: facts max_model_len=131072"},
		{"all", core + "Chunked prefill is enabled with max_num_batched_tokens=8192.", "EngineCore/8: facts max_num_batched_tokens=8192"},
		{"0.14", core + "Auto-fit max_model_len: reduced from 131072 to 40960 to fit in available GPU memory (3.2 GiB available for KV cache)", "EngineCore/8: facts max_model_len=40960"},
		{"0.32", core + "Auto-fit max_model_len: reduced from 131072 to 40960 to fit in available KV cache memory (3.2)", "EngineCore/8: facts max_model_len=40960"},
		{"0.24", worker + "Using V2 Model Runner", "Worker_TP0/9: facts model_runner=V2"},
		{"0.24", "(Worker_TP0 pid=9) WARNING 11-30 02:00:00 [vllm.py:1] Model Runner V2 does not yet support LoRA; using the V1 model runner instead.", "Worker_TP0/9: facts model_runner=V1"},
		{"0.29", worker + "Defaulting to V1 model runner on ROCm for model architectures: A", "Worker_TP0/9: facts model_runner=V1"},
		{"0.8", "INFO 03-20 10:00:00 [cuda.py:238] Using Flash Attention backend on V1 engine.", ": facts attention_backend=Flash Attention"},
		{"0.11.1", worker[:19] + "INFO 11-20 10:00:00 [cuda.py:1] Using FLASH_ATTN backend.", "Worker_TP0/9: facts attention_backend=FLASH_ATTN"},
		{"0.12", worker[:19] + "INFO 12-03 10:00:00 [cuda.py:1] Using FLASHMLA_SPARSE attention backend out of potential backends: ['FLASHMLA_SPARSE']", "Worker_TP0/9: facts attention_backend=FLASHMLA_SPARSE"},
		{"0.24, another", worker + "Using FLASH_ATTN MLA prefill backend.", ""},
		{"0.24, another", worker + "Using TRITON backend out of potential backends: ['TRITON']", ""},
		{"0.24", worker + "Using fp8_ds_mla KV cache format for FLASHMLA_SPARSE backend.", "Worker_TP0/9: facts kv_cache_format=fp8_ds_mla"},
		{"0.24", core + "Using fp8 data type to store kv cache. It reduces the GPU memory footprint", "EngineCore/8: facts kv_cache_dtype=fp8"},
		{"0.24", worker + "Setting kv cache block size to 64 for DEEPSEEK_V32_INDEXER backend.", "Worker_TP0/9: facts block_size=64"},
		{"0.10", core + "Setting attention block size to 544 tokens to ensure that attention page size is >= mamba page size.", "EngineCore/8: facts block_size=544"},
		// the memory budget
		{"0.6", "INFO 08-20 10:00:00 model_runner.py:926] Loading model weights took 14.9888 GB", ": facts weights_bytes=14.9888GiB"},
		{"0.8.0", "INFO 03-20 10:00:00 [gpu_model_runner.py:1164] Model loading took 14.9889 GB and 3.201564 seconds", ": facts weights_bytes=14.9889GiB model_runner=V1"},
		{"0.11", "INFO 10-02 10:00:00 [gpu_model_runner.py:2653] Model loading took 14.9889 GiB and 3.201564 seconds", ": facts weights_bytes=14.9889GiB model_runner=V1"},
		{"0.24 MRV2", worker[:19] + "INFO 07-01 10:00:00 [model_runner.py:302] Model loading took 1.73 GiB and 1.516680 seconds", "Worker_TP0/9: facts weights_bytes=1.73GiB model_runner=V2"},
		{"0.28 MRV2", worker[:19] + "INFO 09-01 10:00:00 [model_runner.py:302] Model loading took 5.0 GiB memory and 1.516680 seconds", "Worker_TP0/9: facts weights_bytes=5GiB model_runner=V2"},
		{"0.6.4", v0 + "Memory profiling results: total_gpu_memory=79.11GiB initial_memory_usage=0.70GiB peak_torch_memory=16.20GiB memory_usage_post_profile=0.81Gib non_torch_memory=0.11GiB kv_cache_size=54.90GiB gpu_memory_utilization=0.90", ": facts total_bytes=79.11GiB non_torch_bytes=0.11GiB kv_cache_bytes=54.9GiB gpu_memory_utilization=0.9"},
		{"0.7", v0 + "the current vLLM instance can use total_gpu_memory (79.11GiB) x gpu_memory_utilization (0.90) = 71.20GiB\r", ": facts total_bytes=79.11GiB gpu_memory_utilization=0.9 requested_bytes=71.2GiB"},
		{"0.7", v0 + "model weights take 14.99GiB; non_torch_memory takes 0.09GiB; PyTorch activation peak memory takes 1.22GiB; the rest of the memory reserved for KV Cache is 54.90GiB.", ": facts weights_bytes=14.99GiB non_torch_bytes=0.09GiB peak_activation_bytes=1.22GiB kv_cache_bytes=54.9GiB"},
		{"0.7", v0 + "# cuda blocks: 28000, # CPU blocks: 2048", ": facts num_gpu_blocks=28000"},
		{"0.6", v0 + "# GPU blocks: 28000, # CPU blocks: 2048", ": facts num_gpu_blocks=28000"},
		{"0.9.2", strings.Replace(worker, "INFO", "DEBUG", 1) + "Memory profiling takes 3.20 seconds. Total non KV cache memory: 17.1GiB; torch peak memory increase: 1.4GiB; non-torch forward increase memory: 0.25GiB; weights memory: 15.4GiB.", "Worker_TP0/9: facts peak_activation_bytes=1.4GiB non_torch_bytes=0.25GiB weights_bytes=15.4GiB"},
		{"0.27", strings.Replace(worker, "INFO", "DEBUG", 1) + "Memory profiling takes 3.20 seconds. Total non KV cache memory: 17.1GiB; torch peak memory increase: 1.4GiB; total consumed (from mem_get_info): 15.7GiB; weights memory: 15.4GiB.", "Worker_TP0/9: facts peak_activation_bytes=1.4GiB weights_bytes=15.4GiB consumed_bytes=15.7GiB"},
		{"0.14", strings.Replace(worker, "INFO", "DEBUG", 1) + "Initial free memory: 138.9 GiB; Requested memory: 0.920000 (util), 128.6 GiB", "Worker_TP0/9: facts free_at_start_bytes=138.9GiB gpu_memory_utilization=0.92 requested_bytes=128.6GiB"},
		{"0.13", worker + "Available KV cache memory: 127.25 GiB", "Worker_TP0/9: facts kv_cache_bytes=127.25GiB"},
		{"0.24, refused", worker + "Available KV cache memory: -3.2 GiB", "Worker_TP0/9: facts kv_cache_bytes=-3.2GiB"},
		{"0.8", core + "GPU KV cache size: 10,836,864 tokens", "EngineCore/8: facts kv_cache_tokens=1.0836864e+07"},
		{"0.8", core + "Maximum concurrency for 131,072 tokens per request: 82.68x", "EngineCore/8: facts max_model_len=131072 max_concurrency=82.68"},
		{"0.7.3", core + "Maximum concurrency for 8192 tokens per request: 82.68x", "EngineCore/8: facts max_model_len=8192 max_concurrency=82.68"},
		{"0.28", core + "GPU KV cache size: 1,196,643 tokens, Maximum concurrency for 1,048,576 tokens per request: 1.14x", "EngineCore/8: facts kv_cache_tokens=1.196643e+06 max_model_len=1.048576e+06 max_concurrency=1.14"},
		{"0.30", core + "XPU KV cache size: 1,196,643 tokens, Maximum concurrency for 1,048,576 tokens per request: 1.14x", "EngineCore/8: facts kv_cache_tokens=1.196643e+06 max_model_len=1.048576e+06 max_concurrency=1.14"},
		{"all", core + "Overriding num_gpu_blocks=100 with num_gpu_blocks_override=50", "EngineCore/8: facts num_gpu_blocks_override=50"},
		{"0.6.0", v0 + "Graph capturing finished in 12 secs.", ""},
		{"0.24", worker + "Graph capturing finished in 12 secs, took 0.55 GiB", "Worker_TP0/9: facts graph_actual_bytes=0.55GiB"},
		{"0.18", worker + "Estimated CUDA graph memory: 0.61 GiB total", "Worker_TP0/9: facts graph_estimate_bytes=0.61GiB"},
		{"0.18", worker + "CUDA graph pool memory: 0.55 GiB (actual), 0.61 GiB (estimated), difference: 0.06 GiB (9.8%).", "Worker_TP0/9: facts graph_actual_bytes=0.55GiB graph_estimate_bytes=0.61GiB"},
		{"0.18", worker + "In v0.19, CUDA graph memory profiling will be enabled by default (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1), please increase --gpu-memory-utilization from 0.9000 to 0.9060 to keep", "Worker_TP0/9: facts gpu_memory_utilization=0.9"},
		{"0.21", worker + "CUDA graph memory profiling is enabled (default since v0.21.0). The current --gpu-memory-utilization=0.9200 is equivalent to --gpu-memory-utilization=0.9140 without", "Worker_TP0/9: facts gpu_memory_utilization=0.92"},
		{"0.10.2", worker + "Free memory on device (78.4/79.1 GiB) on startup. Desired GPU memory utilization is (0.9, 71.19 GiB). Actual usage is 14.99 GiB for weight, 1.22 GiB for peak activation, 0.09 GiB for non-torch memory, and 0.55 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=58000000000` to fit into requested memory, or `--kv-cache-memory=66000000000` to fully utilize gpu memory. Current kv cache memory in use is 58500000000 bytes.", "Worker_TP0/9: facts free_at_start_bytes=78.4GiB total_bytes=79.1GiB gpu_memory_utilization=0.9 requested_bytes=71.19GiB weights_bytes=14.99GiB peak_activation_bytes=1.22GiB non_torch_bytes=0.09GiB graph_actual_bytes=0.55GiB kv_fit_bytes=5.8e+10 kv_full_bytes=6.6e+10 kv_cache_bytes=5.85e+10"},
		{"0.26", worker + "Free memory on device (78.4/79.1 GiB) on startup. Desired GPU memory utilization is (0.9, 71.19 GiB). Actual usage is 14.99 GiB for weight, 1.22 GiB for peak activation, 0.09 GiB for non-torch memory, and 0.55 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=58000000000` (54.01 GiB) to fit into requested memory, or `--kv-cache-memory=66000000000` (61.46 GiB) to fully utilize gpu memory. Current kv cache memory in use is 54.48 GiB.", "Worker_TP0/9: facts free_at_start_bytes=78.4GiB total_bytes=79.1GiB gpu_memory_utilization=0.9 requested_bytes=71.19GiB weights_bytes=14.99GiB peak_activation_bytes=1.22GiB non_torch_bytes=0.09GiB graph_actual_bytes=0.55GiB kv_fit_bytes=5.8e+10 kv_full_bytes=6.6e+10 kv_cache_bytes=54.48GiB"},
		{"0.27", worker + "Free memory on device (93.79/94.97 GiB) on startup. Desired GPU memory utilization is (0.975, 92.6 GiB). Actual usage is 83.1 GiB for consumed memory (weights + non-torch), 1.24 GiB for peak activation, and 0.2 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=8000000000` (7.45 GiB) to fit into requested memory, or `--kv-cache-memory=9000000000` (8.38 GiB) to fully utilize gpu memory. Current kv cache memory in use is 7.94 GiB.", "Worker_TP0/9: facts free_at_start_bytes=93.79GiB total_bytes=94.97GiB gpu_memory_utilization=0.975 requested_bytes=92.6GiB consumed_bytes=83.1GiB peak_activation_bytes=1.24GiB graph_actual_bytes=0.2GiB kv_fit_bytes=8e+09 kv_full_bytes=9e+09 kv_cache_bytes=7.94GiB"},
		{"0.26", worker + "Initial free memory 138.9 GiB, reserved 119.42 GiB memory for KV Cache as specified by kv_cache_memory_bytes config and skipped memory profiling. This does not respect the gpu_memory_utilization config. If OOM'ed, check the difference", "Worker_TP0/9: facts free_at_start_bytes=138.9GiB kv_cache_bytes=119.42GiB kv_pinned=yes"},
		{"0.26", worker + "Applying persisted startup plan (fingerprint ab12): kv_cache_memory_bytes=58000000000 (54.01 GiB), recorded free-memory baseline 78.40 GiB, current 78.38 GiB. Memory profiling will be skipped.", "Worker_TP0/9: facts kv_cache_bytes=5.8e+10"},
		{"0.25.1", worker + "Reserving 2.5 GiB of GPU memory for frontend multimodal decoding (2 streams); KV cache memory reduced to 51.5 GiB.", "Worker_TP0/9: facts mm_reserved_bytes=2.5GiB kv_cache_bytes=51.5GiB"},
		{"0.24", "(Worker_TP0 pid=9) WARNING 11-30 02:34:03 [flashmla_sparse.py:795] Padding num_heads from 8 to 64 for FP8 sparse decode kernel", "Worker_TP0/9: facts heads_per_rank=8 padded_heads=64 sparse_path=fp8-mixed"},
		{"0.24", "(Worker_TP0 pid=9) WARNING 11-30 02:34:03 [flashmla_sparse.py:795] Padding num_heads from 16 to 64 for BF16 sparse prefill kernel", "Worker_TP0/9: facts heads_per_rank=16 padded_heads=64 sparse_path=bf16-prefill"},
		{"0.8", core + "init engine (profile, create kv cache, warmup model) took 14.62 seconds", "EngineCore/8: facts engine_ready=yes"},
		{"0.24", core + "init engine (profile, create kv cache, warmup model) took 14.62 s (compilation: 3.10 s)", "EngineCore/8: facts engine_ready=yes"},
		{"0.24", core + "Sleep mode freed 126.27 GiB memory, 0.84 GiB memory is still in use.", "EngineCore/8: facts sleep_freed_bytes=126.27GiB sleep_in_use_bytes=0.84GiB"},
		{"0.25.1", "(APIServer pid=1) INFO 11-30 02:17:32 [api_router.py:1] wake up the engine with tags: None", "APIServer/1: facts wake_up=asked"},
		// life and death
		{"uvicorn", "(APIServer pid=1) INFO:     Application startup complete.", "APIServer/1: ready"},
		{"uvicorn", "INFO:     Finished server process [7]", ": ended Finished server process [7]"},
		{"0.24", "(APIServer pid=1) INFO 11-30 02:19:53 [launcher.py:1] [shutdown] API server: shutdown triggered", "APIServer/1: stop [shutdown] API server: shutdown triggered"},
		{"0.24", "(EngineCore pid=8) INFO 11-30 02:19:53 [core.py:1] [shutdown] EngineCore: trigger received signal=SIGTERM", "EngineCore/8: stop [shutdown] EngineCore: trigger received signal=SIGTERM"},
		{"0.24", "(EngineCore pid=8) INFO 11-30 02:19:53 [core.py:1] [shutdown] EngineCore: exiting busy loop", ""},
		{"0.19", "(APIServer pid=1) INFO 04-20 02:19:53 [launcher.py:110] Shutting down FastAPI HTTP server.", "APIServer/1: stop Shutting down FastAPI HTTP server."},
		{"0.11.0", "(EngineCore_DP0 pid=8) INFO 10-02 10:00:00 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds. This typically happens when", "EngineCore_DP0/8: notice INFO No available shared memory broadcast block found in 60 seconds. This typically happens when"},
		{"rust", "(RustFrontend pid=4) INFO 06-01 10:00:00 [main.rs:9] received shutdown signal (SIGTERM), shutting down...", ""},
	} {
		t.Run(c.version, func(t *testing.T) {
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			expect(t, []string{c.line}, want...)
		})
	}
}

func TestStatistics(t *testing.T) {
	const (
		head = "(APIServer pid=1) INFO 11-30 02:00:00 [loggers.py:257] "
		v0   = "INFO 11-02 10:00:00 metrics.py:455] "
	)
	for _, c := range []struct{ version, line, want string }{
		{"0.6 V0", v0 + "Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 5.5 tokens/s, Running: 3 reqs, Swapped: 1 reqs, Pending: 7 reqs, GPU KV cache usage: 45.3%, CPU KV cache usage: 1.0%.", `: stats "" run=3 wait=7 pre=-1 kv=45.3`},
		{"0.7.3", v0 + "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 5.5 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.3%, Prefix cache hit rate: 0.0%", `: stats "" run=3 wait=0 pre=-1 kv=0.3`},
		{"0.8.3", head + "Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 5.5 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.3%, Prefix cache hit rate: 0.0%", `APIServer/1: stats "Engine 000" run=3 wait=0 pre=-1 kv=0.3`},
		{"0.24", head + "Engine 001: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 5.5 tokens/s, Running: 33 reqs, Waiting: 5 reqs, Deferred: 2 reqs, Preemptions: 4, GPU KV cache usage: 98.7%, Prefix cache hit rate: 0.0%, MM cache hit rate: 1.0%", `APIServer/1: stats "Engine 001" run=33 wait=5 pre=4 kv=98.7`},
		{"0.30", head + "Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 5.5 tokens/s, Running: 3 reqs, Waiting: 0 reqs, XPU KV cache usage: 7.1%", `APIServer/1: stats "Engine 000" run=3 wait=0 pre=-1 kv=7.1`},
		{"0.32", head + "Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 5.5 tokens/s, Running: 3 reqs, Waiting: 6 reqs, Deferred: 1 reqs, KV fetch: 2 waiting to start, 1 in progress, 0 completed waiting, Preemptions: 1, GPU KV cache usage: 7.1%", `APIServer/1: stats "Engine 000" run=3 wait=6 pre=1 kv=7.1`},
		{"DP", head + "2 Engines Aggregated: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 5.5 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 7.1%", `APIServer/1: stats "2 Engines Aggregated" run=3 wait=0 pre=-1 kv=7.1`},
		{"idle", strings.Replace(head, "INFO", "DEBUG", 1) + "Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 0 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%", `APIServer/1: stats "Engine 000" run=0 wait=0 pre=-1 kv=0`},
		{"rust", "(RustFrontend pid=4) INFO 06-01 10:00:00 [stats.rs:12] Avg prompt tput: 10.0 toks/s, Avg generation tput: 5.0 toks/s, Reqs Running: 2, Waiting: 1, Preemptions: 3, GPU KV cache used: 55.5%, Prefix cache hit rate: 0.0%", `RustFrontend/4: stats "" run=2 wait=1 pre=3 kv=55.5`},
		{"a request's id", head + "Received request a: Avg prompt throughput: 1 tokens/s, Running: 9 reqs", ""},
		{"following record", head + "SpecDecoding metrics: Mean acceptance length: 3.89, Accepted: 211 tokens", ""},
	} {
		t.Run(c.version, func(t *testing.T) {
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			expect(t, []string{c.line}, want...)
		})
	}
}

func TestDumps(t *testing.T) {
	const head = "(EngineCore_DP0 pid=8) ERROR 11-30 02:00:00 [dump_input.py:72] "
	for _, c := range []struct{ version, line, want string }{
		{"0.9.2", "Dumping input data for V1 LLM engine (v0.9.2) with config: model='org/m', max_seq_len=4096, ", "config 0.9.2 dump=true max_seq_len=4096 model='org/m'"},
		{"0.9.0", "V1 LLM engine (v0.9.0) with config: model='org/m', max_seq_len=4096, ", "config 0.9.0 dump=true max_seq_len=4096 model='org/m'"},
		{"0.9.0", "SchedulerOutput(scheduled_new_reqs=[NewRequestData(req_id=a,prompt_token_ids_len=13363,sampling_params=SamplingParams(n=1, prompt_logprobs=1))], num_scheduled_tokens={a: 2768}, total_num_scheduled_tokens=2768, finished_req_ids=[])", "dump output sched=2768 run=-1 wait=-1 kv=-1 plp=1 ptok=2768"},
		{"0.9.0", "SchedulerStats(num_running_reqs=1, num_waiting_reqs=2, gpu_cache_usage=0.25, prefix_cache_stats=PrefixCacheStats(reset=False))", "dump stats sched=-1 run=1 wait=2 kv=25 plp=-1 ptok=-1"},
		{"0.24", "Dumping scheduler output for model execution: SchedulerOutput(scheduled_new_reqs=[], total_num_scheduled_tokens=32768, num_spec_tokens_to_schedule=0)", "dump output sched=32768 run=-1 wait=-1 kv=-1 plp=-1 ptok=-1"},
		{"0.26", "Dumping scheduler stats: SchedulerStats(num_running_reqs=8, num_waiting_reqs=0, num_skipped_waiting_reqs=0, step_counter=0, current_wave=0, kv_cache_usage=0.054, iteration_details=None)", "dump stats sched=-1 run=8 wait=0 kv=5.4 plp=-1 ptok=-1"},
		{"all", "Error preparing object to dump", "notice ERROR Error preparing object to dump"},
	} {
		t.Run(c.version, func(t *testing.T) {
			expect(t, []string{head + c.line}, "EngineCore_DP0/8: "+c.want)
		})
	}
}

// A start's first lines come before what they begin, and what the server
// before it wrote comes before them.
func TestBannerEndsOldRecords(t *testing.T) {
	es := parse(
		"(EngineCore pid=8) Traceback (most recent call last):",
		"(EngineCore pid=8) RuntimeError: x",
		"(APIServer pid=1) WARNING 11-30 02:00:00 [a.py:1] old",
		"(APIServer pid=1) INFO 11-30 02:01:00 [a.py:2] vLLM server version 0.24.0, serving model m",
	)
	if d := diff([]string{"EngineCore/8: failure RuntimeError|x", "APIServer/1: notice WARNING old", "APIServer/1: banner 0.24.0 m"}, shorts(es)); d != "" {
		t.Error(d)
	}
}
