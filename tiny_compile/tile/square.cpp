// Which loops transpose a square? Those that read along the outer one, and write along the inner:
//
//   for i0: 300 = first_row .. stop_row transposed {
//     row: 128 = i0 - first_row
//     for i1: 150 = first_column .. stop_column vector {
//       column: 128 = i1 - first_column
//       $0 = load x[i1*300 + i0]
//       transposed0[row*128 + column] = $0
//     }
//   }
// =>
//   transposed0[0 + r*128 + c] = x[first_column*300 + first_row + r + c*300]
#include "tiny_compile/tile/square.h"

#include <algorithm>

#include "tiny_compile/loops/axes.h"

namespace tiny_compile {
namespace {

// What a body does behind the integers that it names, and what these are.
struct Named {
  Body body;
  Substitution names;
};

Named without_names(const Body& body) {
  Named named;
  for (const Statement& s : body) {
    if (s.kind == StatementKind::Let)
      named.names.push_back({s.name, substitute(s.index, named.names)});
    else
      named.body.push_back(s);
  }
  return named;
}

// What is left of an index where both loops begin, if it goes on by these steps; nothing elsewhere.
std::optional<Expr> at_corner(const Expr& index, const Statement& outer, const Expr& outer_step,
                              const Statement& inner, const Expr& inner_step) {
  const Expr i = Expr::index(outer.name, outer.place), j = Expr::index(inner.name, inner.place),
             rest = index - i * outer_step - j * inner_step;
  if (depends_on(rest, outer.name) || depends_on(rest, inner.name)) return std::nullopt;
  return rest + outer.from * outer_step + inner.from * inner_step;
}

bool is_copy(const Tile& tile, const Body& body) {
  if (body.size() != 2 || body[0].kind != StatementKind::Define || body[0].array >= 0 ||
      body[1].kind != StatementKind::Set || body[1].value != body[0].value)
    return false;
  const Scalar& load = tile.kernel.scalars[body[0].value];
  const Array& array = tile.arrays[body[1].array];
  return is_plain(load) && array.dtype == load.dtype && array.packed == is_half(load.dtype);
}

bool has_words(DType dtype) {
  return size_of(dtype) >= 4 && !is_half(dtype) && dtype != DType::boolean;
}

}  // namespace

std::optional<TransposedLines> transposed_lines(const Tile& tile, const Statement& loop) {
  if (loop.body.size() != 1 || !loop.from.is_constant(0)) return std::nullopt;
  const Statement& inner = loop.body[0];
  if (inner.kind != StatementKind::For || !inner.vector || !inner.from.is_constant(0) ||
      !inner.index.is_constant() || inner.body.size() != 2)
    return std::nullopt;
  const Statement &read = inner.body[0], &put = inner.body[1];
  if (read.kind != StatementKind::Define || read.array >= 0 || put.kind != StatementKind::Set ||
      put.value != read.value)
    return std::nullopt;
  const Scalar& element = tile.kernel.scalars[read.value];
  if (element.kind != ScalarKind::Element || !element.limits.empty()) return std::nullopt;
  const int64_t width = inner.index.constant();
  const Array &to = tile.arrays[put.array], &from = tile.arrays[element.step];
  const auto start = at_corner(element.index, loop, 1, inner, kLine),
             place = at_corner(put.index, loop, width, inner, 1);
  if (!start || !start->is_constant(0) || !place || to.dtype != from.dtype ||
      !has_words(to.dtype) || put.array == element.step || loop.place.bounds().high > kLine ||
      from.size.bounds().low < width * kLine)
    return std::nullopt;
  return TransposedLines{put.array, element.step, *place, loop.index, width};
}

std::optional<Square> square_of(const Tile& tile, const Statement& loop) {
  const auto [outside, row] = without_names(loop.body);
  if (outside.size() != 1 || outside[0].kind != StatementKind::For) return std::nullopt;
  const Statement& inner = outside[0];
  const auto [copy, column] = without_names(inner.body);
  if (!inner.vector || !is_copy(tile, copy)) return std::nullopt;
  const auto in_loops = [&, names = column, outer_names = row](const Expr& index) {
    return substitute(substitute(index, names), outer_names);
  };
  const Expr from = in_loops(inner.from), to = in_loops(inner.index);
  if (depends_on(from, loop.name) || depends_on(to, loop.name)) return std::nullopt;
  const Scalar& load = tile.kernel.scalars[copy[0].value];
  const Expr index = in_loops(load.index), stride = stride_of(index, {inner.name, inner.place});
  const auto corner = at_corner(index, loop, 1, inner, stride),
             place = at_corner(in_loops(copy[1].index), loop, kSquare, inner, 1);
  if (!corner || !place) return std::nullopt;
  return Square{copy[1].array,          load.buffer, *place, *corner, stride,
                loop.index - loop.from, to - from};
}

}  // namespace tiny_compile
