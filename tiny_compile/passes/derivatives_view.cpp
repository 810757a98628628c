// What is the derivative of a view? Every element goes back to where it was read; what was read
// several times is added up.
//
//   y = expand x: f32[3] to [4,3]     =>   sum g over axis 0
//   y = slice x: every second of 7    =>   g with zeros between
//   y = window x: 3 in a row of 7     =>   sums along the diagonals of g: f32[5,3]
#include "tiny_compile/passes/derivatives.h"
#include "tiny_compile/trace/functions.h"

namespace tiny_compile {
namespace {

Tensor back_to(const Tensor& x, const Tensor& g) { return reshape(g, x.sizes()); }

Tensor of_permute(const PullBack& at) {
  const std::vector<int> axes = at.node.axes();
  Sizes inverse(axes.size());
  for (size_t k = 0; k < axes.size(); k++) inverse[axes[k]] = static_cast<int64_t>(k);
  return permute(at.g, inverse);
}

Tensor of_flip(const PullBack& at) {
  const std::vector<int> axes = at.node.axes();
  return flip(at.g, Sizes(axes.begin(), axes.end()));
}

Tensor of_expand(const PullBack& at) {
  const Tensor& x = at.x[0];
  const int64_t added = at.y.rank() - x.rank();
  Sizes axes;
  for (int64_t k = 0; k < at.y.rank(); k++) {
    const bool repeated =
        k < added || (x.size(k - added).is_number(1) && !at.y.size(k).is_number(1));
    if (repeated) axes.push_back(k);
  }
  return back_to(x, axes.empty() ? at.g : sum(at.g, axes, true));
}

// Elements of an axis `step` apart, zeros between and after them.
Tensor spread(const Tensor& g, int64_t axis, int64_t step) {
  if (step == 1) return g;
  SizeList shape = g.sizes();
  shape[axis] = shape[axis] * step;
  return reshape(padded(unsqueeze(g, axis + 1), axis + 1, 0, step - 1), shape);
}

Tensor of_slice(const PullBack& at) {
  const int64_t axis = at.node.integer(Key::axis, 0), step = at.node.integer(Key::step, 1);
  const Size start(at.node.attr(Key::start)), size = at.x[0].size(axis);
  const Tensor apart = spread(at.g, axis, step);
  return padded(apart, axis, start, size - start - apart.size(axis));
}

// [.., m, j, t] => [.., m + j - 1, t]: the sums of g[i - j, j]. With j reversed and zeros above and
// below, these are diagonals, each a row of windows over the flattened plane:
//   element (i + k, k) of rows of length j stands at i*j + k*(j + 1).
Tensor diagonal_sums(const Tensor& g) {
  const int64_t rank = g.rank(), j = g.size(-2);
  if (j == 1) return squeeze(g, rank - 2);
  Sizes planes_last(rank);
  for (int64_t k = 0; k < rank; k++) planes_last[k] = k;
  std::swap(planes_last[rank - 1], planes_last[rank - 2]);
  std::swap(planes_last[rank - 2], planes_last[rank - 3]);  // [.., t, m, j]
  const Tensor rows = padded(flip(permute(g, planes_last), rank - 1), rank - 2, j - 1, j - 1);
  SizeList flat = rows.sizes();
  flat.pop_back();
  flat.back() = flat.back() * j;
  const Tensor windows = unfold(reshape(rows, flat), rank - 2, j * j, j);
  const Tensor sums = sum(slice(windows, rank - 1, 0, j * j, j + 1), {rank - 1});
  return transpose(sums, rank - 3, rank - 2);
}

// Each window falls into pieces of `step` elements; the same piece of all windows fills the axis
// without a gap, so that windows that overlap are as many such layers, one moved on from the other.
Tensor of_window(const PullBack& at) {
  const int64_t axis = at.node.integer(Key::axis, 0), last = at.y.rank() - 1;
  const int64_t size = at.node.integer(Key::size, 1), step = at.node.integer(Key::step, 1);
  const int64_t layers = (size + step - 1) / step;
  Sizes to_end, back(last);  // the axis last but for the window's own
  for (int64_t k = 0; k < last; k++) {
    if (k == axis) continue;
    back[k] = static_cast<int64_t>(to_end.size());
    to_end.push_back(k);
  }
  back[axis] = last - 1;
  to_end.push_back(axis);
  to_end.push_back(last);
  SizeList shape = permute(at.g, to_end).sizes();
  shape.back() = layers;
  shape.push_back(step);
  const Tensor pieces =
      reshape(padded(permute(at.g, to_end), last, 0, layers * step - size), shape);
  const Tensor sums = diagonal_sums(pieces);
  SizeList joined = sums.sizes();
  joined.pop_back();
  joined.back() = joined.back() * step;
  const Tensor line = reshape(sums, joined);
  return permute(padded(line, last - 1, 0, at.x[0].size(axis) - line.size(last - 1)), back);
}

}  // namespace

Tensor padded(const Tensor& x, int64_t axis, const Size& low, const Size& high) {
  if (low.is_number(0) && high.is_number(0)) return x;
  std::vector<Expr> lows(static_cast<size_t>(x.rank())), highs = lows;
  lows[axis] = low.expr();
  highs[axis] = high.expr();
  Node node;
  node.op = Op::pad;
  node.value = Literal::of(x.dtype(), 0.0);
  node.set(Key::low, lows).set(Key::high, highs);
  return apply(std::move(node), {x}, {});
}

std::vector<Tensor> pull_back_view(const PullBack& at) {
  switch (at.node.op) {
    case Op::permute: return {of_permute(at)};
    case Op::expand: return {of_expand(at)};
    case Op::slice: return {of_slice(at)};
    case Op::flip: return {of_flip(at)};
    case Op::window: return {of_window(at)};
    default: return {back_to(at.x[0], at.g)};
  }
}

}  // namespace tiny_compile
