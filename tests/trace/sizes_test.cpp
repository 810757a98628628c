// tc::Size: what code does with sizes that are no numbers yet.
#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/tiny_compile.h"
#include "tiny_compile/trace/tracer.h"

#include "tests/loops/symbolic_stages.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

using Inputs = std::span<const Tensor>;

const Expr n = Expr::symbol({"n", SymbolKind::Size}, 1, 4096);

Traced traced(const std::function<Tensor(Inputs)>& function, const std::vector<Type>& inputs,
              std::optional<int64_t> example = {}) {
  std::optional<SymbolValues> values;
  if (example) values = SymbolValues{{{"n", SymbolKind::Size}, *example}};
  return trace([&](Inputs x) { return std::vector<Tensor>{function(x)}; }, inputs, "f", values);
}

const Type kX = {DType::f32, {n, 8}}, kY = {DType::f32, {n, 8}}, kW = {DType::f32, {8, 8}},
           kI = {DType::i64, {n}}, kImage = {DType::f32, {n, 2, 5, 5}},
           kKernel = {DType::f32, {4, 2, 3, 3}}, kRow = {DType::f32, {8}};

struct Case {
  const char* name;
  std::vector<Type> inputs;
  std::function<Tensor(Inputs)> function;
};

const std::vector<Case> kComposites = {
    {"x + y", {kX, kY}, [](Inputs x) { return x[0] + x[1]; }},
    {"x * row", {kX, kRow}, [](Inputs x) { return x[0] * x[1]; }},
    {"x - 1", {kX}, [](Inputs x) { return x[0] - 1; }},
    {"x * x.size(0)", {kX}, [](Inputs x) { return x[0] * x[0].size(0); }},
    {"x / (x.numel() + 1)", {kX}, [](Inputs x) { return x[0] / (x[0].numel() + 1); }},
    {"zeros({x.size(0), 3})",
     {kX},
     [](Inputs x) {
       return zeros({x[0].size(0), 3}) + 1;
     }},
    {"ones_like", {kX}, [](Inputs x) { return ones_like(x[0]) * x[0]; }},
    {"arange", {kX}, [](Inputs x) { return arange(x[0].size(0)) * 2; }},
    {"eye", {kX}, [](Inputs x) { return eye(x[0].size(0)).sum(0); }},
    {"reshape -1",
     {kX},
     [](Inputs x) {
       return x[0].reshape({x[0].size(0), -1, 2});
     }},
    {"reshape whole", {kX}, [](Inputs x) { return x[0].reshape({-1}); }},
    {"reshape 2",
     {kX},
     [](Inputs x) {
       return x[0].reshape({x[0].size(0) * 2, 4});
     }},
    {"expand",
     {kX},
     [](Inputs x) {
       return x[0].unsqueeze(0).expand({3, -1, -1});
     }},
    {"half", {kX}, [](Inputs x) { return x[0].slice(0, 0, (x[0].size(0) + 1) / 2); }},
    {"last", {kX}, [](Inputs x) { return x[0].select(0, -1); }},
    {"every other", {kX}, [](Inputs x) { return x[0].slice(0, {}, {}, 2); }},
    {"flip", {kX}, [](Inputs x) { return x[0].flip({0}); }},
    {"transpose", {kX}, [](Inputs x) { return x[0].transpose(0, 1).exp(); }},
    {"flatten", {kX}, [](Inputs x) { return x[0].flatten(); }},
    {"squeeze", {kX}, [](Inputs x) { return x[0].unsqueeze(1).squeeze(1); }},
    {"concat",
     {kX, kY},
     [](Inputs x) {
       return concat({x[0], x[1], x[0]});
     }},
    {"stack",
     {kX, kY},
     [](Inputs x) {
       return stack({x[0], x[1]}, 1);
     }},
    {"pad",
     {kX},
     [](Inputs x) {
       return pad(x[0], {1, 1, 2, 0}, 3);
     }},
    {"tril", {kX}, [](Inputs x) { return tril(x[0], -1); }},
    {"triu", {kX}, [](Inputs x) { return triu(x[0], 2); }},
    {"sum", {kX}, [](Inputs x) { return x[0].sum(0); }},
    {"mean 0", {kX}, [](Inputs x) { return x[0].mean(0); }},
    {"mean", {kX}, [](Inputs x) { return x[0].mean(); }},
    {"var", {kX}, [](Inputs x) { return x[0].var({0}, 0); }},
    {"std", {kX}, [](Inputs x) { return tiny_compile::std(x[0], {1}); }},
    {"max", {kX}, [](Inputs x) { return x[0].max({0}); }},
    {"argmax", {kX}, [](Inputs x) { return x[0].argmax(0); }},
    {"any", {kX}, [](Inputs x) { return (x[0] > 0.5).any({0}); }},
    {"cumsum", {kX}, [](Inputs x) { return cumsum(x[0], 0); }},
    {"softmax 0", {kX}, [](Inputs x) { return softmax(x[0], 0); }},
    {"softmax 1", {kX}, [](Inputs x) { return softmax(x[0], 1); }},
    {"log_softmax", {kX}, [](Inputs x) { return log_softmax(x[0], 1); }},
    {"logsumexp", {kX}, [](Inputs x) { return logsumexp(x[0], {1}); }},
    {"layer_norm", {kX}, [](Inputs x) { return layer_norm(x[0], {8}); }},
    {"rms_norm", {kX}, [](Inputs x) { return rms_norm(x[0], {8}); }},
    {"linear", {kX, kW, kRow}, [](Inputs x) { return linear(x[0], x[1], x[2]); }},
    {"matmul", {kX, kW}, [](Inputs x) { return matmul(x[0], x[1]); }},
    {"gram", {kX}, [](Inputs x) { return matmul(x[0].t(), x[0]); }},
    {"gelu", {kX}, [](Inputs x) { return gelu(x[0], "tanh"); }},
    {"silu", {kX}, [](Inputs x) { return silu(x[0]); }},
    {"softplus", {kX}, [](Inputs x) { return softplus(x[0]); }},
    {"clamp", {kX}, [](Inputs x) { return clamp(x[0], -1, 1); }},
    {"mse_loss", {kX, kY}, [](Inputs x) { return mse_loss(x[0], x[1]); }},
    {"cross_entropy", {kX, kI}, [](Inputs x) { return cross_entropy(x[0], x[1]); }},
    {"nll_loss", {kX, kI}, [](Inputs x) { return nll_loss(x[0], x[1]); }},
    {"gather", {kX, kI}, [](Inputs x) { return gather(x[0], 1, x[1].unsqueeze(1)); }},
    {"index_select", {kW, kI}, [](Inputs x) { return index_select(x[0], 0, x[1]); }},
    {"embedding", {kI, kW}, [](Inputs x) { return embedding(x[0], x[1]); }},
    {"scatter_add",
     {kW, kI, kX},
     [](Inputs x) {
       return scatter_add(x[0], 0, x[1].unsqueeze(1).expand({-1, 8}), x[2]);
     }},
    {"one_hot", {kI}, [](Inputs x) { return one_hot(x[0], 4); }},
    {"attention",
     {kX, kY},
     [](Inputs x) {
       return scaled_dot_product_attention(x[0].unsqueeze(0), x[1].unsqueeze(0),
                                           x[1].unsqueeze(0), {}, true);
     }},
    {"batch_norm",
     {kX, kRow, kRow},
     [](Inputs x) { return batch_norm(x[0], x[1], x[2] * x[2], {}, {}, 1e-5); }},
    {"conv2d", {kImage, kKernel}, [](Inputs x) { return conv2d(x[0], x[1], {}, 2, 1); }},
};

Type with_numbers(const Type& type, int64_t number) {
  return {type.dtype, substitute(type.shape, {{n.symbol(), number}})};
}

}  // namespace

TEST_CASE("each composite of a symbolic size is lowered and has eager's bits", "[sizes]") {
  for (const Case& one : kComposites) {
    CAPTURE(one.name);
    const Traced symbolic = traced(one.function, one.inputs);
    CHECK(symbolic.guards.empty());
    CAPTURE(print(symbolic.graph));
    for (const int64_t number : {1, 2, 37}) {
      std::vector<Type> types;
      for (const Type& type : one.inputs) types.push_back(with_numbers(type, number));
      const Traced plain = traced(one.function, types);
      const std::vector<Tensor> inputs = seeded_inputs(plain.graph, 3, {});
      CAPTURE(number);
      check_bits({one.function(inputs)}, interpret(symbolic.graph, inputs));
    }
    if (!symbols(symbolic.graph).empty()) check_stages(symbolic.graph, {1, 2, 37});
  }
}

TEST_CASE("a size that becomes a number pins the trace", "[sizes]") {
  const auto first_rows = [](Inputs x) {
    Tensor sum = x[0].select(0, 0);
    for (int64_t i = 1; i < static_cast<int64_t>(x[0].size(0)); i++)
      sum = sum + x[0].select(0, i);
    return sum;
  };
  const Traced pinned = traced(first_rows, {kX}, 3);
  CHECK(symbols(pinned.graph).empty());
  REQUIRE(pinned.guards.size() == 1);
  CHECK(pinned.guards[0].str() == "n == 3");
  CHECK(pinned.guards[0].admits({{n.symbol(), 3}}));
  CHECK_FALSE(pinned.guards[0].admits({{n.symbol(), 4}}));
  CHECK(print(pinned.graph).find("x0: f32[3,8]") != std::string::npos);
}

TEST_CASE("a loop up to a size is as long as the example", "[sizes]") {
  int64_t turns = 0;
  const auto counts = [&](Inputs x) {
    for (int64_t i = 0; i < x[0].size(0); i++) turns++;
    return x[0] + 1;
  };
  const Traced guarded = traced(counts, {kX}, 3);
  CHECK(turns == 3);
  const auto admits = [&](int64_t value) {
    return std::all_of(guarded.guards.begin(), guarded.guards.end(),
                       [&](const SizeGuard& guard) {
                         return guard.admits({{n.symbol(), value}});
                       });
  };
  CHECK(admits(3));
  CHECK_FALSE(admits(2));
  CHECK_FALSE(admits(4));
}

TEST_CASE("without an example a number is an error at the user's line", "[sizes]") {
  const int line = __LINE__ + 2;
  const auto asks = [](Inputs x) {
    const int64_t rows = x[0].size(0);
    return x[0] * static_cast<double>(rows);
  };
  CHECK_THROWS_WITH(traced(asks, {kX}), ContainsSubstring(str("sizes_test.cpp:", line)) &&
                                            ContainsSubstring("a number is needed for n"));
  const auto compares = [](Inputs x) { return x[0].size(0) > 64 ? x[0] : -x[0]; };
  CHECK_THROWS_WITH(traced(compares, {kX}), ContainsSubstring("whether 64 < n must be known"));
}

TEST_CASE("a comparison that the bounds decide needs no example", "[sizes]") {
  const Traced decided = traced(
      [](Inputs x) { return x[0].size(0) >= 1 && x[0].size(0) <= 4096 ? -x[0] : x[0]; }, {kX});
  CHECK(decided.guards.empty());
  const Traced guarded =
      traced([](Inputs x) { return x[0].size(0) > 64 ? x[0] : -x[0]; }, {kX}, 37);
  REQUIRE(guarded.guards.size() == 1);
  CHECK(guarded.guards[0].str() == "64 >= n");
  CHECK(symbols(guarded.graph).size() == 1);
}

TEST_CASE("outside a trace a size is a number", "[sizes]") {
  const Tensor x = zeros({4, 6});
  const int64_t rows = x.size(0);
  int64_t turns = 0;
  for (int64_t i = 0; i < x.size(0); i++) turns++;
  CHECK(rows == 4);
  CHECK(turns == 4);
  CHECK(x.size(0) / 2 == 2);
  CHECK(x.size(0) * 0.5 == 2.0);
  CHECK(zeros({x.size(0), 3}).shape() == Sizes{4, 3});
  CHECK(x.reshape({x.size(0), -1, 2}).shape() == Sizes{4, 3, 2});
}
