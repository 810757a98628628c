// How do several heads attend at once? The width is cut into heads, which become an axis of a
// batch of matmuls:
//
//   x [B, L, 64], 4 heads   =>   q, k, v [B, 4, L, 16]   =>   [B, 4, L, 16]   =>   [B, L, 64]
//
// Vaswani et al. 2017, "Attention is all you need".
#include "tiny_compile/nn/attention.h"

#include <cmath>

#include "tiny_compile/nn/initialisers.h"
#include "tiny_compile/trace/nn.h"

namespace tiny_compile::nn {
namespace {

// [.., L, width] -> [.., heads, L, width / heads]
Tensor split_heads(const Tensor& y, int64_t heads, const Location& where) {
  if (y.rank() < 2 || heads < 1 || y.size(-1) % heads != 0)
    fail_at(current_place(where),
            str("attention: ", heads,
                " heads do not divide the last axis of [.., length, width] = [",
                join(y.sizes(), ","), "]"));
  SizeList shape = y.sizes();
  shape.back() = shape.back() / heads;
  shape.insert(shape.end() - 1, heads);
  return transpose(reshape(y, shape), -3, -2);
}

Tensor join_heads(const Tensor& y) {
  const Tensor places = transpose(y, -3, -2);
  SizeList shape = places.sizes();
  const Size last = shape.back();
  shape.pop_back();
  shape.back() = shape.back() * last;
  return reshape(places, shape);
}

}  // namespace

Tensor Attention::operator()(const Operand& x, const Tensor& mask) const {
  return attend(x, x, mask);
}

Tensor Attention::attend(const Operand& from, const Operand& to, const Tensor& mask) const {
  const Scope scope(from.where);
  const auto heads_of = [&](const Linear& layer, const Operand& x) {
    return split_heads(layer(x), heads, from.where);
  };
  const double p = dropout.mode == Mode::Training ? dropout.p : 0;
  const Tensor taken = scaled_dot_product_attention(heads_of(query, from), heads_of(key, to),
                                                    heads_of(value, to), mask, causal, {}, p);
  return output(join_heads(taken));
}

Attention make_attention(int64_t width, int64_t heads, AttentionOptions options, Here here) {
  check_size(width, "width", "make_attention", here);
  check_size(heads, "heads", "make_attention", here);
  if (width % heads != 0)
    fail_at(current_place(location_of(here)),
            str("make_attention: ", heads, " heads do not divide a width of ", width));
  const double bound = std::sqrt(6.0 / static_cast<double>(4 * width));
  const auto zero_bias = [&](const Tensor& weight) {
    return Linear{weight, options.bias ? std::optional(zeros({width}, options.dtype, here))
                                       : std::nullopt};
  };
  const auto projection = [&] {
    return zero_bias(uniform({width, width}, -bound, bound, options.dtype, here));
  };
  Attention layer{projection(),
                  projection(),
                  projection(),
                  {},
                  heads,
                  options.causal,
                  Dropout{options.dropout}};
  layer.output = zero_bias(make_linear(width, width, {false, options.dtype}, here).weight);
  return layer;
}

}  // namespace tiny_compile::nn
