// What is known while a kernel's passes are written, and which rows and elements are a thread's.
#pragma once

#include <map>
#include <vector>

#include "tiny_compile/tile/share.h"
#include "tiny_compile/tile/tile.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {

// An element in shared memory.
struct StagedElement {
  int array = -1;
  Expr place;
};

// What is known while the passes of a kernel are written.
struct Lowering {
  const Program& program;
  const Kernel& kernel;
  std::vector<uint64_t> axes;  // of each scalar: those it depends on, bit a for axis a
  Tile tile{};
  Share rows{};
  std::vector<int> results{};  // of each reducing step: the array of its rows' registers
  std::vector<bool>
      defined{};  // scalars that are defined for the row, above all passes to come
  std::map<int, int> of_rows{};  // scalar -> the array of what it is for each of several rows
  std::map<int, std::pair<int, std::vector<int>>> kept{};  // scalar -> array, over which loops
  std::vector<int> inner{};                                // the loops of the pass at hand
  std::map<int, int> packs{};    // load -> the vector whose element it is
  std::map<int, int> keeping{};  // scalar -> the array in which the pass at hand keeps it
  std::map<int, StagedElement>
      staged{};  // load -> where the pass at hand finds it (tile/stage.h)
  std::map<int, StagedElement>
      stored{};  // step -> where the pass at hand leaves what it stores
  bool clamps =
      false;  // threads beyond the last element do as the last one does, but for stores
  bool reduces =
      false;  // the pass at hand: all threads take part, and one of those that share an
              // element stores it
  std::map<size_t, int> stages{};  // one of the schedule's via -> its array
  std::map<DType, int> meeting{};  // the array in which warps give what their rows fold
  int64_t row_registers() const { return rows.registers * rows.vector; }
};

// The array that has a scalar's values for the elements of the pass at hand; -1 where none does.
int kept_in(const Lowering& l, int scalar);

// Whether it varies over these loops.
bool is_in_loops(const Lowering& l, int scalar, const std::vector<int>& inner);

// Whether it is read from an array: kept by an earlier pass, or computed for the rows.
bool is_known(const Lowering& l, int scalar);

// The axis along which a pass moves vectors: of rows, else of its loops' elements.
VectorAxis vector_axis(const Lowering& l, const Share& k, const std::vector<int>& inner);

// The row, or where a vector of rows begins, and its axes; of none beyond the last.
Body row_begins(const Lowering& l);

// The place that the block has of each outer axis.
Body outer_axes(const Lowering& l);

// By the first of the threads that share something under `used`, and of a row that there is.
Body by_owner(const Lowering& l, const std::vector<Layout>& used, Body body);

// What a thread has of loops, under their own layout or another; and of rows.
Share share_over(const Lowering& l, const std::vector<int>& inner);
Share share_over(const Lowering& l, const std::vector<int>& inner, const Layout& layout);
Share share_of_rows(const Lowering& l, const std::string& name, const Layout& layout);

}  // namespace tiny_compile
