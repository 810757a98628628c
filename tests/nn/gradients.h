// Gradients of a model of f64 against central differences, one element after the other.
#pragma once

#include <cmath>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/tiny_compile.h"

namespace tiny_compile::tests {

// `tree` with `by` added to one element of its tensor number `which`.
template <typename Tree>
Tree moved(Tree tree, size_t which, int64_t element, double by) {
  tree::for_each_tensor(tree, [&](Tensor& tensor) {
    if (which-- != 0) return;
    std::vector<double> values = tensor.to_vector<double>();
    values[static_cast<size_t>(element)] += by;
    tensor = from_vector<double>(values, tensor.shape());
  });
  return tree;
}

// loss(model, args..): a tensor of one f64. Its value and gradients traced whole have the bits of
// the ones computed op by op, and the gradients are central differences up to `tolerance`.
template <typename Loss, typename Model, typename... Args>
void check_gradients(const Loss& loss, const Model& model, double tolerance,
                     const Args&... args) {
  manual_seed(3);
  const auto [value, gradient] = value_and_grad(loss)(model, args...);
  manual_seed(3);
  const auto compiled =
      compile(value_and_grad(loss), {.backend = "interpreter"})(model, args...);
  CHECK(same_bits(compiled.first, value));
  const std::vector<Tensor> weights = tree::tensors_of(model),
                            slopes = tree::tensors_of(gradient),
                            compiled_slopes = tree::tensors_of(compiled.second);
  REQUIRE(slopes.size() == weights.size());
  const double h = 1e-5;
  const auto loss_at = [&](size_t which, int64_t element, double by) {
    manual_seed(3);
    return loss(moved(model, which, element, by), args...).template item<double>();
  };
  for (size_t k = 0; k < weights.size(); k++) {
    CHECK(same_bits(compiled_slopes[k], slopes[k]));
    REQUIRE(slopes[k].shape() == weights[k].shape());
    const std::vector<double> found = slopes[k].to_vector<double>();
    for (int64_t i = 0; i < weights[k].numel(); i++) {
      INFO("tensor " << k << ", element " << i);
      const double expected = (loss_at(k, i, h) - loss_at(k, i, -h)) / (2 * h);
      CHECK(std::fabs(found[static_cast<size_t>(i)] - expected) <=
            tolerance * std::max(1.0, std::fabs(expected)));
    }
  }
}

}  // namespace tiny_compile::tests
