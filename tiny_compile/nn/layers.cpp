// What is a layer? Its parameters and a call of the composite of its name; what the call is made of
// is the compiler's matter:
//
//   Linear{weight f32[10,784], bias f32[10]}(x f32[32,784])   =>   tc::linear(x, weight, bias)
#include "tiny_compile/nn/layers.h"

#include <cmath>

#include "tiny_compile/nn/initialisers.h"
#include "tiny_compile/trace/nn.h"

namespace tiny_compile::nn {
namespace {

Tensor seen_if_any(const std::optional<Tensor>& tensor, const Operand& x) {
  return tensor ? seen(*tensor, x.where) : Tensor();
}

void check_shape(const Sizes& shape, const char* maker, Here here) {
  if (shape.empty()) fail_at(location_of(here), str(maker, ": its shape needs an axis"));
  for (const int64_t size : shape) check_size(size, "a size of its shape", maker, here);
}

}  // namespace

void check_size(int64_t size, const char* what, const char* maker, Here here) {
  if (size < 1)
    fail_at(current_place(location_of(here)),
            str(maker, ": ", what, " must be at least 1, not ", size));
}

Tensor Linear::operator()(const Operand& x) const {
  const Scope scope(x.where);
  return linear(x, weight, seen_if_any(bias, x));
}

Linear make_linear(int64_t in, int64_t out, LayerOptions options, Here here) {
  check_size(in, "in", "make_linear", here);
  check_size(out, "out", "make_linear", here);
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  Linear layer{kaiming_uniform({out, in}, std::sqrt(5.0), Fan::In, options.dtype, here), {}};
  if (options.bias) layer.bias = uniform({out}, -bound, bound, options.dtype, here);
  return layer;
}

Tensor Embedding::operator()(const Operand& index) const {
  const Scope scope(index.where);
  return embedding(index, weight);
}

Embedding make_embedding(int64_t count, int64_t width, DType dtype, Here here) {
  check_size(count, "count", "make_embedding", here);
  check_size(width, "width", "make_embedding", here);
  return {normal({count, width}, 0, 1, dtype, here)};
}

Tensor LayerNorm::operator()(const Operand& x) const {
  const Scope scope(x.where);
  return layer_norm(x, weight.sizes(), weight, seen_if_any(bias, x), eps);
}

LayerNorm make_layer_norm(const Sizes& shape, LayerOptions options, Here here) {
  check_shape(shape, "make_layer_norm", here);
  LayerNorm layer{ones(shape, options.dtype, here), {}};
  if (options.bias) layer.bias = zeros(shape, options.dtype, here);
  return layer;
}

Tensor RMSNorm::operator()(const Operand& x) const {
  const Scope scope(x.where);
  return rms_norm(x, weight.sizes(), weight, eps);
}

RMSNorm make_rms_norm(const Sizes& shape, DType dtype, Here here) {
  check_shape(shape, "make_rms_norm", here);
  return {ones(shape, dtype, here)};
}

Tensor Dropout::operator()(const Operand& x) const {
  return dropout(x, p, mode == Mode::Training);
}

Tensor Gelu::operator()(const Operand& x) const { return gelu(x, approximate); }

}  // namespace tiny_compile::nn
