// tc::compile: a function over tensors, traced and compiled at its first call for each
// kind of input.
//
//   auto f = tc::compile([](tc::Tensor x, tc::Tensor bias) { return tc::gelu(x + bias); });
//   tc::Tensor y = f(x, bias);
//
// What is guarded (a change means another trace): the inputs' dtypes, shapes, strides and
// devices, the lengths of vectors and presence of optionals among them, the values of C++
// numbers that the function takes as numbers, which functions it was given. A C++ number given for
// a Tensor parameter becomes a 0-d input: another value of it is no reason to compile again. A tensor
// that the function
// captured is an input that each call reads from the variable it was seen in. Where that is the
// closure's own or itself captured by reference it may hold another tensor at each call; where
// it is out of reach (a member, an element, a static) and holds another one, or is gone, the
// function is traced again, and compiled again only if its graph is another. What chooses among
// tensors that stay as they are (a captured int, a pointer, the length of a vector that grew in
// place, which of two vectors after a swap) is not guarded: pass it as an argument. Called while
// another function is traced, a compiled function becomes part of that one's graph.
#pragma once

#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "tiny_compile/compile/function.h"
#include "tiny_compile/compile/tree.h"
#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {

namespace detail {

// A C++ number as a 0-d tensor.
template <typename T>
Tensor as_zero_dim(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return filled_tensor(Literal::of_integer(DType::boolean, value), {});
  else if constexpr (std::is_integral_v<T>)
    return filled_tensor(Literal::of_integer(DType::i64, static_cast<int64_t>(value)), {});
  else
    return filled_tensor(Literal::of(std::is_same_v<T, double> ? DType::f64 : DType::f32,
                                     static_cast<double>(value)),
                         {});
}

// What tells a number or a function from every other one of its type.
template <typename T>
uint64_t bits_of(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<uint64_t>(static_cast<double>(value));
  else if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<uintptr_t>(value);
  else
    return static_cast<uint64_t>(value);
}

template <typename T>
using Boxed =
    std::conditional_t<std::is_arithmetic_v<std::decay_t<T>>, Tensor, std::decay_t<T>>;

// A struct or a vector is looked at where it is: it may have hundreds of tensors.
template <typename T>
using Seen = std::conditional_t<std::is_class_v<T>, const T&, std::decay_t<const T&>>;

// The same tensor without a share in it, for as long as the caller holds it: counting owners, which
// every thread must see, takes as long as all else that a call does for an argument.
inline Tensor borrowed(const Tensor& tensor) {
  return Tensor(std::shared_ptr<TensorData>(std::shared_ptr<void>(), tensor.handle().get()));
}
inline bool is_borrowed(const Tensor& tensor) {
  return tensor.defined() && tensor.handle().use_count() == 0;
}

// A tuple of what is seen, and the values themselves: for the function, which may change them.
template <typename... T>
std::tuple<std::decay_t<T>...> copied(const std::tuple<T...>& seen) {
  return seen;
}

// The argument that a function returned as it is.
template <typename Tuple>
Tensor argument_of(const Tuple& arguments, const Tensor& borrowed) {
  Tensor found;
  tree::for_each_tensor(arguments, [&](const Tensor& tensor) {
    if (tensor.handle().get() == borrowed.handle().get()) found = tensor;
  });
  return found;
}

// `hold`: what is kept of a tensor.
template <typename Tuple, typename Hold>
Signature signature_of(const Tuple& arguments, Hold hold) {
  Signature signature;
  size_t count = 0;
  tree::for_each_tensor(arguments, [&](const Tensor&) { count++; });
  signature.tensors.reserve(count);
  auto leaf = [&](const Tensor& tensor) { signature.tensors.push_back(hold(tensor)); };
  auto size = [&](size_t n) { signature.extras.push_back(n); };
  auto other = [&](auto value) { signature.extras.push_back(bits_of(value)); };
  tree::walk(arguments, leaf, size, other);
  return signature;
}

// Which of the arguments' tensors are donated.
template <typename Tuple>
std::vector<int> donated_tensors(const Tuple& arguments, const CompileOptions& options) {
  constexpr int count = std::tuple_size_v<Tuple>;
  std::vector<bool> is_donated(count);
  for (const int number : options.donate) {
    if (number < 0 || number >= count)
      fail(options.name, ": donate names argument ", number, ", but a call has ", count);
    is_donated[number] = true;
  }
  std::vector<int> found;
  int argument = 0, next = 0;
  const auto add = [&](const auto& one) {
    tree::for_each_tensor(one, [&](const Tensor&) {
      if (is_donated[argument]) found.push_back(next);
      next++;
    });
    argument++;
  };
  std::apply([&](const auto&... each) { (add(each), ...); }, arguments);
  return found;
}

// Whether the variable lies in the closure, or the closure holds its address (a capture by
// reference): then the function comes to it the same way each time.
template <typename Function>
bool is_within_reach(const Function& function, const Tensor& variable) {
  const char* begin = reinterpret_cast<const char*>(&function);
  const char* at = reinterpret_cast<const char*>(&variable);
  if (at >= begin && at < begin + sizeof(Function)) return true;
  for (size_t i = 0; i + sizeof(void*) <= sizeof(Function); i += sizeof(void*)) {
    const void* word;
    std::memcpy(&word, begin + i, sizeof word);
    if (word == &variable) return true;
  }
  return false;
}

}  // namespace detail

template <typename Function>
class Compiled {
 public:
  Compiled(Function function, CompileOptions options)
      : state_(std::make_shared<State>(std::move(function), std::move(options))) {}

  // Throws what the function throws while it is traced, and tc::Error as ops and kernels do.
  template <typename... Args>
  auto operator()(const Args&... args) const {
    return call(packed(args...));
  }

  const FunctionCache& cache() const { return state_->cache; }

  // The graph of these arguments, as traced, and the tensors it takes: for explain().
  template <typename... Args>
  Specialization specialization(const Args&... args) const {
    return trace_for(packed(args...), static_cast<void*>(nullptr));
  }

 private:
  struct State {
    State(Function f, CompileOptions options)
        : function(std::move(f)), cache(std::move(options)) {}
    Function function;
    FunctionCache cache;
  };

  template <typename T>
  static decltype(auto) boxed(const T& value) {
    if constexpr (std::is_arithmetic_v<T>)
      return detail::as_zero_dim(value);
    else
      return value;
  }

  // The arguments; numbers as 0-d tensors unless the function takes them as numbers.
  template <typename... Args>
  static auto packed(const Args&... args) {
    if constexpr (std::is_invocable_v<Function&, detail::Boxed<const Args&>...>)
      return std::tuple<
          std::conditional_t<std::is_arithmetic_v<Args>, Tensor, detail::Seen<Args>>...>(
          boxed(args)...);
    else
      return std::tuple<detail::Seen<Args>...>(args...);  // "mean" as const char*
  }

  template <typename Tuple>
  auto call(const Tuple& arguments) const {
    using Copy = decltype(detail::copied(arguments));
    using Result = std::decay_t<decltype(std::apply(state_->function, std::declval<Copy&>()))>;
    if (is_tracing()) {
      Copy copy = detail::copied(arguments);
      return Result(std::apply(state_->function, copy));
    }
    Signature signature = detail::signature_of(arguments, detail::borrowed);
    std::shared_ptr<const Entry> entry = state_->cache.find(signature);
    if (!entry) {  // the function runs, and may write into what it was given
      signature = detail::signature_of(arguments, [](const Tensor& tensor) { return tensor; });
      entry = compile_for<Result>(arguments, signature);
    }
    std::vector<Tensor> outputs = state_->cache.run(*entry, std::move(signature.tensors));
    Result result = *static_cast<const Result*>(entry->structure.get());
    size_t next = 0;
    tree::for_each_tensor(result, [&](Tensor& tensor) {
      tensor = std::move(outputs[next++]);
      if (detail::is_borrowed(tensor)) tensor = detail::argument_of(arguments, tensor);
    });
    return result;
  }

  template <typename Result, typename Tuple>
  std::shared_ptr<const Entry> compile_for(const Tuple& arguments,
                                           const Signature& signature) const {
    try {
      const FunctionCache::Turn turn(state_->cache, signature);
      if (turn.made) return turn.made;
      auto structure = std::make_shared<Result>();
      Specialization traced = trace_for(arguments, structure.get());
      traced.structure = structure;
      return state_->cache.add(signature, std::move(traced));
    } catch (const std::bad_alloc&) {
      fail(state_->cache.options().name,
           ": out of memory while it was traced and compiled; free some, or compile smaller "
           "functions");
    }
  }

  template <typename Tuple, typename Result = void>
  Specialization trace_for(const Tuple& arguments, Result* structure) const {
    const MemoryBudget budget(state_->cache.options().memory_budget);
    // Before the function can change them.
    const std::vector<int> donated =
        detail::donated_tensors(arguments, state_->cache.options());
    std::vector<Tensor> inputs;
    tree::for_each_tensor(arguments, [&](const Tensor& tensor) { inputs.push_back(tensor); });
    const TensorFunction run = [&](std::span<const Tensor> traced) {
      auto copy = detail::copied(arguments);
      size_t next = 0;
      tree::for_each_tensor(copy, [&](Tensor& tensor) { tensor = traced[next++]; });
      auto result = std::apply(state_->function, copy);
      std::vector<Tensor> outputs;
      tree::for_each_tensor(result, [&](const Tensor& tensor) { outputs.push_back(tensor); });
      if constexpr (!std::is_void_v<Result>) {
        *structure = result;
        tree::for_each_tensor(*structure, [](Tensor& tensor) { tensor = Tensor(); });
      }
      return outputs;
    };
    const CompileOptions& options = state_->cache.options();
    const std::optional<SymbolicInputs> sized = symbolic_inputs(options, inputs);
    Specialization result{sized
                              ? trace_symbolic(run, sized->types, options.name, sized->example)
                              : trace(run, inputs, options.name),
                          {},
                          nullptr,
                          std::move(inputs)};
    for (const Captured& captured : result.traced.captured) {
      result.live.push_back(captured.variable &&
                            detail::is_within_reach(state_->function, **captured.variable));
      result.inputs.push_back(captured.tensor);
    }
    std::vector<int> nodes = result.traced.graph.inputs();
    for (const int input : donated)
      result.traced.graph.nodes[nodes[input]].set(Key::donated, {1});
    if (result.traced.draws > 0) result.inputs.push_back(from_vector<uint64_t>({0, 0}));
    return result;
  }

  std::shared_ptr<State> state_;
};

template <typename Function>
Compiled<std::decay_t<Function>> compile(Function&& function, CompileOptions options = {}) {
  return {std::forward<Function>(function), std::move(options)};
}

}  // namespace tiny_compile
