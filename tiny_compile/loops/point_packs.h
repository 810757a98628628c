// Which points of a kernel does a thread of a GPU take?
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Neighbouring threads take neighbouring packs of points, of one flat range; with slabs, a thread has a pack
// in each, whole rows apart.
struct PointPacks {
  Expr count = 1;        // of all points
  Expr extent = 1;       // of the last row
  bool line = false;     // there is one axis, which may end within a pack
  bool through = false;  // packs go on into the next row
  bool parted = false;   // what packs within a row do is written apart
  bool ragged = false;   // the last pack may end beyond the last point
  int vector = 1;        // points of a pack
  int block = 256;       // threads
  int resident = 0;      // blocks of a multiprocessor; 0: the compiler's
  int64_t slabs = 1;
  Expr slab = 1;  // points of a slab: all, or whole packs and rows; the last may lack some
  std::vector<int> chosen;  // scalars that choose the rows of packs, of several slabs
  bool ends_within() const { return ragged && !through; }
};

// The layout of points that are dealt out so: serial `slabs` · grid · warp `warps` · lane 32 · vector `vector`.
Layout layout_of_points(int64_t slabs, int64_t warps, int64_t vector);

// Why a kernel of points cannot be dealt out as the layout of its schedule says; "" where it can.
std::string why_illegal_points(const Program& program, const Kernel& kernel);

// Of a kernel of points, as its schedule says; one that has no layout: a thread each, of 256. `any_count`: of
// one that is told how many there are, up to the bound of its extent (loops/counted.h).
PointPacks point_packs_of(const Program& program, const Kernel& kernel, bool any_count);

// The innermost row axis, along which points are neighbours; of a kernel that has row axes.
inline const Axis& last_row_axis(const Kernel& kernel) {
  return kernel.axes[static_cast<size_t>(kernel.rows) - 1];
}

// Where a point of a kernel of points stands if they are counted through: 1024*i0 + i1.
Expr flat_index(const Kernel& kernel);

// As many neighbours along an axis as 16 bytes hold, where all that the scalars `ids` load and the steps
// store side by side along it lies so for packs of them; and as divide `extent`.
int widest_pack(const Program& program, const Kernel& kernel, const std::vector<int>& ids,
                const std::vector<const Step*>& steps, int axis, int64_t extent);

// What the points of a kernel evaluate, operands first.
std::vector<int> evaluated_by_points(const Kernel& kernel);

// The most points of a pack that lies within a row, or in 16 bytes of what is read and written where points are
// counted through; 1 if a store is not.
int widest_within(const Program& program, const Kernel& kernel);
int widest_through(const Program& program, const Kernel& kernel);

// Scalars that choose a place which loads of several points of a row have, where every such load happens:
// those that all points of a row of the last axis share.
std::vector<int> choosing_rows(const Kernel& kernel);

}  // namespace tiny_compile
