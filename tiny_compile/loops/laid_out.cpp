// Who has what, as the layouts of a kernel's rows and loops say: its blocks, and what each covers.
#include "tiny_compile/loops/laid_out.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/dot_axes.h"

namespace tiny_compile {
namespace {

// Of a level's numbers.
int64_t highest_of(const Schedule& schedule, Level level) {
  int64_t most = 1;
  const auto count = [&](const Layout& layout) {
    for (const Part& part : layout) {
      if (part.level == level) most = std::max(most, part.extent * part.step);
    }
  };
  count(schedule.rows);
  for (const Layout& loop : schedule.loops) count(loop);
  return std::min<int64_t>(most, INT32_MAX);
}

}  // namespace

std::vector<std::vector<int>> loops_of(const Kernel& kernel) {
  std::vector<std::vector<int>> loops;
  for (const Step& step : kernel.steps) {
    const bool known = std::find(loops.begin(), loops.end(), step.inner) != loops.end();
    if (!step.inner.empty() && !known) loops.push_back(step.inner);
  }
  return loops;
}

bool only_stores(const Kernel& kernel) {
  return std::all_of(kernel.steps.begin(), kernel.steps.end(), [](const Step& step) {
    return step.kind == StepKind::Store && !step.inner.empty();
  });
}

int64_t blocks_of_loops(const Kernel& kernel) {
  int64_t blocks = 1;
  for (const std::vector<int>& inner : loops_of(kernel)) {
    const Layout loop = layout_over(kernel, inner);
    if (!loop.empty() && loop[0].level == Level::Grid)
      blocks *= ceil_divide(elements_of(kernel, inner), covered_by(loop));
  }
  return blocks;
}

namespace {

std::vector<int> outer_axes(const Kernel& kernel) {
  std::vector<int> axes = row_axes(kernel);
  axes.resize(static_cast<size_t>(kernel.schedule->outer));
  return axes;
}

}  // namespace

GridParts grid_of(const Kernel& kernel) {
  GridParts grid = {
      count_of(kernel, outer_axes(kernel)),
      ceil_div(count_of(kernel, axes_laid_out(kernel)), covered_by(kernel.schedule->rows)), 1};
  for (const std::vector<int>& inner : loops_of(kernel)) {
    const Layout loop = layout_over(kernel, inner);
    if (!loop.empty() && loop[0].level == Level::Grid)
      grid.loops = grid.loops * ceil_div(count_of(kernel, inner), covered_by(loop));
  }
  return grid;
}

int64_t outer_rows(const Kernel& kernel) { return elements_of(kernel, outer_axes(kernel)); }

std::vector<int> axes_laid_out(const Kernel& kernel) {
  std::vector<int> axes = row_axes(kernel);
  axes.erase(axes.begin(), axes.begin() + kernel.schedule->outer);
  return axes;
}

int64_t rows_laid_out(const Kernel& kernel) {
  return elements_of(kernel, axes_laid_out(kernel));
}

int64_t elements_of(const Kernel& kernel, const std::vector<int>& inner) {
  return count_of(kernel, inner).bounds().high;
}

Layout layout_over(const Kernel& kernel, const std::vector<int>& inner) {
  const std::vector<std::vector<int>> loops = loops_of(kernel);
  const auto at = std::find(loops.begin(), loops.end(), inner);
  return at == loops.end() ? Layout{} : kernel.schedule->loops[at - loops.begin()];
}

int64_t bits_taken(const Layout& layout, Level level) {
  int64_t taken = 0;
  for (const Part& part : layout) {
    if (part.level != level) continue;
    const int64_t bits = (power_of_two_from(part.extent) - 1) * part.step;
    if (taken & bits) return -1;
    taken |= bits;
  }
  return taken;
}

bool lanes_agree(const std::vector<Bit>& bits, size_t end) {
  const auto is_lanes = [](const Bit& bit) { return bit.level == Level::Lane; };
  const auto comes_late = [&](const Bit& bit) { return is_lanes(bit) || is_own(bit.level); };
  const auto later = bits.begin() + static_cast<std::ptrdiff_t>(end);
  return std::count_if(bits.begin(), later, is_lanes) == 5 &&
         std::none_of(later, bits.end(), comes_late);
}

int warps_of(const Schedule& schedule) {
  return static_cast<int>(highest_of(schedule, Level::Warp));
}

int cluster_of(const Schedule& schedule) {
  return static_cast<int>(highest_of(schedule, Level::Cluster));
}

}  // namespace tiny_compile
