// Which elements of a tile a scan's thread moves, and where they are.
#pragma once

#include <utility>
#include <vector>

#include "tiny_compile/loops/scan_shape.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// What all parts of a scan's tile know.
struct ScanTile {
  const Program& program;
  const Kernel& kernel;
  const Step& scan;
  const ScanShape shape;
  Tile tile{};
  Expr r = 0, g = 0;  // the thread's row in the block, and which of its groups

  int64_t threads() const { return int64_t{32} * tile.warps; }
  const Axis& axis() const { return kernel.axes[scan.inner[0]]; }
  Expr index(const std::string& name, const Expr& extent) const;  // by a name that no axis has
};

using Conditions = std::vector<std::pair<Expr, Expr>>;  // lesser, greater
Body where_all(const Conditions& conditions, Body body);

// Of a kernel's scalars those that these need; and those that need no other axes than these, where they
// have not been computed before.
std::vector<int> needed_by(const ScanTile& s, const std::vector<int>& roots);
Body define_within(const ScanTile& s, const std::vector<int>& ids, uint64_t axes,
                   std::vector<bool>& defined);

// One of a thread's points, or the first of a pack: where it is in the tile and in its row.
struct ScanPoint {
  Body names;
  Expr x, y, row, e;
  Conditions inside, conditions;  // it is one of the tile's; of the rows'
};

class ScanPoints {
 public:
  // `ids`: what elements are made of.
  ScanPoints(const ScanTile& s, const std::vector<int>& ids);

  const int64_t vector;    // elements of a pack
  int64_t count = kGroup;  // packs of a thread in a tile

  bool is_wide(const Expr& index, int buffer) const;  // packs lie side by side there
  bool is_reversed(const Scalar& load) const;         // and the last one first
  Expr at_start(const Expr& index, const Expr& e) const;

  Expr number() const;   // which of a thread's points: c
  Expr element() const;  // of a pack: v
  // `clamps`: beyond the rows it is the last place.
  ScanPoint point(const Expr& tile, bool transposed, bool clamps) const;
  // Names the row's axes and, of a pack, where it begins.
  Body name_place(ScanPoint& at, bool clamps) const;
  Body each_element(const ScanPoint& at, Body each) const;  // of a pack, its axis by name
  Body each_point(Body body) const;

  Expr first_of_group(const Expr& tile) const;
  // The thread's row, of those beyond the last that one; and what is only done where there is such a row.
  Body name_row() const;
  Body where_row(Body body) const;

  // In shared memory, where a group takes `pitch` elements: a point, and the thread's own group.
  Expr in_shared(const ScanPoint& at, int64_t pitch) const;
  Expr of_group(int64_t pitch) const;
  int64_t padding() const;  // of a row: threads that go from row to row would meet in a bank

 private:
  bool is_whole() const { return s_.shape.rows % s_.shape.block_rows == 0; }
  Conditions conditions_of_row() const;

  const ScanTile& s_;
};

}  // namespace tiny_compile
