package notify

import (
	"slices"
	"strings"
)

// shownFlag tells whether the value of a vLLM setting may leave the host. The
// list holds what explains memory and load, and nothing that can carry a path,
// a prompt or a key; it is kept sorted.
func shownFlag(name string) bool {
	name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
	_, ok := slices.BinarySearch(shownFlags(), name)
	return ok
}

func shownFlags() []string {
	return []string{
		"all2all-backend",
		"api-server-count",
		"async-scheduling",
		"attention-backend",
		"block-size",
		"calculate-kv-scales",
		"cpu-offload-gb",
		"cuda-graph-sizes",
		"cudagraph-capture-sizes",
		"cudagraph-mode",
		"data-parallel-backend",
		"data-parallel-size",
		"data-parallel-size-local",
		"decode-context-parallel-size",
		"disable-cascade-attn",
		"disable-custom-all-reduce",
		"disable-hybrid-kv-cache-manager",
		"disable-log-stats",
		"distributed-executor-backend",
		"dtype",
		"enable-chunked-prefill",
		"enable-dbo",
		"enable-eplb",
		"enable-expert-parallel",
		"enable-lora",
		"enable-prefix-caching",
		"enable-sleep-mode",
		"enforce-eager",
		"gpu-memory-utilization",
		"kv-cache-dtype",
		"kv-cache-memory",
		"kv-cache-memory-bytes",
		"limit-mm-per-prompt",
		"load-format",
		"logprobs-mode",
		"long-prefill-token-threshold",
		"max-cudagraph-capture-size",
		"max-logprobs",
		"max-long-partial-prefills",
		"max-lora-rank",
		"max-loras",
		"max-model-len",
		"max-num-batched-tokens",
		"max-num-partial-prefills",
		"max-num-seqs",
		"max-parallel-loading-workers",
		"mm-encoder-tp-mode",
		"mm-processor-cache-gb",
		"num-gpu-blocks-override",
		"num-speculative-tokens",
		"optimization-level",
		"pipeline-parallel-size",
		"preemption-mode",
		"prefix-caching-hash-algo",
		"quantization",
		"runner",
		"scheduling-policy",
		"seed",
		"skip-mm-profiling",
		"swap-space",
		"tensor-parallel-size",
		"tokenizer-mode",
		"trust-remote-code",
	}
}
