// What if a loop does something else in its first and last turns? A pad's elements lie between zeros,
// and a concat's operands side by side. Asked at each point, a condition keeps a loop from memory's
// speed, and all operands are computed everywhere. The axes are cut where conditions change instead:
//
//   for (i1..) y[i0, i1] = i1 - 1 >= 0 && i1 - 1 < 64 ? x[i0, i1 - 1] : 0
// =>
//   for (i1 = 0; i1 < 1; i1++) y[i0, i1] = 0;
//   for (i1 = 1; i1 < 65; i1++) y[i0, i1] = x[i0, i1 - 1];
//   for (i1 = 65; i1 < 66; i1++) y[i0, i1] = 0;
//
// The last axis in loops one after the other, those around it by an if: half of what is left of them
// on each side.
#include "tiny_compile/tile/pieces.h"

#include <algorithm>
#include <set>

#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/simplify_under_mask.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostWritten = 3;  // times the scalars of the kernel, in all its pieces

// Its points where that axis is in [low, high].
Segment within(Segment segment, int axis, int64_t low, int64_t high) {
  const Symbol symbol = segment.kernel.axes[axis].name;
  const Substitution there = {{symbol, Expr::symbol(symbol, low, high)}};
  for (Scalar& scalar : segment.kernel.scalars) scalar.index = substitute(scalar.index, there);
  segment.kernel = with_settled_conditions(std::move(segment.kernel));
  segment.ranges[axis] = {low, high};
  return segment;
}

// Where conditions on the axis alone change, inside its range.
std::vector<int64_t> cuts_of(const Segment& segment, int axis) {
  const auto [low, high] = segment.ranges[axis];
  const Kernel& kernel = segment.kernel;
  std::set<int64_t> cuts;
  const Expr here = Expr::symbol(Symbol(kernel.axes[axis].name), low, high);
  for (const Scalar& scalar : kernel.scalars) {
    const auto condition = comparison(kernel, scalar);
    if (!condition) continue;
    const Expr rest = here - condition->difference;
    if (!rest.is_constant()) continue;
    const bool is_one = condition->op == Op::eq || condition->op == Op::ne;
    for (int64_t at = rest.constant(); at <= rest.constant() + is_one; at++) {
      if (at > low && at <= high) cuts.insert(at);
    }
  }
  return {cuts.begin(), cuts.end()};
}

// `left`: how many scalars the pieces may have yet.
PointPiece cut(const Segment& segment, size_t& left) {
  PointPiece piece;
  if (left == 0) return piece;
  const int last = segment.kernel.rows - 1;
  for (int axis = 0; axis < last; axis++) {
    const std::vector<int64_t> cuts = cuts_of(segment, axis);
    if (cuts.empty()) continue;
    const auto [low, high] = segment.ranges[axis];
    piece.axis = axis;
    piece.at = cuts[cuts.size() / 2];
    piece.below =
        std::make_unique<PointPiece>(cut(within(segment, axis, low, piece.at - 1), left));
    piece.from = std::make_unique<PointPiece>(cut(within(segment, axis, piece.at, high), left));
    return piece;
  }
  auto [low, high] = segment.ranges[last];
  std::vector<int64_t> cuts = cuts_of(segment, last);
  cuts.push_back(high + 1);
  for (int64_t at : cuts) {
    piece.loops.push_back(within(segment, last, low, at - 1));
    left -= std::min(left, piece.loops.back().kernel.scalars.size());
    low = at;
  }
  return piece;
}

}  // namespace

std::unique_ptr<PointPiece> pieces_of(const Kernel& kernel) {
  std::vector<Interval> ranges;
  for (int axis = 0; axis < kernel.rows; axis++)
    ranges.push_back({0, kernel.axes[axis].extent.bounds().high - 1});
  size_t left = kMostWritten * kernel.scalars.size();
  auto piece = std::make_unique<PointPiece>(cut({kernel, std::move(ranges)}, left));
  const bool is_whole = piece->axis < 0 && piece->loops.size() == 1;
  return left == 0 || is_whole ? nullptr : std::move(piece);
}

}  // namespace tiny_compile
