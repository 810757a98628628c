// What does a GPU need of us? Some thirty functions of libcuda, found by name at run time, so
// that the same binary runs where there is no driver and then says so.
#include "tiny_compile/tensor/cuda_driver.h"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/optional_library.h"

namespace tiny_compile {
namespace {

constexpr int kOutOfMemory = 2, kNotFound = 500;  // CUDA_ERROR_OUT_OF_MEMORY, _NOT_FOUND
constexpr int kAttributeMultiprocessors = 16, kAttributeL2 = 38;
constexpr int kAttributeThreads = 39, kAttributeRegisters = 82;  // of a multiprocessor
constexpr int kAttributeAllShared = 81, kAttributeBlocks = 106;  // likewise
constexpr int kMostDynamicShared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int kAttributeClock = 13, kAttributeMemoryClock = 36;  // kHz
constexpr int kAttributeMemoryBits = 37;
constexpr int kAttributeMajor = 75, kAttributeMinor = 76;
constexpr int kAttributeShared = 97, kAttributeClusters = 120;  // a block's, opted in; 0 or 1
constexpr unsigned kNonBlocking = 1;                            // CU_STREAM_NON_BLOCKING
constexpr unsigned kUntimed = 2;                                // CU_EVENT_DISABLE_TIMING
constexpr unsigned kForAllDevices = 1;                          // CU_MEMHOSTALLOC_PORTABLE

constexpr int kRelaxed = 2;       // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr int kNotCapturing = 0;  // CU_STREAM_CAPTURE_STATUS_NONE

using CudaCaptured = struct CUgraph_st*;  // a graph before it can be launched

constexpr int kSerialisesByProgram =
    6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

struct alignas(8) LaunchAttribute {  // CUlaunchAttribute
  int id = kSerialisesByProgram;
  int unused = 0;
  int value = 1;
  char rest[60] = {};
};

struct LaunchConfig {  // CUlaunchConfig
  unsigned grid[3], block[3], shared;
  CudaStream stream;
  LaunchAttribute* attributes;
  unsigned count;
};
static_assert(sizeof(LaunchAttribute) == 72 && offsetof(LaunchAttribute, value) == 8);
static_assert(offsetof(LaunchConfig, stream) == 32 && offsetof(LaunchConfig, count) == 48);

// X(member, symbol in libcuda, parameter types): every one returns CUresult, an int.
#define TC_CUDA_FUNCTIONS(X)                                                                 \
  X(init, "cuInit", (unsigned))                                                              \
  X(error_name, "cuGetErrorName", (int, const char**))                                       \
  X(error_string, "cuGetErrorString", (int, const char**))                                   \
  X(device_count, "cuDeviceGetCount", (int*))                                                \
  X(device_get, "cuDeviceGet", (int*, int))                                                  \
  X(device_name, "cuDeviceGetName", (char*, int, int))                                       \
  X(device_attribute, "cuDeviceGetAttribute", (int*, int, int))                              \
  X(retain_context, "cuDevicePrimaryCtxRetain", (CudaContext*, int))                         \
  X(set_context, "cuCtxSetCurrent", (CudaContext))                                           \
  X(get_context, "cuCtxGetCurrent", (CudaContext*))                                          \
  X(mem_alloc, "cuMemAlloc_v2", (CudaAddress*, size_t))                                      \
  X(mem_free, "cuMemFree_v2", (CudaAddress))                                                 \
  X(mem_alloc_host, "cuMemHostAlloc", (void**, size_t, unsigned))                            \
  X(mem_info, "cuMemGetInfo_v2", (size_t*, size_t*))                                         \
  X(to_device, "cuMemcpyHtoDAsync_v2", (CudaAddress, const void*, size_t, CudaStream))       \
  X(to_host, "cuMemcpyDtoHAsync_v2", (void*, CudaAddress, size_t, CudaStream))               \
  X(on_device, "cuMemcpyDtoDAsync_v2", (CudaAddress, CudaAddress, size_t, CudaStream))       \
  X(fill, "cuMemsetD8Async", (CudaAddress, unsigned char, size_t, CudaStream))               \
  X(stream_create, "cuStreamCreate", (CudaStream*, unsigned))                                \
  X(stream_destroy, "cuStreamDestroy_v2", (CudaStream))                                      \
  X(stream_synchronize, "cuStreamSynchronize", (CudaStream))                                 \
  X(stream_wait, "cuStreamWaitEvent", (CudaStream, CudaEvent, unsigned))                     \
  X(module_load, "cuModuleLoadData", (CudaModule*, const void*))                             \
  X(module_unload, "cuModuleUnload", (CudaModule))                                           \
  X(module_function, "cuModuleGetFunction", (CudaFunction*, CudaModule, const char*))        \
  X(function_attribute, "cuFuncSetAttribute", (CudaFunction, int, int))                      \
  X(module_global, "cuModuleGetGlobal_v2", (CudaAddress*, size_t*, CudaModule, const char*)) \
  X(launch_kernel, "cuLaunchKernelEx", (const LaunchConfig*, CudaFunction, void**, void**))  \
  X(capture_begin, "cuStreamBeginCapture_v2", (CudaStream, int))                             \
  X(capture_end, "cuStreamEndCapture", (CudaStream, CudaCaptured*))                          \
  X(capture_status, "cuStreamIsCapturing", (CudaStream, int*))                               \
  X(graph_instantiate, "cuGraphInstantiateWithFlags",                                        \
    (CudaGraph*, CudaCaptured, unsigned long long))                                          \
  X(graph_launch, "cuGraphLaunch", (CudaGraph, CudaStream))                                  \
  X(graph_destroy, "cuGraphExecDestroy", (CudaGraph))                                        \
  X(captured_destroy, "cuGraphDestroy", (CudaCaptured))                                      \
  X(event_create, "cuEventCreate", (CudaEvent*, unsigned))                                   \
  X(event_destroy, "cuEventDestroy_v2", (CudaEvent))                                         \
  X(event_record, "cuEventRecord", (CudaEvent, CudaStream))                                  \
  X(event_synchronize, "cuEventSynchronize", (CudaEvent))                                    \
  X(event_elapsed, "cuEventElapsedTime", (float*, CudaEvent, CudaEvent))

// A driver that was initialised is of no use to a child of fork: each call fails there.
std::atomic<bool> forked = false;
constexpr const char* kForked =
    "CUDA does not survive fork, and was in use before this process was forked. Fork before "
    "the first use of a GPU, or exec";

struct Driver {
#define X(member, symbol, parameters) int(*member) parameters = nullptr;
  TC_CUDA_FUNCTIONS(X)
#undef X
  OptionalLibrary library{{"libcuda.so.1", "libcuda.so"}};
  std::string problem;
  int devices = 0;

  Driver() {
    if (!library.found()) {
      problem = "the NVIDIA driver is missing: " + library.problem();
      return;
    }
    try {
#define X(member, symbol, parameters) library.find(member, symbol);
      TC_CUDA_FUNCTIONS(X)
#undef X
    } catch (const Error& error) {
      problem = error.what();
      return;
    }
    const int result = init(0);
    if (result != 0) problem = "the NVIDIA driver finds no GPU: " + words(result);
    if (result == 0) pthread_atfork(nullptr, nullptr, [] { forked = true; });
    if (result == 0) device_count(&devices);
    if (result == 0 && devices == 0) problem = "the NVIDIA driver finds no GPU";
  }

  std::string words(int result) const {
    const char *name = nullptr, *text = nullptr;
    error_name(result, &name);
    error_string(result, &text);
    return str(name ? name : "error", ": ", text ? text : std::to_string(result));
  }
};

const Driver& library() {
  static const Driver opened;  // the library, not a state of ours
  return opened;
}

const Driver& needed() {
  if (forked) fail("no GPU can be used: ", kForked);
  if (!library().problem.empty())
    fail("no GPU can be used: ", library().problem, ". Use the CPU: backend \"cpp\", tc::cpu");
  return library();
}

void check(int result, const char* what) {
  if (result != 0) fail("CUDA: ", what, ": ", library().words(result));
}

// Contexts are made once a device and live as long as the process.
struct Devices {
  std::mutex mutex;
  std::vector<std::unique_ptr<CudaDevice>> made;
};

Devices& devices() {
  static Devices* instance = new Devices;
  return *instance;
}

std::unique_ptr<CudaDevice> open_device(int index) {
  const Driver& d = needed();
  auto device = std::make_unique<CudaDevice>();
  int handle = 0, major = 0, minor = 0;
  char name[256] = "";
  check(d.device_get(&handle, index), "cuDeviceGet");
  check(d.device_name(name, sizeof name, handle), "cuDeviceGetName");
  const std::pair<int*, int> wanted[] = {{&major, kAttributeMajor},
                                         {&minor, kAttributeMinor},
                                         {&device->multiprocessors, kAttributeMultiprocessors},
                                         {&device->threads, kAttributeThreads},
                                         {&device->registers, kAttributeRegisters},
                                         {&device->blocks, kAttributeBlocks},
                                         {&device->shared_bytes, kAttributeShared},
                                         {&device->all_shared_bytes, kAttributeAllShared},
                                         {&device->l2_bytes, kAttributeL2}};
  for (const auto& [value, attribute] : wanted)
    check(d.device_attribute(value, attribute, handle), "cuDeviceGetAttribute");
  int clusters = 0;  // a driver from before clusters does not know the question
  device->clusters = d.device_attribute(&clusters, kAttributeClusters, handle) == 0 && clusters;
  const std::pair<int*, int> of_speed[] = {{&device->clock, kAttributeClock},
                                           {&device->memory_clock, kAttributeMemoryClock},
                                           {&device->memory_bits, kAttributeMemoryBits}};
  for (const auto& [value, attribute] : of_speed)
    if (d.device_attribute(value, attribute, handle) != 0) *value = 0;
  check(d.retain_context(&device->context, handle), "cuDevicePrimaryCtxRetain");
  device->name = name;
  device->architecture = str("sm_", major, minor);
  return device;
}

}  // namespace

std::string why_no_cuda() { return forked ? kForked : library().problem; }

int cuda_device_count() { return forked ? 0 : library().devices; }

const CudaDevice& cuda_device(int index) {
  const int count = needed().devices;
  if (index < 0 || index >= count)
    fail("there is no cuda:", index, ": this machine has ", count, " GPU(s), from cuda:0");
  Devices& all = devices();
  const std::lock_guard lock(all.mutex);
  all.made.resize(static_cast<size_t>(count));
  std::unique_ptr<CudaDevice>& device = all.made[static_cast<size_t>(index)];
  if (!device) device = open_device(index);
  return *device;
}

CudaScope::CudaScope(int device) {
  const CudaContext wanted = cuda_device(device).context;
  check(library().get_context(&before_), "cuCtxGetCurrent");
  if (before_ == wanted)
    before_ = nullptr;  // as it stays
  else
    check(library().set_context(wanted), "cuCtxSetCurrent");
}

CudaScope::~CudaScope() {
  if (before_) library().set_context(before_);
}

namespace driver {

CudaAddress allocate(size_t bytes) {
  CudaAddress address = 0;
  const int result = library().mem_alloc(&address, bytes);
  if (result == kOutOfMemory) return 0;
  check(result, "cuMemAlloc");
  return address;
}

void free(CudaAddress address) noexcept { library().mem_free(address); }

void* allocate_host(size_t bytes) {
  void* memory = nullptr;
  check(library().mem_alloc_host(&memory, bytes, kForAllDevices), "cuMemHostAlloc");
  return memory;
}

void copy_to_device(CudaAddress to, const void* from, size_t bytes, CudaStream stream) {
  check(library().to_device(to, from, bytes, stream), "copy to the GPU");
}

void start_copy_to_host(void* to, CudaAddress from, size_t bytes, CudaStream stream) {
  check(library().to_host(to, from, bytes, stream), "copy from the GPU");
}

void copy_to_host(void* to, CudaAddress from, size_t bytes, CudaStream stream) {
  start_copy_to_host(to, from, bytes, stream);
  synchronize(stream);
}

void copy_on_device(CudaAddress to, CudaAddress from, size_t bytes, CudaStream stream) {
  check(library().on_device(to, from, bytes, stream), "copy on the GPU");
}

void fill_bytes(CudaAddress to, unsigned char value, size_t bytes, CudaStream stream) {
  check(library().fill(to, value, bytes, stream), "cuMemsetD8Async");
}

void synchronize(CudaStream stream) {
  check(library().stream_synchronize(stream), "a kernel or copy on the stream failed");
}

void memory(size_t& free, size_t& total) {
  check(library().mem_info(&free, &total), "cuMemGetInfo");
}

CudaModule load_module(const std::string& cubin) {
  CudaModule module = nullptr;
  check(library().module_load(&module, cubin.data()), "cuModuleLoadData");
  return module;
}

void unload_module(CudaModule module) noexcept { library().module_unload(module); }

bool has_function(CudaModule module, const std::string& name) {
  CudaFunction function = nullptr;
  const int result = library().module_function(&function, module, name.c_str());
  if (result == kNotFound) return false;
  check(result, name.c_str());
  return true;
}

CudaFunction find_function(CudaModule module, const std::string& name) {
  CudaFunction function = nullptr;
  check(library().module_function(&function, module, name.c_str()), name.c_str());
  return function;
}

CudaAddress find_global(CudaModule module, const std::string& name) {
  CudaAddress address = 0;
  size_t bytes = 0;
  const int result = library().module_global(&address, &bytes, module, name.c_str());
  if (result == kNotFound) return 0;
  check(result, name.c_str());
  return address;
}

void allow_shared(CudaFunction function, int64_t bytes) {
  check(library().function_attribute(function, kMostDynamicShared, static_cast<int>(bytes)),
        str(bytes, " bytes of shared memory for a kernel").c_str());
}

std::atomic<int64_t> launched = 0;

int64_t launches() { return launched; }

void launch(CudaFunction function, int64_t grid, int block, int64_t shared, CudaStream stream,
            void** arguments, bool early) {
  if (grid == 0) return;
  if (grid > INT32_MAX) fail("CUDA: a launch of ", grid, " blocks; 2^31 - 1 is the most");
  LaunchAttribute attribute;
  const LaunchConfig config = {{static_cast<unsigned>(grid), 1, 1},
                               {static_cast<unsigned>(block), 1, 1},
                               static_cast<unsigned>(shared),
                               stream,
                               &attribute,
                               early ? 1u : 0u};
  check(library().launch_kernel(&config, function, arguments, nullptr), "cuLaunchKernelEx");
  launched++;
}

CudaStream create_stream() {
  CudaStream stream = nullptr;
  check(library().stream_create(&stream, kNonBlocking), "cuStreamCreate");
  return stream;
}

void destroy_stream(CudaStream stream) noexcept { library().stream_destroy(stream); }

bool begin_recording(CudaStream stream) {
  return library().capture_begin(stream, kRelaxed) == 0;
}

CudaGraph end_recording(CudaStream stream) {
  CudaCaptured captured = nullptr;
  CudaGraph graph = nullptr;
  if (library().capture_end(stream, &captured) != 0 || !captured) return nullptr;
  if (library().graph_instantiate(&graph, captured, 0) != 0) graph = nullptr;
  library().captured_destroy(captured);
  return graph;
}

bool is_recording(CudaStream stream) {
  int status = kNotCapturing;
  check(library().capture_status(stream, &status), "cuStreamIsCapturing");
  return status != kNotCapturing;
}

void launch_graph(CudaGraph graph, CudaStream stream) {
  check(library().graph_launch(graph, stream), "cuGraphLaunch");
}

void destroy_graph(CudaGraph graph) noexcept {
  if (graph) library().graph_destroy(graph);
}

CudaEvent create_event(bool timed) {
  CudaEvent event = nullptr;
  check(library().event_create(&event, timed ? 0 : kUntimed), "cuEventCreate");
  return event;
}

void destroy_event(CudaEvent event) noexcept { library().event_destroy(event); }

void record_event(CudaEvent event, CudaStream stream) {
  check(library().event_record(event, stream), "cuEventRecord");
}

void wait_for_event(CudaStream stream, CudaEvent event) {
  check(library().stream_wait(stream, event, 0), "cuStreamWaitEvent");
}

void synchronize_event(CudaEvent event) {
  check(library().event_synchronize(event), "a kernel or copy failed");
}

float milliseconds_between(CudaEvent start, CudaEvent stop) {
  float milliseconds = 0;
  check(library().event_elapsed(&milliseconds, start, stop), "cuEventElapsedTime");
  return milliseconds;
}

}  // namespace driver
}  // namespace tiny_compile
