// A pretend libcuda.so.1, for what our runtime asks of a driver: pretend_gpu_test.cpp compiles it.
//
// Memory is the host's. A stream does nothing until somebody waits for it, and other streams'
// events alone make it go on: what was not waited for has not happened, always. Two kernels are
// known, by their names: one that has "gather" in it looks a row up, out[0] = table[4 * index[0]],
// and sets the error word's bit where index[0] is not below 4; tc_hand_over hands that bit over; any
// other adds, out[0] = in[0] + 1.
// Streams that are gone are remembered, and their use is an error.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

using Address = unsigned long long;
constexpr int kInvalidValue = 1, kOutOfMemory = 2, kInvalidHandle = 400, kNotFound = 500,
              kNotSupported = 801;

struct Stream {
  std::vector<std::function<void()>> work;
  size_t done = 0;
  bool is_gone = false;
};
struct Event {
  Stream* stream = nullptr;
  size_t count = 0;  // of its work that comes before
};

std::recursive_mutex mutex;
std::map<void*, size_t> blocks;
size_t total = size_t{1} << 30, taken = 0;
unsigned error_word = 0;
std::map<std::pair<void*, std::string>, std::string> functions;  // of a module
std::map<const void*, unsigned> calls;  // that a module's tc_hand_over has handed over
int waits = 0, stream_waits = 0, misuses = 0, moves = 0, modules = 0;
bool hands_over = true;
int early_launches = 0;
int next_launch = 0, next_wait = 0, launches_before = 0;  // errors; the launches that do begin
thread_local void* context = nullptr;

void go_on(Stream* stream, size_t count) {
  while (stream->done < count) stream->work[stream->done++]();
}

int put(void* handle, std::function<void()> work) {
  const std::lock_guard lock(mutex);
  auto* stream = static_cast<Stream*>(handle);
  if (!stream || stream->is_gone) return misuses++, kInvalidHandle;
  stream->work.push_back(std::move(work));
  return 0;
}

}  // namespace

#define PRETEND extern "C" __attribute__((visibility("default")))

// What tests ask and set.
PRETEND int pretend_waits() { return waits; }  // of the host for the GPU
PRETEND int pretend_stream_waits() { return stream_waits; }
PRETEND int pretend_moves() { return moves; }           // copies to the host, and fills
PRETEND int pretend_early() { return early_launches; }  // that need not wait for others
PRETEND int pretend_modules() { return modules; }       // loaded so far
PRETEND void pretend_hands_over(bool does) { hands_over = does; }  // modules loaded from now on
PRETEND void pretend_launches_before(int count) { launches_before = count; }
PRETEND int pretend_misuses() { return misuses; }  // of streams that are gone
PRETEND void pretend_total(size_t bytes) { total = bytes; }
PRETEND size_t pretend_taken() { return taken; }
PRETEND void pretend_next(int launch, int wait) { next_launch = launch, next_wait = wait; }

PRETEND int cuInit(unsigned) { return 0; }
PRETEND int cuGetErrorName(int, const char** name) { return *name = "PRETEND_ERROR", 0; }
PRETEND int cuGetErrorString(int error, const char** text) {
  static std::string words;
  words = "number " + std::to_string(error);
  return *text = words.c_str(), 0;
}
PRETEND int cuDeviceGetCount(int* count) { return *count = 1, 0; }
PRETEND int cuDeviceGet(int* device, int index) { return *device = index, 0; }
PRETEND int cuDeviceGetName(char* name, int, int) { return std::strcpy(name, "pretend"), 0; }
PRETEND int cuDeviceGetAttribute(int* value, int attribute, int) {
  const std::map<int, int> values = {{75, 9},        {76, 0},   {16, 132},    {39, 2048},
                                     {82, 65536},    {106, 32}, {97, 232448}, {81, 233472},
                                     {38, 60 << 20}, {120, 1}};
  const auto at = values.find(attribute);
  return at == values.end() ? kInvalidValue : (*value = at->second, 0);
}
PRETEND int cuDevicePrimaryCtxRetain(void** made, int) { return *made = &blocks, 0; }
PRETEND int cuCtxSetCurrent(void* current) { return context = current, 0; }
PRETEND int cuCtxGetCurrent(void** current) { return *current = context, 0; }

PRETEND int cuMemAlloc_v2(Address* address, size_t bytes) {
  const std::lock_guard lock(mutex);
  if (taken + bytes > total) return kOutOfMemory;
  void* const memory = std::malloc(bytes);
  std::memset(memory, 0xab, bytes < 4096 ? bytes : 4096);
  blocks[memory] = bytes;
  taken += bytes;
  return *address = reinterpret_cast<Address>(memory), 0;
}
PRETEND int cuMemFree_v2(Address address) {
  const std::lock_guard lock(mutex);
  const auto at = blocks.find(reinterpret_cast<void*>(address));
  if (at == blocks.end()) return kInvalidValue;
  taken -= at->second;
  std::free(at->first);
  blocks.erase(at);
  return 0;
}
PRETEND int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  return *memory = std::malloc(bytes), 0;
}
PRETEND int cuMemGetInfo_v2(size_t* free, size_t* all) {
  return *free = total - taken, *all = total, 0;
}

// Of pageable memory: the bytes are staged.
PRETEND int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, void* stream) {
  return put(stream, [to, staged = std::string(static_cast<const char*>(from), bytes)] {
    std::memcpy(reinterpret_cast<void*>(to), staged.data(), staged.size());
  });
}
PRETEND int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* stream) {
  moves++;
  return put(stream, [=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); });
}
PRETEND int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* stream) {
  return put(stream, [=] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  });
}
PRETEND int cuMemsetD8Async(Address to, unsigned char value, size_t bytes, void* stream) {
  moves++;
  return put(stream, [=] { std::memset(reinterpret_cast<void*>(to), value, bytes); });
}

PRETEND int cuStreamCreate(void** stream, unsigned) { return *stream = new Stream, 0; }
PRETEND int cuStreamDestroy_v2(void* stream) {
  const std::lock_guard lock(mutex);
  return static_cast<Stream*>(stream)->is_gone = true, 0;
}
PRETEND int cuStreamSynchronize(void* handle) {
  const std::lock_guard lock(mutex);
  auto* stream = static_cast<Stream*>(handle);
  if (stream->is_gone) return misuses++, kInvalidHandle;
  waits++;
  go_on(stream, stream->work.size());
  return std::exchange(next_wait, 0);
}
PRETEND int cuStreamWaitEvent(void* stream, void* handle, unsigned) {
  const Event event = *static_cast<Event*>(handle);  // as it is now
  stream_waits++;
  if (!event.stream) return 0;
  return put(stream, [event] { go_on(event.stream, event.count); });
}
PRETEND int cuEventCreate(void** event, unsigned) { return *event = new Event, 0; }
PRETEND int cuEventDestroy_v2(void*) { return 0; }
PRETEND int cuEventRecord(void* event, void* handle) {
  const std::lock_guard lock(mutex);
  auto* stream = static_cast<Stream*>(handle);
  if (stream->is_gone) return misuses++, kInvalidHandle;
  *static_cast<Event*>(event) = {stream, stream->work.size()};
  return 0;
}
PRETEND int cuEventSynchronize(void* handle) {
  const std::lock_guard lock(mutex);
  const Event event = *static_cast<Event*>(handle);
  waits++;
  if (event.stream) go_on(event.stream, event.count);
  return 0;
}
PRETEND int cuEventElapsedTime(float* milliseconds, void*, void*) {
  return *milliseconds = 1, 0;
}

// A module is its CUBIN, an ELF file that ends with its table of sections; its functions' names are in it.
PRETEND int cuModuleLoadData(void** module, const void* cubin) {
  const auto* const bytes = static_cast<const char*>(cubin);
  unsigned long long sections = 0;
  unsigned short each = 0, count = 0;
  std::memcpy(&sections, bytes + 40, sizeof sections);
  std::memcpy(&each, bytes + 58, sizeof each);
  std::memcpy(&count, bytes + 60, sizeof count);
  *module = new std::string(bytes, sections + static_cast<size_t>(each) * count);
  modules++;
  return 0;
}
PRETEND int cuModuleUnload(void* module) {
  const std::lock_guard lock(mutex);
  std::erase_if(functions, [&](auto& entry) { return entry.first.first == module; });
  delete static_cast<std::string*>(module);
  return 0;
}
PRETEND int cuModuleGetFunction(void** function, void* module, const char* name) {
  const std::lock_guard lock(mutex);
  if (!hands_over && std::string(name) == "tc_hand_over") return kNotFound;
  if (static_cast<std::string*>(module)->find(name) == std::string::npos) return kNotFound;
  const auto [at, is_new] = functions.insert({{module, name}, name});
  if (is_new) calls.erase(&at->second);
  *function = &at->second;
  return 0;
}
PRETEND int cuFuncSetAttribute(void*, int, int) { return 0; }
PRETEND int cuModuleGetGlobal_v2(Address* address, size_t* bytes, void*, const char*) {
  return *address = reinterpret_cast<Address>(&error_word), *bytes = sizeof error_word, 0;
}
struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  void *stream, *attributes;
  unsigned count;
};
PRETEND int cuLaunchKernelEx(const LaunchConfig* config, void* function, void** arguments,
                             void**) {
  void* const stream = config->stream;
  early_launches += config->count == 1 && *static_cast<int*>(config->attributes) == 6;
  if (next_launch != 0 && launches_before-- <= 0) {
    launches_before = 0;
    return std::exchange(next_launch, 0);
  }
  if (*static_cast<std::string*>(function) == "tc_hand_over") {
    constexpr int kWords = 6;  // of bits, index and size
    auto* const places = *static_cast<unsigned**>(arguments[0]);
    const unsigned count = *static_cast<unsigned*>(arguments[1]);
    return put(stream, [=] {
      places[kWords * (calls[function]++ % count)] = std::exchange(error_word, 0);
    });
  }
  const auto pointer = [&](int k) { return *static_cast<float**>(arguments[k]); };
  float *const first = pointer(0), *const second = pointer(1);
  if (static_cast<std::string*>(function)->find("gather") == std::string::npos)
    return put(stream, [=] { *second = *first + 1; });
  float* const out = pointer(2);
  return put(stream, [=] {
    const long long index = *reinterpret_cast<const long long*>(first);
    if (index >= 4) error_word |= 1;
    *out = index >= 0 && index < 4 ? second[4 * index] : 0;
  });
}

// No graphs here.
PRETEND int cuStreamBeginCapture_v2(void*, int) { return kNotSupported; }
PRETEND int cuStreamEndCapture(void*, void**) { return kNotSupported; }
PRETEND int cuStreamIsCapturing(void*, int* status) { return *status = 0, 0; }
PRETEND int cuGraphInstantiateWithFlags(void**, void*, unsigned long long) {
  return kNotSupported;
}
PRETEND int cuGraphLaunch(void*, void*) { return kNotSupported; }
PRETEND int cuGraphExecDestroy(void*) { return 0; }
PRETEND int cuGraphDestroy(void*) { return 0; }
