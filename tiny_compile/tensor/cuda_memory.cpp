// When may a block be used again? At once, by work that comes later on the same stream:
// the GPU runs a stream in order. So freeing costs no wait, and the second call of a
// function no cuMemAlloc. Where other streams used the block, that stream waits for them first.
#include "tiny_compile/tensor/cuda_memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/tensor/memory_use.h"

namespace tiny_compile {
namespace {

constexpr size_t kSmallest = 512, kLarge = 1 << 20;
constexpr size_t kStaged = 64 << 10;  // bytes that the driver copies before it returns

// Blocks of 512 * 2^k bytes and three steps between, as on the CPU; of large ones, fifteen steps,
// so that less than a sixteenth lies idle.
size_t rounded(size_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  const int log = 63 - __builtin_clzll(bytes), steps = bytes < kLarge ? 2 : 4;
  const size_t step = std::max<size_t>(size_t{1} << (log - steps), kSmallest);
  return (bytes + step - 1) / step * step;
}
size_t barely_rounded(size_t bytes) { return (bytes + kSmallest - 1) / kSmallest * kSmallest; }

// Free blocks by device, the queue whose further work may have them, and size.
struct Cache {
  std::mutex mutex;
  std::map<std::tuple<int, CudaQueue*, size_t>, std::vector<CudaAddress>> free;
  std::map<int, size_t> bytes;
};

Cache& cache() {
  static Cache* instance = new Cache;  // outlives every thread and every static tensor
  return *instance;
}

void give(CudaAddress address, size_t block, CudaQueue* queue, int device) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  c.free[{device, queue, block}].push_back(address);
  c.bytes[device] += block;
}

CudaAddress take(size_t block, CudaQueue* queue, int device) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  const auto at = c.free.find({device, queue, block});
  if (at == c.free.end() || at->second.empty()) return 0;
  const CudaAddress address = at->second.back();
  at->second.pop_back();
  c.bytes[device] -= block;
  return address;
}

// Guards who uses a storage beside its home: seldom asked.
std::mutex& users_mutex() {
  static std::mutex* mutex = new std::mutex;
  return *mutex;
}

// A block of at least so many bytes, which become what it has.
CudaAddress obtain(size_t& bytes, CudaQueue* queue, int device) {
  const size_t needed = barely_rounded(bytes), wanted = rounded(bytes);
  for (size_t block : {wanted, needed}) {
    if (const CudaAddress address = take(bytes = block, queue, device)) return address;
  }
  const CudaScope scope(device);
  if (const CudaAddress address = driver::allocate(bytes = wanted)) return address;
  release_cached_cuda_memory(device);
  if (const CudaAddress address = driver::allocate(bytes = wanted)) return address;
  return driver::allocate(bytes = needed);
}

}  // namespace

CudaStorage::CudaStorage(std::byte* data, size_t bytes, size_t block, CudaQueue* home,
                         int device)
    : Storage(data, bytes, {DeviceKind::Cuda, device}), block_(block), home_(home) {
  count_memory(this->device(), static_cast<int64_t>(bytes));
}

CudaStorage::~CudaStorage() {
  count_memory(device(), -static_cast<int64_t>(bytes()));
  try {
    CudaQueue* next = home_;
    if (!users_.empty()) {
      users_.insert(users_.begin(), home_);
      next = queue_after(device().index, users_);
    }
    give(reinterpret_cast<CudaAddress>(data()), block_, next, device().index);
  } catch (const Error&) {  // the driver is gone at exit, or its context: so is the block
  }
}

void CudaStorage::add_user(CudaQueue* queue) {
  const std::lock_guard lock(users_mutex());
  if (std::find(users_.begin(), users_.end(), queue) == users_.end()) users_.push_back(queue);
}

void CudaStorage::read(size_t first, size_t bytes, std::byte* to) const {
  const CudaScope scope(device().index);
  come_after(cuda_queue(device().index), home_);
  try {
    driver::copy_to_host(to, reinterpret_cast<CudaAddress>(data() + first), bytes,
                         cuda_stream(device().index));
  } catch (const Error& error) {
    if (!maker) throw;
    fail(error.what(), "; it was told of when a result of ", maker->name,
         " was read, and is of its kernels or of what ran before them (compute-sanitizer names "
         "the kernel and the thread). Its kernels:\n",
         maker->source());
  }
  for (const auto& outcome : outcomes) outcome->throw_if_bad();
}

std::shared_ptr<CudaStorage> allocate_cuda(size_t bytes, int device) {
  CudaQueue* const queue = cuda_queue(device);
  size_t block = bytes;
  const CudaAddress address = obtain(block, queue, device);
  if (!address) {
    const CudaScope scope(device);
    size_t free = 0, total = 0;
    driver::memory(free, total);
    fail("out of memory on cuda:", device, ": ", bytes, " bytes are needed in one piece; ",
         free, " of ", total, " are free. Use smaller tensors or free some");
  }
  return std::make_shared<CudaStorage>(reinterpret_cast<std::byte*>(address), bytes, block,
                                       queue, device);
}

size_t cached_cuda_bytes(int device) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  return c.bytes[device];
}

void release_cached_cuda_memory(int device) {
  const CudaScope scope(device);
  std::vector<std::pair<CudaQueue*, std::vector<CudaAddress>>> released;
  {
    Cache& c = cache();
    const std::lock_guard lock(c.mutex);
    for (auto& [key, list] : c.free) {
      const auto& [of, queue, block] = key;
      if (of == device && !list.empty()) released.emplace_back(queue, std::exchange(list, {}));
    }
    c.bytes[device] = 0;
  }
  for (const auto& [queue, addresses] : released) {
    wait_for(queue);
    for (CudaAddress address : addresses) driver::free(address);
  }
}

CudaStorage& cuda_storage(const Tensor& tensor) {
  return static_cast<CudaStorage&>(*tensor.info().storage);
}

void use_in(CudaQueue* queue, std::span<const Tensor> tensors) {
  std::vector<CudaQueue*> awaited;  // each once: a network's weights have one home
  for (const Tensor& tensor : tensors) {
    CudaStorage& storage = cuda_storage(tensor);
    if (storage.home() == queue) continue;
    storage.add_user(queue);
    if (std::find(awaited.begin(), awaited.end(), storage.home()) != awaited.end()) continue;
    awaited.push_back(storage.home());
    come_after(queue, storage.home());
  }
}

Tensor copy_to(const Tensor& tensor, Device device) {
  const TensorData& d = tensor.info();
  if (!d.storage || d.storage->device() == device) return tensor;
  const Tensor host = on_host(tensor);
  if (device.kind == DeviceKind::Cpu) return host;
  const TensorData& from = host.info();
  const auto [first, bytes] = byte_span(from);
  auto data = std::make_shared<TensorData>(from);
  data->storage = allocate_cuda(static_cast<size_t>(bytes), device.index);
  data->offset -= first / size_of(from.dtype);
  if (bytes == 0) return Tensor(std::move(data));
  const CudaScope scope(device.index);
  const CudaStream stream = cuda_stream(device.index);
  if (driver::is_recording(stream))  // which would read the host's memory when it is run
    fail(
        "a tensor of the CPU, or a number, cannot go into a CUDA graph that is being "
        "recorded; ",
        "copy it to ", device.str(), " before");
  driver::copy_to_device(reinterpret_cast<CudaAddress>(data->storage->data()),
                         from.storage->data() + first, static_cast<size_t>(bytes), stream);
  // The source may be freed behind this. The driver stages a few bytes of pageable memory at once
  // (CUDA driver API, "API synchronization behavior").
  if (static_cast<size_t>(bytes) > kStaged) driver::synchronize(stream);
  return Tensor(std::move(data));
}

}  // namespace tiny_compile
