// Which threads of a GPU's block scan which elements, as the schedule says?
#pragma once

#include <algorithm>
#include <string>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A tile of a block: for each of `block_rows` rows, `groups` groups of 16 elements, one a thread.
// A row that is longer than a tile goes on in the next one.
struct ScanShape {
  bool along = false;              // rows lie contiguous in memory, or columns side by side
  bool loads_transposed = false;   // of rows along memory: what is loaded lies across
  bool stores_transposed = false;  // or what is stored
  int64_t length = 0, rows = 0;
  int64_t groups = 0, block_rows = 0;

  bool transposed() const { return loads_transposed || stores_transposed; }
  int64_t threads() const { return groups * block_rows; }
  int64_t warps() const {
    return ceil_divide(threads(), int64_t{32});
  }                                                  // the last may be part idle
  int64_t reach() const { return groups * kGroup; }  // elements of a row in a tile
  int64_t tiles() const { return ceil_divide(length, reach()); }
  int64_t columns() const { return std::min(reach(), length); }
  bool has_two_levels() const { return groups > kGroup; }   // groups of groups in a tile
  bool is_ragged() const { return length % reach() != 0; }  // some thread's group ends early
};

inline constexpr int kMostGroups = 256;  // of a tile: groups of groups, 4096 elements
inline constexpr int64_t kRowsToTurn =
    16;  // of a block, where memory has their neighbours side by side

// Whether the kernel is one scan, places and values of one cummax, or a scan's total over one loop, and stores
// for the same points (of a total: for its row); all of numbers of elements.
bool scans_in_groups(const Program& program, const Kernel& kernel);

const Step& scan_of(const Kernel& kernel);  // of places and values, the places

// As the schedule of such a kernel says: rows lie along memory, columns side by side.
ScanShape scan_shape(const Kernel& kernel);

// Of the loads and the stores that go along the loop: how many have a row's neighbours as neighbours in
// memory, and how many the last row axis's.
struct ScanDirections {
  int along = 0, across = 0;
};
ScanDirections loads_of_scan(const Kernel& kernel);
ScanDirections stores_of_scan(const Kernel& kernel);

int64_t shared_of_scan(const Kernel& kernel,
                       const ScanShape& shape);  // bytes of a block, at most

// "" where a GPU runs the kernel so, by groups or with the fields' defaults; else the reason.
std::string why_illegal_scan(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
