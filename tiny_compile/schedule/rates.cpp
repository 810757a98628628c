// How much of what a machine is said to do does a kernel get?
//
//   bandwidth=4800                                   0.89 of it: a device copy, read and written
//   a GPU of 58 multiprocessors that says nothing    58 * 20e9 bytes a second
#include "tiny_compile/schedule/rates.h"

#include <algorithm>

namespace tiny_compile {
namespace {

// GPUs.
constexpr double kSheet = 0.89;      // of the data sheet's bytes, what a copy moves (H200)
constexpr double kBusy = 0.93;       // of the clock, what a busy one keeps (H200: 1.7 GHz)
constexpr double kOfCache = 1.6;     // L2 over memory: reading a column twice from L2 takes
                                     // 1.3 to 1.7 times as long as holding it (NOTES.md)
constexpr double kLatency = 0.8e-6;  // seconds, under load
constexpr double kAdders = 128;      // of a multiprocessor, sm_80 and later
constexpr double kStart = 3e-6;      // seconds between kernels of a replayed graph, about
// Where it is not known, of each multiprocessor: L4 5e9 bytes a second, A100 19e9; RTX 4090 .65e12
// products, A100 1.4e12.
constexpr double kSomeBytes = 20e9, kSomeProducts = 1e12, kSomeClock = 1830;

// CPUs: a server's core with its share of the memory's channels.
constexpr double kCoreBytes = 12e9, kMostBytes = 200e9;
constexpr double kCoreCached = 40e9;
constexpr double kCoreLatency = 0.1e-6, kCoreClock = 3e9;
constexpr double kHandOff =
    2e-6;  // OpenMP whose threads spin, and the slowest one's late start

Rates of_gpu(const Machine& machine) {
  const double multiprocessors = static_cast<double>(machine.multiprocessors);
  const double clock = machine.clock > 0 ? static_cast<double>(machine.clock) : kSomeClock;
  Rates r;
  r.bytes = machine.bandwidth > 0 ? kSheet * 1e9 * static_cast<double>(machine.bandwidth)
                                  : kSomeBytes * multiprocessors;
  r.cached_bytes = kOfCache * r.bytes;
  r.cached = static_cast<double>(machine.l2);
  r.latency = kLatency;
  r.instructions = multiprocessors * kBusy * 1e6 * clock * kAdders;
  r.products = multiprocessors * (machine.products > 0
                                      ? 1e6 * clock * static_cast<double>(machine.products)
                                      : kSomeProducts);
  r.launch = kStart;
  return r;
}

Rates of_cpu(const Machine& machine) {
  const double cores = static_cast<double>(machine.cores);
  Rates r;
  r.bytes = std::min(kMostBytes, cores * kCoreBytes);
  r.cached_bytes = cores * kCoreCached;
  r.cached = static_cast<double>(machine.l3);
  r.latency = kCoreLatency;
  r.instructions = cores * kCoreClock * static_cast<double>(machine.vector) / 4;
  r.launch = kHandOff;
  return r;
}

}  // namespace

Rates rates_of(const Machine& machine) {
  return target_of(machine) == Target::Cuda ? of_gpu(machine) : of_cpu(machine);
}

}  // namespace tiny_compile
