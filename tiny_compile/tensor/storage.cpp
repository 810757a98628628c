// Where do bytes come from? From blocks freed before, when one of the right class is
// there: fresh pages cost more than the arithmetic on them. Classes are 64 * 2^k bytes and
// three steps between.
#include "tiny_compile/tensor/storage.h"

#include <sys/mman.h>
#include <cstdint>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/tensor/memory_use.h"
#include "tiny_compile/tensor/recycled.h"

namespace tiny_compile {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMostCached = size_t{4} << 30;
constexpr int kClasses = 4 * 58;

// 300 bytes are served from a block of 320: the least of 64, 128, 192, 256, 320, 384, 448, 512,
// 640, 768, ...
size_t rounded(size_t bytes) {
  if (bytes <= kAlignment) return kAlignment;
  const int log = 63 - __builtin_clzll(bytes);
  const size_t step = std::max<size_t>(size_t{1} << (log - 2), kAlignment);
  return (bytes + step - 1) / step * step;
}

int class_of(size_t block) {
  const int log = 63 - __builtin_clzll(block);
  return 4 * (log - 6) + static_cast<int>((block >> (log - 2)) & 3);
}

// Freed blocks by class.
struct Cache {
  std::mutex mutex;
  std::array<std::vector<std::byte*>, kClasses> free;
  size_t bytes = 0;
};

Cache& cache() {
  static Cache* instance = new Cache;  // outlives every thread and every static tensor
  return *instance;
}

// A free block for so many bytes, or null.
std::byte* take(size_t bytes) {
  const size_t block = rounded(bytes);
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  std::vector<std::byte*>& list = c.free[class_of(block)];
  if (list.empty()) return nullptr;
  std::byte* data = list.back();
  list.pop_back();
  c.bytes -= block;
  count_memory(cpu, static_cast<int64_t>(bytes));
  return data;
}

void give(std::byte* data, size_t bytes) {
  const size_t block = rounded(bytes);
  Cache& c = cache();
  {
    const std::lock_guard lock(c.mutex);
    count_memory(cpu, -static_cast<int64_t>(bytes));
    if (c.bytes + block <= kMostCached) {
      c.free[class_of(block)].push_back(data);
      c.bytes += block;
      return;
    }
  }
  std::free(data);
}

std::byte* fresh(size_t block) {
  const size_t alignment = block >= kHugePage ? kHugePage : kAlignment;
  void* data = std::aligned_alloc(alignment, (block + alignment - 1) / alignment * alignment);
  if (data && block >= kHugePage) madvise(data, block, MADV_HUGEPAGE);
  return static_cast<std::byte*>(data);
}

class CpuStorage : public Storage {
 public:
  CpuStorage(std::byte* data, size_t bytes) : Storage(data, bytes, cpu) {}
  ~CpuStorage() override { give(data(), bytes()); }
  void read(size_t first, size_t count, std::byte* to) const override {
    std::memcpy(to, data() + first, count);
  }
};

// A block for so many bytes, or null.
std::byte* obtain(size_t bytes) {
  if (bytes > SIZE_MAX / 4) return nullptr;  // rounding it up could overflow
  if (std::byte* data = take(bytes)) return data;
  std::byte* data = fresh(rounded(bytes));
  if (!data) {
    release_cached_memory();
    data = fresh(rounded(bytes));
  }
  if (!data) return nullptr;
  const std::lock_guard lock(cache().mutex);
  count_memory(cpu, static_cast<int64_t>(bytes));
  return data;
}

}  // namespace

std::string Device::str() const {
  return kind == DeviceKind::Cpu ? "cpu" : "cuda:" + std::to_string(index);
}

std::shared_ptr<Storage> allocate_cpu(size_t bytes) {
  std::byte* data = obtain(bytes);
  if (!data)
    fail("out of memory: the CPU has no ", bytes,
         " bytes more; use smaller tensors or free some");
  return make_recycled<CpuStorage>(data, bytes);
}

size_t cached_bytes() {
  const std::lock_guard lock(cache().mutex);
  return cache().bytes;
}

void release_cached_memory() {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  for (auto& list : c.free) {
    for (std::byte* data : list) std::free(data);
    list.clear();
  }
  c.bytes = 0;
}

}  // namespace tiny_compile
