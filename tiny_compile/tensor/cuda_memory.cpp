// When may a block be used again? At once, by work that comes later on the same stream:
// the GPU runs a stream in order. So freeing costs no wait, and the second call of a
// function no cuMemAlloc. Where other streams used the block, that stream waits for them first.
#include "tiny_compile/tensor/cuda_memory.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/tensor/memory_use.h"
#include "tiny_compile/tensor/recycled.h"

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

struct Block {
  CudaAddress address = 0;
  size_t bytes = 0;
};

// Whose free blocks: the queue's, whose further work may have them.
struct BlockKind {
  int device;
  CudaQueue* queue;
  size_t bytes;
  bool operator==(const BlockKind&) const = default;
};
struct BlockKindHash {
  size_t operator()(const BlockKind& kind) const {
    return reinterpret_cast<size_t>(kind.queue) ^ kind.bytes * 0x9e3779b97f4a7c15;
  }
};
// Held for some tens of instructions, hundreds of times in a call: half of a mutex's time.
class SpinLock {
 public:
  void lock() {
    while (is_held_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { is_held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> is_held_ = false;
};

struct Cache {
  SpinLock mutex;
  std::unordered_map<BlockKind, std::vector<CudaAddress>, BlockKindHash> free;
  std::map<int, size_t> bytes;
};

Cache& cache() {
  static Cache* instance = new Cache;  // outlives every thread and every static tensor
  return *instance;
}

void count(int device, int64_t bytes) { count_memory({DeviceKind::Cuda, device}, bytes); }

// A free block for so many bytes; of no bytes where there is none. The caller has the lock.
Block take(Cache& c, size_t bytes, CudaQueue* queue, int device) {
  for (const size_t block : {rounded(bytes), barely_rounded(bytes)}) {
    const auto at = c.free.find({device, queue, block});
    if (at == c.free.end() || at->second.empty()) continue;
    const CudaAddress address = at->second.back();
    at->second.pop_back();
    c.bytes[device] -= block;
    count(device, static_cast<int64_t>(bytes));
    return {address, block};
  }
  return {};
}

Block take_one(size_t bytes, CudaQueue* queue, int device) {
  const std::lock_guard lock(cache().mutex);
  return take(cache(), bytes, queue, device);
}

// `bytes`: of it that were used.
void give(Block block, size_t bytes, CudaQueue* queue, int device) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  count(device, -static_cast<int64_t>(bytes));
  c.free[{device, queue, block.bytes}].push_back(block.address);
  c.bytes[device] += block.bytes;
}

// Guards who uses a storage beside its home: seldom asked.
std::mutex& users_mutex() {
  static std::mutex* mutex = new std::mutex;
  return *mutex;
}

// From the device. Without an address where it has none.
Block fresh(size_t bytes, int device) {
  const size_t needed = barely_rounded(bytes), wanted = rounded(bytes);
  const CudaScope scope(device);
  if (const CudaAddress address = driver::allocate(wanted)) return {address, wanted};
  release_cached_cuda_memory(device);
  if (const CudaAddress address = driver::allocate(wanted)) return {address, wanted};
  return {driver::allocate(needed), needed};
}

std::shared_ptr<CudaStorage> storage_of(Block block, size_t bytes, CudaQueue* queue,
                                        int device) {
  return make_recycled<CudaStorage>(reinterpret_cast<std::byte*>(block.address), bytes,
                                    block.bytes, queue, device);
}

[[noreturn]] void fail_for_memory(size_t bytes, int device) {
  const CudaScope scope(device);
  size_t free = 0, total = 0;
  driver::memory(free, total);
  fail("out of memory on cuda:", device, ": ", bytes, " bytes are needed in one piece; ", free,
       " of ", total, " are free. Use smaller tensors or free some");
}

}  // namespace

CudaStorage::CudaStorage(std::byte* data, size_t bytes, size_t block, CudaQueue* home,
                         int device)
    : Storage(data, bytes, {DeviceKind::Cuda, device}), block_(block), home_(home) {}

CudaStorage::~CudaStorage() {
  try {
    CudaQueue* next = home_;
    if (!users_.empty()) {
      users_.insert(users_.begin(), home_);
      next = queue_after(device().index, users_);
    }
    give({reinterpret_cast<CudaAddress>(data()), block_}, bytes(), next, device().index);
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
  return allocate_cuda(bytes, device, cuda_queue(device));
}

std::shared_ptr<CudaStorage> allocate_cuda(size_t bytes, int device, CudaQueue* queue) {
  Block block = take_one(bytes, queue, device);
  if (!block.address) {
    block = fresh(bytes, device);
    if (!block.address) fail_for_memory(bytes, device);
    const std::lock_guard lock(cache().mutex);
    count(device, static_cast<int64_t>(bytes));
  }
  return storage_of(block, bytes, queue, device);
}

std::vector<std::shared_ptr<Storage>> take_cached_cuda(std::span<const size_t> sizes,
                                                       int device, CudaQueue* queue) {
  std::vector<Block> blocks;
  blocks.reserve(sizes.size());
  {
    const std::lock_guard lock(cache().mutex);
    for (const size_t bytes : sizes) blocks.push_back(take(cache(), bytes, queue, device));
  }
  std::vector<std::shared_ptr<Storage>> storages(sizes.size());
  for (size_t k = 0; k < sizes.size(); k++) {
    if (blocks[k].address) storages[k] = storage_of(blocks[k], sizes[k], queue, device);
  }
  return storages;
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
      if (key.device == device && !list.empty())
        released.emplace_back(key.queue, std::exchange(list, {}));
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
