// tc::grad and its kin: functions of functions.
//
//   auto step = tc::compile([](Model model, tc::Tensor x, tc::Tensor y) {
//     return tc::value_and_grad(loss)(model, x, y);  // the loss, and a Model of its gradients
//   });
//
// They differentiate with respect to argument number `Argument` (the first unless said), any
// nesting of tensors that tc::compile takes as well; its tensors must be of floats. What else the
// function uses, captured tensors too, is constant. The function returns the loss, one element of
// floats, alone or as the first tensor of a tuple or struct whose others come along as they are.
// Called while a function is traced, they record the gradient's ops there, and may be nested; else
// they run at once, op by op: compile what runs often.
#pragma once

#include <memory>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tiny_compile/compile/compile.h"
#include "tiny_compile/compile/tree.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/functions.h"
#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {

namespace detail {

// The function by itself, to be differentiated, and what it is called on: `inputs`, then what it
// captured.
struct Call {
  Graph graph;
  std::vector<Tensor> operands;
};
Call call(const TensorFunction& function, const std::vector<Tensor>& inputs);

// While a function is traced: its outputs on `inputs`, then the gradient of the first one with
// respect to inputs first .. first + count.
std::vector<Tensor> outputs_and_gradients(const TensorFunction& function,
                                          const std::vector<Tensor>& inputs, size_t first,
                                          size_t count);

// Its outputs, then their derivative in the direction of `tangents`, one for each input.
std::vector<Tensor> outputs_and_tangents(const TensorFunction& function,
                                         const std::vector<Tensor>& inputs,
                                         const std::vector<Tensor>& tangents);

// The tree with these tensors from number `next` on.
template <typename Tree>
Tree with_tensors(Tree tree, const std::vector<Tensor>& tensors, size_t next) {
  tree::for_each_tensor(tree, [&](Tensor& tensor) { tensor = tensors[next++]; });
  return tree;
}

// The function as one of a list of tensors; `structure` becomes its result.
template <typename Function, typename Tuple, typename Result>
TensorFunction flat(Function& function, const Tuple& arguments, Result& structure) {
  return [&](std::span<const Tensor> inputs) {
    structure =
        std::apply(function, with_tensors(arguments, {inputs.begin(), inputs.end()}, 0));
    return tree::tensors_of(structure);
  };
}

template <size_t Argument, typename Function>
struct ValueAndGradient {
  Function function;

  template <typename... Args>
  auto operator()(const Args&... args) const {
    const auto arguments = std::make_tuple(args...);
    using Result = std::decay_t<decltype(std::apply(function, arguments))>;
    const auto& varied = std::get<Argument>(arguments);
    std::vector<size_t> counts;  // of tensors in each argument
    std::apply(
        [&](const auto&... each) { (counts.push_back(tree::tensors_of(each).size()), ...); },
        arguments);
    const size_t first = std::accumulate(counts.begin(), counts.begin() + Argument, size_t{0});
    Result structure;
    const std::vector<Tensor> made =
        outputs_and_gradients(flat(function, arguments, structure), tree::tensors_of(arguments),
                              first, counts[Argument]);
    const size_t outputs = tree::tensors_of(structure).size();
    return std::pair(with_tensors(std::move(structure), made, 0),
                     with_tensors(varied, made, outputs));
  }
};

template <size_t Argument, typename Function>
struct Gradient {
  ValueAndGradient<Argument, Function> both;

  template <typename... Args>
  auto operator()(const Args&... args) const {
    return both(args...).second;
  }
};

template <typename Function>
struct Tangent {
  Function function;

  template <typename Primals, typename Tangents>
  auto operator()(const Primals& primals, const Tangents& tangents) const {
    using Result = std::decay_t<decltype(std::apply(function, primals))>;
    Result structure;
    const std::vector<Tensor> made =
        outputs_and_tangents(flat(function, primals, structure), tree::tensors_of(primals),
                             tree::tensors_of(tangents));
    const size_t outputs = tree::tensors_of(structure).size();
    return std::pair(with_tensors(structure, made, 0), with_tensors(structure, made, outputs));
  }
};

// Recorded where a function is traced, else traced and run op by op.
template <typename Transformed>
struct Anywhere {
  Transformed transformed;
  Compiled<Transformed> at_once;

  explicit Anywhere(Transformed function)
      : transformed(function), at_once(std::move(function), {.backend = "eager"}) {}

  template <typename... Args>
  auto operator()(const Args&... args) const {
    using Result = std::decay_t<decltype(transformed(args...))>;
    return is_tracing() ? Result(transformed(args...)) : Result(at_once(args...));
  }
};

// The rows one behind the other, as a tensor of x's shape twice.
Tensor stacked(const std::vector<Tensor>& rows, const Tensor& x);

// Row k is the tangent of the gradient in the direction of x's element k.
template <size_t Argument, typename Function>
struct Hessian {
  Function function;

  template <typename... Args>
  Tensor operator()(const Args&... args) const {
    const auto arguments = std::make_tuple(args...);
    const Tensor& x = std::get<Argument>(arguments);
    const auto slope = [&](const Tensor& varied) {
      auto moved = arguments;
      std::get<Argument>(moved) = varied;
      return std::apply(Gradient<Argument, Function>{{function}}, moved);
    };
    const Tangent<decltype(slope)> tangent{slope};
    const Tensor directions = eye(x.numel(), x.dtype());
    std::vector<Tensor> rows;
    for (int64_t k = 0; k < int64_t{x.numel()}; k++)
      rows.push_back(
          tangent(std::tuple(x), std::tuple(reshape(directions[k], x.sizes()))).second);
    return stacked(rows, x);
  }
};

}  // namespace detail

// (loss, gradient): of the arguments' structure. Throws tc::Error, at the line of the loss, where
// it is not one element of floats, and for an argument that holds integers.
template <size_t Argument = 0, typename Function>
auto value_and_grad(Function function) {
  return detail::Anywhere(detail::ValueAndGradient<Argument, Function>{std::move(function)});
}

template <size_t Argument = 0, typename Function>
auto grad(Function function) {
  return detail::Anywhere(detail::Gradient<Argument, Function>{{std::move(function)}});
}

// jvp(f)(std::tuple(x, ..), std::tuple(dx, ..)): what f returns, and how it changes with the
// tangents dx, of the arguments' types. The derivative of a vector-Jacobian product, which is
// linear in the vector.
template <typename Function>
auto jvp(Function function) {
  return detail::Anywhere(detail::Tangent<Function>{std::move(function)});
}

// hessian(f)(x, ..): the second derivatives of a loss with respect to a tensor, of its shape twice:
// [3] => [3,3]. Its elements are as many tangents of the gradient, recorded one after another.
template <size_t Argument = 0, typename Function>
auto hessian(Function function) {
  return detail::Anywhere(detail::Hessian<Argument, Function>{std::move(function)});
}

}  // namespace tiny_compile
