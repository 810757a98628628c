// tc::custom_vjp and tc::stop_gradient: functions that say themselves what their gradient is.
//
//   const auto clipped = tc::custom_vjp(
//       [](tc::Tensor x) { return x * 1.0; },
//       [](tc::Tensor x, tc::Tensor y, tc::Tensor g) { return tc::clamp(g, -1, 1); });
//
// `backward` is given the arguments, the result and the cotangent of the result, each in its own
// structure (any nesting of tensors, as tc::compile takes; a result's integers have cotangents of
// 0), and returns the argument's gradient in the argument's structure: of several arguments a
// std::tuple. What it returns for integers is not looked at. Both functions see nothing but what
// they are given: one that uses another traced tensor is a tc::Error. The second derivative is
// that of `backward`.
#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tiny_compile/compile/grad.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/custom_vjp.h"

namespace tiny_compile {

namespace detail {

// The result's structure with these cotangents, one for each tensor of floats.
template <typename Result>
Result cotangents_of(Result result, std::span<const Tensor> floats) {
  size_t next = 0;
  tree::for_each_tensor(result, [&](Tensor& tensor) {
    tensor = is_float(tensor.dtype()) ? floats[next++] : zeros_like(tensor);
  });
  return result;
}

// Of as many as the arguments have tensors: those of floats. Throws tc::Error for another number.
std::vector<Tensor> gradients_of_floats(const std::string& name,
                                        const std::vector<Tensor>& gradients,
                                        std::span<const Tensor> inputs);

template <typename Function, typename Rule>
struct WithRule {
  Function function;
  Rule backward;
  std::string name;

  template <typename... Args>
  auto operator()(const Args&... args) const {
    const auto arguments = std::make_tuple(args...);
    using Result = std::decay_t<decltype(std::apply(function, arguments))>;
    using In = std::span<const Tensor>;
    Result structure;
    const Backward rule = [&](In x, In y, In g) {
      const Result result = with_tensors(structure, {y.begin(), y.end()}, 0);
      return gradients_of_floats(
          name,
          tree::tensors_of(std::apply(
              backward, std::tuple_cat(with_tensors(arguments, {x.begin(), x.end()}, 0),
                                       std::make_tuple(result, cotangents_of(result, g))))),
          x);
    };
    const std::vector<Tensor> results = with_derivative(
        name, flat(function, arguments, structure), rule, tree::tensors_of(arguments));
    return with_tensors(structure, results, 0);
  }
};

}  // namespace detail

// `function` with this gradient; `name` is how graphs and errors call it.
template <typename Function, typename Rule>
auto custom_vjp(Function function, Rule backward, std::string name = "custom") {
  return detail::WithRule<Function, Rule>{std::move(function), std::move(backward),
                                          std::move(name)};
}

// The same value, of which no gradient goes on to what it came from.
template <typename Tree>
Tree stop_gradient(Tree tree) {
  tree::for_each_tensor(tree, [](Tensor& tensor) {
    using In = std::span<const Tensor>;
    tensor = with_derivative(
        "stop_gradient", [](In x) { return std::vector{x[0]}; },
        [](In x, In, In) { return std::vector{zeros_like(x[0])}; }, {tensor})[0];
  });
  return tree;
}

}  // namespace tiny_compile
