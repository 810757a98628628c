// How does a gradient change the parameters? Pure functions over trees (compile/tree.h): what
// an optimiser remembers comes in and goes out, so that a whole step is one compiled function.
//
//   const nn::Adam adam = nn::adamw(0.1);
//   auto step = tc::compile([&](Model p, nn::AdamState<Model> s, tc::Tensor x, tc::Tensor y,
//                               tc::Tensor rate) {
//     auto [loss, gradients] = tc::value_and_grad(loss_of)(p, x, y);
//     gradients = nn::clip_by_global_norm(gradients, 1.0).first;
//     return std::pair(loss, adam.update(p, gradients, s, rate));
//   });
//
// The formulas are PyTorch's: torch.optim.SGD, Adam, AdamW and torch.nn.utils.clip_grad_norm_,
// their scalars in f64; f16 and bf16 are moved in f32 and rounded once. The learning rate is a
// tensor of one element, so another one is no reason to compile again.
#pragma once

#include <utility>
#include <vector>

#include "tiny_compile/compile/grad.h"
#include "tiny_compile/compile/tree.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/trace/creation.h"

namespace tiny_compile::nn {

namespace detail {

using tiny_compile::detail::with_tensors;
using tree::tensors_of;

// Of the same structure, in the same order; throws tc::Error where the numbers of tensors, or a
// shape or device, differ.
void check_gradients(const std::vector<Tensor>& parameters,
                     const std::vector<Tensor>& gradients, const char* who);

template <typename Tree>
Tree zeros_like_tree(Tree tree) {
  tree::for_each_tensor(tree, [](Tensor& tensor) { tensor = zeros_like(tensor); });
  return tree;
}

// How many steps were made, where the tensors are.
template <typename Tree>
Tensor no_steps(const Tree& tree) {
  const std::vector<Tensor> tensors = tensors_of(tree);
  const Tensor zero = full({}, 0, DType::i64);
  return tensors.empty() ? zero : copy_to(zero, tensors[0].device());
}

struct Moved {  // one parameter and what is remembered of it
  Tensor parameter, first, second;
};

}  // namespace detail

// SGD with momentum: b = momentum * b + g, p = p - rate * b, where b begins as the first g.
template <typename Tree>
struct SgdState {
  static constexpr const char* names[] = {"momentum", "step"};
  Tree momentum;
  Tensor step;  // i64, how many were made
};

struct Sgd {
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;

  template <typename Tree>
  SgdState<Tree> init(const Tree& parameters) const {
    return {detail::zeros_like_tree(parameters), detail::no_steps(parameters)};
  }

  template <typename Tree>
  std::pair<Tree, SgdState<Tree>> update(const Tree& parameters, const Tree& gradients,
                                         const SgdState<Tree>& state,
                                         const Tensor& rate) const {
    std::vector<Tensor> p = detail::tensors_of(parameters),
                        b = detail::tensors_of(state.momentum);
    const std::vector<Tensor> g = detail::tensors_of(gradients);
    detail::check_gradients(p, g, "Sgd::update");
    for (size_t k = 0; k < p.size(); k++) {
      const detail::Moved moved = update_one({p[k], b[k], {}}, g[k], state.step, rate);
      p[k] = moved.parameter, b[k] = moved.first;
    }
    return {detail::with_tensors(parameters, p, 0),
            {detail::with_tensors(state.momentum, b, 0), state.step + 1}};
  }

  detail::Moved update_one(const detail::Moved& now, const Tensor& gradient, const Tensor& step,
                           const Tensor& rate) const;
};

// Adam (Kingma and Ba, 2015), and with decoupled decay AdamW (Loshchilov and Hutter, 2019).
template <typename Tree>
struct AdamState {
  static constexpr const char* names[] = {"first", "second", "step"};
  Tree first, second;  // running means of the gradient and of its square
  Tensor step;         // i64, how many were made
};

struct Adam {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;    // the decay: of the parameter, not in the gradient
  int64_t decayed_rank = 0;  // parameters of fewer axes do not decay: 2 spares biases and norms

  template <typename Tree>
  AdamState<Tree> init(const Tree& parameters) const {
    return {detail::zeros_like_tree(parameters), detail::zeros_like_tree(parameters),
            detail::no_steps(parameters)};
  }

  template <typename Tree>
  std::pair<Tree, AdamState<Tree>> update(const Tree& parameters, const Tree& gradients,
                                          const AdamState<Tree>& state,
                                          const Tensor& rate) const {
    std::vector<Tensor> p = detail::tensors_of(parameters), m = detail::tensors_of(state.first),
                        v = detail::tensors_of(state.second);
    const std::vector<Tensor> g = detail::tensors_of(gradients);
    detail::check_gradients(p, g, "Adam::update");
    const Tensor step = state.step + 1;
    const Scales scales = scales_at(step, rate);
    for (size_t k = 0; k < p.size(); k++) {
      const detail::Moved moved = update_one({p[k], m[k], v[k]}, g[k], scales);
      p[k] = moved.parameter, m[k] = moved.first, v[k] = moved.second;
    }
    return {detail::with_tensors(parameters, p, 0),
            {detail::with_tensors(state.first, m, 0), detail::with_tensors(state.second, v, 0),
             step}};
  }

  struct Scales {                       // of one step, 0-d f64
    Tensor kept;                        // 1 - rate * weight_decay
    Tensor step_size, root_correction;  // rate / (1 - beta1^t), sqrt(1 - beta2^t)
  };
  Scales scales_at(const Tensor& step, const Tensor& rate) const;
  detail::Moved update_one(const detail::Moved& now, const Tensor& gradient,
                           const Scales& scales) const;
};

inline Adam adamw(double weight_decay = 0.01) {
  return {.weight_decay = weight_decay, .decoupled = true};
}

// Gradients scaled so that the norm of all of them together is at most `most`, and that norm,
// f32 or f64: g * min(1, most / (norm + 1e-6)). A NaN or an infinity in one makes all NaN, as
// in PyTorch.
std::pair<std::vector<Tensor>, Tensor> clipped(const std::vector<Tensor>& gradients,
                                               double most);

template <typename Tree>
std::pair<Tree, Tensor> clip_by_global_norm(const Tree& gradients, double most) {
  const auto [tensors, norm] = clipped(detail::tensors_of(gradients), most);
  return {detail::with_tensors(gradients, tensors, 0), norm};
}

}  // namespace tiny_compile::nn
