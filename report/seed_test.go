package report_test

import (
	"strconv"

	"diagnose/matcher"
)

func ptr[T any](v T) *T { return &v }

// at is a line of the first input.
func at(line int64) *matcher.At { return &matcher.At{Line: ptr(line), Offset: ptr(line * 110)} }

func lines(n ...int64) []matcher.At {
	var out []matcher.At
	for _, l := range n {
		out = append(out, *at(l))
	}
	return out
}

// sizeOf is a printed size in GiB, to the nearest byte.
func sizeOf(g float64) *int64 { return ptr(int64(g*(1<<30) + 0.5)) }

func part(g float64, grade matcher.Grade, line int64) *matcher.BudgetPart {
	return &matcher.BudgetPart{Value: *sizeOf(g), Grade: grade, At: at(line)}
}

// seedDocument is the case the project began with: eight ranks of a sparse
// attention model that run out in sparse decode after 61 hours. The figures of
// the failed allocation are those reported (vllm#53413); weights, activation
// and KV size are invented so that the parts add up.
func seedDocument() matcher.Document {
	return matcher.Document{
		Schema:    matcher.Schema,
		Tool:      matcher.Tool{Version: "0.1.0", Catalog: "2026-11-30"},
		Inputs:    []matcher.Input{{Name: "/var/log/vllm/vllm.log", Bytes: 482133, Lines: ptr(int64(2417)), Framing: "plain"}},
		Incidents: []matcher.Incident{seedIncident()},
	}
}

func seedIncident() matcher.Incident {
	i := matcher.Incident{
		ID: "9f86d081884c", Status: matcher.StatusNew, Occurrences: 1,
		Time: matcher.Time{Basis: "MM-DD HH:MM:SS, no year or zone"},
		Engine: matcher.Engine{
			Name: "vllm", Version: ptr("0.24.0"), Model: ptr("zai-org/GLM-5.2-FP8"),
			Flags: map[string]matcher.Flag{
				"max-num-batched-tokens": {Value: "32768", Basis: "arguments", At: at(7)},
				"gpu-memory-utilization": {Value: "0.9", Basis: "arguments", At: at(7)},
				"kv-cache-dtype":         {Value: "fp8", Basis: "arguments", At: at(7)},
				"enable-prefix-caching":  {Value: "true", Basis: "default"},
			},
		},
		Phase: "runtime",
		Verdict: matcher.Verdict{
			Family: "workspace_driven", Class: "workspace", Mechanism: ptr("flashmla-sparse-mixed-batch"), Confidence: "high",
			Summary: "A mixed batch filled the token budget of 32768, and FlashMLA's sparse decode kernel asked for an 8.00 GiB scratch buffer that memory profiling never saw; 6.40 GiB was free. The KV cache was nearly empty (5.4 %), so this is not KV pressure and more utilisation makes it worse.",
		},
		Root: matcher.Root{
			Kind:  "oom",
			Text:  "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 6.40 GiB is free. Including non-PyTorch memory, this process has 133.39 GiB memory in use. Of the allocated memory 124.39 GiB is allocated by PyTorch, with 3.23 GiB allocated in private pools (e.g., CUDA Graphs), and 5.01 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
			Frame: ptr("sparse_decode_fwd"), At: at(812),
		},
		Budget: []matcher.Budget{{
			Process: "Worker_TP0", GPU: ptr(0),
			TotalBytes:       part(139.80, matcher.Established, 812),
			FreeAtStartBytes: part(139.21, matcher.Established, 61),
			RequestedBytes:   part(125.82, matcher.Computed, 7),
			WeightsBytes:     part(88.12, matcher.Established, 48),
			PeakActivation:   part(7.20, matcher.Established, 61),
			NonTorchBytes:    part(2.40, matcher.Established, 61),
			GraphActual:      part(3.10, matcher.Established, 58),
			KVCacheBytes:     part(28.10, matcher.Established, 52),
			OutsideBytes:     part(4.00, matcher.Computed, 812),
			KVCacheTokens:    &matcher.BudgetPart{Value: 490544, Grade: matcher.Established, At: at(53)},
		}},
		KVCache: &matcher.KVCache{UsagePct: ptr(5.4), Running: ptr(8), Waiting: ptr(0), AgeSeconds: ptr(41), At: at(790)},
		Evidence: []matcher.Evidence{
			{Grade: matcher.Established, Statement: "All 8 ranks failed in sparse_decode_fwd within one step; the core's KeyError and every EngineDeadError came after.", At: lines(812, 921, 1030, 1139, 1248)},
			{Grade: matcher.Established, Statement: "The mixed-batch path was in use: 8 heads per rank, padded to 64.", At: lines(57)},
			{Grade: matcher.Computed, Statement: "The allocation that failed is the split-KV accumulator of a full step, to the byte.", Formula: ptr("2 x 32768 tokens x 64 heads x 512 x 4 B = 8.00 GiB"), At: lines(7, 812)},
			{Grade: matcher.Computed, Statement: "The whole call needs 410,368 B a token outside the profile; what was live before the accumulator was already taken from the free memory.", Formula: ptr("32768 x 410,368 B = 12.52 GiB (6.26 at 16384, 3.13 at 8192)"), At: lines(7)},
			{Grade: matcher.Computed, Statement: "Missing at the failure.", Formula: ptr("8.00 - 6.40 = 1.60 GiB; with the margin of 1.40 GiB: 3.00 GiB"), At: lines(812)},
			{Grade: matcher.Inferred, Statement: "The formula tokens x index_topk x index_head_dim gives the same 8.00 GiB here by coincidence; no such tensor exists."},
		},
		RuledOut: []matcher.RuledOut{
			{Class: "kv_pressure", Because: "KV cache usage was 2.0 to 5.4 % with at most 8 requests and none waiting; a full cache preempts requests and allocates nothing.", At: lines(702, 746, 790)},
			{Class: "other_process", Because: "the memory in use is all this process's.", At: lines(812)},
			{Class: "cudagraph", Because: "the private pools hold 3.23 GiB, allocated at start.", At: lines(58, 812)},
		},
		Contributing: []matcher.Contributing{
			{Class: "fragmentation", Statement: "5.01 GiB was reserved but unallocated and would have covered the missing 1.60 GiB in one piece; it lies in split segments.", At: lines(812)},
		},
		Consequences: []matcher.Consequence{
			{Kind: "core_secondary", What: "KeyError in EngineCore", Count: 1, At: at(1702)},
			{Kind: "engine_dead", What: "EngineDeadError in APIServer", Count: 37, At: at(1715)},
			{Kind: "http_500", What: "500 Internal Server Error", Count: 8, At: at(1731)},
		},
		Remedies: []matcher.Remedy{
			{
				Rank: 1, Title: "Halve the token budget and pin the KV cache at its present size", Grade: "computed",
				Set:    map[string]string{"--max-num-batched-tokens": "16384", "--kv-cache-memory-bytes": "30172145254"},
				Why:    "the call shrinks from 12.52 to 6.26 GiB; pinned, the KV cache cannot grow into the room.",
				Expect: "4.65 GiB free at the worst step, margin 1.40.",
				Costs:  "long prefills take twice the steps; --gpu-memory-utilization is ignored.",
				Refs:   []string{"vllm#53413"},
			},
			{
				Rank: 2, Title: "Lower utilisation, nothing else", Grade: "computed",
				Set:    map[string]string{"--gpu-memory-utilization": "0.87"},
				Why:    "0.90 - (8.00 - 6.40 + 1.40) / 139.80 = 0.8785, rounded down.",
				Expect: "4.19 GiB more headroom.",
				Costs:  "the KV cache shrinks from 28.10 to 23.91 GiB; at 5.4 % usage nobody notices.",
			},
			{
				Rank: 3, Title: "Pin the KV cache 3.00 GiB smaller, nothing else", Grade: "computed",
				Set:    map[string]string{"--kv-cache-memory-bytes": "26950919782"},
				Why:    "28.10 - (8.00 - 6.40 + 1.40) = 25.10 GiB.",
				Expect: "9.40 GiB free when the 8.00 GiB are asked for.",
				Costs:  "--gpu-memory-utilization is ignored.",
			},
			{
				Rank: 4, Title: "Quarter the token budget and let the KV cache grow", Grade: "computed",
				Set:    map[string]string{"--max-num-batched-tokens": "8192"},
				Why:    "the profile shrinks by 5.40 GiB, which the KV cache takes; 32768 x (6.40 + 4.51 - 1.40 - 7.20) / (12.51 - 7.20) = 14,255 tokens at most.",
				Expect: "3.13 GiB for the call.",
				Costs:  "prefill throughput.",
			},
			{
				Rank: 5, Title: "What one site runs: 8192 tokens and utilisation 0.945", Grade: "field_report",
				Set:    map[string]string{"--max-num-batched-tokens": "8192", "--gpu-memory-utilization": "0.945"},
				Why:    "two months on 4 x H200, with two local patches to flashmla_sparse.py, one of which is itself a fix; the token budget is the lever, not the utilisation.",
				Expect: "not computed.", Costs: "as step 4, with less room.", Refs: []string{"vllm#53413"},
			},
			{
				Rank: 6, Title: "Install the one release without the buffer", Grade: "upstream_fix", UpgradeTo: ptr("0.29.0"),
				Why:    "0.29.0 does not allocate the accumulator (vllm#53755); 0.30.0 to 0.33.0 do again on Hopper (FlashMLA#20). Read in the releases, not run.",
				Expect: "4.51 GiB for the call at 32768 tokens.", Costs: "an upgrade that is a dead end until a later release has the fix again.",
				Refs: []string{"vllm#53755", "FlashMLA#20"},
			},
			{
				Rank: 7, Title: "Send long prefills to a separate instance", Grade: "inferred",
				Why: "prefill/decode disaggregation keeps the token budget of the decoding server small.", Costs: "a second deployment.",
			},
		},
		DoNot: []matcher.DoNot{
			{Change: "raise --gpu-memory-utilization alone", Because: "it goes to the KV cache: 0.90 to 0.945 takes 6.29 GiB from the headroom and leaves 0.11 GiB."},
			{Change: "set expandable_segments, as PyTorch suggests", Because: "with tensor parallelism it can kill the server at start unless --disable-custom-all-reduce is set (vllm#42609)."},
			{Change: "upgrade to the newest release", Because: "0.30.0 to 0.33.0 have lost the fix on Hopper."},
		},
		Verify: []string{
			"Repeat the load: prompts of at least the token budget together with decoding requests.",
			"Least free memory per GPU at the worst step is at least 1.40 GiB (nvidia-smi); no new OOM for a week.",
			"Peak below utilisation x total is no test: CUDA context and NCCL lie outside the budget, a healthy server exceeds it.",
		},
		Missing:    []string{"heads of the model: read from the log's padding notice, not from its config.json"},
		References: []string{"vllm#53413", "vllm#53755", "FlashMLA#20"},
	}
	for n := range 8 {
		name, line := "Worker_TP"+strconv.Itoa(n), int64(812+109*n)
		i.Ranks = append(i.Ranks, matcher.Rank{Process: name, PID: ptr(615 + n), GPU: ptr(n), At: at(line)})
		free := 6.40
		if n > 0 {
			free += 0.02
		}
		i.OOM = append(i.OOM, matcher.OOM{
			Process: name, GPU: ptr(n), TriedBytes: sizeOf(8.00), TotalBytes: sizeOf(139.80), FreeBytes: sizeOf(free),
			ProcessBytes: sizeOf(133.39), AllocatedBytes: sizeOf(124.39), PrivatePoolsBytes: sizeOf(3.23),
			ReservedUnallocatedBytes: sizeOf(5.01), At: at(line),
			Precision: map[string]int64{"tried_bytes": 5368709, "free_bytes": 5368709},
		})
	}
	return i
}

// unknownDocument died of something that no entry knows, in a file that was not
// read from its start.
func unknownDocument() matcher.Document {
	return matcher.Document{
		Schema: matcher.Schema,
		Tool:   matcher.Tool{Version: "0.1.0", Catalog: "2026-11-30"},
		Inputs: []matcher.Input{{
			Name: "/var/log/pods/a/vllm.log", Bytes: 10737418240, Framing: "cri",
			Skipped: []matcher.Skipped{{Offset: 0, Bytes: 10737000000, Why: "read from the end back to the start banner"}},
		}},
		Incidents: []matcher.Incident{{
			ID: "0123456789ab", Status: matcher.StatusRecurring, Occurrences: 3, RecurrenceOf: ptr("00aa11bb22cc"),
			Pod: ptr("vllm-0"), Time: matcher.Time{First: ptr("2026-11-30T02:34:03Z"), Last: ptr("2026-11-30T02:34:09Z"), Basis: "RFC 3339 from CRI"},
			Engine: matcher.Engine{Name: "vllm", Version: ptr("0.31.0")},
			Phase:  "runtime",
			Ranks:  []matcher.Rank{{Process: "EngineCore", PID: ptr(614), At: &matcher.At{Offset: ptr(int64(10737412345))}}},
			Verdict: matcher.Verdict{
				Family: "unknown", Class: "unknown", Confidence: "low",
				Summary: "The engine core ended without an exception in this log. What ended it is not in the part that was read.",
			},
			Root: matcher.Root{Kind: "process_died", Text: "Engine core process died unexpectedly", At: &matcher.At{Offset: ptr(int64(10737412345))}},
			Evidence: []matcher.Evidence{
				{Grade: matcher.Established, Statement: "The core was gone before any worker wrote an error.", At: []matcher.At{{Offset: ptr(int64(10737412345))}}},
			},
			Missing: []string{"the kernel's view: journalctl -k --since '2026-11-30 02:30'", "the start of the log: its banner and arguments"},
			DoNot:   []matcher.DoNot{{Change: "change memory settings", Because: "nothing in the log says that memory ran out."}},
		}},
	}
}

// severalDocument holds two incidents in two files of one name, the second
// refused at start, and an observation.
func severalDocument() matcher.Document {
	d := seedDocument()
	d.Inputs = append(d.Inputs, matcher.Input{Name: "/srv/b/vllm.log", Bytes: 9000, Lines: ptr(int64(80)), Framing: "journald short"})
	d.Incidents = append(d.Incidents, matcher.Incident{
		ID: "abcdef012345", Status: matcher.StatusHistoric, Occurrences: 1, Phase: "startup",
		Engine: matcher.Engine{Name: "vllm", Version: ptr("0.25.1")},
		Verdict: matcher.Verdict{
			Family: "capacity", Class: "profiling", Confidence: "medium",
			Summary: "One request of the full model length needs 512.00 GiB of KV cache and 112.00 GiB are there. No utilisation gives the rest.",
		},
		Root: matcher.Root{
			Kind: "startup_refused", Text: "ValueError: To serve at least one request with the models's max seq len (8388608), 512.0 GiB KV cache is needed, which is larger than the available KV cache memory (112.0 GiB).",
			At: &matcher.At{Source: 1, Line: ptr(int64(61)), Offset: ptr(int64(7000))},
		},
		OOM: []matcher.OOM{{Process: "Worker", Masked: true, At: &matcher.At{Source: 1, Line: ptr(int64(62)), Offset: ptr(int64(7100))}}},
		Remedies: []matcher.Remedy{{
			Rank: 1, Title: "Use the model length that the log prints", Grade: "computed",
			Set: map[string]string{"--max-model-len": "1835008", "env:VLLM_LOGGING_LEVEL": "DEBUG", "--enforce-eager": ""}, Unset: []string{"--kv-cache-memory-bytes"},
			Why: "it is what fits into 112.00 GiB.",
		}},
		Restarted: &matcher.Restarted{
			At:          &matcher.At{Source: 1, Line: ptr(int64(70)), Offset: ptr(int64(8000))},
			ChangesMade: []string{"--max-model-len 1835008"}, ChangesMissing: []string{"--enforce-eager"},
		},
		Followup: &matcher.Followup{
			RestartedAt: ptr("2026-11-30T03:00:00Z"), HeldSince: ptr("2026-11-30T03:01:00Z"),
			ChangesMade: []string{"--max-model-len 1835008"}, Withdrawn: []string{"lower utilisation"},
			BudgetNow: []matcher.Budget{{Process: "Worker", GPU: ptr(0), KVCacheBytes: part(112, matcher.Established, 75)}},
		},
	})
	d.Observations = []matcher.Incident{healthyNote()}
	return d
}

func healthyNote() matcher.Incident {
	return matcher.Incident{
		ID: "fedcba987654", Status: matcher.StatusNew, Occurrences: 1, Phase: "runtime",
		Engine: matcher.Engine{Name: "vllm", Version: ptr("0.25.1"), Model: ptr("meta-llama/Llama-3.1-8B-Instruct")},
		Verdict: matcher.Verdict{
			Family: "kv_pressure", Class: "kv_pressure", Confidence: "medium",
			Summary: "The KV cache was at 98.7 % with 5 requests waiting. Nothing failed.",
		},
		Root:    matcher.Root{Kind: "unknown", Text: "Engine 000: Running: 33 reqs, Waiting: 5 reqs, GPU KV cache usage: 98.7%", At: at(300)},
		KVCache: &matcher.KVCache{UsagePct: ptr(98.7), Running: ptr(33), Waiting: ptr(5), At: at(300)},
	}
}

// quietDocument found no failure.
func quietDocument() matcher.Document {
	return matcher.Document{
		Schema:       matcher.Schema,
		Tool:         matcher.Tool{Version: "0.1.0", Catalog: "2026-11-30"},
		Inputs:       []matcher.Input{{Name: "-", Bytes: 90112, Lines: ptr(int64(812)), Framing: "plain"}},
		Observations: []matcher.Incident{healthyNote()},
	}
}
