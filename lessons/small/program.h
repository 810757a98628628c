// The program that every step compiles: a block of a small language model, attention and MLP with
// a layer norm before each, and its loss.
#pragma once

#include "lessons/small/01_trace.h"

namespace small {

inline Tensor transposed(const Tensor& x) { return permute(x, {1, 0}); }

inline Tensor softmax(const Tensor& x) {  // of each row
  const Tensor e = exp(x - detach(max(x, {1})));
  return e / sum(e, {1});
}

inline Tensor layer_norm(const Tensor& x) {  // of each row
  const double columns = static_cast<double>(x.shape()[1]);
  const Tensor centred = x - sum(x, {1}) / columns;
  return centred * rsqrt(sum(centred * centred, {1}) / columns + 1e-5);
}

inline Tensor gelu(const Tensor& x) { return x * 0.5 * (erf(x * 0.70710678118654752) + 1); }

struct Sizes {
  int64_t rows = 128, width = 64, classes = 96;
};

// x [rows,width], target [rows,classes] (ones and zeros), then the weights.
inline std::vector<Shape> program_inputs(const Sizes& s) {
  return {{s.rows, s.width},  {s.rows, s.classes},    {s.width, s.width},
          {s.width, s.width}, {s.width, s.width},     {s.width, 4 * s.width},
          {1, 4 * s.width},   {4 * s.width, s.width}, {s.width, s.classes}};
}

inline Tensors program(const Tensors& in) {
  const Tensor &x = in[0], &target = in[1];
  const Tensor a = layer_norm(x);
  const Tensor q = matmul(a, in[2]), k = matmul(a, in[3]), v = matmul(a, in[4]);
  const double scale = 1 / std::sqrt(static_cast<double>(x.shape()[1]));
  const Tensor p = softmax(matmul(q, transposed(k)) * scale);
  const Tensor y = x + matmul(p, v);
  const Tensor z = y + matmul(gelu(matmul(layer_norm(y), in[5]) + in[6]), in[7]);
  const Tensor scores = matmul(z, in[8]);
  const Tensor most = detach(max(scores, {1}));
  const Tensor logs = scores - most - log(sum(exp(scores - most), {1}));
  return {-sum(target * logs, {0, 1}) / static_cast<double>(x.shape()[0])};
}

}  // namespace small
