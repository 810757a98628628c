// What does a user read who makes a mistake inside a compiled function? This file and the line.
#include "tests/trace/agree.h"
#include "tiny_compile/compile/compile.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

using Sources = std::vector<Tensor>;

// Compiling the function fails with a message that names line `line` of this file and says
// each of `says`; the next compiled function works.
template <typename Function>
void check_fails(int line, const Function& function, const std::vector<std::string>& says) {
  const Scratch cache;
  const Setting setting("TC_CACHE_DIR", cache.path("cache"));
  const Tensor x = zeros({4, 6}), i = arange(6);
  const std::string message = message_of([&] { compile(function)(x, i); });
  INFO(message);
  CHECK_THAT(message, ContainsSubstring(str("errors_test.cpp:", line, ":")));
  for (const std::string& part : says) CHECK_THAT(message, ContainsSubstring(part));
  CHECK_FALSE(is_tracing());
  const Traced next = trace([](std::span<const Tensor> t) { return Sources{t[0] + 1}; },
                            std::vector<Tensor>{x}, "next");
  CHECK(next.graph.inputs().size() == 1);
  CHECK((x + 1).shape() == Sizes{4, 6});
}

}  // namespace

#define FAILS(expression, ...)                                                           \
  check_fails(__LINE__, [](Tensor x, Tensor i) { return (void)i, (void)x, expression; }, \
              {__VA_ARGS__})

// clang-format off: each on one line of its own
TEST_CASE("wrong shapes in traced code name the user's line", "[errors]") {
  FAILS(x + zeros({5}), "[4,6]", "[5]", "broadcast", "reshape or expand");
  FAILS(where(x > 0, x, zeros({7})), "[7]", "broadcast");
  FAILS(matmul(x, x), "matmul", "6", "4");
  FAILS(x.matmul(x), "matmul");
  FAILS(x.reshape({5, 5}), "24");
  FAILS(x.sum(2), "axis 2", "2 axes");
  FAILS(softmax(x, 5), "axis 5");
  FAILS(concat({x, i}), "concat");
  FAILS(stack({x, i}), "[6]");
  FAILS(x[9], "index 9", "4");
  FAILS(layer_norm(x, {4}), "[4]", "[4,6]");
  FAILS(linear(x, zeros({3, 5})), "[3,5]");
  FAILS(linear(x, zeros({3, 6}), zeros({4})), "[4]");
  FAILS(conv2d(x, x), "conv2d");
  FAILS(cross_entropy(x, i), "[4,6]", "[6]");
  FAILS(mse_loss(x, zeros({4, 5})), "[4,5]");
  FAILS(scaled_dot_product_attention(x, zeros({3, 5}), zeros({3, 5})), "6", "5");
  FAILS(tril(i), "2 axes");
  FAILS(x.expand({2, 2}), "expand");
  FAILS(pad(x, {1, 2, 3}), "pair");
}

TEST_CASE("wrong dtypes in traced code name the user's line", "[errors]") {
  FAILS(x & x, "bitwise_and", "f32");
  FAILS(x << 2, "shift_left", "f32");
  FAILS(mean(i), "i64", "cast");
  FAILS(i.mean(), "mean", "i64");
  FAILS((x > 0) - (x < 0), "bool", "cast");
  FAILS(gather(x, 0, x), "indices are integers");
  FAILS(embedding(x, x), "indices are integers");
  FAILS(popcount(x), "popcount");
}

TEST_CASE("undefined tensors in traced code name the user's line", "[errors]") {
  FAILS(x + Tensor(), "undefined");
  FAILS(exp(Tensor()), "undefined");
  FAILS(sum(Tensor()), "undefined");
  FAILS(floor(Tensor()), "undefined");
  FAILS(mean(Tensor()), "undefined");
  FAILS(concat({x, Tensor()}), "undefined");
  FAILS(matmul(x, Tensor()), "undefined");
  FAILS(softmax(Tensor(), 0), "undefined");
  FAILS(Tensor().sum(), "undefined");
}

TEST_CASE("reading values while tracing names the line and says what to do", "[errors]") {
  FAILS(x * sum(x).item<float>(), "item", "where");
  FAILS(x * static_cast<double>(sum(x).item<int>()), "item");
  FAILS((x.to_vector<float>(), x), "no value");
  FAILS((x.data<float>(), x), "no value");
  FAILS((sum(x) > 0 ? x : -x), "where");
  FAILS((!all(x == 0) ? x : -x), "where");
}
// clang-format on

TEST_CASE("an error of the user's own passes through and tracing is over", "[errors]") {
  const auto f = compile([](Tensor x) -> Tensor {
    if (x.size(0) == 3) throw std::runtime_error("three is not allowed");
    return x + 1;
  });
  CHECK_THROWS_WITH(f(zeros({3})), "three is not allowed");
  CHECK_FALSE(is_tracing());
  const Scratch cache;
  const Setting setting("TC_CACHE_DIR", cache.path("cache"));
  CHECK(same_bits(f(zeros({4})), ones({4})));
  CHECK_THROWS_WITH(f(zeros({3})), "three is not allowed");
}

TEST_CASE("a tensor kept from a trace says that the trace has ended", "[errors]") {
  Tensor kept;
  const Scratch cache;
  const Setting setting("TC_CACHE_DIR", cache.path("cache"));
  compile([&kept](Tensor x) {
    const Tensor y = x * 2;
    kept = y;
    return y;
  })(zeros({2}));
  for (const auto& message : {message_of([&] { kept + 1; }), message_of([&] { exp(kept); }),
                              message_of([&] { sum(kept); })}) {
    INFO(message);
    CHECK_THAT(message, ContainsSubstring("errors_test.cpp:"));
    CHECK_THAT(message, ContainsSubstring("has ended") && ContainsSubstring("return it"));
  }
  CHECK_THAT(message_of([&] { kept.item<float>(); }), ContainsSubstring("errors_test.cpp:"));
  CHECK(kept.shape() == Sizes{2});
  const std::string mixed =
      message_of([&] { compile([&kept](Tensor x) { return x + kept; })(zeros({2})); });
  INFO(mixed);
  CHECK_THAT(mixed, ContainsSubstring("errors_test.cpp:") && ContainsSubstring("trace"));
}

TEST_CASE("an undefined result is named", "[errors]") {
  CHECK_THAT(message_of([] { compile([](Tensor) { return Tensor(); })(zeros({2})); }),
             ContainsSubstring("returned an undefined tensor"));
  CHECK_THAT(message_of([] { compile([](Tensor x) { return x; })(Tensor()); }),
             ContainsSubstring("undefined"));
}

TEST_CASE("the graph's nodes carry the user's lines", "[errors]") {
  const int line = __LINE__ + 3;
  const Traced traced = trace(
      [](std::span<const Tensor> t) {
        const Tensor y = softmax(t[0], -1);
        return Sources{y.sum(0) * 2};
      },
      Sources{zeros({3, 5})}, "lines");
  int composite = 0, last = 0;
  for (const Node& node : traced.graph.nodes) {
    if (node.op == Op::input) continue;
    CHECK_THAT(node.where.file, Catch::Matchers::EndsWith("errors_test.cpp"));
    composite += node.where.line == line;
    last += node.where.line == line + 1;
  }
  CHECK(composite > 4);
  CHECK(last >= 2);
  CHECK(composite + last + 1 == traced.graph.size());
}

TEST_CASE("a number where a tensor is expected is a tensor of no axes", "[errors]") {
  CHECK(sum(2.5).item<float>() == 2.5);
  CHECK(sum(3).dtype() == int64);
  CHECK(silu(0.).item<float>() == 0);
  CHECK(gelu(0., "tanh").item<float>() == 0);
  CHECK(mean(1.5).item<float>() == 1.5);
  CHECK(var(2., {}, 0).item<float>() == 0);
  CHECK(zeros_like(2).dtype() == int64);
  CHECK(reshape(1., {1, 1}).shape() == Sizes{1, 1});
  CHECK(softmax(full({}, 2), 0).shape() == Sizes{});
  CHECK(logsumexp(2., {}).item<float>() == 2);
  CHECK_THAT(message_of([] { matmul(1., 2.); }), ContainsSubstring("errors_test.cpp:"));
  CHECK_THAT(message_of([] { flip(1., {0}); }), ContainsSubstring("errors_test.cpp:"));
}
