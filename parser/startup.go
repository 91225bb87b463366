package parser

import (
	"math"
	"strconv"
	"strings"
)

const gib = 1 << 30

// startupLines tells for each known start-up message how to read it. The key
// is the message's fixed beginning; texts and versions are in vLLM's
// v1/worker/gpu_worker.py, v1/core/kv_cache_utils.py and the model runners.
var startupLines = []struct {
	begin string
	read  func(*factReader)
}{
	{"Chunked prefill is enabled with max_num_batched_tokens=", func(r *factReader) { r.number("max_num_batched_tokens") }},
	{"Using max model len ", func(r *factReader) { r.number("max_model_len") }},
	{"Resolved architecture: ", func(r *factReader) { r.word("architecture") }},
	{"Using V2 Model Runner", func(r *factReader) { r.set("model_runner", "V2") }},
	{"Model Runner V2 does not yet support", func(r *factReader) { r.set("model_runner", "V1") }},
	{"Model loading took ", func(r *factReader) { r.size("weights_bytes"); r.runnerFromFile() }},
	{"Loading model weights took ", func(r *factReader) { r.size("weights_bytes") }},
	{"Available KV cache memory: ", func(r *factReader) { r.size("kv_cache_bytes") }},
	{"Maximum concurrency for ", readConcurrency},
	{"Graph capturing finished in ", func(r *factReader) { r.after("took "); r.size("graph_actual_bytes") }},
	{"Estimated CUDA graph memory: ", func(r *factReader) { r.size("graph_estimate_bytes") }},
	{"CUDA graph pool memory: ", func(r *factReader) {
		r.size("graph_actual_bytes")
		r.after("(actual), ")
		r.size("graph_estimate_bytes")
	}},
	{"CUDA graph memory profiling is ", readGraphProfiling},
	{"In v0.19, CUDA graph memory profiling ", readGraphProfiling},
	{"Free memory on device ", readBudget},
	{"Initial free memory ", readReserved},
	{"Initial free memory: ", func(r *factReader) {
		r.size("free_at_start_bytes")
		if r.after("Requested memory: ") {
			r.number("gpu_memory_utilization")
			r.after(", ")
			r.size("requested_bytes")
		}
	}},
	{"Applying persisted startup plan ", func(r *factReader) {
		if r.after("kv_cache_memory_bytes=") {
			r.number("kv_cache_bytes")
		}
	}},
	// V0, 0.6.4 to 0.10.2
	{"Memory profiling results: ", readV0Results},
	{"the current vLLM instance can use total_gpu_memory (", readV0Share},
	{"model weights take ", readV0Parts},
	{"Memory profiling takes ", readProfile},
	{"Overriding num_gpu_blocks=", func(r *factReader) { r.after("num_gpu_blocks_override="); r.number("num_gpu_blocks_override") }},
	{"Padding num_heads from ", readPadding},
	{"Reserving ", func(r *factReader) {
		if r.has("frontend multimodal decoding") {
			r.size("mm_reserved_bytes")
			if r.after("KV cache memory reduced to ") {
				r.size("kv_cache_bytes")
			}
		}
	}},
	{"Sleep mode freed ", func(r *factReader) { r.size("sleep_freed_bytes"); r.after("memory, "); r.size("sleep_in_use_bytes") }},
	{"CuMemAllocator: sleep freed ", func(r *factReader) { r.size("sleep_freed_bytes") }},
	{"wake up the engine with tags", func(r *factReader) { r.set("wake_up", "asked") }},
	{"Starting profile run for multi-modal models", func(r *factReader) { r.set("mm_profile", "started") }},
	{"init engine (profile, create kv cache, warmup model) took ", func(r *factReader) { r.set("engine_ready", "yes") }},
	{"Starting to load model ", func(r *factReader) { r.set("loading", "started"); r.runnerFromFile() }},
	{"Loading model from scratch", func(r *factReader) { r.set("loading", "started"); r.runnerFromFile() }},
	{"Capturing CUDA graph", func(r *factReader) { r.set("capturing", "started") }},
	{"Auto-fit max_model_len: ", func(r *factReader) { r.after("to "); r.number("max_model_len") }},
	{"Setting kv cache block size to ", func(r *factReader) { r.number("block_size") }},
	{"Setting attention block size to ", func(r *factReader) { r.number("block_size") }},
	{"Defaulting to V1 model runner", func(r *factReader) { r.set("model_runner", "V1") }},
	{"# ", func(r *factReader) {
		if r.after(" blocks: ") {
			r.number("num_gpu_blocks")
		}
	}},
	{"Add ", func(r *factReader) {
		if r.has("padding layers, may waste at most") {
			r.number("padding_layers")
		}
	}},
}

type factReader struct {
	msg, file string
	s         string // what is left to read
	at        Pos
	list      []Fact
}

// readFacts gives the facts of a start-up message, nil if it is none.
func readFacts(msg, file string, at Pos) []Fact {
	r := factReader{msg: msg, file: file, at: at}
	for _, l := range startupLines {
		if strings.HasPrefix(msg, l.begin) {
			r.s = msg[len(l.begin):]
			l.read(&r)
		}
	}
	if i := deviceWord(msg); i > 0 && strings.HasPrefix(msg[i:], " KV cache size: ") {
		// From 0.28.0 the concurrency stands on the same line.
		r.s = msg[i+len(" KV cache size: "):]
		r.number("kv_cache_tokens")
		if r.after("Maximum concurrency for ") {
			readConcurrency(&r)
		}
	}
	if strings.HasPrefix(msg, "Using ") && len(msg) < 400 {
		readBackend(&r, msg)
	}
	return r.list
}

// maxDevice is the longest name of a device that is read before "KV cache".
const maxDevice = 8

// deviceWord gives the length of the word that msg begins with, which before
// "KV cache" is the device's from 0.30.0 on; 0 if it is too long for one.
func deviceWord(msg string) int {
	for i := 0; i < len(msg) && i <= maxDevice; i++ {
		if !isLetter(msg[i]) {
			return i
		}
	}
	return 0
}

// readBackend reads what the engine chose: "Using X attention backend out of
// potential backends: ..." (0.12 on), "Using X backend." of the platform (0.11.1
// on) and of V0, "Using X Y backend on V1 engine." (0.8 to 0.11.0), and "Using
// fp8_ds_mla KV cache format for X backend.".
func readBackend(r *factReader, msg string) {
	w := strings.Fields(msg)
	switch {
	case len(w) > 4 && w[2] == "attention" && w[3] == "backend":
		r.set("attention_backend", w[1])
	case len(w) > 5 && w[2] == "KV" && w[3] == "cache" && w[4] == "format":
		r.set("kv_cache_format", w[1])
	case len(w) > 3 && w[2] == "data" && strings.HasPrefix(w[3], "type"):
		if strings.Contains(msg, "to store kv cache") {
			r.set("kv_cache_dtype", w[1])
		}
	case strings.HasSuffix(msg, " backend on V1 engine."):
		r.set("attention_backend", strings.TrimSuffix(msg[len("Using "):], " backend on V1 engine."))
	case len(w) > 2 && strings.HasPrefix(w[2], "backend") && r.byPlatform():
		r.set("attention_backend", w[1])
	}
}

// byPlatform tells whether the line comes from where a platform chooses its
// attention; other parts of the engine have backends too.
func (r *factReader) byPlatform() bool {
	for _, f := range [...]string{"cuda.py", "rocm.py", "xpu.py", "cpu.py", "tpu.py", "selector.py"} {
		if strings.HasSuffix(r.file, f) {
			return true
		}
	}
	return false
}

// readGraphProfiling reads the present utilisation: "The current
// --gpu-memory-utilization=0.9200 is equivalent to ..." (0.21 on), "increase
// --gpu-memory-utilization from 0.9000 to ..." (0.18 to 0.20).
func readGraphProfiling(r *factReader) {
	if r.after("--gpu-memory-utilization") {
		r.s = strings.TrimPrefix(strings.TrimPrefix(r.s, "="), " from ")
		r.number("gpu_memory_utilization")
	}
}

// readV0Results reads "total_gpu_memory=79.11GiB ... kv_cache_size=54.17GiB
// gpu_memory_utilization=0.90" (worker/worker.py of 0.6.4).
func readV0Results(r *factReader) {
	for _, f := range [...]struct{ words, name string }{
		{"total_gpu_memory=", "total_bytes"}, {" non_torch_memory=", "non_torch_bytes"}, {" kv_cache_size=", "kv_cache_bytes"},
	} {
		if r.s = r.msg; r.after(f.words) {
			r.size(f.name)
		}
	}
	if r.s = r.msg; r.after(" gpu_memory_utilization=") {
		r.number("gpu_memory_utilization")
	}
}

// readV0Share reads "79.11GiB) x gpu_memory_utilization (0.90) = 71.20GiB".
func readV0Share(r *factReader) {
	r.size("total_bytes")
	if r.after("gpu_memory_utilization (") {
		r.number("gpu_memory_utilization")
	}
	if r.after("= ") {
		r.size("requested_bytes")
	}
}

// readV0Parts reads "14.99GiB; non_torch_memory takes 0.09GiB; PyTorch
// activation peak memory takes 1.22GiB; the rest of the memory reserved for KV
// Cache is 54.90GiB.".
func readV0Parts(r *factReader) {
	if !r.has("GiB; non_torch_memory takes ") {
		return
	}
	r.size("weights_bytes")
	for _, f := range [...]struct{ words, name string }{
		{"non_torch_memory takes ", "non_torch_bytes"},
		{"activation peak memory takes ", "peak_activation_bytes"},
		{"reserved for KV Cache is ", "kv_cache_bytes"},
	} {
		if r.after(f.words) {
			r.size(f.name)
		}
	}
}

// readConcurrency reads "131,072 tokens per request: 79.53x".
func readConcurrency(r *factReader) {
	r.number("max_model_len")
	if r.after("per request: ") {
		r.number("max_concurrency")
	}
}

// readPadding reads "Padding num_heads from 8 to 64 for FP8 sparse decode
// kernel" (backends/mla/flashmla_sparse.py): it states the heads of a rank.
func readPadding(r *factReader) {
	r.number("heads_per_rank")
	r.after("to ")
	r.number("padded_heads")
	switch {
	case r.has("FP8 sparse decode"):
		r.set("sparse_path", "fp8-mixed")
	case r.has("BF16 sparse prefill"):
		r.set("sparse_path", "bf16-prefill")
	}
}

// readBudget reads the budget summary of gpu_worker.py in its old (weight,
// non-torch) and new (consumed, from 0.27.0) wording. The error that begins
// with the same words ends differently and is read by the matcher.
func readBudget(r *factReader) {
	if !r.has("Actual usage is ") {
		return
	}
	if r.after("(") {
		r.pair("free_at_start_bytes", "total_bytes")
	}
	if r.after("utilization is (") {
		r.number("gpu_memory_utilization")
		r.after(", ")
		r.size("requested_bytes")
	}
	r.after("Actual usage is ")
	for _, part := range []struct{ words, name string }{
		{" GiB for weight,", "weights_bytes"},
		{" GiB for consumed memory", "consumed_bytes"},
		{" GiB for peak activation", "peak_activation_bytes"},
		{" GiB for non-torch memory", "non_torch_bytes"},
		{" GiB for CUDAGraph memory", "graph_actual_bytes"},
	} {
		if v, ok := numberBefore(r.s, part.words); ok {
			r.add(part.name, v*gib, 0.005*gib)
		}
	}
	if r.after("--kv-cache-memory=") {
		r.number("kv_fit_bytes")
	}
	if r.after("--kv-cache-memory=") {
		r.number("kv_full_bytes")
	}
	if r.after("Current kv cache memory in use is ") {
		r.size("kv_cache_bytes")
	}
}

// readReserved reads "Initial free memory X GiB, reserved Y GiB memory for KV
// Cache as specified by kv_cache_memory_bytes config".
func readReserved(r *factReader) {
	if r.has("as specified by kv_cache_memory_bytes") {
		r.size("free_at_start_bytes")
		r.after("reserved ")
		r.size("kv_cache_bytes")
		r.set("kv_pinned", "yes")
	}
}

func readProfile(r *factReader) {
	for _, p := range []struct{ words, name string }{
		{"torch peak memory increase: ", "peak_activation_bytes"},
		{"non-torch forward increase memory: ", "non_torch_bytes"},
		{"weights memory: ", "weights_bytes"},
		{"total consumed (from mem_get_info): ", "consumed_bytes"},
	} {
		// The order of the parts changed with 0.27.0.
		if r.s = r.msg; r.after(p.words) {
			r.size(p.name)
		}
	}
}

func (r *factReader) has(sub string) bool { return strings.Contains(r.msg, sub) }

// after moves behind the next occurrence of sub.
func (r *factReader) after(sub string) bool {
	i := strings.Index(r.s, sub)
	if i < 0 {
		return false
	}
	r.s = r.s[i+len(sub):]
	return true
}

func (r *factReader) add(name string, v, precision float64) {
	r.list = append(r.list, Fact{Name: name, Number: v, Precision: precision, At: r.at})
}

func (r *factReader) set(name, text string) {
	r.list = append(r.list, Fact{Name: name, Text: text, At: r.at})
}

func (r *factReader) word(name string) {
	if f := strings.Fields(r.s); len(f) > 0 {
		r.set(name, strings.TrimRight(f[0], ".,"))
	}
}

func (r *factReader) number(name string) {
	if v, p, n := leadingNumber(r.s); n > 0 {
		r.add(name, v, p)
		r.s = r.s[n:]
	}
}

// size reads "122.4 GiB", "3.98 GB" (2^30 too, as vLLM prints it).
func (r *factReader) size(name string) {
	v, p, n := leadingNumber(r.s)
	if n == 0 {
		return
	}
	unit := strings.TrimLeft(r.s[n:], " ")
	scale := 0.0
	switch {
	case strings.HasPrefix(unit, "GiB"), strings.HasPrefix(unit, "GB"):
		scale = gib
	case strings.HasPrefix(unit, "MiB"), strings.HasPrefix(unit, "MB"):
		scale = 1 << 20
	case strings.HasPrefix(unit, "bytes"):
		scale = 1
	default:
		return
	}
	// format_gib rounds to two decimals and drops zeros: 122.4 is 122.40.
	r.add(name, v*scale, math.Min(p, 0.005)*scale)
	r.s = r.s[n:]
}

// pair reads "77.57/79.11 GiB".
func (r *factReader) pair(first, second string) {
	a, _, n := leadingNumber(r.s)
	if n == 0 || n >= len(r.s) || r.s[n] != '/' {
		return
	}
	b, _, m := leadingNumber(r.s[n+1:])
	if m == 0 {
		return
	}
	r.add(first, a*gib, 0.005*gib)
	r.add(second, b*gib, 0.005*gib)
	r.s = r.s[n+1+m:]
}

func (r *factReader) runnerFromFile() {
	switch {
	case strings.HasSuffix(r.file, "gpu_model_runner.py"):
		r.set("model_runner", "V1")
	case strings.HasSuffix(r.file, "model_runner.py"):
		r.set("model_runner", "V2")
	}
}

// leadingNumber reads a decimal number with optional thousands commas and
// gives half of its last printed digit.
func leadingNumber(s string) (v, precision float64, n int) {
	i := 0
	if i < len(s) && s[i] == '-' {
		i++
	}
	digits, dot := 0, -1
	for i < len(s) && i < 40 {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c == ',' && dot < 0 && digits > 0 && i+3 < len(s) && isDigit(s[i+1]) && isDigit(s[i+2]) && isDigit(s[i+3]):
		case c == '.' && dot < 0 && i+1 < len(s) && isDigit(s[i+1]):
			dot = i
		default:
			goto done
		}
		i++
	}
done:
	if digits == 0 {
		return 0, 0, 0
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(s[:i], ",", ""), 64)
	if err != nil {
		return 0, 0, 0
	}
	if dot >= 0 {
		precision = 0.5 * math.Pow10(-(i - dot - 1))
	}
	return v, precision, i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// numberBefore finds the number that stands directly before words.
func numberBefore(s, words string) (float64, bool) {
	i := strings.Index(s, words)
	if i < 0 {
		return 0, false
	}
	j := i
	for j > 0 && (isDigit(s[j-1]) || s[j-1] == '.' || s[j-1] == '-') {
		j--
	}
	v, err := strconv.ParseFloat(s[j:i], 64)
	return v, err == nil
}
