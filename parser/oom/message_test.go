package oom

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	h1 = " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
	h2 = " If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
	h3 = " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
	h4 = " If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
	h5 = " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)

var full = sentence("8.00 GiB", "139.80 GiB", "6.40 GiB", []string{"522 20.51 GiB", "this 112.88 GiB"}, "120.00 GiB", "104.39 GiB", "3.23 GiB", "5.01 GiB")

// show is a message on one line: form, vendor, what was printed, marks.
func show(m Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", m.Form, m.Vendor)
	for _, part := range []struct {
		name string
		size *Size
	}{
		{"T", m.Tried},
		{"C", m.Total},
		{"F", m.Free},
		{"self", m.Self},
		{"L", m.Allowed},
		{"A", m.Allocated},
		{"P", m.PrivatePools},
		{"U", m.Unallocated},
		{"R", m.ReservedTotal},
	} {
		if part.size != nil {
			fmt.Fprintf(&b, " %s=%s", part.name, strings.ReplaceAll(part.size.Text, " ", ""))
		}
	}
	for _, p := range m.Others {
		fmt.Fprintf(&b, " %d=%s", p.PID, strings.ReplaceAll(p.Size.Text, " ", ""))
	}
	if m.GPU != nil {
		fmt.Fprintf(&b, " gpu%d", *m.GPU)
	}
	for _, mark := range []struct {
		name string
		set  bool
	}{
		{m.Hint, m.Hint != ""},
		{"unhinted", m.Unhinted},
		{"masked", m.Masked},
		{"presumed", m.Presumed},
		{"host", m.Host},
		{"carried", m.Carried},
		{m.Op, m.Op != ""},
	} {
		if mark.set {
			b.WriteString(" " + mark.name)
		}
	}
	return b.String()
}

// The literals of the families, each as an exception would say it.
var literals = []struct{ name, text, want string }{
	{
		"1.0 to 1.3",
		"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.92 GiB total capacity; 9.51 GiB already allocated; 6.94 MiB free; 120.50 MiB cached)",
		"old CUDA T=20.00MiB C=10.92GiB F=6.94MiB A=9.51GiB R=120.50MiB gpu0",
	},
	{
		"1.4 to 1.12",
		"RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 3; 23.69 GiB total capacity; 22.06 GiB already allocated; 5.44 MiB free; 22.32 GiB reserved in total by PyTorch)",
		"old CUDA T=1.50GiB C=23.69GiB F=5.44MiB A=22.06GiB R=22.32GiB gpu3",
	},
	{
		"1.13 and 2.0 with a limit",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 23.69 GiB total capacity; 11.06 GiB already allocated; 12.00 GiB free; 11.84 GiB allowed; 11.32 GiB reserved in total by PyTorch)" + h1,
		"old CUDA T=1.50GiB C=23.69GiB F=12.00GiB L=11.84GiB A=11.06GiB R=11.32GiB gpu0 H1",
	},
	{
		"2.1, sic capacty",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 1 has a total capacty of 23.69 GiB of which 22.81 MiB is free. Including non-PyTorch memory, this process has 23.66 GiB memory in use. Of the allocated memory 22.46 GiB is allocated by PyTorch, and 1.01 GiB is reserved by PyTorch but unallocated." + h2,
		"modern CUDA T=64.00MiB C=23.69GiB F=22.81MiB self=23.66GiB A=22.46GiB U=1.01GiB gpu1 H2",
	},
	{
		"2.4",
		"torch.OutOfMemoryError: " + strings.Replace(full, "120.00 GiB allowed; ", "", 1) + h3,
		"modern CUDA T=8.00GiB C=139.80GiB F=6.40GiB self=112.88GiB A=104.39GiB P=3.23GiB U=5.01GiB 522=20.51GiB gpu0 H3",
	},
	{"2.10", "torch.OutOfMemoryError: " + full + h4, fullShown + " H4"},
	{"2.11", "torch.OutOfMemoryError: " + full + h5, fullShown + " H5"},
	{"2.14, expandable segments on", "torch.OutOfMemoryError: " + full, fullShown + " unhinted"},
	{"of rank 0", "[rank0]: torch.OutOfMemoryError: " + full + h5, fullShown + " H5"},
	{"double spaces lost", "torch.OutOfMemoryError: " + strings.ReplaceAll(full+h5, "  ", " "), fullShown + " H5"},
	{"as a repr", "OutOfMemoryError('" + full + h3 + "')", fullShown + " H3"},
	{"as a repr without hint", "OutOfMemoryError('" + full + "')", fullShown + " unhinted"},
	{"by the worker", "RuntimeError: Worker failed with error '" + full + h5 + "', please check the stack trace above for the root cause", fullShown + " H5"},
	{"by the model loader", "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free memory for weights. (original error: " + full + h5 + ")", fullShown + " H5"},
	{"by V0", "Error in model execution (input dumped to /tmp/err_execute_model_input_20241219-120000.pkl): " + full + h3, fullShown + " H3"},
	{"companion of 2.11", "[E1129 22:47:39.075330322 shim_common.cpp:460] Exception in aoti_torch: " + full + h5 + "\nException raised from malloc at /pytorch/c10/cuda/CUDACachingAllocator.cpp:1574 (most recent call first):\nframe #0: c10::Error::Error()", fullShown + " H5"},
	{"companion of an extension", "[22:47:39 /torch/csrc/stable/ops.h:77] Exception across libtorch C API boundary: " + full + "\nException raised from malloc at /pytorch/c10/cuda/CUDACachingAllocator.cpp:1574", fullShown + " unhinted"},
	{
		"carried",
		"RuntimeError: " + full + ` (originally from torch_call_dispatcher( "aten::new_empty", "", stack.data(), TORCH_ABI_VERSION) API call failed at /deps/torch/include/torch/csrc/stable/ops.h, line 933)`,
		fullShown + " unhinted carried aten::new_empty",
	},
	{
		"TorchScript",
		"RuntimeError: The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most recent call last):\n    return torch.empty([8])\n           ~~~~~~~~~~~ <--- HERE\nRuntimeError: " + full + h5 + "\n",
		fullShown + " H5",
	},
	{"wrapped by TVM", "tvm.error.InternalError: " + full + h5, fullShown + " H5"},
	{"by TVM alone", "tvm.error.InternalError: CUDA out of memory", "tvm CUDA masked"},
	{
		"the process under dots for a pid",
		"CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 777.00 MiB is free. Process ... has 78.35 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 2.00 GiB is reserved by PyTorch but unallocated.",
		"modern CUDA T=1.00GiB C=79.11GiB F=777.00MiB A=70.00GiB U=2.00GiB 0=78.35GiB gpu0 unhinted",
	},
	{
		"without Including",
		"CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 94.97 GiB of which 1.23 GiB is free. This process has 93.73 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 2.00 GiB is reserved by PyTorch but unallocated.",
		"modern CUDA T=1.00GiB C=94.97GiB F=1.23GiB self=93.73GiB A=70.00GiB U=2.00GiB gpu0 unhinted",
	},
	{
		"ROCm, a variable of its own",
		"HIP out of memory. Tried to allocate 256.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 25.38 GiB is free. Of the allocated memory 50.00 GiB is allocated by PyTorch, with 17.00 MiB allocated in private pools (e.g., HIP Graphs), and 54.99 MiB is reserved by PyTorch but unallocated." + strings.ReplaceAll(h4, "PYTORCH_ALLOC", "PYTORCH_HIP_ALLOC"),
		"modern HIP T=256.00GiB C=80.00GiB F=25.38GiB A=50.00GiB P=17.00MiB U=54.99MiB gpu0",
	},
	{
		"no vendor",
		"RuntimeError: Out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is free. Of the allocated memory 7.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated." + h4,
		"modern  T=2.00MiB C=8.00GiB F=0bytes A=7.00GiB U=0bytes gpu0 H4",
	},
	{
		"XPU, old",
		"XPU out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 15.91 GiB. Of the allocated memory 14.00 GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated. Please use `empty_cache` to release all unoccupied cached memory.",
		"modern XPU T=3.00GiB C=15.91GiB A=14.00GiB U=1.00MiB gpu0",
	},
	{
		"XPU, new",
		"XPU out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 15.91 GiB of which 1.00 GiB is free. 8.00 GiB allowed; Of the allocated memory 14.00 GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated. Please use `empty_cache` to release all unoccupied cached memory.",
		"modern XPU T=3.00GiB C=15.91GiB F=1.00GiB L=8.00GiB A=14.00GiB U=1.00MiB gpu0",
	},
	{
		"MLU, sic no space",
		"MLU out of memory. Tried to allocate 1.00 GiB. MLU 2 has a total capacity of 79.35 GiB of which 512.00 MiBis free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.",
		"modern MLU T=1.00GiB C=79.35GiB F=512.00MiB A=70.00GiB U=1.00GiB gpu2 unhinted",
	},
	{
		"GCU",
		"GCU out of memory. Tried to allocate 1.00 GiB. GCU 0 has a total capacity of 41.00 GiB of which 5.00 MiB is free. ",
		"modern GCU T=1.00GiB C=41.00GiB F=5.00MiB gpu0",
	},
	{
		"MUSA",
		"MUSA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 47.00 GiB of which 5.00 MiB is free. Of the allocated memory 40.00 GiB is allocated by PyTorch, with 64.00 MiB allocated in private pools (e.g., MUSA Graphs), and 1.00 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_MUSA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
		"modern MUSA T=1.00GiB C=47.00GiB F=5.00MiB A=40.00GiB P=64.00MiB U=1.00GiB gpu0",
	},
	{
		"NPU",
		"NPU out of memory. Tried to allocate 2.00 GiB (NPU 5; 60.97 GiB total capacity; 57.00 GiB already allocated; 56.50 GiB current active; 1.20 GiB free; 58.00 GiB allowed; 58.10 GiB reserved in total by PyTorch).If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
		"npu NPU T=2.00GiB C=60.97GiB F=1.20GiB L=58.00GiB A=57.00GiB R=58.10GiB gpu5 H1",
	},
	{
		"NPU workspace",
		"NPU out of memory. NPUWorkspaceAllocator tried to allocate 2.00 GiB(NPU 5; 60.97 GiB total capacity; 1.20 GiB free). If you want to reduce memory usage, take a try to set the environment variable TASK_QUEUE_ENABLE=1.\n",
		"npu-workspace NPU T=2.00GiB C=60.97GiB F=1.20GiB gpu5",
	},
	{"NPU device", "RuntimeError: NPU out of memory. device id: 3", "npu-device NPU masked"},
	{"NPU pinned", "Malloc pin memory failed, host out of memory, Rried to allocate size: 4096, ", "npu-pinned NPU T=4096bytes host"},
	{
		"MPS",
		"RuntimeError: MPS backend out of memory (MPS allocated: 5.05 GB, other allocations: 2.29 GB, max allowed: 6.77 GB). Tried to allocate 1024.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure).",
		"mps MPS T=1024.00MB L=6.77GB A=5.05GB",
	},
	{"MPS buffer", "RuntimeError: Invalid buffer size: 14.06 GiB", "mps MPS T=14.06GiB"},
	{"exabyte", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.", "exabyte CUDA"},
	{
		"refused beforehand",
		"CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit. Requested size: 4.00 GiB",
		"preempted CUDA T=4.00GiB",
	},
	{
		"cudaMallocAsync",
		"Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 135.29 GiB\nRequested               : 8.00 GiB\nDevice limit            : 139.80 GiB\nFree (according to CUDA): 31.12 MiB\nPyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB",
		"async CUDA T=8.00GiB C=139.80GiB F=31.12MiB L=17179869184.00GiB A=135.29GiB gpu0",
	},
	{
		"cudaMallocAsync as a repr",
		`OutOfMemoryError('Allocation on device 1 would exceed allowed memory. (out of memory)\nCurrently allocated     : 70.00 GiB\nRequested               : 8.00 GiB\nDevice limit            : 79.00 GiB\nFree (according to CUDA): 31.12 MiB\nPyTorch limit (set by user-supplied memory fraction)\n                        : 75.00 GiB')`,
		"async CUDA T=8.00GiB C=79.00GiB F=31.12MiB L=75.00GiB A=70.00GiB gpu1",
	},
	{
		"masked",
		`RuntimeError: torch_call_dispatcher( "aten::new_empty", "", stack.data(), ( ((0ULL + 2) << 56) | ((0ULL + 13) << 48) | ((0ULL + 0) << 40) | ((0ULL + 0) << 0))) API call failed at /deps/torch/include/torch/csrc/stable/ops.h, line 91`,
		"masked-dispatcher  masked presumed aten::new_empty",
	},
	{
		"masked, 0.26",
		`RuntimeError: Worker failed with error 'torch_call_dispatcher( "aten::empty.memory_format", "", stack.data(), TORCH_ABI_VERSION) API call failed at /deps/torch/csrc/stable/ops.h, line 933', please check the stack trace above for the root cause`,
		"masked-dispatcher  masked presumed aten::empty.memory_format",
	},
	{
		"NVML refuses",
		`RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "/pytorch/c10/cuda/CUDACachingAllocator.cpp":1016, please report a bug to PyTorch.`,
		"nvml-assert CUDA masked",
	},
	{
		"NVML does not start",
		`RuntimeError: NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":963, please report a bug to PyTorch.`,
		"nvml-assert CUDA masked",
	},
	{
		"expandable segments",
		`RuntimeError: !handles_.at(i) INTERNAL ASSERT FAILED at "/pytorch/c10/cuda/CUDACachingAllocator.cpp":421, please report a bug to PyTorch.`,
		"handles-assert CUDA masked presumed",
	},
	{
		"sampler",
		"RuntimeError: CUDA out of memory occurred when warming up sampler with 400 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.",
		"sampler-warmup CUDA masked",
	},
	{
		"pooler",
		"RuntimeError: CUDA out of memory occurred when warming up pooler (task='embed') with 400 dummy requests. Please try lowering `max_num_seqs`.",
		"pooler-warmup CUDA masked",
	},
	{
		"sampler with its cause before it",
		"torch.OutOfMemoryError: " + full + h5 + "\n\nThe above exception was the direct cause of the following exception:\n\nRuntimeError: CUDA out of memory occurred when warming up sampler with 400 dummy requests.",
		fullShown + " H5",
	},
	{
		"CUDA runtime",
		"torch.AcceleratorError: CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n",
		"cuda-runtime CUDA masked",
	},
	{
		"HIP runtime",
		"RuntimeError: HIP error: out of memory\nSearch for `hipErrorOutOfMemory' in https://rocm.docs.amd.com/projects/HIP/en/latest/index.html for more information.\nHIP kernel errors might be asynchronously reported at some other API call",
		"cuda-runtime HIP masked",
	},
	{"driver", "RuntimeError: CUDA driver error: out of memory", "driver CUDA masked"},
	{"driver's log", "[22:48:34.783][139702030184768][CUDA][E] Returning 2 (CUDA_ERROR_OUT_OF_MEMORY) from cuDevicePrimaryCtxRetain", "driver-log CUDA masked"},
	{"HSA", "HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources.", "hsa HIP masked"},
	{"cuBLAS", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "cublas-alloc CUDA masked"},
	{"cuDNN", "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "cudnn-alloc CUDA masked"},
	{"cuDNN, as measured", "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", "cudnn-internal CUDA masked presumed"},
	{"NCCL warning", "node1:12:345 [1] transport/p2p.cc:24 NCCL WARN Cuda failure 'out of memory'", "nccl-oom CUDA masked"},
	{"NCCL warning, driver call", "node1:12:345 [1] include/alloc.h:99 NCCL WARN Cuda failure 2 'out of memory'", "nccl-oom CUDA masked"},
	{"NCCL size", "node1:12:345 [1] include/alloc.h:205 NCCL WARN Failed to CUDA calloc async 6291456 bytes", "nccl-oom CUDA T=6291456bytes"},
	{"NCCL host", "node1:12:345 [1] include/alloc.h:20 NCCL WARN Failed to malloc 6291456 bytes", "nccl-host  T=6291456bytes host"},
	{
		"NCCL through torch",
		"torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.5\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 'out of memory'",
		"nccl-oom CUDA masked",
	},
	{"Triton", "RuntimeError: Triton Error [CUDA]: out of memory", "triton-oom CUDA masked"},
	{"cumem", "CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:139", "cumem CUDA masked"},
	{"cumem on wake-up", "Failed to wake up allocator: CUDA Error: out of memory at csrc/cumem_allocator.cpp:139. Rolling back 12 successfully mapped allocations.", "cumem CUDA masked"},
	{"cumem in a reply", `{"error":{"message":"Call to wake_up method failed: CUDA Error: out of memory at <path>:163","type":"InternalServerError"}}`, "cumem CUDA masked"},
	{"DeepEP", "RuntimeError: CUDA runtime exception (/deep_ep/csrc/buffer.cpp:77): 2 (cudaErrorMemoryAllocation, out of memory)", "deepep CUDA masked"},
	{"DeepEP, driver", "RuntimeError: CUDA driver exception (/deep_ep/csrc/buffer.cpp:77): 2 (CUDA_ERROR_OUT_OF_MEMORY, out of memory)", "deepep CUDA masked"},
	{"DeepEP, old", "RuntimeError: Failed: CUDA error /deep_ep/csrc/buffer.cpp:77 'out of memory'", "deepep CUDA masked"},
	{"DeepGEMM", "RuntimeError: CUDA runtime error (/deep_gemm/csrc/handle.hpp:77): 2 (cudaErrorMemoryAllocation, out of memory)", "deepgemm CUDA masked"},
	{"DeepGEMM, cuBLASLt", "RuntimeError: cuBLASLt error (/deep_gemm/csrc/cublaslt.hpp:77): 3 (CUBLAS_STATUS_ALLOC_FAILED)", "deepgemm CUDA masked"},
	{"NVSHMEM", "/nvshmem/src/mem_heap.cpp:492: non-zero status: 2 cuMemCreate failed", "nvshmem CUDA masked"},
	{"NVSHMEM, runtime", "[/nvshmem/src/util.h:77] cuda failed with out of memory", "nvshmem CUDA masked"},
	{"NVSHMEM heap", "/nvshmem/src/mem.cpp:nvshmem_malloc:77: nvshmem malloc failed (hint: check if total allocation has exceeded NVSHMEM symmetric size = 1073741824, set NVSHMEM_SYMMETRIC_SIZE)", "nvshmem-heap CUDA masked"},
	{
		"CuPy",
		"cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1,234,567,680 bytes (allocated so far: 9,876,544 bytes, limit set to: 10,000,000 bytes).",
		"cupy CUDA T=1234567680bytes L=10000000bytes A=9876544bytes",
	},
	{"CuPy, runtime", "cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorMemoryAllocation: out of memory", "cupy CUDA masked"},
	{"vLLM's CUDART", "RuntimeError: CUDART error: out of memory", "cudart CUDA masked"},
	{"vLLM's kernels", "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:455 'out of memory'", "custom-kernel CUDA masked"},
	{
		"host, torch",
		"RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 1125899906842624 bytes. Error code 12 (Cannot allocate memory)",
		"cpu-alloc  T=1125899906842624bytes host",
	},
	{"host, Python", "MemoryError", "python-memoryerror  masked host"},
	{"host, Python repr", "MemoryError()", "python-memoryerror  masked host"},
	{"host, numpy", "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8.00 GiB for an array with shape (1073741824,) and data type float64", "python-memoryerror  T=8.00GiB host"},
	{"host, fork", "OSError: [Errno 12] Cannot allocate memory", "errno-12  masked host"},
	{"a head cut short", "torch.OutOfMemoryError: CUDA out of memory. Tried to alloc", "bare CUDA masked"},
	{"a head without a figure", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.0", "modern CUDA masked"},
	{"a head alone", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB", "modern CUDA T=8.00GiB"},
	{"a class alone", "torch.OutOfMemoryError:", "bare  masked"},
	{"of two, the one with figures", "RuntimeError: CUDA error: out of memory\nRuntimeError: " + full, fullShown + " unhinted"},
	{"of two, the first", "RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 7 has a\nRuntimeError: " + full, "modern CUDA T=1.00GiB"},
}

const fullShown = "modern CUDA T=8.00GiB C=139.80GiB F=6.40GiB self=112.88GiB L=120.00GiB A=104.39GiB P=3.23GiB U=5.01GiB 522=20.51GiB gpu0"

func TestLiterals(t *testing.T) {
	for _, tt := range literals {
		t.Run(tt.name, func(t *testing.T) {
			m, ok := Parse(tt.text)
			if !ok {
				t.Fatal("not read")
			}
			if got := show(m); got != tt.want {
				t.Errorf("want %s\ngot  %s", tt.want, got)
			}
		})
	}
}

// Each of these was, or could be, taken for an out-of-memory.
var lookalikes = []struct{ name, text string }{
	{"hint 1 alone", h1},
	{"hint 3 alone", h3},
	{"hint 5 alone", h5},
	{"a configuration dump", "env: {'PYTORCH_CUDA_ALLOC_CONF': 'expandable_segments:True', 'on_oom': 'out of memory'}"},
	{"shared memory of a kernel", "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 1048576, Hardware limit: 232448. Reducing block sizes or `num_stages` may help."},
	{"V0's advice", "If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization` or switching to eager mode."},
	{"FlashInfer", "RuntimeError: Error in function 'aligned_alloc' at /flashinfer/allocator.h:49: Buffer overflow when allocating memory for batch_prefill_tmp_v with size 1744830464 and alignment 16, but only 413138944 bytes available in AlignedAllocator. Increase the workspace buffer size."},
	{"FlashInfer, before", "RuntimeError: Failed to allocate memory for batch_prefill_tmp_v with size 1744830464 and alignment 16 in AlignedAllocator"},
	{"FlashInfer, 2024", "RuntimeError: Out of workspace memory in AlignedAlloactor"},
	{"SGLang counts tokens", "Prefill out of memory. Try to lower your batch size.\nTry to allocate 8192 tokens.\nAvailable tokens: 4096"},
	{"SGLang, decode", "RuntimeError: Decode out of memory. Try to lower your batch size.\nTry to allocate 12 tokens."},
	{"warning W", "[rank1]:[W812 16:00:28.643448608 CUDACachingAllocator.cpp:3933] memory allocation failed with OOM on device 1 while trying to allocate 20971520 bytes (free: 15794176, total: 150111977472)."},
	{"warning of a rejection", "Preemptively rejecting allocation of 2.00 GiB on NPU 0: total_allocated_memory (58.00 GiB) + requested size would exceed memory limit (59.00 GiB = 96.77% of 60.97 GiB). Set throw_on_npumalloc_oom:False to disable this behavior."},
	{"a recovery", "[cudaMallocAsync] recovered from an allocation failure by trimming the pool and retrying."},
	{"NVML without an assertion", "nvmlInit_v2 failed; omitting per-process memory info from CUDA out-of-memory messages."},
	{"an assertion elsewhere", `RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "/pytorch/torch/csrc/cuda/Module.cpp":77`},
	{"a dead engine", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause."},
	{"vLLM's start-up check", "ValueError: Free memory on device cuda:0 (12.00/139.80 GiB) on startup is less than desired GPU memory utilization (0.92, 128.62 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."},
	{"another CUDA error", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"},
	{"a cuBLAS fault", "RuntimeError: CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasCreate(handle)`"},
	{"a masked call that allocates nothing", `RuntimeError: torch_call_dispatcher( "aten::copy_", "", stack.data(), TORCH_ABI_VERSION) API call failed at /deps/ops.h, line 933`},
	{"NCCL at INFO", "node1:12:345 [1] NCCL INFO transport/p2p.cc:24 Cuda failure 'out of memory'"},
	{"NCCL, another error", "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 'invalid argument'"},
	{"NCCL, unnamed error", "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)"},
	{"vLLM's kernels, another error", "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:455 'invalid argument'"},
	{"CUTLASS", "cutlass error: Error Internal"},
	{"expandable segments on IPC", "RuntimeError: Tensors allocated with expandable_segments:True cannot be shared between processes."},
	{"a source line", "    except torch.cuda.OutOfMemoryError as e:"},
	{"a source line of Python", "        raise MemoryError"},
	{"the word in a sentence", "the worker hit a MemoryError: see above"},
	{"talk about it", "this model may run out of memory. Tried 3 times"},
	{"empty", ""},
}

func TestLookalikes(t *testing.T) {
	for _, tt := range lookalikes {
		t.Run(tt.name, func(t *testing.T) {
			if m, ok := Parse(tt.text); ok {
				t.Errorf("read as %s", show(m))
			}
		})
	}
}

// A terminal or a paste can wrap at any column, and keep or lose the space.
func TestWrapped(t *testing.T) {
	want, _ := Parse(full + h5)
	for width := 20; width <= 200; width += 17 {
		var keep []string
		for text := full + h5; text != ""; {
			n := min(width, len(text))
			keep = append(keep, text[:n])
			text = text[n:]
		}
		var lose []string
		for _, line := range keep {
			lose = append(lose, strings.TrimSpace(line)+"\r")
		}
		for _, text := range []string{
			strings.Join(keep, "\n"), strings.Join(lose, "\n"), strings.Join(lose, "\n    "), Unwrap(keep), Unwrap(lose),
		} {
			got, _ := Parse(text)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("width %d: %s", width, diff)
			}
		}
		if got := Unwrap(keep); got != full+h5 {
			t.Fatalf("width %d: want %q, got %q", width, full+h5, got)
		}
	}
}

func TestUnwrap(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  string
	}{
		{"within words", []string{"has 23.77 GiB, P", "yTorch 326.18 Mi", "B"}, "has 23.77 GiB, PyTorch 326.18 MiB"},
		{"at spaces that were lost, of which one cannot be known", []string{"Tried to allocate 50.00", "MiB. GPU 0 has a", "total"}, "Tried to allocate 50.00MiB. GPU 0 has a total"},
		{"padded to the column", []string{"out of me", "mory.    "}, "out of memory."},
		{"wide letters count once", []string{"ééé", "abc", "d"}, "éééabcd"},
		{"one line", []string{"x \r\n"}, "x"},
		{"none", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Unwrap(tt.lines); got != tt.want {
				t.Errorf("want %q, got %q", tt.want, got)
			}
		})
	}
}

func TestColour(t *testing.T) {
	m, _ := Parse("\x1b[1;31mtorch.OutOfMemoryError\x1b[0m: \x1b[35m" + full + "\x1b[0m")
	if got := show(m); got != fullShown+" unhinted" {
		t.Errorf("got %s", got)
	}
}

// A huge text is read up to a bound, and its process list too.
func TestBounds(t *testing.T) {
	text := strings.Repeat("x", 100) + full + strings.Repeat(" Process 12 has 1.00 GiB memory in use.", 100_000)
	m, ok := Parse(text)
	if !ok || m.Tried == nil || len(m.Others) > 5000 {
		t.Errorf("%v, %d processes", ok, len(m.Others))
	}
	if _, ok := Parse(strings.Repeat("\x1b[", 1<<20)); ok {
		t.Error("escapes are read as a message")
	}
}

// numbers are all figures of a message, by name.
func numbers(m Message) map[string]string {
	n := map[string]string{}
	for name, s := range map[string]*Size{
		"T": m.Tried, "C": m.Total, "F": m.Free, "self": m.Self, "L": m.Allowed,
		"A": m.Allocated, "P": m.PrivatePools, "U": m.Unallocated, "R": m.ReservedTotal,
	} {
		if s != nil {
			n[name] = s.Text
		}
	}
	for i, p := range m.Others {
		n["other "+strconv.Itoa(i)] = fmt.Sprint(p.PID, p.Size.Text)
	}
	if m.GPU != nil {
		n["gpu"] = strconv.Itoa(*m.GPU)
	}
	return n
}

// subset fails the test unless part says nothing that whole does not say.
func subset(t testing.TB, part, whole Message, text string) {
	t.Helper()
	all := numbers(whole)
	for name, value := range numbers(part) {
		if all[name] != value {
			t.Fatalf("%q gives %s = %s, the whole text %q", text, name, value, all[name])
		}
	}
}

// Prefixes of every literal: a cut figure is never reported.
func TestPrefixes(t *testing.T) {
	for n, tt := range literals {
		whole, _ := Parse(tt.text)
		step := 1
		if len(tt.text) > 200 {
			step = 7
		}
		if len(tt.text) > len(full) {
			step = 29 // the carriers of one sentence: every cut is in some of them
		}
		for i := n % step; i < len(tt.text); i += step {
			if part, ok := Parse(tt.text[:i]); ok {
				subset(t, part, whole, tt.text[:i])
			}
		}
	}
}

// Sentences with any figures, cut anywhere.
func TestPrefixesOfAnySentence(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.Custom(func(t *rapid.T) string {
			return format(rapid.Int64Range(0, 1<<rapid.IntRange(0, 40).Draw(t, "magnitude")).Draw(t, "bytes"))
		})
		optional := rapid.OneOf(rapid.Just(""), size)
		processes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"this", "1", "4194304", "..."}).Draw(t, "pid") + " " + size.Draw(t, "held")
		}), 0, 4).Draw(rt, "processes")
		text := sentence(size.Draw(rt, "T"), size.Draw(rt, "C"), size.Draw(rt, "F"), processes,
			optional.Draw(rt, "L"), size.Draw(rt, "A"), optional.Draw(rt, "P"), size.Draw(rt, "U"))
		whole, ok := Parse(text)
		if !ok || whole.Tried == nil || whole.Total == nil || whole.Free == nil || whole.Unallocated == nil {
			rt.Fatalf("not read whole: %q", text)
		}
		cut := text[:rapid.IntRange(0, len(text)).Draw(rt, "cut")]
		if part, ok := Parse(cut); ok {
			all := numbers(whole)
			for name, value := range numbers(part) {
				if all[name] != value {
					rt.Fatalf("%q gives %s = %s, the whole text %q", cut, name, value, all[name])
				}
			}
		}
		whole.Where() // must not panic
	})
}

func FuzzParse(f *testing.F) {
	for _, tt := range literals {
		f.Add(tt.text)
	}
	for _, tt := range lookalikes {
		f.Add(tt.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := Parse(text)
		if ok == (m.Form == "") {
			t.Errorf("ok %v with form %q", ok, m.Form)
		}
		if m.Masked && m.figures() {
			t.Errorf("masked, with figures: %s", show(m))
		}
		if _, err := json.Marshal(m.Account()); err != nil {
			t.Error(err)
		}
		if w := m.Where(); w.Verdict == "" {
			t.Error("no verdict")
		}
		if again, _ := Parse(text); !cmp.Equal(m, again) {
			t.Error("a second reading differs")
		}
		ParseWarningW(text)
		Unwrap(strings.Split(text, "\n"))
	})
}

func TestParseWarningW(t *testing.T) {
	type result struct {
		device             int
		tried, free, total int64
		mapped, ok         bool
	}
	tests := []struct {
		name, text string
		want       result
	}{
		{
			"of a rank",
			"[rank1]:[W812 16:00:28.643448608 CUDACachingAllocator.cpp:3933] memory allocation failed with OOM on device 1 while trying to allocate 20971520 bytes (free: 15794176, total: 150111977472).",
			result{1, 20971520, 15794176, 150111977472, false, true},
		},
		{
			"of a mapping",
			"[W812 16:00:28.6 CUDACachingAllocator.cpp:400] expandable_segments: memory mapping failed with OOM on device 0 while trying to map 2097152 bytes (free: 0, total: 150111977472)",
			result{0, 2097152, 0, 150111977472, true, true},
		},
		{
			"wrapped",
			"memory allocation failed with OOM on dev\nice 12 while trying to allocate 209\n71520 bytes (free: 1, total: 2).",
			result{12, 20971520, 1, 2, false, true},
		},
		{"cut in its last figure", "memory allocation failed with OOM on device 1 while trying to allocate 20971520 bytes (free: 15794176, total: 1501119", result{}},
		{"an exception", full, result{}},
		{"too many digits", "memory allocation failed with OOM on device 1 while trying to allocate 9999999999999999999 bytes (free: 1, total: 2)", result{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got result
			got.device, got.tried, got.free, got.total, got.mapped, got.ok = ParseWarningW(tt.text)
			if got != tt.want {
				t.Errorf("want %+v, got %+v", tt.want, got)
			}
		})
	}
}
