// Where does a thread stand? Its rows by the block's place and the layout of rows, its elements by that of
// the loops; axes are named from these:
//
//   rows grid · warp 8 of (i0: 4, i1: 100)   =>   row = min(block*8 + warp, 399); i1 = row%100; i0 = row/100
#include "tiny_compile/tile/lowering.h"

#include <algorithm>

#include "tiny_compile/loops/dot_axes.h"
#include "tiny_compile/loops/laid_out.h"

namespace tiny_compile {

int kept_in(const Lowering& l, int scalar) {
  const auto found = l.kept.find(scalar);
  return found != l.kept.end() && found->second.second == l.inner ? found->second.first : -1;
}

bool is_in_loops(const Lowering& l, int scalar, const std::vector<int>& inner) {
  return std::any_of(inner.begin(), inner.end(),
                     [&](int axis) { return l.axes[scalar] >> axis & 1; });
}

bool is_known(const Lowering& l, int scalar) {
  return kept_in(l, scalar) >= 0 || l.of_rows.count(scalar) > 0 || l.staged.count(scalar) > 0;
}

VectorAxis vector_axis(const Lowering& l, const Share& k, const std::vector<int>& inner) {
  const auto named = [&](int axis, int64_t width) {
    return VectorAxis{axis, l.kernel.axes[axis].name + "_v", width};
  };
  if (l.rows.vector > 1) return named(l.kernel.rows - 1, l.rows.vector);
  return k.vector > 1 ? named(inner.back(), k.vector) : VectorAxis{};
}

Body row_begins(const Lowering& l) {
  if (l.kernel.rows == 0) return {};
  const Expr last = l.rows.count - l.rows.vector, place = l.rows.start();
  Body body = {let(l.rows.name, last + 1, l.rows.covers_more ? min(place, last) : place)};
  append(body, unpack(l.kernel, axes_laid_out(l.kernel), Expr::index(l.rows.name, last + 1),
                      vector_axis(l, {}, {})));
  return body;
}

Body outer_axes(const Lowering& l) {
  const GridParts grid = grid_of(l.kernel);
  std::vector<int> outer = row_axes(l.kernel);
  outer.resize(static_cast<size_t>(l.kernel.schedule->outer));
  return unpack(l.kernel, outer, floor_div(block_of(l.tile), grid.rows * grid.loops), {});
}

Body by_owner(const Lowering& l, const std::vector<Layout>& used, Body body) {
  if (l.rows.covers_more && l.rows.registers == 1 && !l.clamps)
    body = {if_less(l.rows.start(), l.rows.count, std::move(body))};
  for (const Expr& bits : unused_bits(l.tile, used)) body = {if_less(bits, 1, std::move(body))};
  return body;
}

Share share_over(const Lowering& l, const std::vector<int>& inner) {
  return share_over(l, inner, layout_over(l.kernel, inner));
}

Share share_over(const Lowering& l, const std::vector<int>& inner, const Layout& layout) {
  return share_of(l.tile, "k", count_of(l.kernel, inner), layout,
                  mod(block_of(l.tile), grid_of(l.kernel).loops));
}

Share share_of_rows(const Lowering& l, const std::string& name, const Layout& layout) {
  const Expr count = count_of(l.kernel, axes_laid_out(l.kernel)),
             blocks = ceil_div(count, covered_by(layout));
  return share_of(l.tile, name, count, layout,
                  mod(floor_div(block_of(l.tile), grid_of(l.kernel).loops), blocks));
}

}  // namespace tiny_compile
