// Linear, Embedding, LayerNorm, RMSNorm, Dropout, Gelu: structs of tensors that can be called. The
// makers take PyTorch's initial values, drawn after tc::manual_seed, and throw tc::Error at the
// caller's line for a size below 1. A call belongs to the caller's line.
#pragma once

#include <optional>
#include <string>

#include "tiny_compile/nn/model.h"

namespace tiny_compile::nn {

struct LayerOptions {
  bool bias = true;
  DType dtype = DType::f32;
};

struct Linear {
  static constexpr const char* names[] = {"weight", "bias"};
  Tensor weight;                              // [out, in]
  std::optional<Tensor> bias;                 // [out]
  Tensor operator()(const Operand& x) const;  // [.., in] -> [.., out]
};
// Both uniform in +-1/sqrt(in).
Linear make_linear(int64_t in, int64_t out, LayerOptions options = {},
                   Here here = Here::current());

struct Embedding {
  static constexpr const char* names[] = {"weight"};
  Tensor weight;                                  // [count, width]
  Tensor operator()(const Operand& index) const;  // integers [..] -> [.., width]
};
Embedding make_embedding(int64_t count, int64_t width, DType dtype = DType::f32,
                         Here here = Here::current());  // N(0, 1)

// Over the last axes, as many as the weight has.
struct LayerNorm {
  static constexpr const char* names[] = {"weight", "bias", "eps"};
  Tensor weight;
  std::optional<Tensor> bias = {};
  double eps = 1e-5;
  Tensor operator()(const Operand& x) const;
};
LayerNorm make_layer_norm(const Sizes& shape, LayerOptions options = {},
                          Here here = Here::current());  // ones and zeros

struct RMSNorm {
  static constexpr const char* names[] = {"weight", "eps"};
  Tensor weight;
  double eps = 1e-6;
  Tensor operator()(const Operand& x) const;
};
RMSNorm make_rms_norm(const Sizes& shape, DType dtype = DType::f32,
                      Here here = Here::current());  // ones

// In training each element is 0 with probability p, else x / (1 - p); each call draws anew.
struct Dropout {
  static constexpr const char* names[] = {"p", "mode"};
  double p = 0.5;
  Mode mode = Mode::Training;
  Tensor operator()(const Operand& x) const;
};

// tc::gelu takes a second argument, so that it is no layer by itself; tc::relu is.
struct Gelu {
  static constexpr const char* names[] = {"approximate"};
  std::string approximate = "none";  // or "tanh"
  Tensor operator()(const Operand& x) const;
};

// Throws tc::Error at `here`: "<maker>: <what> must be at least 1, not -3".
void check_size(int64_t size, const char* what, const char* maker, Here here);

}  // namespace tiny_compile::nn
