// Two numbers a device, which are read at any time. Storage is made and freed hundreds of times in
// a call of a function: an allocator that holds a lock counts, with a load and a store.
//
//   count_memory(cpu, 300), count_memory(cpu, 100), count_memory(cpu, -300)  =>  {100, 400}
#include "tiny_compile/tensor/memory_use.h"

#include <array>
#include <atomic>

namespace tiny_compile {
namespace {

struct Meter {
  std::atomic<int64_t> bytes{0}, peak{0};
};

constexpr int kMostGpus = 256;
constinit std::array<Meter, 1 + kMostGpus + 1>
    meters;  // the CPU's first, that of no device last

Meter& meter_of(Device device) {
  if (device == cpu) return meters.front();
  const bool exists = device.index >= 0 && device.index < kMostGpus;
  return exists ? meters[1 + static_cast<size_t>(device.index)] : meters.back();
}

}  // namespace

MemoryUse memory_use(Device device) {
  const Meter& meter = meter_of(device);
  return {meter.bytes, meter.peak};
}

void reset_peak_memory(Device device) {
  Meter& meter = meter_of(device);
  meter.peak = meter.bytes.load();
}

void count_memory(Device device, int64_t bytes) {
  Meter& meter = meter_of(device);
  const int64_t now = meter.bytes.load(std::memory_order_relaxed) + bytes;
  meter.bytes.store(now, std::memory_order_relaxed);
  if (now > meter.peak.load(std::memory_order_relaxed))
    meter.peak.store(now, std::memory_order_relaxed);
}

}  // namespace tiny_compile
