package matcher

import (
	"regexp"
	"strings"
	"testing"
)

// mixedBatchRun is a crash of the FlashMLA mixed batch on eight ranks; with
// tried = 8.00 GiB its size is that of the accumulators of a full step.
func mixedBatchRun(version string, triedGiB float64, dump bool) []byte {
	r := budgetRun{
		total: 139.8 * gib, utilisation: 0.92, weights: 100 * gib, nonTorch: 2 * gib, peak: 3 * gib, kv: 23 * gib,
		free: 6.4 * gib, tried: triedGiB * gib, tokens: 32768, step: 32768, seqs: 32, running: 8, ranks: 8,
		sayKV: true, sayWeights: true, sayUtilisation: true, sayTotal: true, frames: mixedBatch,
	}
	log := strings.ReplaceAll(string(r.log()), "0.24.0", version)
	if !dump {
		log = regexp.MustCompile(`(?m)^.*Dumping scheduler output.*\n`).ReplaceAllString(log, "")
	}
	return []byte(log)
}

// wrongAdvice is what no text of this mechanism may say: the repair came in
// 0.29.0 and was lost in 0.30.0, so no range upwards is right.
var wrongAdvice = regexp.MustCompile(`(?i)0\.29(\.0)? (or|and) (later|newer|above|higher)|0\.29(\.0)?\+|>= ?0\.29|from 0\.29(\.0)? on|since 0\.29|at least 0\.29`)

// TestVersionGate: what the release does to the verdict and its words. With the
// bytes of the accumulators the size decides, and a release that is not known to
// make them costs confidence; without them the release does.
func TestVersionGate(t *testing.T) {
	cat := embedded(t)
	for _, row := range []struct {
		version        string
		state          string // affected, fixed, "" for not known
		bytes, noBytes string // confidence with and without the accumulators' size
		upgrade        bool   // 0.29.0 is named as the release with the repair
	}{
		{"0.22.1rc1.dev69+gf69ede495", "affected", "medium", "medium", true},
		{"0.1.dev1+gabc", "", "medium", "medium", true},
		{"0.24.0", "affected", "high", "high", true},
		{"0.28.0", "affected", "high", "high", true},
		{"0.29.0", "fixed", "medium", "low", false},
		{"0.29.1rc1.dev3", "", "medium", "medium", true},
		{"0.30.0", "affected", "high", "high", true},
		{"0.33.0", "affected", "high", "high", true},
		{"0.34.0", "", "medium", "medium", true},
	} {
		t.Run(row.version, func(t *testing.T) {
			for _, c := range []struct {
				tried float64
				dump  bool
				want  string
			}{{8, true, row.bytes}, {7.31, false, row.noBytes}} {
				incidents, _ := diagnoseLog(cat, mixedBatchRun(row.version, c.tried, c.dump), Options{})
				if len(incidents) != 1 || incidents[0].Verdict.Mechanism == nil || *incidents[0].Verdict.Mechanism != "flashmla-sparse-mixed-batch" {
					t.Fatalf("not the mixed batch: %+v", incidents)
				}
				in := incidents[0]
				if in.Verdict.Confidence != c.want {
					t.Errorf("%.2f GiB: confidence %s, expected %s", c.tried, in.Verdict.Confidence, c.want)
				}
				checkState(t, in, row.version, row.state)
				named := false
				for _, r := range in.Remedies {
					if r.UpgradeTo == nil {
						continue
					}
					named = true
					if *r.UpgradeTo != "0.29.0" {
						t.Errorf("upgrade to %s; only 0.29.0 has the repair", *r.UpgradeTo)
					}
				}
				if named != row.upgrade {
					t.Errorf("names a release to run: %v, expected %v", named, row.upgrade)
				}
				for _, text := range allTexts(in) {
					if wrongAdvice.MatchString(text) {
						t.Errorf("says %q", text)
					}
				}
			}
		})
	}
}

// checkState asks for exactly one statement about the release, of no higher
// grade than inferred: all of it was read and not run, but for 0.24.0.
func checkState(t *testing.T, in Incident, version, state string) {
	t.Helper()
	var said []string
	for _, e := range in.Evidence {
		if strings.Contains(e.Statement, "is listed as affected") || strings.Contains(e.Statement, "is listed as fixed") || strings.Contains(e.Statement, "whether this release has the fault") {
			said = append(said, e.Statement)
			if e.Grade != Inferred {
				t.Errorf("grade %s: %s", e.Grade, e.Statement)
			}
		}
	}
	if len(said) != 1 {
		t.Fatalf("%d statements about the release: %q", len(said), said)
	}
	want := "listed as " + state
	if state == "" {
		want = "not known"
	}
	if !strings.Contains(said[0], want) || !strings.Contains(said[0], version) {
		t.Errorf("%q, expected %q of %s", said[0], want, version)
	}
	if state != "" && !strings.Contains(said[0], "read in") {
		t.Errorf("%q does not say what it rests on", said[0])
	}
}

// allTexts lists what a person reads of an incident.
func allTexts(in Incident) []string {
	out := []string{in.Verdict.Summary}
	for _, e := range in.Evidence {
		out = append(out, e.Statement)
		if e.Formula != nil {
			out = append(out, *e.Formula)
		}
	}
	for _, r := range in.Remedies {
		out = append(out, r.Title, r.Why, r.Expect, r.Costs)
	}
	for _, d := range in.DoNot {
		out = append(out, d.Change, d.Because)
	}
	return append(append(out, in.Verify...), in.Missing...)
}

// TestNoRangeUpwards: no text of the catalogue sends anyone to a release and
// everything after it for the mixed batch.
func TestNoRangeUpwards(t *testing.T) {
	cat := embedded(t)
	text := ExplainText(cat, cat.Entry("flashmla-sparse-mixed-batch"))
	if m := wrongAdvice.FindString(text); m != "" {
		t.Errorf("explain says %q", m)
	}
	for _, e := range cat.Entries {
		for _, r := range e.Remedies {
			if r = cat.remedy(r); strings.ContainsAny(r.UpgradeTo, "<>=*+ ") {
				t.Errorf("%s: upgrade_to %q is no exact release", e.ID, r.UpgradeTo)
			}
		}
	}
}

// maskedABI is how the dispatcher's text spells the torch that it was built
// for, from 0.27 to 0.32.
const maskedABI = `( ((0ULL + 2) << 56) | ((0ULL + 13) << 48) | ((0ULL + 0) << 40) | ((0ULL + 0) << 0))`

// TestAllocationFailureByRelease: the same failure of sparse_decode_fwd reads
// differently in each release. Figures are there where the text has them, and
// a text without figures never gives a verdict of high confidence.
func TestAllocationFailureByRelease(t *testing.T) {
	cat := embedded(t)
	const plain = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 6.40 GiB is free. Including non-PyTorch memory, this process has 133.39 GiB memory in use. Of the allocated memory 124.39 GiB is allocated by PyTorch, and 5.01 GiB is reserved by PyTorch but unallocated."
	masked := func(abi string) string {
		return `RuntimeError: torch_call_dispatcher( "aten::new_empty", "", stack.data(), ` + abi + `) API call failed at /opt/torch/include/torch/csrc/stable/ops.h, line 933`
	}
	carried := strings.Replace(plain, "torch.OutOfMemoryError", "RuntimeError", 1) + ` (originally from torch_call_dispatcher( "aten::new_empty", "", stack.data(), TORCH_ABI_VERSION) API call failed at /opt/torch/include/torch/csrc/stable/ops.h, line 933)`
	for _, row := range []struct {
		version, exception, kind string
		tried                    int64 // 0: none
		confidence               string
	}{
		{"0.24.0", plain, "oom", 8 * gib, "high"},
		{"0.25.1", plain, "oom", 8 * gib, "high"},
		{"0.26.0", masked("TORCH_ABI_VERSION"), "masked_oom", 0, "medium"},
		{"0.27.0", masked(maskedABI), "masked_oom", 0, "medium"},
		{"0.28.0", masked(maskedABI), "masked_oom", 0, "medium"},
		{"0.30.0", masked(maskedABI), "masked_oom", 0, "medium"},
		{"0.31.0", masked(maskedABI), "masked_oom", 0, "medium"},
		{"0.32.0", masked(maskedABI), "masked_oom", 0, "medium"},
		{"0.33.0", carried, "oom", 8 * gib, "high"},
	} {
		t.Run(row.version, func(t *testing.T) {
			log := regexp.MustCompile(`torch\.OutOfMemoryError: .*`).ReplaceAllLiteralString(string(mixedBatchRun(row.version, 8, true)), row.exception)
			incidents, _ := diagnoseLog(cat, []byte(log), Options{})
			if len(incidents) != 1 {
				t.Fatalf("%d incidents", len(incidents))
			}
			in := incidents[0]
			if in.Verdict.Class != "workspace" || in.Verdict.Confidence != row.confidence {
				t.Errorf("%s (%s), expected workspace (%s)", in.Verdict.Class, in.Verdict.Confidence, row.confidence)
			}
			if in.Root.Kind != row.kind {
				t.Errorf("root of kind %s, expected %s", in.Root.Kind, row.kind)
			}
			if len(in.OOM) == 0 {
				t.Fatal("no entry for the rank")
			}
			o := in.OOM[0]
			if o.Masked != (row.tried == 0) {
				t.Errorf("masked: %v", o.Masked)
			}
			if got := o.TriedBytes; (got == nil) != (row.tried == 0) || got != nil && *got != row.tried {
				t.Errorf("tried %v, expected %d", got, row.tried)
			}
		})
	}
}

// TestMessagesByRelease: whole lines whose words differ from release to
// release, each beside the verdict that they have in common.
func TestMessagesByRelease(t *testing.T) {
	cat := embedded(t)
	start := func(version, process, text string) string {
		head := "(" + process + ") ERROR 11-02 14:03:11 [core.py:1231] "
		return "(APIServer pid=1) INFO 11-02 14:00:00 [api_utils.py:339]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version " + version + "\n" +
			head + "EngineCore failed to start.\n" + head + "Traceback (most recent call last):\n" + head + text + "\n"
	}
	line := func(version, level, text string) string {
		return "(APIServer pid=1) INFO 11-02 14:00:00 [api_utils.py:339]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version " + version + "\n" +
			"(EngineCore pid=614) " + level + " 11-02 14:03:11 [file.py:1] " + text + "\n"
	}
	for _, row := range []struct{ name, log, mechanism string }{
		{"worker died, no code (0.25)", line("0.25.1", "ERROR", "Worker proc VllmWorker-3 died unexpectedly, shutting down executor."), "worker-process-died"},
		{"worker died, with code (0.26)", line("0.26.0", "ERROR", "Worker proc VllmWorker-3 died unexpectedly (exit code: -9), shutting down executor."), "worker-process-died"},
		{"KV refused, models's (0.12)", start("0.12.0", "EngineCore_DP0 pid=614", "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the available KV cache memory (9.10 GiB). Based on the available memory, the estimated maximum model length is 74544. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."), "kv-cache-refused-at-startup"},
		{"KV refused, model's (0.24)", start("0.24.0", "EngineCore pid=614", "ValueError: To serve at least one request with the model's max seq len (131072), (16.0 GiB KV cache is needed, which is larger than the available KV cache memory (9.1 GiB). Based on the available memory, the estimated maximum model length is 74544. Try increasing `gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or decreasing `max_model_len` when initializing the engine. See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."), "kv-cache-refused-at-startup"},
		{"no cache blocks, CPU note (0.24)", start("0.24.0", "EngineCore pid=614", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine (this flag also controls CPU memory reservation on the CPU backend, despite its name). See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."), "kv-cache-refused-at-startup"},
		{"auto-fit (0.14)", start("0.24.0", "EngineCore pid=614", "ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token. Try increasing `gpu_memory_utilization`."), "kv-cache-refused-at-startup"},
		{"free below desired, no device (0.9)", start("0.9.2", "EngineCore_0 pid=614", "ValueError: Free memory on device (59.32/79.15 GiB) on startup is less than desired GPU memory utilization (0.9, 71.24 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."), "free-below-requested"},
		{"free below desired (0.14 on)", start("0.33.0", "EngineCore pid=614", "ValueError: Free memory on device cuda:0 (59.32/79.15 GiB) on startup is less than desired GPU memory utilization (0.9, 71.24 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."), "free-below-requested"},
		{"external weights (0.32)", start("0.32.0", "EngineCore pid=614", "ValueError: Externally held weights on device cuda:0 (80.5/139.8 GiB) exceed the desired GPU memory utilization (0.5, 69.9 GiB)."), "external-weights-budget"},
		{"workspace locked (0.13 on)", start("0.28.0", "EngineCore pid=614", "AssertionError: Workspace is locked but allocation from 'modular_kernel.py:1167:_allocate_buffers' requires 146.41 MB, current size is 3.75 MB. Workspace growth is not allowed after locking."), "workspace-locked"},
		{"workspace locked, by key (0.31)", start("0.31.0", "EngineCore pid=614", "AssertionError: Workspace is locked but ('moe', 0) was not allocated during warmup for the current ubatch and lane."), "workspace-locked"},
		{"persistent workspace (0.31)", start("0.31.0", "EngineCore pid=614", "ValueError: Persistent workspace ('moe', 0) has shape=(8192, 7168), dtype=torch.bfloat16; requested shape=(16384, 7168), dtype=torch.bfloat16."), "workspace-locked"},
		{"MoE permute scratch (0.32)", start("0.32.0", "EngineCore pid=614", "AssertionError: Workspace is locked but MoE permute scratch requires 262144 rows, current capacity is 131072 rows. Scratch growth is not allowed after locking."), "workspace-locked"},
		{"HiSparse host pool (0.30)", start("0.30.0", "EngineCore pid=614", "ValueError: HiSparse pinned host pool needs ~480 GiB but only 220 GiB of RAM is available. Reduce it."), "host-allocation-failed"},
		{"front-end decoding (0.25)", start("0.25.1", "EngineCore pid=614", "ValueError: frontend multimodal GPU decoding reserves 4.0 GiB, more than the available KV cache memory."), "multimodal-encoder"},
		{"sampler warm-up, V1 runner", start("0.24.0", "EngineCore pid=614", "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine."), "sampler-warmup"},
		{"Mamba blocks (0.24)", start("0.24.0", "EngineCore pid=614", "ValueError: max_num_seqs (256) exceeds available Mamba cache blocks (122). Each decode sequence requires one Mamba cache block, so CUDA graph capture cannot proceed. Please lower max_num_seqs to at most 122 or increase gpu_memory_utilization."), "max-num-seqs-exceeds-mamba-blocks"},
		{"profiling assertion", start("0.33.0", "EngineCore pid=614", "AssertionError: Error in memory profiling. Initial free memory 101.5 GiB, current free memory 118.73 GiB. This happens when other processes sharing the same container release GPU memory while vLLM is profiling during initialization. To fix this, ensure consistent GPU memory allocation or isolate vLLM in its own container."), "memory-profiling-assertion"},
		{"memory grew on ROCm, a warning (0.29)", line("0.29.0", "WARNING", "Free memory grew by 3.2 GiB during profiling (initial 180.1 GiB, current 183.3 GiB). Sizing the KV cache from the current free memory."), ""},
		{"FlashInfer workspace, a warning (0.30)", line("0.30.0", "WARNING", "VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE=413138944 is below the 620756992 bytes computed for the sparse MLA workspace of this model."), ""},
		{"hang watchdog (0.33)", line("0.33.0", "INFO", "[Watchdog]Dumped stack to /tmp/VLLM_STACK_DUMP_for_EngineCore_614.log due to timeout"), ""},
		{"a failed attempt, recovered (0.27 on)", line("0.27.0", "INFO", "ok") + "[rank1]:[W812 16:00:28.643448608 CUDACachingAllocator.cpp:3933] memory allocation failed with OOM on device 1 while trying to allocate 20971520 bytes (free: 15794176, total: 150111977472).\n", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			incidents, _ := diagnoseLog(cat, []byte(row.log), Options{})
			got := ""
			if len(incidents) > 0 {
				got = "unknown"
				if m := incidents[0].Verdict.Mechanism; m != nil {
					got = *m
				}
			}
			if len(incidents) > 1 || got != row.mechanism {
				t.Errorf("%d incidents, %q, expected %q", len(incidents), got, row.mechanism)
			}
		})
	}
}
