// Which axes of a dot are batches, rows, columns and depth, whatever their number.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The kernel's row axes, sorted by which operand of its dot depends on them: both (batch), one
// (rows), the other (columns); rows also if neither. Each list stands in the order in which
// one flat number counts it, the last axis fastest. Columns are the vectors' lanes.
struct DotAxes {
  int step = -1;              // the dot's number
  int left = -1, right = -1;  // scalars: of rows and depth, of columns and depth
  std::vector<int> batch, rows, columns;
  std::vector<int> depth;  // the dot's inner axes
};

// Of a kernel with one dot. Which operand's axes become the lanes: those that make the shorter
// way, given padding to whole tiles and where results and operands lie contiguously.
DotAxes dot_axes(const Kernel& kernel);

Expr count_of(const Kernel& kernel, const std::vector<int>& axes);  // product of the extents

// The same kernel for the eyes of some of its indices: axes of a list that always step together
// there are one, and one that they divide is several, so that they become plain sums.
//
//   load x[(i0/32)*34 + i0%32], i0: 1024   =>   load x[v1*34 + v2], v1: 32, v2: 32
struct DotView {
  Kernel kernel;                        // all its indices in the new axes
  std::vector<std::vector<int>> lists;  // as they were given, in the new axes
};
// New axes have names that begin so.
DotView view_for(const Kernel& kernel, const std::vector<std::vector<int>>& lists,
                 const std::vector<Expr>& indices, const std::string& prefix = "v");

// The scalars that one is made of, itself too.
std::vector<bool> below(const Kernel& kernel, int scalar);

}  // namespace tiny_compile
