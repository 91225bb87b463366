package oom

import (
	"regexp"
	"slices"
	"strings"
)

// The families of texts. Device memory unless said otherwise.
const (
	FormModern    = "modern"    // caching allocators from PyTorch 2.1 on
	FormOld       = "old"       // the same to 2.0: "(GPU 0; 23.69 GiB total capacity; ...)"
	FormExabyte   = "exabyte"   // a request of 2^60 bytes or more: a wrong shape, never capacity
	FormPreempted = "preempted" // refused by the memory fraction before the driver was asked (2.12 on)
	FormAsync     = "async"     // backend:cudaMallocAsync
	FormMPS       = "mps"

	FormNPU          = "npu"
	FormNPUWorkspace = "npu-workspace"
	FormNPUDevice    = "npu-device"
	FormNPUPinned    = "npu-pinned" // host memory

	FormMasked    = "masked-dispatcher" // a stable-ABI call that hides its cause
	FormNVML      = "nvml-assert"       // an out-of-memory whose report failed
	FormHandles   = "handles-assert"    // expandable segments under pressure
	FormSampler   = "sampler-warmup"    // the figures are in the chained exception
	FormPooler    = "pooler-warmup"     // the figures are in the chained exception
	FormRuntime   = "cuda-runtime"      // "CUDA error: out of memory", "HIP error: out of memory"
	FormDriver    = "driver"            // cuMem* calls inside PyTorch
	FormDriverLog = "driver-log"        // CUDA_LOG_FILE=stderr
	FormHSA       = "hsa"
	FormCUDART    = "cudart"        // vllm/distributed/device_communicators/cuda_wrapper.py
	FormKernel    = "custom-kernel" // vLLM's own kernels, then exit

	FormCublas        = "cublas-alloc"
	FormCudnn         = "cudnn-alloc"
	FormCudnnInternal = "cudnn-internal"
	FormNCCL          = "nccl-oom"
	FormNCCLHost      = "nccl-host" // host memory
	FormTriton        = "triton-oom"
	FormCumem         = "cumem" // sleep mode; a later line can echo an earlier failure (vllm#36651)
	FormDeepEP        = "deepep"
	FormDeepGEMM      = "deepgemm"
	FormNVSHMEM       = "nvshmem"
	FormNVSHMEMHeap   = "nvshmem-heap" // the symmetric heap, not the device
	FormCupy          = "cupy"
	FormTVM           = "tvm" // the allocator's exception, wrapped once more

	FormBare      = "bare"               // a class name or a head without more
	FormPython    = "python-memoryerror" // host memory
	FormCPU       = "cpu-alloc"          // host memory, c10/core/impl/alloc_cpu.cpp
	FormCannotMap = "errno-12"           // host memory
)

// family is one literal family of texts.
type family struct {
	form     string
	vendor   string
	anchor   string // must be in the text: saves running the pattern
	pattern  *regexp.Regexp
	accept   func(match []string, rest string) bool
	read     func(m *Message, match []string, s string)
	presumed bool
	host     bool
	// own marks the sentences whose parts follow their head, so that the next
	// one ends the parts of the one before.
	own bool
}

// families is never changed. Where two match at the same place the earlier one
// is taken.
var families = []family{
	{
		form: FormExabyte, anchor: "morethan1EB", own: true, read: readVendor,
		pattern: regexp.MustCompile(vendors + `?[Oo]utofmemory\.Triedtoallocatemorethan1EBmemory`),
	},
	{
		form: FormModern, anchor: "utofmemory.Triedtoallocate", own: true, read: readAllocator,
		pattern: regexp.MustCompile(vendors + `?[Oo]utofmemory\.Triedtoallocate` + size + `?`),
	},
	{
		form: FormPreempted, anchor: "preemptivelyrejected", own: true, read: readVendorSize,
		pattern: regexp.MustCompile(vendors + `?outofmemory\.Allocationwaspreemptivelyrejectedbecauseitwouldexceedper_process_memory_fractionlimit(?:\.Requestedsize:` + size + `)?`),
	},
	{
		form: FormAsync, vendor: "CUDA", anchor: "wouldexceedallowedmemory", own: true, read: readAsync,
		pattern: regexp.MustCompile(`Allocationondevice(\d{1,4})wouldexceedallowedmemory\.\(outofmemory\)`),
	},
	{
		form: FormMPS, vendor: "MPS", anchor: "MPSbackendoutofmemory", own: true, read: readMPS,
		pattern: regexp.MustCompile(`MPSbackendoutofmemory`),
	},
	{
		form: FormMPS, vendor: "MPS", anchor: "Invalidbuffersize:", read: readSize,
		pattern: regexp.MustCompile(`Invalidbuffersize:` + size),
	},
	{
		form: FormNPUWorkspace, vendor: "NPU", anchor: "NPUWorkspaceAllocator", own: true, read: readNPUWorkspace,
		pattern: regexp.MustCompile(`NPUoutofmemory\.NPUWorkspaceAllocatortriedtoallocate` + size + `?`),
	},
	{
		form: FormNPUDevice, vendor: "NPU", anchor: "NPUoutofmemory.deviceid:",
		pattern: regexp.MustCompile(`NPUoutofmemory\.deviceid:`),
	},
	{
		form: FormNPUPinned, vendor: "NPU", anchor: "Mallocpinmemoryfailed", host: true, read: readBytes,
		pattern: regexp.MustCompile(`Mallocpinmemoryfailed,hostoutofmemory,[RT]riedtoallocatesize:(\d{1,18}),`),
	}, // "Rried" is the source's

	{
		form: FormSampler, anchor: "whenwarmingupsampler", read: readVendor,
		pattern: regexp.MustCompile(vendors + `outofmemoryoccurredwhenwarmingupsampler`),
	},
	{
		form: FormPooler, anchor: "whenwarminguppooler", read: readVendor,
		pattern: regexp.MustCompile(vendors + `outofmemoryoccurredwhenwarminguppooler`),
	},
	{
		form: FormMasked, anchor: "torch_call_dispatcher(", presumed: true, accept: maskedAllocation, read: readOp,
		pattern: regexp.MustCompile(atenOp),
	}, // torch/headeronly/util/shim_utils.h
	{
		form: FormNVML, vendor: "CUDA", anchor: "NVML_SUCCESS==", accept: allocatorAssert,
		pattern: regexp.MustCompile(`NVML_SUCCESS==(?:r|DriverAPI::get\(\)->nvml\w+\([^"]*)INTERNALASSERTFAILEDat`),
	},
	{
		form: FormHandles, vendor: "CUDA", anchor: "!handles_.at(i)", presumed: true, accept: allocatorAssert,
		pattern: regexp.MustCompile(`!handles_\.at\(i\)INTERNALASSERTFAILEDat`),
	},

	{
		form: FormRuntime, anchor: "error:outofmemory", read: readVendor,
		pattern: regexp.MustCompile(`(CUDA|HIP|MUSA)error:outofmemory`),
	},
	{
		form: FormDriver, vendor: "CUDA", anchor: "CUDAdrivererror:outofmemory",
		pattern: regexp.MustCompile(`CUDAdrivererror:outofmemory`),
	},
	{
		form: FormDriverLog, vendor: "CUDA", anchor: "(CUDA_ERROR_OUT_OF_MEMORY)",
		pattern: regexp.MustCompile(`Returning2\(CUDA_ERROR_OUT_OF_MEMORY\)`),
	},
	{
		form: FormHSA, vendor: "HIP", anchor: "HSA_STATUS_ERROR_OUT_OF_RESOURCES",
		pattern: regexp.MustCompile(`HSA_STATUS_ERROR_OUT_OF_RESOURCES`),
	},
	{
		form: FormCUDART, vendor: "CUDA", anchor: "CUDARTerror:outofmemory",
		pattern: regexp.MustCompile(`CUDARTerror:outofmemory`),
	},
	{
		form: FormKernel, vendor: "CUDA", anchor: "Failed:Cudaerror",
		pattern: regexp.MustCompile(`Failed:Cudaerror[^'"]*'outofmemory`),
	},

	{
		form: FormCublas, vendor: "CUDA", anchor: "CUBLAS_STATUS_ALLOC_FAILED",
		pattern: regexp.MustCompile(`CUDAerror:CUBLAS_STATUS_ALLOC_FAILED`),
	},
	{
		form: FormCudnn, vendor: "CUDA", anchor: "CUDNN_STATUS_ALLOC_FAILED",
		pattern: regexp.MustCompile(`cuDNNerror:CUDNN_STATUS_ALLOC_FAILED`),
	},
	{
		form: FormCudnnInternal, vendor: "CUDA", anchor: "CUDNN_STATUS_INTERNAL_ERROR", presumed: true,
		pattern: regexp.MustCompile(`cuDNNerror:CUDNN_STATUS_INTERNAL_ERROR`),
	},
	// At level INFO NCCL repeats errors that it ignores, and of a torch error
	// only the "Last error" counts.
	{
		form: FormNCCL, vendor: "CUDA", anchor: "Cudafailure",
		pattern: regexp.MustCompile(`(?:NCCLWARN|Lasterror:)Cudafailure\d{0,3}\\?'outofmemory`),
	},
	{
		form: FormNCCL, vendor: "CUDA", anchor: "NCCLWARNFailedtoCUDA", read: readBytes,
		pattern: regexp.MustCompile(`NCCLWARNFailedtoCUDA(?:malloc|callocasync|calloc|hostalloc)(\d{1,18})bytes`),
	},
	{
		form: FormNCCLHost, anchor: "NCCLWARNFailedtomalloc", host: true, read: readBytes,
		pattern: regexp.MustCompile(`NCCLWARNFailedtomalloc(\d{1,18})bytes`),
	},
	{
		form: FormTriton, anchor: "TritonError[", read: readVendor,
		pattern: regexp.MustCompile(`TritonError\[(CUDA|HIP)\]:outofmemory`),
	},
	// csrc/cumem_allocator.cpp; its path is not always printed as it is there.
	{
		form: FormCumem, vendor: "CUDA", anchor: "CUDAError:outofmemoryat",
		pattern: regexp.MustCompile(`CUDAError:outofmemoryat`),
	},
	{
		form: FormDeepEP, vendor: "CUDA", anchor: "exception(",
		pattern: regexp.MustCompile(`CUDA(?:runtime|driver)exception\([^()]*\):2\((?:cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY)`),
	},
	{
		form: FormDeepEP, vendor: "CUDA", anchor: "Failed:CU",
		pattern: regexp.MustCompile(`Failed:(?:CUDA|CU)error[^'"]*'outofmemory`),
	},
	{
		form: FormDeepGEMM, vendor: "CUDA", anchor: "error(",
		pattern: regexp.MustCompile(`(?:CUDA(?:runtime|driver)error\([^()]*\):2\((?:cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY)|cuBLASLterror\([^()]*\):3\(CUBLAS_STATUS_ALLOC_FAILED)`),
	},
	{
		form: FormNVSHMEM, vendor: "CUDA", anchor: "non-zerostatus:",
		pattern: regexp.MustCompile(`non-zerostatus:\d{1,10}(?:cuMemCreatefailed|cuMemAllocfailed|Notenoughspaceforallocatingmemory)`),
	},
	{
		form: FormNVSHMEM, vendor: "CUDA", anchor: "cudafailedwithoutofmemory",
		pattern: regexp.MustCompile(`cudafailedwithoutofmemory`),
	},
	{
		form: FormNVSHMEMHeap, vendor: "CUDA", anchor: "nvshmemmallocfailed",
		pattern: regexp.MustCompile(`nvshmemmallocfailed`),
	},
	{
		form: FormCupy, vendor: "CUDA", anchor: "Outofmemoryallocating", own: true, read: readCupy,
		pattern: regexp.MustCompile(`Outofmemoryallocating([\d,]{1,26})bytes`),
	},
	{
		form: FormCupy, vendor: "CUDA", anchor: "cudaErrorMemoryAllocation:outofmemory",
		pattern: regexp.MustCompile(`cudaErrorMemoryAllocation:outofmemory`),
	},
	{
		form: FormTVM, anchor: "tvm.error.InternalError:", read: readVendor,
		pattern: regexp.MustCompile(`tvm\.error\.InternalError:` + vendors + `outofmemory`),
	},

	{
		form: FormCPU, anchor: "DefaultCPUAllocator:", host: true, read: readBytes,
		pattern: regexp.MustCompile(`DefaultCPUAllocator:(?:can\\?'tallocatememory|notenoughmemory):youtriedtoallocate(\d{1,18})bytes`),
	},
	{
		form: FormCannotMap, anchor: "[Errno12]", host: true,
		pattern: regexp.MustCompile(`\[Errno12\]Cannotallocatememory`),
	},
}

// maskedAllocation holds for a failed call of an operator that allocates: then
// an out-of-memory is the likely cause. Any other operator fails for reasons of
// its own, and a dispatcher that merely carried the sentence hides nothing.
func maskedAllocation(match []string, rest string) bool {
	if !strings.Contains(rest, "APIcallfailedat") {
		return false
	}
	op := strings.TrimPrefix(match[1], "aten::")
	op, _, _ = strings.Cut(op, ".") // the overload
	op = strings.TrimPrefix(op, "new_")
	op = strings.TrimSuffix(op, "_like")
	return slices.Contains([]string{"empty", "empty_strided", "zeros", "ones", "full", "clone", "contiguous"}, op)
}

func allocatorAssert(_ []string, rest string) bool {
	return strings.Contains(rest, "CUDACachingAllocator.cpp")
}
