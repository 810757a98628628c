// A model is a plain struct of tensors and layers; these are functions of whole ones.
//
//   struct Mlp {
//     nn::Linear hidden = nn::make_linear(784, 64), classes = nn::make_linear(64, 10);
//     tc::Tensor operator()(const tc::Operand& x) const { return classes(tc::relu(hidden(x))); }
//   };
//   const auto loss = [](const Mlp& model, const tc::Tensor& x, const tc::Tensor& y) {
//     return tc::cross_entropy(nn::to(model, tc::bfloat16)(x), y);  // f32 weights, bf16 arithmetic
//   };
//   const auto [value, gradient] = tc::compile(tc::value_and_grad(loss))(model, x, y);  // an Mlp
//   model = tc::tree::map([](auto w, auto d) { return w - 0.1 * d; }, model, gradient);
//
// What of a model is guarded when it is an argument of a compiled function: dtypes and shapes of
// its tensors, which optional ones it has, lengths of vectors, the values of its numbers (eps,
// heads, p), its Mode, which functions it holds. Never the tensors' elements: a step of training
// compiles nothing.
#pragma once

#include "tiny_compile/compile/tree.h"
#include "tiny_compile/trace/functions.h"

namespace tiny_compile::nn {

// Of a layer that does something else in training: dropout, the statistics of a batch.
enum class Mode : uint8_t { Training, Evaluation };

template <typename Model>
Model in_mode(Model model, Mode mode) {
  auto nothing = [](const auto&) {};
  auto set = [&](auto& member) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(member)>, Mode>)
      member = mode;
  };
  tree::walk(model, nothing, nothing, set);
  return model;
}

template <typename Model>
Model train(const Model& model) {
  return in_mode(model, Mode::Training);
}

template <typename Model>
Model eval(const Model& model) {
  return in_mode(model, Mode::Evaluation);
}

// Its tensors of floats as this dtype. A gradient goes through: the loss of to(model, bfloat16) has
// gradients of the model's own dtype, master weights.
template <typename Model>
Model to(const Model& model, DType dtype, Here here = Here::current()) {
  const auto cast = [&](const Tensor& tensor) {
    return is_float(tensor.dtype()) ? tensor.to(dtype, here) : tensor;
  };
  return tree::map(cast, model);
}

template <typename Model>
Model to(const Model& model, Device device) {
  return tree::map([&](const Tensor& tensor) { return tensor.to(device); }, model);
}

template <typename Model>
int64_t parameter_count(const Model& model) {
  int64_t count = 0;
  tree::for_each_tensor(model, [&](const Tensor& tensor) { count += tensor.numel(); });
  return count;
}

}  // namespace tiny_compile::nn
