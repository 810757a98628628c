// What the log says of guards and recompilations: which input, and what was and is, in words.
#include "tiny_compile/compile/function.h"

#include "tests/runtime/scratch.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

// What a process of its own says on these channels.
std::string words_of(const char* channels, const std::function<void()>& action) {
  const Scratch scratch;
  const std::string file = scratch.path("words");
  const int code = in_child([&] {
    const Setting logs("TC_LOGS", channels);
    dup2(open(file.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), 2);
    action();
    return 0;
  });
  CHECK(code == 0);
  return text_of(file);
}

const CompileOptions kOptions = {.backend = "interpreter", .name = "mlp"};

// The line that a call with these after one with those logs.
template <typename... Args>
std::string recompiled(const std::tuple<Args...>& first, const std::tuple<Args...>& then) {
  return words_of("recompiles", [&] {
    const auto f = compile(
        [](const Args&... args) {
          Tensor sum = ones({}).to(float64);
          const auto values = std::tie(args...);
          tree::for_each_tensor(values, [&](const Tensor& t) { sum = sum + t.sum(); });
          return sum;
        },
        kOptions);
    std::apply(f, first);
    std::apply(f, first);
    std::apply(f, then);
  });
}

Guard guard_of(const Tensor& t) {
  return {t.dtype(), t.device(), t.info().layout, alignment(t)};
}

}  // namespace

TEST_CASE("a guard names the first thing that differs, old -> new", "[function]") {
  const Tensor x = zeros({4, 2});
  const Guard guard = guard_of(x);
  CHECK(guard.difference(x).empty());
  CHECK(guard.difference(ones({4, 2})).empty());
  CHECK(guard.difference(zeros({8, 2})) == "shape [4,2] -> [8,2]");
  CHECK(guard.difference(zeros({4})) == "shape [4,2] -> [4]");
  CHECK(guard.difference(zeros({})) == "shape [4,2] -> []");
  CHECK(guard.difference(zeros({2, 4}).t()) == "strides [2,1] -> [1,4]");
  CHECK(guard.difference(x.flip({0})) == "strides [2,1] -> [-2,1]");
  CHECK(guard.difference(x.to(bfloat16)) == "dtype f32 -> bf16");
  CHECK(guard.difference(zeros({3}, int64)) == "dtype f32 -> i64");
}

TEST_CASE("a guard admits what it has no difference to", "[function]") {
  const Tensor x = zeros({1, 3});
  const Tensor kinds[] = {x,
                          zeros({1, 3}),
                          x.expand({1, 3}),
                          zeros({3}),
                          zeros({3, 1}),
                          x.to(float64),
                          x.slice(1, 0, 3, 2),
                          x.flip({1}),
                          zeros({3, 1}).t(),
                          with_layout(zeros({6}), {1, 3}, {3, 1}, 2)};
  for (const Tensor& kind : kinds) {
    for (const Tensor& other : kinds) {
      const Guard guard = guard_of(kind);
      INFO(guard.difference(other));
      CHECK(guard.admits(other) == guard.difference(other).empty());
    }
  }
}

TEST_CASE("recompiling says which input changed and how", "[function]") {
  using One = std::tuple<Tensor>;
  using Two = std::tuple<Tensor, Tensor>;
  const Tensor x = zeros({4, 2}), y = zeros({3});
  CHECK(recompiled(One{x}, One{zeros({8, 2})}) ==
        "[recompiles] mlp: input 0: shape [4,2] -> [8,2]\n");
  CHECK(recompiled(Two{x, y}, Two{x, y.to(float16)}) ==
        "[recompiles] mlp: input 1: dtype f32 -> f16\n");
  CHECK(recompiled(Two{x, y}, Two{zeros({2, 4}).t(), y}) ==
        "[recompiles] mlp: input 0: strides [2,1] -> [1,4]\n");
  CHECK(recompiled(One{x}, One{x}).empty());
}

TEST_CASE("other arguments that changed are told apart from tensors", "[function]") {
  using Many = std::tuple<std::vector<Tensor>>;
  CHECK(recompiled(Many{{zeros({2})}}, Many{{zeros({2}), zeros({2})}}) ==
        "[recompiles] mlp: another number of tensors\n");
  using Number = std::tuple<Tensor, std::array<int, 1>>;
  CHECK(recompiled(Number{zeros({2}), {1}}, Number{zeros({2}), {2}}) ==
        "[recompiles] mlp: a number, or the length of a vector, among the arguments\n");
}

TEST_CASE("a captured tensor that changed is counted among the captured", "[function]") {
  const std::string words = words_of("recompiles,guards", [] {
    Tensor v = ones({2}), w = ones({2});
    const auto f = compile([&v, &w](Tensor x) { return x * v + w; }, kOptions);
    f(ones({2}));
    w = ones({1});
    f(ones({2}));
  });
  CHECK(words ==
        "[guards] mlp: tensor 0 is f32[2] with strides [1] on cpu\n"
        "[guards] mlp: tensor 1 is f32[2] with strides [1] on cpu\n"
        "[guards] mlp: tensor 2 is f32[2] with strides [1] on cpu\n"
        "[recompiles] mlp: captured tensor 1: shape [2] -> [1]\n"
        "[guards] mlp: tensor 0 is f32[2] with strides [1] on cpu\n"
        "[guards] mlp: tensor 1 is f32[2] with strides [1] on cpu\n"
        "[guards] mlp: tensor 2 is f32[1] with strides [1] on cpu\n");
}

TEST_CASE("a variable out of reach that was reassigned is told, with what to do",
          "[function]") {
  const std::string words = words_of("recompiles", [] {
    std::vector<Tensor> weights = {ones({2}), ones({2})};
    const auto f = compile([&weights](Tensor x) { return x * weights[1]; }, kOptions);
    f(ones({2}));
    weights[0] = zeros({2});  // not used
    f(ones({2}));
    weights[1] = zeros({2});
    f(ones({2}));
  });
  CHECK(words ==
        "[recompiles] mlp: captured tensor 0: the variable that held it holds another, or is "
        "gone; captured by reference itself, it would be read without a trace\n");
}

TEST_CASE("the cache keeps what was used last, first", "[function]") {
  CompileOptions options = kOptions;
  options.cache_limit = 2;
  FunctionCache cache(options);
  const auto signature = [](int64_t size) { return Signature{{zeros({size})}, {}}; };
  const auto add = [&](int64_t size) {
    const Signature s = signature(size);
    Traced traced =
        trace([](std::span<const Tensor> in) { return std::vector<Tensor>{in[0] + 1}; },
              s.tensors, "mlp");
    return cache.add(s, {std::move(traced), {}, nullptr, s.tensors});
  };
  CHECK(cache.find(signature(1)) == nullptr);
  const auto one = add(1), two = add(2);
  CHECK(cache.find(signature(1)) == one);
  add(3);
  CHECK(cache.size() == 2);
  CHECK(cache.find(signature(2)) == nullptr);
  CHECK(cache.find(signature(1)) == one);
  CHECK(same_bits(cache.run(*two, {zeros({2})})[0], ones({2})));  // whoever holds it may run it
}

TEST_CASE("extras are compared as the bits they are", "[function]") {
  FunctionCache cache(kOptions);
  const Signature with = {{}, {1, 2}}, without = {{}, {1}};
  const Traced traced =
      trace([](std::span<const Tensor>) { return std::vector<Tensor>{ones({1})}; },
            std::span<const Tensor>(), "mlp");
  cache.add(with, {traced, {}, nullptr, {}});
  CHECK(cache.find(with) != nullptr);
  CHECK(cache.find(without) == nullptr);
  CHECK(cache.find({{}, {2, 1}}) == nullptr);
}
