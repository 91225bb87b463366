package matcher

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"diagnose/parser"
)

const gib = 1 << 30

// budgetRun is a server that ran out of memory: its memory as the model below
// has it, and which of the figures its log prints.
type budgetRun struct {
	total, utilisation          float64 // bytes, share
	weights, peak, nonTorch, kv float64 // bytes; kv is what the log prints
	free, tried                 float64 // bytes, as printed
	live                        float64 // of the failing call, bytes
	perUnit                     float64 // bytes a token (or a sequence) of the whole call
	tokens, step, seqs, running int
	ranks                       int
	pinned                      bool
	masked                      bool
	sayPeak, sayWeights, sayKV  bool
	sayUtilisation, sayTotal    bool
	frames                      []string
	freeAtStart                 float64
}

// printed rounds to what a log shows: two decimals of GiB, or of MiB below one.
func printed(b float64) float64 {
	unit := float64(gib)
	if b <= gib {
		unit = 1 << 20
	}
	return math.Round(b/unit*100) / 100 * unit
}

func sizeIn(b float64) string {
	if b <= gib {
		return fmt.Sprintf("%.2f MiB", b/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", b/gib)
}

// draw makes a budget that adds up: KV = u*C - weights - non-torch - peak,
// unless the KV cache was pinned by hand.
func drawBudget(t *rapid.T) budgetRun {
	var r budgetRun
	hundredths := func(name string, from, to float64) float64 {
		return float64(rapid.IntRange(int(from*100), int(to*100)).Draw(t, name)) / 100
	}
	r.total = hundredths("total GiB", 20, 192) * gib
	r.utilisation = hundredths("utilisation", 0.3, 0.99)
	budget := r.utilisation * r.total
	r.weights = printed(hundredths("weights share", 0.05, 0.7) * budget)
	r.nonTorch = printed(hundredths("non-torch GiB", 0.1, 2) * gib)
	r.peak = printed(hundredths("peak share", 0, 0.25) * budget)
	r.kv = math.Round((budget-r.weights-r.nonTorch-r.peak)/gib*100) / 100 * gib
	r.pinned = rapid.Bool().Draw(t, "pinned")
	if r.kv < 0.2*gib || r.pinned {
		r.pinned = true
		r.kv = math.Floor(hundredths("pin GiB", 0.2, 60) * gib)
	}
	r.tokens = 256 * rapid.IntRange(2, 256).Draw(t, "token budget / 256")
	r.step = r.tokens
	if rapid.Bool().Draw(t, "smaller step") {
		r.step = rapid.IntRange(r.tokens/4, r.tokens).Draw(t, "step")
	}
	r.seqs = rapid.IntRange(8, 1024).Draw(t, "seqs")
	r.running = rapid.IntRange(1, r.seqs).Draw(t, "running")
	r.ranks = rapid.IntRange(1, 8).Draw(t, "ranks")
	r.sayPeak = rapid.Bool().Draw(t, "the log has the peak")
	r.sayWeights = rapid.Bool().Draw(t, "the log has the weights")
	r.sayKV = rapid.IntRange(0, 4).Draw(t, "no KV line at 0") > 0
	r.sayUtilisation, r.sayTotal = true, true
	return r
}

// fail sets what was asked for and what was free.
func (r *budgetRun) fail(t *rapid.T, part float64) {
	r.tried = math.Ceil(part/(2<<20)) * (2 << 20)
	share := float64(rapid.IntRange(0, 99).Draw(t, "free share of what was tried")) / 100
	r.free = printed(r.tried * share)
	r.tried = printed(r.tried)
	if r.free >= r.tried {
		r.free = 0
	}
}

// log prints the run as vLLM does.
func (r budgetRun) log() []byte {
	var b bytes.Buffer
	put := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	version := "0.24.0"
	if r.masked {
		version = "0.28.0"
	}
	args := fmt.Sprintf("'model': '/models/m', 'tensor_parallel_size': %d, 'max_num_batched_tokens': %d, 'max_num_seqs': %d", r.ranks, r.tokens, r.seqs)
	if r.sayUtilisation {
		args += fmt.Sprintf(", 'gpu_memory_utilization': %.2f", r.utilisation)
	}
	if r.pinned {
		args += fmt.Sprintf(", 'kv_cache_memory_bytes': %.0f", r.kv)
	}
	put("(APIServer pid=1) INFO 11-02 14:00:00 [api_utils.py:339]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version %s", version)
	put("(APIServer pid=1) INFO 11-02 14:00:00 [api_utils.py:273] non-default args: {%s}", args)
	worker := func(i int) string {
		if r.ranks == 1 {
			return "EngineCore pid=614"
		}
		return fmt.Sprintf("Worker_TP%d pid=%d", i, 615+i)
	}
	put("(EngineCore pid=614) INFO 11-02 14:00:20 [core.py:114] Initializing a V1 LLM engine (v%s) with config: model='/models/m', max_seq_len=65536, tensor_parallel_size=%d, enforce_eager=True, kv_cache_dtype=fp8, ", version, r.ranks)
	if r.sayWeights {
		put("(%s) INFO 11-02 14:01:00 [gpu_model_runner.py:5105] Model loading took %.2f GiB memory and 31.2 seconds", worker(0), r.weights/gib)
	}
	if r.sayKV && !r.pinned {
		put("(%s) INFO 11-02 14:01:30 [gpu_worker.py:508] Available KV cache memory: %.2f GiB", worker(0), r.kv/gib)
	}
	if r.sayPeak && !r.pinned {
		put("(%s) INFO 11-02 14:01:40 [gpu_worker.py:859] Free memory on device (%.2f/%.2f GiB) on startup. Desired GPU memory utilization is (%.2f, %.2f GiB). Actual usage is %.2f GiB for weight, %.2f GiB for peak activation, %.2f GiB for non-torch memory, and 0.0 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=%.0f` (1.0 GiB) to fit into requested memory, or `--kv-cache-memory=%.0f` (1.0 GiB) to fully utilize gpu memory. Current kv cache memory in use is %.2f GiB.",
			worker(0), r.freeAtStart/gib, r.total/gib, r.utilisation, r.utilisation*r.total/gib, r.weights/gib, r.peak/gib, r.nonTorch/gib, r.kv, r.kv, r.kv/gib)
	}
	put("(APIServer pid=1) INFO:     Application startup complete.")
	put("(APIServer pid=1) INFO 11-02 14:03:05 [loggers.py:271] Engine 000: Avg prompt throughput: 1000.0 tokens/s, Avg generation throughput: 10.0 tokens/s, Running: %d reqs, Waiting: 0 reqs, GPU KV cache usage: 5.0%%, Prefix cache hit rate: 0.0%%", r.running)
	for i := range r.ranks {
		free := r.free
		if i != r.ranks/2 {
			free = printed(r.free + 3<<20) // the other ranks have a little more
		}
		text := "CUDA out of memory. Tried to allocate " + sizeIn(r.tried) + "."
		if r.sayTotal {
			text += fmt.Sprintf(" GPU %d has a total capacity of %.2f GiB of which %s is free. Including non-PyTorch memory, this process has %.2f GiB memory in use. Of the allocated memory %.2f GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.",
				i, r.total/gib, sizeIn(free), (r.total-free)/gib, (r.total-free)/gib-0.6)
		}
		exception := "torch.OutOfMemoryError: " + text
		if r.masked {
			exception = `RuntimeError: torch_call_dispatcher( "aten::new_empty", "", stack.data(), ( ((0ULL + 2) << 56) | ((0ULL + 13) << 48) | ((0ULL + 0) << 40) | ((0ULL + 0) << 0))) API call failed at /opt/torch/include/torch/csrc/stable/ops.h, line 933`
		}
		head := fmt.Sprintf("(%s) ERROR 11-02 14:03:11 [multiproc_executor.py:1000] ", worker(i))
		first := "WorkerProc hit an exception."
		if r.ranks == 1 {
			head, first = "(EngineCore pid=614) ERROR 11-02 14:03:11 [core.py:1233] ", "EngineCore encountered a fatal error."
		}
		put("%s%s", head, first)
		put("%sTraceback (most recent call last):", head)
		for _, f := range append([]string{"vllm/v1/worker/gpu_worker.py execute_model"}, r.frames...) {
			file, fn, _ := strings.Cut(f, " ")
			put(`%s  File "/usr/local/lib/python3.12/dist-packages/%s", line 100, in %s`, head, file, fn)
		}
		put("%s%s", head, exception)
	}
	put("(EngineCore pid=614) ERROR 11-02 14:03:11 [dump_input.py:79] Dumping scheduler output for model execution: SchedulerOutput(scheduled_new_reqs=[], num_scheduled_tokens={a: %d}, total_num_scheduled_tokens=%d, scheduled_spec_decode_tokens={})", r.step, r.step)
	put("(EngineCore pid=614) ERROR 11-02 14:03:11 [dump_input.py:81] Dumping scheduler stats: SchedulerStats(num_running_reqs=%d, num_waiting_reqs=0, kv_cache_usage=0.05)", r.running)
	return b.Bytes()
}

// after is the model: what a change leaves for the call, and what the call then
// needs. KV' is the pin, or grows by what the utilisation and the profiled peak
// give back.
func (r budgetRun) after(set map[string]string, t *rapid.T) (need, room float64) {
	value := func(flag string, or float64) float64 {
		s, ok := set[flag]
		if !ok {
			return or
		}
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatalf("%s is %q", flag, s)
		}
		return v
	}
	u := value("--gpu-memory-utilization", r.utilisation)
	tokens := value("--max-num-batched-tokens", float64(r.tokens))
	seqs := value("--max-num-seqs", float64(r.seqs))
	if u > r.utilisation {
		t.Fatalf("utilisation raised from %v to %v", r.utilisation, u)
	}
	if tokens > float64(r.tokens) || seqs > float64(r.seqs) {
		t.Fatalf("a larger step: %v tokens of %d, %v sequences of %d", tokens, r.tokens, seqs, r.seqs)
	}
	kv := r.kv
	if pin, pinned := set["--kv-cache-memory-bytes"]; pinned {
		kv = value("--kv-cache-memory-bytes", 0)
		if kv > r.kv {
			t.Fatalf("pin %s above the present KV cache %.0f", pin, r.kv)
		}
	} else if !r.pinned {
		kv += (u - r.utilisation) * r.total
		kv += r.peak * (1 - math.Min(tokens/float64(r.tokens), seqs/float64(r.seqs)))
	}
	units := tokens
	if r.scalesWithSeqs() {
		units = seqs
	}
	room = r.free + r.live
	if r.estimated() {
		room = r.freeAtStart - r.utilisation*r.total
	}
	return r.perUnit * units, room + r.kv - kv
}

// estimated tells that the failure has no figure for the free memory: the room
// is then what the start-up lines leave outside the budget.
func (r budgetRun) estimated() bool { return r.masked || !r.sayTotal }

func (r budgetRun) scalesWithSeqs() bool { return r.frames[0] == "vllm/v1/sample/sampler.py sample" }

func (r budgetRun) margin() float64 { return math.Max(gib, 0.01*r.total) }

// checkRemedies applies each computed step to the model. slack is the rounding
// of the printed figures.
func checkRemedies(t *rapid.T, r budgetRun, in Incident) {
	const slack = 24 << 20
	for _, step := range in.Remedies {
		computed := false
		for flag := range step.Set {
			switch flag {
			case "--gpu-memory-utilization", "--max-num-batched-tokens", "--max-num-seqs", "--kv-cache-memory-bytes":
				computed = true
			}
		}
		if !computed {
			continue
		}
		need, room := r.after(step.Set, t)
		if strings.Contains(step.Title, "halved") || strings.HasPrefix(step.Title, "Halve") || strings.Contains(step.Why, "It is no proof.") {
			continue // says itself that it is no proof
		}
		if r.estimated() && (!r.sayPeak || r.pinned) {
			t.Fatalf("step %q sets %v, and nothing tells what was free", step.Title, step.Set)
		}
		if need+r.margin() > room+slack {
			t.Fatalf("step %q, %v: the call needs %.2f GiB and a margin of %.2f, the change leaves %.2f (short by %.2f)\n%+v",
				step.Title, step.Set, need/gib, r.margin()/gib, room/gib, (need+r.margin()-room)/gib, r)
		}
		if r.pinned {
			if _, ok := step.Set["--gpu-memory-utilization"]; ok {
				t.Fatalf("step %q sets the utilisation, which a pinned KV cache ignores", step.Title)
			}
		}
	}
}

func diagnosed(t *rapid.T, cat *Catalog, r budgetRun, mechanism string) Incident {
	incidents, _ := diagnoseLog(cat, r.log(), Options{})
	if len(incidents) != 1 || incidents[0].Verdict.Mechanism == nil || *incidents[0].Verdict.Mechanism != mechanism {
		t.Fatalf("%d incidents, %+v\n%s", len(incidents), incidents, r.log())
	}
	return incidents[0]
}

var mixedBatch = []string{
	"vllm/v1/attention/backends/mla/flashmla_sparse.py _forward_fp8_kv_mixed_batch",
	"vllm/v1/attention/backends/mla/flashmla_sparse.py _fp8_flash_mla_kernel",
	"vllm/third_party/flashmla/flash_mla_interface.py sparse_decode_fwd",
}

// TestRemediesOfAWholeCallFit: the mechanism whose whole demand is known. Each
// value, applied to the model, makes the call fit with the margin.
func TestRemediesOfAWholeCallFit(t *testing.T) {
	cat := embedded(t)
	parts := []float64{8192, 73728, 65536, 256, 512, 262144}
	rapid.Check(t, func(t *rapid.T) {
		r := drawBudget(t)
		r.frames, r.perUnit = mixedBatch, callPerToken
		i := rapid.SampledFrom([]int{1, 2, 5}).Draw(t, "part")
		for _, p := range parts[:i] {
			r.live += p * float64(r.step)
		}
		r.fail(t, parts[i]*float64(r.step))
		if r.tried < 20<<20 {
			t.Skip("below the allocator's smallest segment")
		}
		r.sayTotal = rapid.IntRange(0, 5).Draw(t, "cut sentence at 0") > 0
		r.freeAtStart = printed(r.total - 0.5*gib)
		checkRemedies(t, r, diagnosed(t, cat, r, "flashmla-sparse-mixed-batch"))
	})
}

// TestRemediesOfAMaskedCallFit: the same without a figure in the failure. The
// room is then what lies outside the budget.
func TestRemediesOfAMaskedCallFit(t *testing.T) {
	cat := embedded(t)
	rapid.Check(t, func(t *rapid.T) {
		r := drawBudget(t)
		r.frames, r.perUnit, r.masked = mixedBatch, callPerToken, true
		r.freeAtStart = printed(r.total - float64(rapid.IntRange(0, 400).Draw(t, "used at start, GiB/100"))/100*gib)
		in := diagnosed(t, cat, r, "flashmla-sparse-mixed-batch")
		if in.Verdict.Confidence == "high" {
			t.Fatal("a masked failure is never of high confidence")
		}
		checkRemedies(t, r, in)
	})
}

// TestRemediesOfALayerFit: no formula, only the one size that the allocator
// named, scaled to a full step.
func TestRemediesOfALayerFit(t *testing.T) {
	cat := embedded(t)
	rapid.Check(t, func(t *rapid.T) {
		r := drawBudget(t)
		r.frames = []string{"vllm/model_executor/models/llama.py forward"}
		per := float64(rapid.IntRange(20, 512).Draw(t, "KiB a token")) * 1024
		r.fail(t, per*float64(r.step))
		if r.tried < 20<<20 || r.tried > r.total {
			t.Skip("below the allocator's smallest segment, or larger than the GPU")
		}
		r.perUnit = r.tried / float64(r.step)
		r.sayTotal = rapid.IntRange(0, 5).Draw(t, "cut sentence at 0") > 0
		checkRemedies(t, r, diagnosed(t, cat, r, "generic-runtime-oom"))
	})
}

// TestRemediesOfSequencesFit: what grows with max_num_seqs. The failing step
// had the running requests, which may be fewer.
func TestRemediesOfSequencesFit(t *testing.T) {
	cat := embedded(t)
	rapid.Check(t, func(t *rapid.T) {
		r := drawBudget(t)
		r.frames = []string{"vllm/v1/sample/sampler.py sample", "vllm/v1/sample/ops/topk_topp_sampler.py apply_top_k_top_p"}
		vocabulary := float64(rapid.IntRange(32_000, 260_000).Draw(t, "vocabulary"))
		bytesPerValue := float64(rapid.IntRange(2, 40).Draw(t, "bytes a value"))
		r.fail(t, vocabulary*bytesPerValue*float64(r.running))
		if r.tried < 20<<20 {
			t.Skip("below the allocator's smallest segment")
		}
		r.perUnit = r.tried / float64(r.running)
		checkRemedies(t, r, diagnosed(t, cat, r, "logits-sampler-runtime"))
	})
}

// diagnoseLog is diagnoseText without a test to fail.
func diagnoseLog(cat *Catalog, log []byte, opt Options) (incidents, observations []Incident) {
	tr := NewTracker(cat, opt)
	p := parser.New(tr.Add)
	offset := int64(0)
	for n, line := range bytes.Split(bytes.TrimSuffix(log, []byte("\n")), []byte("\n")) {
		p.Line(parser.Line{At: parser.Pos{Line: int64(n + 1), Offset: offset}, Data: line})
		offset += int64(len(line)) + 1
	}
	p.Flush()
	return tr.Incidents()
}
