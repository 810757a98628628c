// When may a block be used again? At once, by work that comes later on the same stream:
// the GPU runs a stream in order. So freeing costs no wait, and the second call of a
// function no cuMemAlloc.
#include "tiny_compile/tensor/cuda_memory.h"

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

constexpr size_t kSmallest = 512;

// Blocks of 512 * 2^k bytes and three steps between, as on the CPU.
size_t rounded(size_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  const int log = 63 - __builtin_clzll(bytes);
  const size_t step = std::max<size_t>(size_t{1} << (log - 2), kSmallest);
  return (bytes + step - 1) / step * step;
}

struct Block {
  int device;
  CudaStream stream;
  size_t bytes;
};

// Free blocks by device, stream and size, and what each block in use is.
struct Cache {
  std::mutex mutex;
  std::map<std::tuple<int, CudaStream, size_t>, std::vector<CudaAddress>> free;
  std::map<CudaAddress, Block> used;
  std::map<int, size_t> bytes;
  std::map<int, CudaStream> streams;  // our own, one a device
};

Cache& cache() {
  static Cache* instance = new Cache;  // outlives every thread and every static tensor
  return *instance;
}

std::map<int, CudaStream>& chosen_streams() {
  thread_local std::map<int, CudaStream> streams;
  return streams;
}

void give(std::byte* data, size_t) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  const auto at = c.used.find(reinterpret_cast<CudaAddress>(data));
  if (at == c.used.end()) return;
  const Block block = at->second;
  c.free[{block.device, block.stream, block.bytes}].push_back(at->first);
  c.bytes[block.device] += block.bytes;
  c.used.erase(at);
}

void read(const Storage& storage, size_t first, size_t bytes, std::byte* to) {
  const int device = storage.device().index;
  const CudaScope scope(device);
  driver::copy_to_host(to, reinterpret_cast<CudaAddress>(storage.data() + first), bytes,
                       cuda_stream(device));
}

CudaAddress take(int device, CudaStream stream, size_t bytes) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  const auto at = c.free.find({device, stream, bytes});
  if (at == c.free.end() || at->second.empty()) return 0;
  const CudaAddress address = at->second.back();
  at->second.pop_back();
  c.bytes[device] -= bytes;
  return address;
}

}  // namespace

CudaStream cuda_stream(int device) {
  const auto chosen = chosen_streams().find(device);
  if (chosen != chosen_streams().end()) return chosen->second;
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  CudaStream& stream = c.streams[device];
  if (!stream) {
    const CudaScope scope(device);
    stream = driver::create_stream();
  }
  return stream;
}

CudaStreamScope::CudaStreamScope(int device, CudaStream stream)
    : device_(device), before_(cuda_stream(device)) {
  chosen_streams()[device] = stream;
}

CudaStreamScope::~CudaStreamScope() { chosen_streams()[device_] = before_; }

std::shared_ptr<Storage> allocate_cuda(size_t bytes, int device) {
  const size_t block = rounded(bytes);
  const CudaStream stream = cuda_stream(device);
  CudaAddress address = take(device, stream, block);
  if (!address) {
    const CudaScope scope(device);
    address = driver::allocate(block);
    if (!address) {
      release_cached_cuda_memory(device);
      address = driver::allocate(block);
    }
    if (!address) {
      size_t free = 0, total = 0;
      driver::memory(free, total);
      fail("out of memory on cuda:", device, ": a tensor needs ", bytes, " bytes; ", free,
           " of ", total, " are free. Use smaller tensors or free some");
    }
  }
  {
    Cache& c = cache();
    const std::lock_guard lock(c.mutex);
    c.used[address] = {device, stream, block};
  }
  return std::make_shared<Storage>(reinterpret_cast<std::byte*>(address), bytes,
                                   Device{DeviceKind::Cuda, device}, give, read);
}

size_t cached_cuda_bytes(int device) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  return c.bytes[device];
}

void release_cached_cuda_memory(int device) {
  const CudaScope scope(device);
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  for (auto& [key, list] : c.free) {
    if (std::get<0>(key) != device || list.empty()) continue;
    driver::synchronize(std::get<1>(key));
    for (CudaAddress address : list) driver::free(address);
    list.clear();
  }
  c.bytes[device] = 0;
}

void synchronize(Device device) {
  if (device.kind != DeviceKind::Cuda) return;
  const CudaScope scope(device.index);
  driver::synchronize(cuda_stream(device.index));
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
  data->offset -= first / static_cast<int64_t>(size_of(from.dtype));
  if (bytes == 0) return Tensor(std::move(data));
  const CudaScope scope(device.index);
  const CudaStream stream = cuda_stream(device.index);
  driver::copy_to_device(reinterpret_cast<CudaAddress>(data->storage->data()),
                         from.storage->data() + first, static_cast<size_t>(bytes), stream);
  driver::synchronize(stream);  // the source may be freed now
  return Tensor(std::move(data));
}

}  // namespace tiny_compile
