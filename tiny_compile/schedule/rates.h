// What does a machine do in a second? The figures that the cost model divides by.
#pragma once

#include "tiny_compile/loops/machine.h"

namespace tiny_compile {

// Of a whole machine, all cores or multiprocessors at work.
struct Rates {
  double bytes = 0;         // a second, between memory and chip
  double cached_bytes = 0;  // a second, out of the last cache
  double cached = 0;        // bytes that this cache holds
  double latency = 0;       // seconds from a load to its value, memory being busy
  double instructions = 0;  // of one 32-bit element each, a second
  double products = 0;      // of halves that tensor cores multiply and add, a second
  double launch = 0;        // seconds: a kernel's start; on a CPU the hand-off to threads
};

// A GPU's by the bandwidth, clock and products that it has, or about those of its multiprocessors; a
// CPU's about those of its cores.
Rates rates_of(const Machine& machine);

inline double as_double(int64_t n) { return static_cast<double>(n); }

}  // namespace tiny_compile
