package matcher

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// word is one name that catalogue expressions may use.
type word struct {
	kind kind
	doc  string
}

// vocabulary lists every name of the catalogue's expressions. flags.NAME (any
// argument of the server, dashes as underscores) needs no entry. Sizes are in
// bytes. A name without a fact in the log is unknown.
var vocabulary = map[string]word{
	// From the allocator's message of the rank with the least free memory.
	"tried":         {numberKind, "the failed request, rounded up by the allocator"},
	"total":         {numberKind, "capacity of the GPU as CUDA sees it"},
	"free":          {numberKind, "free on the device after the failed attempt"},
	"this_process":  {numberKind, "memory of the failing process"},
	"allocated":     {numberKind, "allocated by PyTorch, free blocks of private pools included"},
	"private_pools": {numberKind, "free cached blocks of private pools"},
	"unallocated":   {numberKind, "reserved by PyTorch but unallocated"},
	"allowed":       {numberKind, "limit set by per_process_memory_fraction"},
	"others":        {numberKind, "memory of other processes that the message names"},
	"non_pytorch":   {numberKind, "this process outside PyTorch: context, NCCL, graphs"},
	"unexplained":   {numberKind, "total - free - this process - others"},
	"live":          {numberKind, "tensors alive: allocated - private pools"},
	"shortfall":     {numberKind, "tried - free, 0 or more"},
	"gpus":          {numberKind, "ranks that failed"},
	"oom_form":      {textKind, "the family of the message"},
	"masked":        {boolKind, "the message carries no numbers"},

	// From the start-up lines.
	"version":                 {textKind, "vLLM's version as printed"},
	"model":                   {textKind, "the model as printed"},
	"architecture":            {textKind, "the model's class"},
	"engine":                  {textKind, "vllm or sglang"},
	"max_num_batched_tokens":  {numberKind, "token budget of one step"},
	"max_num_seqs":            {numberKind, "sequences of one step"},
	"max_model_len":           {numberKind, "longest request in tokens"},
	"gpu_memory_utilization":  {numberKind, "fraction of the GPU that the engine may plan with"},
	"tensor_parallel_size":    {numberKind, "tensor-parallel ranks"},
	"data_parallel_size":      {numberKind, "data-parallel ranks"},
	"pipeline_parallel_size":  {numberKind, "pipeline stages"},
	"kv_cache_dtype":          {textKind, "data type of the KV cache"},
	"kv_cache_format":         {textKind, "layout of the MLA cache"},
	"attention_backend":       {textKind, "the backend that was chosen"},
	"model_runner":            {textKind, "V1 or V2"},
	"heads_per_rank":          {numberKind, "attention heads of a rank"},
	"padded_heads":            {numberKind, "heads after padding"},
	"sparse_path":             {textKind, "fp8-mixed or bf16-prefill"},
	"weights_bytes":           {numberKind, "model loading took"},
	"consumed_bytes":          {numberKind, "weights and non-torch (0.27 on)"},
	"peak_activation_bytes":   {numberKind, "profiled peak activation"},
	"non_torch_bytes":         {numberKind, "non-torch memory at start"},
	"kv_cache_bytes":          {numberKind, "KV cache of a GPU"},
	"kv_cache_tokens":         {numberKind, "tokens that the KV cache holds"},
	"kv_fit_bytes":            {numberKind, "the pin that the budget line offers to fit"},
	"kv_full_bytes":           {numberKind, "the pin that the budget line offers to use all"},
	"kv_pinned":               {boolKind, "the KV cache was sized by hand"},
	"max_concurrency":         {numberKind, "requests of full length that fit"},
	"free_at_start_bytes":     {numberKind, "free when the worker started"},
	"requested_bytes":         {numberKind, "utilisation times total"},
	"graph_actual_bytes":      {numberKind, "CUDA graphs as captured"},
	"graph_estimate_bytes":    {numberKind, "CUDA graphs as estimated"},
	"num_gpu_blocks_override": {numberKind, "blocks of the KV cache set by hand"},
	"sleep_freed_bytes":       {numberKind, "memory given back at sleep"},
	"sleep_in_use_bytes":      {numberKind, "memory kept while asleep"},
	"block_size":              {numberKind, "tokens of a KV block"},
	"mm_reserved_bytes":       {numberKind, "reserved for front-end multimodal decoding"},
	"padding_layers":          {numberKind, "layers added to unify KV pages"},
	"total_at_start_bytes":    {numberKind, "capacity that a start-up line states"},

	// The last known load.
	"kv_usage_pct":     {numberKind, "KV cache in use, in %"},
	"kv_usage_max_pct": {numberKind, "highest KV usage of the last minutes, in %"},
	"kv_usage_min_pct": {numberKind, "lowest KV usage of the last minutes, in %"},
	"running":          {numberKind, "running requests"},
	"waiting":          {numberKind, "waiting requests"},
	"running_max":      {numberKind, "most running requests of the last minutes"},
	"preemptions":      {numberKind, "preemptions printed in the last minutes"},
	"scheduled_tokens": {numberKind, "tokens of the failing step"},
	"prompt_logprobs":  {numberKind, "prompt_logprobs of the failing step's request"},
	"prompt_tokens":    {numberKind, "longest prompt of the failing step"},

	// Numbers that a message of the entry captured by name.
	"needed":    {numberKind, "captured from the matched text"},
	"available": {numberKind, "captured from the matched text"},
	"estimated": {numberKind, "captured from the matched text"},
	"captured":  {numberKind, "captured from the matched text"},
	"current":   {numberKind, "captured from the matched text"},
	"where":     {textKind, "captured from the matched text"},
	"method":    {textKind, "captured from the matched text"},
	"exit_code": {textKind, "captured from the matched text"},
	"name":      {textKind, "captured from the matched text"},
	"requests":  {numberKind, "captured from the matched text"},
	"device":    {textKind, "captured from the matched text"},
	"code":      {textKind, "captured from the matched text"},

	// What the engine derives for the entry that matched.
	"tokens":            {numberKind, "the step's size, for which a formula is asked; the token budget for the fullest step"},
	"seqs":              {numberKind, "the step's sequences, for formulas that scale with max_num_seqs"},
	"margin":            {numberKind, "max(1 GiB, 1 % of total)"},
	"demand":            {numberKind, "what the whole call needs beyond the profile, at the token budget"},
	"demand_per_token":  {numberKind, "demand a token"},
	"demand_live":       {numberKind, "parts of the call that were alive when the failing one was asked for"},
	"demand_matches":    {boolKind, "the bytes asked for equal a part of the formula"},
	"demand_part":       {textKind, "the part that was asked for"},
	"step_tokens":       {numberKind, "tokens of the step that failed, from the dump or from the size"},
	"missing":           {numberKind, "what the whole call lacked"},
	"util_fit":          {numberKind, "utilisation at which the call fits with the margin"},
	"tokens_fit_pinned": {numberKind, "token budget that fits with the KV cache pinned, a power of two"},
	"tokens_fit_auto":   {numberKind, "token budget that fits while the KV cache grows, a power of two"},
	"seqs_fit":          {numberKind, "max_num_seqs that fits"},
	"kv_pin":            {numberKind, "the present KV cache in bytes, rounded down"},
	"kv_pin_fit":        {numberKind, "the KV cache that leaves room for the call"},
	"phase":             {textKind, "startup, runtime, shutdown or unknown"},
	"frame":             {textKind, "the frame that matched"},
	"exception":         {textKind, "class of the root exception"},
	"exception_text":    {textKind, "text of the root exception"},
	"fixed":             {boolKind, "the entry's versions say that this release is fixed"},
	"affected":          {boolKind, "the entry's versions say that this release is affected"},
}

// nameRow is one line of what expressions and templates may use.
type nameRow struct{ name, kind, doc string }

// nameTable is a titled list of them.
type nameTable struct {
	title, note string
	rows        []nameRow
}

// nameTables lists everything that an expression or a template may use.
func nameTables() []nameTable {
	names := nameTable{title: "Names", note: "Sizes are in bytes. A name without a fact in the log is unknown, and so is what rests on it."}
	names.rows = append(names.rows, nameRow{"flags.NAME", "any", "any argument of the server, dashes as underscores: flags.max_model_len"})
	for _, n := range slices.Sorted(maps.Keys(vocabulary)) {
		names.rows = append(names.rows, nameRow{n, vocabulary[n].kind.String(), vocabulary[n].doc})
	}
	calls := nameTable{title: "Functions", note: "Beside them + - * / < <= > >= == != && || ! and parentheses; GiB, MiB, KiB, true, false; texts in \"quotes\"."}
	for _, n := range slices.Sorted(maps.Keys(functions)) {
		calls.rows = append(calls.rows, nameRow{functions[n].form, functions[n].gives.String(), functions[n].doc})
	}
	forms := nameTable{title: "Formats of a template", note: "A text holds figures as {EXPRESSION|FORMAT}. Text in [[ ]] is left out if a figure in it is unknown; an unknown figure elsewhere takes the whole text away."}
	for _, n := range slices.Sorted(maps.Keys(formats)) {
		form := "{free|" + n + "}"
		if n == "" {
			form = "{free}"
		}
		forms.rows = append(forms.rows, nameRow{form, "", formats[n]})
	}
	return []nameTable{names, calls, forms}
}

// NamesText lists what an entry's expressions and templates may use.
func NamesText() string {
	var b strings.Builder
	for i, t := range nameTables() {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(t.title + "\n" + wrap(t.note, "", "") + "\n\n")
		w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
		for _, r := range t.rows {
			if r.kind == "" {
				fmt.Fprintf(w, "  %s\t%s\n", r.name, r.doc)
			} else {
				fmt.Fprintf(w, "  %s\t%s\t%s\n", r.name, r.kind, r.doc)
			}
		}
		_ = w.Flush() // a Builder takes everything
	}
	return b.String()
}
