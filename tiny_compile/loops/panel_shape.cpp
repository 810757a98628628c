// Which cuts of a product are legal? Those whose sums are whole vectors, some of them, and whose panels a thread's
// memory holds.
//
//   tiles across=24, f32, vectors of 16 floats   =>   "schedule tiles across=24: 1 to 8 vectors of 16 elements"
#include "tiny_compile/loops/panel_shape.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/dot_operands.h"

namespace tiny_compile {
namespace {

constexpr int kMostDown = 16, kMostVectors = 8;  // of a tile in registers
constexpr int kMostPanels = 1 << 12;
constexpr int64_t kMostDepth = 1 << 16;
constexpr int64_t kMostMemory = int64_t{1} << 30;  // bytes of a thread

int64_t memory_of(const PanelShape& shape) {
  const Wide elements = Wide{shape.right} + Wide{shape.left} * shape.left_blocks + shape.sums;
  const Wide tags = Wide{8} * (1 + shape.left_blocks);
  return clamp_to_bounds(elements * size_of(shape.type) + tags);
}

}  // namespace

PanelShape panel_shape(const Kernel& kernel) {
  const Schedule s = schedule_of(kernel);
  const DotAxes axes = dot_axes(kernel);
  PanelShape shape{axes,
                   sum_type(kernel, axes),
                   count_of(kernel, axes.rows),
                   count_of(kernel, axes.columns),
                   count_of(kernel, axes.depth),
                   count_of(kernel, axes.batch),
                   1,
                   1};
  shape.block_rows = int64_t{s.panels_down} * s.down;
  shape.block_columns = int64_t{s.panels_across} * s.across;
  shape.row_blocks = ceil_div(shape.rows, shape.block_rows);
  shape.column_blocks = ceil_div(shape.columns, shape.block_columns);
  const int64_t most = shape.depth.bounds().high;
  shape.steps = std::clamp<int64_t>(most, 1, s.depth);
  shape.is_deep = most > s.depth;
  shape.depth_blocks = std::max<int64_t>(1, ceil_divide(most, s.depth));
  const auto packed = [&](int64_t lanes, bool stays) {
    return clamp_to_bounds(Wide{lanes} * shape.steps * (stays ? shape.depth_blocks : 1));
  };
  shape.right = packed(shape.block_columns, s.kept >= 1);
  if (s.packs_rows) {
    shape.left = packed(shape.block_rows, s.kept == 2);
    shape.left_blocks = s.kept == 2 ? shape.row_blocks.bounds().high : 1;
  }
  if (shape.is_deep) shape.sums = shape.block_rows * shape.block_columns;
  return shape;
}

std::string why_illegal_panels(const Program& program, const Kernel& kernel) {
  const Schedule& s = *kernel.schedule;
  const auto says = [](const auto&... parts) { return str("schedule tiles ", parts...); };
  const DotAxes axes = dot_axes(kernel);
  const int64_t lanes = program.machine.vector / size_of(sum_type(kernel, axes));
  if (s.down < 1 || s.down > kMostDown) return says("down=", s.down, ": 1 to ", kMostDown);
  if (s.across < 1 || s.across % lanes != 0 || s.across / lanes > kMostVectors)
    return says("across=", s.across, ": 1 to ", kMostVectors, " vectors of ", lanes,
                " elements");
  for (const auto& [name, panels] :
       {std::pair{"panels_down", s.panels_down}, std::pair{"panels_across", s.panels_across}}) {
    if (panels < 1 || panels > kMostPanels)
      return says(name, "=", panels, ": 1 to ", kMostPanels);
  }
  if (s.depth < 1 || s.depth > kMostDepth)
    return says("depth=", s.depth, ": 1 to ", kMostDepth);
  const int64_t steps = std::max<int64_t>(1, count_of(kernel, axes.depth).bounds().high);
  if (s.depth != Schedule{}.depth && s.depth > steps)
    return says("depth=", s.depth, ": the sums have ", steps, steps == 1 ? " step" : " steps");
  if (s.kept < 0 || s.kept > 2) return says("kept=", s.kept, ": 0, 1 or 2");
  if (!s.packs_rows && s.kept == 2) return says("kept=2: of rows that are packed");
  if (!s.packs_rows && !(rows_as_they_lie(program, kernel, axes) &&
                         count_of(kernel, axes.rows).bounds().low >= s.down))
    return says("packs_rows=0: ", s.down, " rows or more that are floats as they lie");
  const PanelShape shape = panel_shape(kernel);
  if (s.kept == 2 && shape.left_blocks >= kMostKept)
    return says("kept=2: ", shape.left_blocks, " blocks of rows, fewer than ", kMostKept);
  const int64_t bytes = memory_of(shape);
  return bytes <= kMostMemory ? ""
                              : says("takes ", bytes, " bytes of a thread, at most ",
                                     kMostMemory, ": smaller blocks, or kept=0");
}

}  // namespace tiny_compile
