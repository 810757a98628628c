// What is the derivative of a reduction, and of a running one?
//
//   y = sum x over axis 1     =>   g at each of its elements
//   y = max x over axis 1     =>   g at the greatest; equals share it
//   y = cumsum x              =>   the running sum of g from the end
//
// Products divide by nothing, so that a factor of 0 is as good as another, in second derivatives
// as well: of the others on its left and on its right each has its running product.
#include "tiny_compile/passes/derivatives.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/nn.h"

namespace tiny_compile {
namespace {

Axes axes_of(const PullBack& at) {
  const std::vector<int> axes = at.node.axes();
  return Sizes(axes.begin(), axes.end());
}

// A reduction's result, at each element of what was reduced.
Tensor spread(const PullBack& at, const Tensor& result) {
  SizeList kept = at.x[0].sizes();
  for (const int axis : at.node.axes()) kept[axis] = 1;
  return expand(reshape(result, kept), at.x[0].sizes());
}

// g where x is the extreme, shared by equals; NaN where that is NaN, which equals nothing.
Tensor of_extreme(const PullBack& at) {
  const Tensor& x = at.x[0];
  const Tensor hit = x == spread(at, at.y);
  const Tensor count = sum(hit, axes_of(at), true).to(at.g.dtype());
  const Tensor share = reshape(at.g, count.sizes()) / count;
  return where(hit, spread(at, share), spread(at, 0.0 / count));
}

// The sum of exp(x - m) but for its maximum m, which moves as well.
Tensor of_sum_exp(const PullBack& at) {
  const Tensor& x = at.x[0];
  if (x.numel().is_number(0)) return zeros_like(x);
  const Tensor m = finite_max(x, axes_of(at));
  const Tensor direct = spread(at, at.g) * exp(x - m);
  const Tensor hit = x == m;
  const Tensor count = sum(hit, axes_of(at), true).to(at.g.dtype());
  const Tensor moves = reshape(at.g * at.y, count.sizes()) / count;
  return direct - where(hit, spread(at, moves), 0.0);
}

Tensor reversed_cumsum(const Tensor& x, int64_t axis) {
  return flip(cumsum(flip(x, axis), axis), axis);
}

// Of each element the product of those before it.
Tensor product_before(const Tensor& x, int64_t axis) {
  const Size size = x.size(axis);
  const Tensor first = ones_like(slice(x, axis, 0, 1));
  return slice(cumprod(concat({first, x}, axis), axis), axis, 0, size);
}

Tensor of_prod(const PullBack& at) {
  const Tensor& x = at.x[0];
  const std::vector<int> axes = at.node.axes();
  Sizes order, back(static_cast<size_t>(x.rank()));
  for (int64_t k = 0; k < x.rank(); k++)
    if (std::find(axes.begin(), axes.end(), k) == axes.end()) order.push_back(k);
  SizeList flat;
  for (const int64_t k : order) flat.push_back(x.size(k));
  Size count = 1;
  for (const int axis : axes) {
    order.push_back(axis);
    count = count * x.size(axis);
  }
  flat.push_back(count);
  for (size_t k = 0; k < order.size(); k++) back[order[k]] = static_cast<int64_t>(k);
  const int64_t last = static_cast<int64_t>(flat.size()) - 1;
  const Tensor moved = permute(x, order), row = reshape(moved, flat);
  const Tensor left = product_before(row, last);
  const Tensor right = flip(product_before(flip(row, last), last), last);
  return spread(at, at.g) * permute(reshape(left * right, moved.sizes()), back);
}

// s[k] = g[k] + x[k + 1] * s[k + 1], from the end: with 1, 2, 4, .. elements taken together.
Tensor running_from_end(const Tensor& x, const Tensor& g, int64_t axis) {
  const auto later = [&](const Tensor& t, int64_t distance) {
    return slice(padded(t, axis, 0, distance), axis, distance);
  };
  const int64_t longest = x.size(axis).expr().bounds().high;
  Tensor sums = g, factor = later(x, 1);
  for (int64_t distance = 1; distance < longest; distance *= 2) {
    sums = sums + factor * later(sums, distance);
    factor = factor * later(factor, distance);
  }
  return sums;
}

Tensor of_cumprod(const PullBack& at, int64_t axis) {
  const Tensor before = product_before(at.x[0], axis);
  return before * running_from_end(at.x[0], at.g, axis);
}

// exp(x) * the sum from the end of g * exp(-y), in logarithms: positive and negative g apart.
Tensor of_logcumsumexp(const PullBack& at, int64_t axis) {
  const auto part = [&](const Tensor& g) {
    const Tensor counts = g > 0.0;
    const Tensor logs = where(counts, log(where(counts, g, 1.0)) - at.y, -INFINITY);
    return exp(flip(logcumsumexp(flip(logs, axis), axis), axis) + at.x[0]);
  };
  const Tensor gains = part(at.g);
  return gains - part(-at.g);
}

}  // namespace

std::vector<Tensor> pull_back_reduction(const PullBack& at) {
  if (at.node.axes().empty()) {  // of one element each
    const bool constant = at.node.op == Op::sum_exp;
    return {constant ? zeros_like(at.g) : at.g};
  }
  switch (at.node.op) {
    case Op::sum: return {spread(at, at.g)};
    case Op::prod: return {of_prod(at)};
    case Op::max:
    case Op::min: return {of_extreme(at)};
    case Op::sum_exp: return {of_sum_exp(at)};
    default: return {};
  }
}

std::vector<Tensor> pull_back_scan(const PullBack& at) {
  const int64_t axis = at.node.integer(Key::axis, 0);
  switch (at.node.op) {
    case Op::cumsum: return {reversed_cumsum(at.g, axis)};
    case Op::cumprod: return {of_cumprod(at, axis)};
    case Op::logcumsumexp: return {of_logcumsumexp(at, axis)};
    default: return {};
  }
}

}  // namespace tiny_compile
