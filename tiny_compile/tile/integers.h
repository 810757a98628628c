// What the integers of a tile are in each thread of a cluster.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

using Threads = std::vector<int>;       // those that a statement is done by, ascending
using Integers = std::vector<int64_t>;  // one for each of these

inline constexpr int kTurns = 64;  // of a CPU's loop, that are done as by a thread each

class ThreadIntegers {
 public:
  // Those of all threads of the cluster of this number: block, rank, warp, lane and thread.
  ThreadIntegers(const Tile& tile, int64_t number);
  // Of a CPU's one thread: these.
  ThreadIntegers(int64_t begin, int64_t end);
  // The first thread's for the first `count`: turns of a loop that are done side by side.
  void spread(int count);

  Threads all() const;
  void set(const std::string& name, const Threads& threads, const Integers& values);
  Integers evaluate(const Expr& expr, const Threads& threads) const;
  // Those of the threads for which the condition of an If holds, or does not.
  Threads those_where(const Statement& condition, bool holds, const Threads& threads) const;

 private:
  int threads_;
  std::map<std::string, Integers> symbols_;  // a value for each thread
};

}  // namespace tiny_compile
