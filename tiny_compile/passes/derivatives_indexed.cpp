// What is the derivative of what reads and writes at places: matmul, gather, scatter, concat, pad?
// What was read from a place is added to it, what was written to a place is read from it.
//
//   y = gather x at i               =>   scatter_add g at i, into zeros; of one i a row: g where
//                                        the place is i, else 0
//   y = scatter_add u at i, into x  =>   x: g, u: gather g at i
#include "tiny_compile/passes/derivatives.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/functions.h"

namespace tiny_compile {
namespace {

using Cotangents = std::vector<Tensor>;

Cotangents of_matmul(const PullBack& at) {
  const Tensor a = transpose(at.x[0], -1, -2), b = transpose(at.x[1], -1, -2);
  return {matmul(at.g, b), matmul(a, at.g)};
}

// Whether each row along the axis is read at one place, and no row is left out. Of symbolic sizes:
// whether that is plain to see.
bool picks_one(const Tensor& x, const Tensor& index, int64_t axis) {
  SizeList rows = x.sizes();
  rows[static_cast<size_t>(axis)] = 1;
  return index.sizes() == rows;
}

// One place a row: each element asks whether it is that one, instead of an array of zeros to add to.
// Reading the places' own numbers tells of one that is none.
Cotangents of_gather(const PullBack& at, int64_t axis) {
  const Tensor &x = at.x[0], &index = at.x[1];
  if (!picks_one(x, index, axis)) return {scatter_add(zeros_like(x), axis, index, at.g)};
  const Tensor places = arange(x.size(axis));
  const Tensor picked =
      reshape(gather(places, 0, reshape(index, {index.numel()})), index.sizes());
  SizeList along(static_cast<size_t>(x.rank()), Size(1));
  along[static_cast<size_t>(axis)] = x.size(axis);
  return {where(reshape(places, along) == picked, at.g, 0.0)};
}

// The last update of a place counts: the one whose number is there after all have been set.
Cotangents of_scatter(const PullBack& at, int64_t axis) {
  const Tensor &x = at.x[0], &index = at.x[1];
  const Tensor number = reshape(arange(index.numel()), index.sizes());
  const Tensor last = scatter(zeros(x.sizes(), DType::i64), axis, index, number);
  const Tensor counts = gather(last, axis, index) == number;
  return {scatter(at.g, axis, index, zeros_like(at.x[2])), Tensor(),
          where(counts, gather(at.g, axis, index), 0.0)};
}

// Of the factors of a place: how many are 0, and the product of the others.
Cotangents of_scatter_prod(const PullBack& at, int64_t axis) {
  const Tensor &x = at.x[0], &index = at.x[1], &source = at.x[2];
  const Tensor x_is_zero = x == 0.0, source_is_zero = source == 0.0;
  const Tensor x_or_one = where(x_is_zero, 1.0, x);
  const Tensor source_or_one = where(source_is_zero, 1.0, source);
  const Tensor others = scatter_reduce(x_or_one, axis, index, source_or_one, "prod");
  const Tensor zero_factors =
      scatter_add(x_is_zero.to(DType::i64), axis, index, source_is_zero.to(DType::i64));
  const auto share = [](const Tensor& is_zero, const Tensor& or_one, const Tensor& product,
                        const Tensor& zero_count) {
    const Tensor only = zero_count == is_zero.to(DType::i64);  // no other factor is 0
    return where(only, product / or_one, 0.0);
  };
  const Tensor of_x = at.g * share(x_is_zero, x_or_one, others, zero_factors);
  const Tensor products = gather(others, axis, index), g = gather(at.g, axis, index);
  const Tensor zero_counts = gather(zero_factors, axis, index);
  return {of_x, Tensor(), g * share(source_is_zero, source_or_one, products, zero_counts)};
}

// All that equal a place's extreme share its cotangent.
Cotangents of_scatter_extreme(const PullBack& at, int64_t axis) {
  const Tensor &x = at.x[0], &index = at.x[1], &source = at.x[2];
  const Tensor x_hits = x == at.y;
  const Tensor source_hits = source == gather(at.y, axis, index);
  const Tensor count =
      scatter_add(x_hits.to(DType::i64), axis, index, source_hits.to(DType::i64));
  const Tensor share = at.g / count.to(at.g.dtype());
  const Tensor of_x = where(x_hits, share, 0.0);
  return {of_x, Tensor(), where(source_hits, gather(share, axis, index), 0.0)};
}

Cotangents of_concat(const PullBack& at, int64_t axis) {
  Cotangents result;
  Size start = 0;
  for (const Tensor& x : at.x) {
    const Size stop = start + x.size(axis);
    result.push_back(slice(at.g, axis, start, stop));
    start = stop;
  }
  return result;
}

Tensor of_pad(const PullBack& at) {
  Tensor g = at.g;
  for (int64_t k = 0; k < g.rank(); k++) {
    const Size low(at.node.list(Key::low)[k]), high(at.node.list(Key::high)[k]);
    g = padded(g, k, 0 - low, 0 - high);
  }
  return g;
}

}  // namespace

Cotangents pull_back_indexed(const PullBack& at) {
  const int64_t axis = at.node.integer(Key::axis, 0);
  switch (at.node.op) {
    case Op::matmul: return of_matmul(at);
    case Op::gather: return of_gather(at, axis);
    case Op::scatter: return of_scatter(at, axis);
    case Op::scatter_add: return {at.g, Tensor(), gather(at.g, axis, at.x[1])};
    case Op::scatter_prod: return of_scatter_prod(at, axis);
    case Op::scatter_max:
    case Op::scatter_min: return of_scatter_extreme(at, axis);
    case Op::concat: return of_concat(at, axis);
    case Op::pad: return {of_pad(at)};
    default: return {};
  }
}

}  // namespace tiny_compile
