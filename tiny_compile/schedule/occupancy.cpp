// How full is a multiprocessor? Each block takes threads, registers and shared bytes, and the first
// of them to run out is the limit. See occupancy.h.
#include "tiny_compile/schedule/occupancy.h"

#include <algorithm>

namespace tiny_compile {
namespace {

constexpr int64_t kRegisters = 24;  // of a thread, beside its elements: addresses, counters

}  // namespace

int64_t Occupancy::blocks() const {
  return std::clamp<int64_t>(std::min({by_threads, by_registers, by_shared}), 1, most);
}

const char* Occupancy::limit() const {
  const int64_t least = std::min({by_threads, by_registers, by_shared});
  if (least >= most) return "block slots";
  if (least == by_threads) return "threads";
  return least == by_registers ? "registers" : "shared memory";
}

Occupancy occupancy_of(const Machine& machine, int64_t threads, int64_t elements,
                       int64_t shared) {
  Occupancy o;
  o.most = machine.blocks;
  o.by_threads = machine.threads / threads;
  o.by_registers = machine.registers / (threads * (kRegisters + elements));
  o.by_shared = shared > 0 ? machine.shared / shared : o.most;
  return o;
}

}  // namespace tiny_compile
