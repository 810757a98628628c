// A scan's threads have a group of 16 elements each: which rows share a block, and how much of a row
// is under way at once?
//
//   x [4096,192] along 1     21 rows a block, 12 threads a row: a row is one tile
//   x [771,28996] along 1    a row a block, 256 threads: 8 tiles of 4096 elements
//   y.t() [5120,2048] of x [5120,2048] along 0: 16 rows a block, 16 threads each, so that what is
//                            stored side by side is more than an element of a row
//   x [28996,771] along 0    32 columns a block, 16 threads each: 114 tiles of 256 elements
//
// A tile is whole rows or one group of a higher level: 256 elements or 4096. So what stands before
// the next one is known from the tiles' totals alone (graph/scan.h).
#include "tiny_compile/codegen/cuda_scan_shape.h"

#include <algorithm>

#include "tiny_compile/codegen/cuda_text.h"
#include "tiny_compile/codegen/scan.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/scan_rules.h"

namespace tiny_compile {
namespace {

constexpr int64_t kThreads = 256, kMostThreads = 512;  // of a block; where 16 scan a column
constexpr int64_t kFewestThreads = 64;
constexpr int64_t kSector = 32;  // bytes: memory gives no less
constexpr int64_t kBeside =
    16;  // rows of a block, where memory has neighbours of these side by side

// Of the loads and stores that go along the loop: are neighbours of a row neighbours in memory?
struct Directions {
  int along = 0, across = 0;
  void add(const Kernel& kernel, const Expr& index, int loop) {
    const int64_t step = distance(index, kernel.axes[loop].symbol());
    if (step == 0) return;
    const bool beside =
        kernel.rows > 0 && distance(index, kernel.axes[kernel.rows - 1].symbol()) == 1;
    if (step == 1 || step == -1)
      along++;
    else if (beside)
      across++;
  }
};

Directions loads_of(const Kernel& kernel, int loop) {
  Directions result;
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Load && scalar.operands.empty())
      result.add(kernel, scalar.index, loop);
  }
  return result;
}

Directions stores_of(const Kernel& kernel, int loop) {
  Directions result;
  for (const Step& step : kernel.steps) {
    if (!makes_register(step) && !step.inner.empty()) result.add(kernel, step.index, loop);
  }
  return result;
}

// Rows of a block: as many as leave every multiprocessor a block, from `least` to `most`.
int64_t rows_of_block(const Program& program, int64_t rows, int64_t least, int64_t most) {
  int64_t result = most;
  while (result / 2 >= least && ceil_divide(rows, result) < blocks_to_fill(program.machine))
    result /= 2;
  return result;
}

void choose_along(const Program& program, ScanShape& shape) {
  const int64_t needed = ceil_divide(shape.length, kGroup);
  shape.groups = needed;
  if (needed > kGroup) shape.groups = std::min(ceil_divide(needed, kGroup) * kGroup, kThreads);
  if (shape.turned()) shape.groups = std::min(needed, kGroup);
  const int64_t least = shape.turned() ? kBeside : ceil_divide(kFewestThreads, shape.groups);
  shape.block_rows = rows_of_block(program, shape.rows, least, kThreads / shape.groups);
}

void choose_across(const Program& program, const Step& scan, ScanShape& shape) {
  shape.groups = std::min(ceil_divide(shape.length, kGroup), kGroup);
  const int64_t least = std::max(
      {kSector / size_of(scan.dtype), int64_t{8}, ceil_divide(kFewestThreads, shape.groups)});
  const int64_t most = shape.groups == kGroup ? kMostThreads : kThreads;
  shape.block_rows = rows_of_block(program, shape.rows, least,
                                   std::max<int64_t>(most / shape.groups / 32, 1) * 32);
}

}  // namespace

const Step& scan_of(const Kernel& kernel) {
  return *std::find_if(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
    return is_scan(step) && !is_beside_places(kernel, step);
  });
}

ScanShape scan_shape(const Program& program, const Kernel& kernel) {
  const Step& scan = scan_of(kernel);
  const int loop = scan.inner[0];
  ScanShape shape;
  shape.length = kernel.axes[loop].extent.constant();
  shape.rows = row_count(kernel).constant();
  const Directions loads = loads_of(kernel, loop), stores = stores_of(kernel, loop);
  const bool fills = shape.rows >= kBeside * blocks_to_fill(program.machine) / 2;
  shape.along = loads.along + stores.along >= loads.across + stores.across ||
                (fills && loads.along > loads.across);
  shape.loads_turned = shape.along && loads.across > loads.along;
  shape.stores_turned = shape.along && fills && stores.across > stores.along;
  if (shape.along)
    choose_along(program, shape);
  else
    choose_across(program, scan, shape);
  return shape;
}

bool scans_in_groups(const Program& program, const Kernel& kernel) {
  const auto scans = [&](const Step& step) {
    return is_scan(step) && !is_beside_places(kernel, step);
  };
  if (std::count_if(kernel.steps.begin(), kernel.steps.end(), scans) != 1) return false;
  const Step& scan = scan_of(kernel);
  const bool total = makes_register(scan);
  if (scan.inner.size() != 1) return false;
  if (!gives_places(scan) &&
      compute_type(kernel.scalars[scan.value].dtype) != compute_type(scan.dtype))
    return false;
  const auto fits = [&](const Step& step) {
    if (is_scan(step)) return true;
    if (step.kind != StepKind::Store) return false;
    return total ? step.inner.empty() && &step > &scan : step.inner == scan.inner;
  };
  return std::all_of(kernel.steps.begin(), kernel.steps.end(), fits) &&
         !loads_what_it_stores(program, kernel);
}

}  // namespace tiny_compile
