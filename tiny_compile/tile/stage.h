// What goes by way of shared memory (Via, loops/layout.h), piece by piece.
#pragma once

#include <vector>

#include "tiny_compile/tile/registers.h"

namespace tiny_compile {

// The pieces of the pass at hand; 1 where nothing is staged.
struct Stages {
  Body before;              // of the pass, or of a turn: all wait for who still reads
  std::vector<Work> works;  // of a piece; barriers stand behind them
  int pieces = 1;
  bool empty() const { return works.empty(); }
};

// Whether threads beyond the last element do as the last does, so that no branch keeps loads
// apart. Where a block has all of a row, most registers have only such threads or none: those
// are left out.
bool clamps_elements(const Layout& loop);

// Loads of these scalars: the pass then finds them in `l.staged`, until it clears that.
Stages stage_loads(Lowering& l, const std::vector<int>& ids);

// Stores of these steps: the pass gives them to `l.stored`; the works take them from there.
Stages stage_stores(Lowering& l, const std::vector<int>& steps);

}  // namespace tiny_compile
