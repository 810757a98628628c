// tc::vjp: a function's result, and how to pull a cotangent back through it; both compiled.
// tc::checkpoint: a function whose inside is computed again rather than kept.
//
//   const auto both = tc::vjp(predict, {.memory_budget = 0.5});  // predict: (Model, Tensor) -> y
//   const auto [y, pullback] = both(model, x);
//   const auto [d_model, dx] = pullback(dy);                     // dy is like y
//
//   return tc::checkpoint(block)(x, weights);                    // in a function that has a gradient
#pragma once

#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "tiny_compile/compile/grad.h"
#include "tiny_compile/trace/checkpoint.h"

namespace tiny_compile {

namespace detail {

// A backward part. Its inputs: some of the arguments' tensors, what the forward part kept, a
// cotangent of each output of floats. Its outputs: a gradient of each argument's tensor of floats.
struct Backwards {
  Graph graph;
  std::vector<int> arguments;  // numbers of the tensors that it reads
  std::vector<Type> outputs;   // of the forward part
};

// Those that traces of one function have made, by number. Several threads may add.
class BackwardList {
 public:
  size_t add(Backwards one);
  std::shared_ptr<const Backwards> at(size_t number) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const Backwards>> list_;
};

// While a function is traced: its outputs, and what the backward part wants of it.
struct Linearized {
  std::vector<Tensor> outputs, kept;
  Backwards backwards;
};
Linearized linearize(const TensorFunction& function, const std::vector<Tensor>& inputs);

// The inputs of the backward part. Throws tc::Error where the cotangents are not of the outputs'
// types.
std::vector<Tensor> backward_operands(const Backwards& backwards,
                                      const std::vector<Tensor>& arguments,
                                      const std::vector<Tensor>& kept,
                                      const std::vector<Tensor>& cotangents);

// A gradient of each argument: those of floats, zeros of the others.
std::vector<Tensor> with_zeros(const std::vector<Tensor>& arguments,
                               const std::vector<Tensor>& gradients);

template <typename Function>
struct ForwardPart {
  Function function;
  std::shared_ptr<BackwardList> backwards;

  template <typename... Args>
  auto operator()(const Args&... args) const {
    const auto arguments = std::make_tuple(args...);
    using Result = std::decay_t<decltype(std::apply(function, arguments))>;
    Result structure;
    Linearized made =
        linearize(flat(function, arguments, structure), tree::tensors_of(arguments));
    const size_t number = backwards->add(std::move(made.backwards));
    return std::tuple(with_tensors(std::move(structure), made.outputs, 0), std::move(made.kept),
                      static_cast<int64_t>(number));
  }
};

struct BackwardPart {
  std::shared_ptr<BackwardList> backwards;
  std::vector<Tensor> operator()(const std::vector<Tensor>& operands, int64_t number) const;
};

template <typename Arguments, typename Result>
struct Pullback {
  Compiled<BackwardPart> compiled;
  std::shared_ptr<const Backwards> backwards;
  Arguments arguments;
  std::vector<Tensor> kept;
  int64_t number;

  // A gradient of each argument, of its structure.
  Arguments operator()(const Result& cotangents) const {
    const std::vector<Tensor> given = tree::tensors_of(arguments);
    const std::vector<Tensor> gradients = compiled(
        backward_operands(*backwards, given, kept, tree::tensors_of(cotangents)), number);
    return with_tensors(arguments, with_zeros(given, gradients), 0);
  }
};

template <typename Function>
struct Apart {
  std::shared_ptr<BackwardList> backwards;
  Compiled<ForwardPart<Function>> forward;
  Compiled<BackwardPart> backward;

  template <typename... Args>
  auto operator()(const Args&... args) const {
    const std::tuple<Args...> arguments(args...);
    auto [result, kept, number] = forward(args...);
    using Result = std::decay_t<decltype(result)>;
    return std::pair(std::move(result),
                     Pullback<std::tuple<Args...>, Result>{
                         backward, backwards->at(static_cast<size_t>(number)), arguments,
                         std::move(kept), number});
  }
};

template <typename Function>
struct Checkpointed {
  Function function;

  template <typename... Args>
  auto operator()(const Args&... args) const {
    const auto arguments = std::make_tuple(args...);
    using Result = std::decay_t<decltype(std::apply(function, arguments))>;
    Result structure;
    const std::vector<Tensor> made =
        checkpointed(flat(function, arguments, structure), tree::tensors_of(arguments));
    return with_tensors(structure, made, 0);
  }
};

}  // namespace detail

// vjp(f, options)(args..) returns what f returns and a pullback: given cotangents like the result
// (those of integers are not read), it returns a tuple of gradients, one like each argument; of
// integers they are zeros. Forward and pullback are compiled apart; what passes from one to the
// other is chosen by options.memory_budget (passes/partition.h). A pullback may be called often,
// holds what it needs, and throws tc::Error for cotangents of other types than the result. Called
// while a function is traced, both become part of its graph.
template <typename Function>
auto vjp(Function function, CompileOptions options = {}) {
  auto backwards = std::make_shared<detail::BackwardList>();
  CompileOptions backward = options;
  backward.name += "_backward";
  return detail::Apart<Function>{
      backwards,
      compile(detail::ForwardPart<Function>{std::move(function), backwards}, options),
      compile(detail::BackwardPart{backwards}, backward)};
}

// checkpoint(f)(args..) is f(args..); a gradient keeps nothing of what f computes on the way but
// computes it again, whatever the memory budget. The bits are the same, random draws too.
template <typename Function>
auto checkpoint(Function function) {
  return detail::Checkpointed<Function>{std::move(function)};
}

}  // namespace tiny_compile
