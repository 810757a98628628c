// The reductions of a pass: they wait for other threads together.
#pragma once

#include <map>
#include <vector>

#include "tiny_compile/loops/sweeps.h"
#include "tiny_compile/tile/lowering.h"
#include "tiny_compile/tile/reduce.h"

namespace tiny_compile {

class Reductions {
 public:
  // Of these steps of the kernel; `k` outlives it.
  Reductions(Lowering& l, std::vector<int> steps, const Share& k);

  // Those that no other finds on its way.
  std::vector<int> own() const;

  // Before a turn: what is beyond the last element adds nothing.
  Body begin(int step) const;

  // An element's value, where its thread adds it up.
  Body each(int step) const;

  // Behind the elements; what is done in a turn is returned.
  Body reduce(int step);

  // All of it: `body` is done for the elements. Then each row's results, where later passes read them.
  Body finish(Body body);
  void finish_rows();

 private:
  bool is_found(int step) const;
  Accumulator largest_of(int finder) const;
  Body in_turns(Body body) const;

  Lowering& l_;
  const std::vector<int> steps_;
  const Share& k_;
  const std::vector<Tree> trees_;
  std::map<int, Accumulator> all_;  // of steps
  Reduced together_;
};

}  // namespace tiny_compile
