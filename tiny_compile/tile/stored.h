// What a tile stores in the program's buffers while it runs, and who may read it.
#pragma once

#include <cstring>
#include <optional>
#include <vector>

#include "tiny_compile/graph/lanes.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/tile/cluster.h"

namespace tiny_compile {

inline uint64_t bits_of(const Lanes& one) {
  uint64_t bits = 0;
  std::memcpy(&bits, one.data, width_of(one.dtype));
  return bits;
}

inline Lanes lanes_of(uint64_t bits, DType dtype) {
  if (dtype == DType::boolean)
    bits = bits != 0 ? 1 : 0;  // one of two, also where nobody has set it
  Lanes one;
  one.dtype = dtype;
  std::memcpy(one.data, &bits, width_of(dtype));
  return one;
}

// What a scatter's op makes of two values of a dtype.
inline uint64_t combined(Op op, uint64_t a, uint64_t b, DType dtype) {
  const std::optional<Op> both = combiner(op);
  if (!both) return b;
  const Lanes first = lanes_of(a, dtype), second = lanes_of(b, dtype);
  Lanes result;
  apply(*both, dtype, &first, &second, nullptr, 1, result);
  return bits_of(result);
}

// The program's buffers while a tile runs.
class Buffers {
 public:
  Buffers(const Tile& tile, std::vector<Memory>& memory)
      : tile_(tile), memory_(memory), stored_(memory.size()), is_updated_(memory.size()) {
    for (const Step& step : tile.kernel.steps)
      if (step.kind == StepKind::Scatter) is_updated_[step.buffer] = true;
  }

  // Who asks, and how many barriers its block has passed.
  struct Asker {
    int64_t thread, barriers;
  };

  void fetch(int buffer, int64_t index, const Asker& who, Lanes& one) const {
    check(buffer, index);
    const std::vector<Asker>& stored = stored_[buffer];
    const bool is_known = stored.empty() || stored[index].thread == kNobody
                              ? !is_updated_[buffer]
                              : sees(stored[index], who);
    if (!is_known)
      fail("tile ", tile_.kernel.name, " reads element ", index,
           ", which its thread has not stored");
    load(memory_[buffer].dtype, memory_[buffer].data, &index, 1, one);
  }

  void put(int buffer, int64_t index, uint64_t bits, const Asker& who) {
    check(buffer, index);
    std::vector<Asker>& stored = stored_[buffer];
    stored.resize(static_cast<size_t>(memory_[buffer].size), {kNobody, 0});
    if (stored[index].thread != kNobody)
      fail("tile ", tile_.kernel.name, " stores element ", index, " twice");
    stored[index] = who;
    set(buffer, index, bits);
  }

  // What stands there, combined with a value; that thread, or its block, has stored it.
  void update(const Statement& s, int64_t index, uint64_t bits, const Asker& who) {
    check(s.buffer, index);
    std::vector<Asker>& stored = stored_[s.buffer];
    if (stored.empty() || stored[index].thread == kNobody || !sees(stored[index], who))
      fail("tile ", tile_.kernel.name, " updates element ", index,
           ", which its thread has not stored");
    Lanes old;
    fetch(s.buffer, index, who, old);
    stored[index] = who;
    set(s.buffer, index, combined(s.op, bits_of(old), bits, memory_[s.buffer].dtype));
  }

 private:
  void check(int buffer, int64_t index) const {
    if (index < 0 || index >= memory_[buffer].size)
      fail("tile ", tile_.kernel.name, " uses element ", index, " of ", memory_[buffer].size);
  }

  void set(int buffer, int64_t index, uint64_t bits) {
    const Lanes one = lanes_of(bits, memory_[buffer].dtype);
    store(one, memory_[buffer].data, &index, 1);
  }

  // What another thread of a block has stored, behind a barrier.
  bool sees(const Asker& stored, const Asker& who) const {
    if (stored.thread == who.thread) return true;
    const int64_t block = goes_alone(tile_) ? 1 : 32 * tile_.warps;
    return stored.thread / block == who.thread / block && stored.barriers < who.barriers;
  }

  static constexpr int64_t kNobody = -1;
  const Tile& tile_;
  std::vector<Memory>& memory_;
  std::vector<std::vector<Asker>> stored_;  // who has stored each buffer's elements
  std::vector<bool> is_updated_;            // of each: what is read of it has been stored
};

}  // namespace tiny_compile
