// Which neighbours lie side by side? Asked of 32 of them amid the kernel's points, whose addresses
// are computed: strides, short axes, mirrors and windows all count as they are.
//
//   load x[i0*28 + i1*2 + j0], rows of (i0, i1: 14), loops of 3
//   lanes are rows    i1 = 0 .. 13, 0 .. 13, 0 .. 3: three pieces of memory
//   lanes are loops   3 of one row, 3 of the next, ..: ten rows, two apart
#include "tiny_compile/schedule/accesses.h"

#include <algorithm>
#include <set>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/schedule/rates.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLine = 128;
constexpr double kFew = 4, kMany = 16;  // lines: side by side, and elsewhere
constexpr double kMuch = 0.5;           // of the longest loops

struct Point {
  int64_t row = 0, element = 0;
};

// Row r and element e of its loops, axis by axis.
SymbolValues values_at(const Kernel& kernel, const std::vector<int>& inner, Point point) {
  SymbolValues values;
  const auto unflatten = [&](const std::vector<int>& axes, int64_t flat) {
    for (size_t a = axes.size(); a-- > 0;) {
      const int64_t extent = kernel.axes[axes[a]].extent.constant();
      values.emplace_back(kernel.axes[axes[a]].name, flat % extent);
      flat /= extent;
    }
  };
  unflatten(row_axes(kernel), point.row);
  unflatten(inner, point.element);
  return values;
}

std::vector<Point> neighbours(int64_t rows, int64_t elements, bool are_rows) {
  std::vector<Point> points;
  const int64_t row = std::max<int64_t>(0, rows / 2 - kLanes) / kLanes * kLanes,
                element = elements > kLanes ? elements / 2 / kLanes * kLanes : 0;
  for (int64_t lane = 0; lane < kLanes; lane++) {
    if (are_rows)
      points.push_back({std::min(row + lane, rows - 1), elements / 2});
    else if (elements >= kLanes)
      points.push_back({row, std::min(element + lane, elements - 1)});
    else
      points.push_back({std::min(row + lane / elements, rows - 1), lane % elements});
  }
  return points;
}

// Data chooses the place anew for each of the neighbours.
bool is_scattered(const Kernel& kernel, const std::vector<int>& operands,
                  const std::vector<Axis>& along) {
  for (int operand : operands) {
    const Scalar& scalar = kernel.scalars[operand];
    for (const Axis& axis : along) {
      if (depends_on(scalar.index, axis.name)) return true;
    }
    if (is_scattered(kernel, scalar.operands, along)) return true;
  }
  return false;
}

// It is another for each element of a row.
bool is_in_loops(const Kernel& kernel, const Scalar& scalar, const std::vector<int>& inner) {
  std::vector<Axis> loops;
  for (int axis : inner) loops.push_back(kernel.axes[axis]);
  const auto moves = [&](const Axis& axis) { return depends_on(scalar.index, axis.name); };
  return std::any_of(loops.begin(), loops.end(), moves) ||
         is_scattered(kernel, scalar.operands, loops);
}

struct Access {
  const Expr* index;
  int buffer;
  std::vector<int> operands;  // that choose its place
};

double lines_of(const Program& program, const Kernel& kernel, const std::vector<int>& inner,
                const Access& access, bool are_rows) {
  std::vector<Axis> along;
  if (are_rows && kernel.rows > 0) along.push_back(kernel.axes[kernel.rows - 1]);
  if (!are_rows)
    for (int axis : inner) along.push_back(kernel.axes[axis]);
  if (is_scattered(kernel, access.operands, along)) return kLanes;
  const int64_t size = size_of(program.buffers[access.buffer].type.dtype);
  std::set<int64_t> lines;
  for (const Point& point :
       neighbours(row_count(kernel).constant(), elements_of(kernel, inner), are_rows)) {
    SymbolValues values = values_at(kernel, inner, point);
    for (size_t k = 0; k < access.operands.size(); k++) values.emplace_back(indirect(k), 0);
    const int64_t address = evaluate(*access.index, values) * size;
    lines.insert((address - (address < 0 ? kLine - 1 : 0)) / kLine);
  }
  const int64_t rows = row_count(kernel).constant();
  const double idle = are_rows && rows < kLanes ? as_double(kLanes) / as_double(rows) : 1;
  return as_double(static_cast<int64_t>(lines.size())) * idle;
}

}  // namespace

bool lies_along(const Program& program, const Kernel& kernel, const std::vector<int>& inner,
                const Expr& index, int buffer) {
  for (int axis = kernel.rows; axis < static_cast<int>(kernel.axes.size()); axis++) {
    const bool is_own = std::find(inner.begin(), inner.end(), axis) != inner.end();
    if (!is_own && depends_on(index, kernel.axes[axis].name)) return false;
  }
  return lines_of(program, kernel, inner, {&index, buffer, {}}, false) <= kFew;
}

Lines lines_of(const Program& program, const Kernel& kernel) {
  Lines sum;
  bool along_rows = false, along_loops = false;
  const std::vector<std::vector<int>> loops = loops_of(kernel);
  int64_t longest = 1;
  for (const std::vector<int>& inner : loops)
    longest = std::max(longest, elements_of(kernel, inner));
  for (const std::vector<int>& inner : loops) {
    const double share = as_double(elements_of(kernel, inner)) / as_double(longest);
    const auto see = [&](const Access& access) {
      const double of_rows = lines_of(program, kernel, inner, access, true),
                   of_loops = lines_of(program, kernel, inner, access, false);
      sum.of_rows += share * of_rows, sum.of_loops += share * of_loops;
      sum.accesses += share;
      if (share < kMuch) return;
      along_rows = along_rows || (of_rows <= kFew && of_loops >= kMany);
      along_loops = along_loops || (of_loops <= kFew && of_rows >= kMany);
    };
    std::vector<bool> seen(kernel.scalars.size());
    for (const Step& step : kernel.steps) {
      if (step.inner != inner) continue;
      if (!makes_register(step)) see({&step.index, step.buffer, {}});
      const std::vector<bool> reached = reachable(kernel, step);
      for (size_t id = 0; id < reached.size(); id++) {
        const Scalar& scalar = kernel.scalars[id];
        if (!reached[id] || seen[id] || scalar.kind != ScalarKind::Load) continue;
        seen[id] = true;
        if (!is_in_loops(kernel, scalar, inner)) continue;
        see({&scalar.index, scalar.buffer, scalar.operands});
      }
    }
  }
  sum.crosses = along_rows && along_loops;
  return sum;
}

}  // namespace tiny_compile
