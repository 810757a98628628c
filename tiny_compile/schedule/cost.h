// What would a kernel's run cost under a schedule? A model: microseconds from a few counts.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Microseconds. Memory and arithmetic go on side by side; a launch comes before them.
struct Estimate {
  double launch = 0;
  double bytes = 0;       // what must move, over the bandwidth of accesses of that width
  double latency = 0;     // beyond it: loads under way, or groups that could go on, are too few
  double arithmetic = 0;  // of the points that there are: ops, exponentials, shuffles
  double waste = 0;       // and of those that only the layouts' powers of two, or tiles, cover
  double total() const;
};

// Under the kernel's schedule, on the Program's machine. Sizes must be numbers.
Estimate estimate(const Program& program, const Kernel& kernel);

// Microseconds of all kernels, one after the other; those of a launch start once.
double estimate(const Program& program);

// The largest of its parts: "bytes", "latency", "arithmetic", "waste" or "launch".
std::string bound_of(const Estimate& estimate);

// "84.0 us, bound by bytes (61.2 bytes, 22.8 latency, ...)".
std::string str(const Estimate& estimate);

struct Priced {
  Schedule schedule;
  double microseconds = 0;
};

// The legal schedules, the cheapest first; those that cost the same in enumerate's order.
std::vector<Priced> ranked(const Program& program, const Kernel& kernel);

// A line for each kernel: its schedule, what it costs by the model and why, and the cheapest other.
std::vector<std::string> explain_schedules(const Program& program);

}  // namespace tiny_compile
