// Two numbers a device, without a lock: storage is made and freed on every call of a function.
//
//   count_memory(cpu, 300), count_memory(cpu, 100), count_memory(cpu, -300)  =>  {100, 400}
#include "tiny_compile/tensor/memory_use.h"

#include <atomic>
#include <map>
#include <mutex>

namespace tiny_compile {
namespace {

struct Meter {
  std::atomic<int64_t> bytes{0}, peak{0};
};

Meter& meter_of(Device device) {
  static Meter* of_cpu = new Meter;  // outlives every thread and every static tensor
  if (device == cpu) return *of_cpu;
  static std::mutex* mutex = new std::mutex;
  static std::map<int, Meter>* of_gpus = new std::map<int, Meter>;
  const std::lock_guard lock(*mutex);
  return (*of_gpus)[device.index];
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
  const int64_t now = meter.bytes.fetch_add(bytes) + bytes;
  int64_t peak = meter.peak;
  while (now > peak && !meter.peak.compare_exchange_weak(peak, now)) {
  }
}

}  // namespace tiny_compile
