// How fast is the machine that a name stands for?
//
//   h200                     4.25e12 bytes a second: a device copy, read and written
//   a GPU of 58 multiprocessors that has no name     58 * 20e9
//
// The H200: its copy as measured (README). Other
// GPUs: as much of the bandwidth on the data sheet as a copy reaches there.
#include "tiny_compile/schedule/rates.h"

#include <algorithm>
#include <string>

namespace tiny_compile {
namespace {

// GPUs.
constexpr double kSheet = 0.89;      // of the data sheet's bytes, what a copy moves (H200)
constexpr double kSomeGpu = 20e9;    // bytes a second and multiprocessor: L4 5e9, A100 19e9
constexpr double kOfCache = 1.6;     // L2 over memory: reading a column twice from L2 takes
                                     // 1.3 to 1.7 times as long as holding it (NOTES.md)
constexpr double kLatency = 0.8e-6;  // seconds, under load
constexpr double kClock = 1.7e9, kLanes = 128;  // of a multiprocessor, sm_80 and later
constexpr double kSomeProducts =
    1e12;                        // a second and multiprocessor: RTX 4090 .65e12, A100 1.4e12
constexpr double kStart = 3e-6;  // seconds between kernels of a replayed graph, about

// CPUs: a server's core with its share of the memory's channels.
constexpr double kCoreBytes = 12e9, kMostBytes = 200e9;
constexpr double kCoreCached = 40e9;
constexpr double kCoreLatency = 0.1e-6, kCoreClock = 3e9;
constexpr double kHandOff =
    2e-6;  // OpenMP whose threads spin, and the slowest one's late start

double sheet_bytes(const Machine& machine) {
  if (machine.name == "h200") return 4.8e12;
  if (machine.name == "h100") return 3.35e12;
  if (machine.name == "a100") return 2.04e12;
  if (machine.name == "rtx4090") return 1.01e12;
  return static_cast<double>(machine.multiprocessors) * kSomeGpu / kSheet;
}

// Dense, of the data sheet's flops half; the clock says what of it a library reaches.
double sheet_products(const Machine& machine) {
  if (machine.name == "h200" || machine.name == "h100") return 495e12;
  if (machine.name == "a100") return 156e12;
  if (machine.name == "rtx4090") return 83e12;
  return static_cast<double>(machine.multiprocessors) * kSomeProducts;
}

Rates of_gpu(const Machine& machine) {
  Rates r;
  r.bytes = kSheet * sheet_bytes(machine);
  r.cached_bytes = kOfCache * r.bytes;
  r.cached = static_cast<double>(machine.l2);
  r.latency = kLatency;
  r.instructions = static_cast<double>(machine.multiprocessors) * kClock * kLanes;
  r.products = sheet_products(machine);
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
