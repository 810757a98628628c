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
#include "tiny_compile/codegen/cpp_points.h"

#include <algorithm>
#include <memory>
#include <set>

#include "tiny_compile/codegen/cpp_store.h"
#include "tiny_compile/loops/divided_rows.h"
#include "tiny_compile/loops/narrow.h"
#include "tiny_compile/loops/splice.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostWritten = 3;  // times the scalars of the kernel, in all its pieces

// A part of the kernel's points.
struct Part {
  Kernel kernel;                 // as it is there
  std::vector<Interval> ranges;  // of each axis
};

// The points of a part whose axis is in [low, high].
Part within(Part part, int axis, int64_t low, int64_t high) {
  const Symbol symbol = part.kernel.axes[axis].name;
  const Substitution there = {{symbol, Expr::symbol(symbol, low, high)}};
  for (Scalar& scalar : part.kernel.scalars) scalar.index = substitute(scalar.index, there);
  part.kernel = with_settled_conditions(std::move(part.kernel));
  part.ranges[axis] = {low, high};
  return part;
}

// Where conditions on the axis alone change, inside its range.
std::vector<int64_t> cuts_of(const Part& part, int axis) {
  const auto [low, high] = part.ranges[axis];
  const Kernel& kernel = part.kernel;
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

// Points below and from a cut of one of the outer axes, or loops over the last one.
struct Piece {
  int axis = -1;  // that is cut; -1: none
  int64_t at = 0;
  std::unique_ptr<Piece> below, from;
  std::vector<Part> loops;
};

// `left`: how many scalars the pieces may have yet.
Piece cut(const Part& part, size_t& left) {
  Piece piece;
  if (left == 0) return piece;
  const int last = part.kernel.rows - 1;
  for (int axis = 0; axis < last; axis++) {
    const std::vector<int64_t> cuts = cuts_of(part, axis);
    if (cuts.empty()) continue;
    const auto [low, high] = part.ranges[axis];
    piece.axis = axis;
    piece.at = cuts[cuts.size() / 2];
    piece.below = std::make_unique<Piece>(cut(within(part, axis, low, piece.at - 1), left));
    piece.from = std::make_unique<Piece>(cut(within(part, axis, piece.at, high), left));
    return piece;
  }
  auto [low, high] = part.ranges[last];
  std::vector<int64_t> cuts = cuts_of(part, last);
  cuts.push_back(high + 1);
  for (int64_t at : cuts) {
    piece.loops.push_back(within(part, last, low, at - 1));
    left -= std::min(left, piece.loops.back().kernel.scalars.size());
    low = at;
  }
  return piece;
}

// One loop over the last axis.
void write_loop(KernelText& text, const std::string& from, const std::string& to,
                std::vector<bool> defined) {
  const Kernel& kernel = text.kernel;
  std::vector<const Step*> steps;
  for (const Step& step : kernel.steps) steps.push_back(&step);
  const std::vector<int> ids = text.needed(steps);
  text.define(ids, {row_mask(kernel) >> 1, false}, defined);
  write_store_loop(text, kernel.rows - 1, from, to, steps, [&] {
    text.define(ids, {row_mask(kernel), true}, defined);
  });
}

void write_piece(KernelText& text, const Piece& piece, const std::string& from,
                 const std::string& to) {
  if (piece.axis >= 0) {
    text.out.open(str("if (", text.kernel.axes[piece.axis].name, " < ", piece.at, ")"));
    write_piece(text, *piece.below, from, to);
    text.out.close(" else {");
    text.out.indent();
    write_piece(text, *piece.from, from, to);
    return text.out.close();
  }
  for (const Part& loop : piece.loops) {
    KernelText part(text.program, loop.kernel);
    std::string first = from, stop = to;
    text.out.open("");
    if (piece.loops.size() > 1) {
      const auto [low, high] = loop.ranges.back();
      first = "low", stop = "high";
      text.declare(first, str(from, " > ", low, " ? ", from, " : ", low));
      text.declare(stop, str(to, " < ", high + 1, " ? ", to, " : ", high + 1));
    }
    write_loop(part, first, stop, std::vector<bool>(loop.kernel.scalars.size()));
    text.paste(part);
    text.out.close();
  }
}

// In pieces, if cutting makes enough of the kernel go away.
void write_points(KernelText& text, const std::string& from, const std::string& to,
                  const std::vector<bool>& defined) {
  const Kernel& kernel = text.kernel;
  std::vector<Interval> ranges;
  for (int axis = 0; axis < kernel.rows; axis++)
    ranges.push_back({0, kernel.axes[axis].extent.bounds().high - 1});
  const bool empty = row_count(kernel).is_constant(0);
  size_t left = empty ? 0 : kMostWritten * kernel.scalars.size();
  const Piece piece = cut({kernel, std::move(ranges)}, left);
  if (left == 0 || (piece.axis < 0 && piece.loops.size() == 1))
    return write_loop(text, from, to, defined);
  write_piece(text, piece, from, to);
}

// Of the function's points.
void write_all(KernelText& text) {
  const Kernel& kernel = text.kernel;
  const std::vector<bool> defined = text.define_constants();
  if (kernel.rows == 1) return write_points(text, "begin", "end", defined);
  const Expr& extent = kernel.axes[kernel.rows - 1].extent;
  const std::string last = c_operand(extent);
  text.out.open("for (long long point = begin; point < end;)");
  text.declare("first", str("point % ", last));
  text.out.line(str("const long long stop = end - point < ", last,
                    " - first ? first + (end - point) : ", last, ";"));
  const Expr point = Expr::symbol(tile_symbol("point"), 0,
                                  std::max<int64_t>(row_count(kernel).bounds().high - 1, 0));
  text.unpack_rows(kernel.rows - 1, floor_div(point, extent));
  write_points(text, "first", "stop", defined);
  text.out.line("point += stop - first;");
  text.out.close();
}

}  // namespace

int64_t write_points(KernelText& whole) {
  const Kernel kernel = with_short_last_row_unrolled(whole.kernel);
  KernelText text(whole.program, kernel);
  write_all(text);
  whole.paste(text);
  return kernel.rows == whole.kernel.rows ? 1
                                          : whole.kernel.axes[kernel.rows].extent.constant();
}

}  // namespace tiny_compile
