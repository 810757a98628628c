// Which layouts suit sizes that nobody knows yet? Those for the largest of an interval serve all of
// it: what a row lacks is masked, and adds nothing to the contract's tree, whose order depends on the
// row's length alone. So the policy is asked about a kernel of numbers, one for each interval:
//
//   softmax of [3,n], n: 1..1048576
//   =>  n: 1..32, 33..1024, 1025..8192, ...: the layouts of [3,31], [3,1023], [3,8191], ...
//
// The numbers are odd: no more is divided into vectors than what is for all sizes. Where the policy has
// no layouts for them, lanes go along whatever lies side by side.
#include "tiny_compile/schedule/sized_layouts.h"

#include <algorithm>
#include <optional>
#include <span>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/legal_layouts.h"
#include "tiny_compile/loops/sized_schedules.h"
#include "tiny_compile/schedule/deal.h"
#include "tiny_compile/schedule/layouts.h"
#include "tiny_compile/schedule/outline.h"

namespace tiny_compile {
namespace {

constexpr int64_t kEnds[] = {32, kChunk, 8 * kChunk, 128 * kChunk, kChunk* kChunk};
constexpr int64_t kFewEnds[] = {kChunk, 32 * kChunk};  // where several sizes are loops'
constexpr int64_t kMostRows = 1 << 24;                 // of a size that only rows have
constexpr int64_t kMostCounted = 1 << 28;              // elements that indices of ints are for
constexpr int64_t kUsualRows = 1 << 12;                // for which such rows are dealt out
constexpr size_t kMostBoxes = 12;
constexpr int64_t kRowWarps = 4, kColumnWarps = 16, kPointWarps = 8, kChunkWarps = 8;
constexpr int64_t kHeld = 32;  // elements of a thread

using Box = std::vector<SizeRange>;

std::vector<Expr> sizes_of_axes(const Kernel& kernel, int from, int to) {
  std::vector<Expr> found;
  for (int a = from; a < to; a++) collect_symbols(kernel.axes[a].extent, found);
  std::erase_if(found, [](const Expr& e) { return e.symbol().kind != SymbolKind::Size; });
  return found;
}

// The size cut at these ends.
std::vector<SizeRange> cut(const Expr& size, std::span<const int64_t> ends) {
  std::vector<SizeRange> ranges;
  int64_t low = std::max<int64_t>(1, size.bounds().low);
  for (const int64_t end : ends) {
    const int64_t high = std::min(end, size.bounds().high);
    if (low <= high) ranges.push_back({size.name(), low, high});
    low = std::max(low, high + 1);
  }
  return ranges;
}

std::vector<Expr> sizes_of_axes(const Kernel& kernel) {
  return sizes_of_axes(kernel, 0, static_cast<int>(kernel.axes.size()));
}

std::vector<Expr> sizes_of_loops(const Kernel& kernel) {
  return sizes_of_axes(kernel, kernel.rows, static_cast<int>(kernel.axes.size()));
}

// Of all sizes, up to which ints count the elements.
int64_t end_of_ints(const Kernel& kernel) {
  Expr elements = 1;
  for (const Axis& axis : kernel.axes) elements = elements * axis.extent;
  int64_t end = kMostRows;
  const auto count = [&] {
    Substitution numbers;
    for (const Expr& size : sizes_of_axes(kernel))
      numbers.push_back({size.symbol(), Expr::symbol(size.symbol(), 1, end)});
    return substitute(elements, numbers).bounds().high;
  };
  while (end > 1 && count() > kMostCounted) end /= 2;
  return end;
}

std::vector<Box> boxes_of(const Kernel& kernel, const std::vector<Expr>& of_loops) {
  std::vector<Box> boxes = {{}};
  const int64_t rows[] = {end_of_ints(kernel), kMostRows};
  for (const Expr& size : sizes_of_axes(kernel)) {
    const bool is_loops = std::find(of_loops.begin(), of_loops.end(), size) != of_loops.end();
    const std::vector<SizeRange> ranges =
        cut(size, !is_loops             ? std::span<const int64_t>(rows)
                  : of_loops.size() > 1 ? std::span<const int64_t>(kFewEnds)
                                        : std::span<const int64_t>(kEnds));
    std::vector<Box> more;
    for (const Box& box : boxes) {
      for (const SizeRange& range : ranges) {
        more.push_back(box);
        more.back().push_back(range);
      }
    }
    boxes = std::move(more);
  }
  if (boxes.size() > kMostBoxes) boxes.resize(kMostBoxes);
  return boxes;
}

int64_t odd(int64_t high) { return high % 2 ? high : std::max<int64_t>(1, high - 1); }

// The kernel with numbers near the ends of its intervals.
Program with_ends(const Program& program, const Box& box, const std::vector<Expr>& of_loops) {
  Substitution numbers;
  for (const SizeRange& range : box) {
    const bool is_loops = std::any_of(of_loops.begin(), of_loops.end(), [&](const Expr& size) {
      return size.name() == range.size;
    });
    const int64_t most = is_loops ? range.high : std::clamp(range.high, range.low, kUsualRows);
    numbers.push_back({{range.size, SymbolKind::Size}, odd(most)});
  }
  return substitute(program, numbers);
}

// More loads go along the rows than along the loops.
bool goes_across(const Kernel& kernel) {
  if (kernel.rows == 0) return false;
  int across = 0, along = 0;
  const Expr row = kernel.axes[kernel.rows - 1].symbol();
  for (const Scalar& load : kernel.scalars) {
    if (load.kind != ScalarKind::Load) continue;
    across += coefficient(load.index, row) == 1;
    for (size_t a = static_cast<size_t>(kernel.rows); a < kernel.axes.size(); a++)
      along += coefficient(load.index, kernel.axes[a].symbol()) == 1;
  }
  return across > along;
}

// A loop of more than a chunk, down columns: a chunk at a time.
Layout down_columns(int64_t count) {
  Layout layout;
  const int64_t all = power_of_two_from(count);
  add_part(layout, Level::Serial, all / std::min(all, kChunk));
  add_part(layout, Level::Register, ceil_divide(std::min(all, kChunk), kColumnWarps));
  add_part(layout, Level::Warp, std::min(all, kColumnWarps));
  return layout;
}

Schedule plain_columns(const Program& program, const Kernel& kernel) {
  Schedule schedule = laid_out(program, kernel, Deal{.row_lanes = kLanes});
  schedule.loops.clear();
  for (const std::vector<int>& inner : loops_of(kernel))
    schedule.loops.push_back(down_columns(elements_of(kernel, inner)));
  return schedule;
}

Schedule plain_rows(const Program& program, const Kernel& kernel) {
  int64_t longest = 1;
  for (const std::vector<int>& inner : loops_of(kernel))
    longest = std::max(longest, elements_of(kernel, inner));
  Deal deal{.registers = kHeld};
  if (longest > kChunk)
    deal.warps = kChunkWarps, deal.loops_first = true;
  else
    deal.row_lanes = kLanes / std::min(kLanes, power_of_two_from(longest));
  return laid_out(program, kernel, in_blocks_of(longest > kChunk ? 1 : kRowWarps, deal));
}

Schedule plain_points(const Program& program, const Kernel& kernel) {
  const Along last = along(program, kernel, kernel.axes[kernel.rows - 1]);
  return laid_out(
      program, kernel,
      Deal{.row_warps = kPointWarps, .row_lanes = kLanes, .row_vector = last.vector});
}

// From the best to the plainest.
std::vector<Schedule> candidates(const Program& numbers, const Kernel& kernel) {
  std::vector<Schedule> all;
  if (const auto chosen = layouts_of(numbers, kernel, true)) all.push_back(*chosen);
  if (loops_of(kernel).empty()) {
    all.push_back(plain_points(numbers, kernel));
    return all;
  }
  if (goes_across(kernel)) all.push_back(plain_columns(numbers, kernel));
  all.push_back(plain_rows(numbers, kernel));
  return all;
}

std::optional<Schedule> choose(const Program& program, const Kernel& kernel, const Box& box) {
  Kernel one = kernel;
  one.sized = {{box, Schedule{}}};
  Program own = for_sizes(program, one, 0);
  if (own.kernels.size() != 1) return std::nullopt;
  own.kernels[0].schedule.reset();
  const Kernel& symbolic = own.kernels[0];
  if (!can_be_laid_out(own, symbolic)) return std::nullopt;
  const Program numbers = with_ends(own, box, sizes_of_loops(kernel));
  if (numbers.kernels.size() != 1 ||
      loops_of(numbers.kernels[0]).size() != loops_of(symbolic).size())
    return std::nullopt;
  for (Schedule schedule : candidates(numbers, numbers.kernels[0])) {
    schedule.prefetch = 0;
    Kernel trial = symbolic;
    trial.schedule = schedule;
    if (cluster_of(schedule) == 1 && why_illegal_layouts(own, trial).empty()) return schedule;
  }
  return std::nullopt;
}

// Whether `next` goes on where `last` ends, in a size of loops.
bool goes_on(const Box& last, const Box& next, const std::vector<Expr>& of_loops) {
  int differ = 0;
  for (size_t s = 0; s < last.size(); s++) {
    if (last[s] == next[s]) continue;
    const bool is_loops = std::any_of(of_loops.begin(), of_loops.end(), [&](const Expr& size) {
      return size.name() == last[s].size;
    });
    if (!is_loops || next[s].low != last[s].high + 1) return false;
    differ++;
  }
  return differ == 1;
}

}  // namespace

std::vector<Box> size_boxes(const Kernel& kernel) { return boxes_of(kernel, {}); }

std::vector<SizedSchedule> sized_layouts(const Program& program, const Kernel& kernel) {
  if (program.target != Target::Cuda || kernel.axes.empty()) return {};
  std::vector<SizedSchedule> all;
  const std::vector<Expr> of_loops = sizes_of_loops(kernel);
  for (const Box& box : boxes_of(kernel, of_loops)) {
    if (box.empty()) return {};
    const std::optional<Schedule> schedule = choose(program, kernel, box);
    if (!schedule) continue;
    if (!all.empty() && all.back().schedule == *schedule &&
        goes_on(all.back().when, box, of_loops)) {
      for (size_t s = 0; s < box.size(); s++) all.back().when[s].high = box[s].high;
      continue;
    }
    all.push_back({box, *schedule});
  }
  return all;
}

}  // namespace tiny_compile
