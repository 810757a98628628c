// What a thread does for the elements of one register: places, scalars, loads and stores.
#pragma once

#include <map>
#include <vector>

#include "tiny_compile/tile/share.h"
#include "tiny_compile/tile/tile.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {

// An element in shared memory.
struct Staged {
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
  std::map<int, int> packs{};      // load -> the vector whose element it is
  std::map<int, int> keeping{};    // scalar -> the array in which the pass at hand keeps it
  std::map<int, Staged> staged{};  // load -> where the pass at hand finds it (tile/stage.h)
  std::map<int, Staged> stored{};  // step -> where the pass at hand leaves what it stores
  bool clamps =
      false;  // threads beyond the last element do as the last one does, but for stores
  std::map<size_t, int> stages{};  // one of the schedule's via -> its array
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

// Whether vectors of what the pass keeps are read to where it keeps them, halves as they lie.
bool is_read_packed(const Lowering& l, int scalar, const Share& k);

// Of a pass, by a thread, at a time, and which of them the element at hand is.
int64_t elements_held(const Lowering& l, const Share& k);
Expr place_of(const Lowering& l, const Share& k);

// What the elements of a pass are divided by, where they all have the same.
std::vector<int> divisors_of(const Lowering& l, const std::vector<int>& ids,
                             const std::vector<int>& inner);

// What no loop of the pass of `steps` changes is computed once for each row, in front of it.
void define_for_rows(Lowering& l, const std::vector<int>& steps, const std::vector<int>& inner);

// What a warp's only row reads, and no reduction decides, in front of the first pass: it comes while
// elements do. (Lanes that have rows of their own would hold it as well as their elements.)
void define_row_loads(Lowering& l);

// What the steps evaluate, in order, but for what only known values are made of.
std::vector<int> needed(const Lowering& l, const std::vector<int>& steps);

// Stores an element of each step, or puts it into a vector that `after` stores.
Body store_elements(Lowering& l, const std::vector<int>& steps, const Share& k, Body& after);

// A pass, for one register: what a thread has of the loops there, all its rows in each.
Body over_elements(Lowering& l, const std::vector<int>& ids, const std::vector<int>& inner,
                   const Share& k, const Body& each, const Body& after, bool stores);

}  // namespace tiny_compile
