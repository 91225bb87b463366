package matcher

import (
	"strings"

	"diagnose/parser"
)

// startFrames and stepFrames are functions of vLLM that only a start, or only a
// step of a running engine, passes through.
var (
	startFrames = []string{
		"load_model", "profile_run", "determine_available_memory", "capture_model", "initialize_from_config",
		"initialize_kv_cache", "_initialize_kv_caches", "compile_or_warm_up_model", "kernel_warmup", "init_device",
		"_dummy_sampler_run", "profile_cudagraph_memory", "_allocate_kv_cache_tensors", "_allocate_kv_cache",
		"create_weights", "load_weights", "process_weights_after_loading", "initialize_model", "_init_executor",
		"warmup_kernels", "get_kv_cache_configs", "check_enough_kv_cache_memory", "from_engine_args", "create_engine_config",
	}
	stepFrames = []string{
		"execute_model", "sample_tokens", "run_busy_loop", "worker_busy_loop", "_process_engine_step", "step_with_batch_queue",
		"engine_step", "run_engine_loop", "wake_up", "generate", "step", "_run_engine",
	}
)

// phaseOf tells when in its run's life a failure happened.
func (r *run) phaseOf(f *failure) string {
	if afterStop(r, f.ev.At) {
		return "shutdown"
	}
	frames := allFrames(f)
	if fr, _ := findFrame(frames, startFrames); fr != nil {
		return "startup"
	}
	first := f.rec.First()
	if strings.HasPrefix(first, "EngineCore failed to start") || strings.HasPrefix(first, "WorkerProc failed to start") {
		return "startup"
	}
	if r.ready != nil && r.ready.Before(f.ev.At) {
		return "runtime"
	}
	if fr, _ := findFrame(frames, stepFrames); fr != nil {
		return "runtime"
	}
	if len(r.stats) > 0 || len(r.dump) > 0 || strings.HasPrefix(first, "EngineCore encountered a fatal error") {
		return "runtime"
	}
	if r.startFailed && r.ready == nil {
		return "startup"
	}
	return r.phaseAt(f.ev.At)
}

func (r *run) phaseAt(at parser.Pos) string {
	switch {
	case r.stop != nil && r.stop.Before(at):
		return "shutdown"
	case r.ready != nil && r.ready.Before(at):
		return "runtime"
	case r.ready == nil && r.banner && (r.hasArgs || r.version != ""):
		return "startup"
	case len(r.stats) > 0:
		return "runtime"
	}
	return "unknown"
}

// died tells whether the run shows that its engine died, as against an error
// of one request.
func (r *run) died() bool {
	if r.fatal() || r.dying || len(r.dump) > 0 || r.consq.count("engine_dead") > 0 {
		return true
	}
	for _, l := range r.lines {
		if l.sig.Alone && r.lineCounts(l) && l.entry.Role == "failure" && !r.outlived(l) {
			return true
		}
	}
	return false
}
