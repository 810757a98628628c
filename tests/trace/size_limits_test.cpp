// Sizes at their bounds and beyond, and those that leave f32's integers, 32 bits and 64 bits.
#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tiny_compile.h"
#include "tiny_compile/trace/admits.h"
#include "tiny_compile/trace/tracer.h"

#include "tests/loops/symbolic_stages.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

using Inputs = std::span<const Tensor>;

const Symbol kN = {"n", SymbolKind::Size};
constexpr int64_t kMost = int64_t{1} << 40;

// Of one input f32[n], n: 2..most.
Traced traced(const std::function<Tensor(Inputs)>& function, int64_t most,
              std::optional<int64_t> example = {}) {
  const Type x = {DType::f32, {Expr::symbol(kN, 2, most)}};
  std::optional<SymbolValues> values;
  if (example) values = SymbolValues{{kN, *example}};
  return trace_symbolic([&](Inputs in) { return std::vector<Tensor>{function(in)}; }, {x}, "f",
                        values);
}

Tensor twos(int64_t count) { return full({1}, 2).expand({count}); }  // one element in memory

// The last two elements, so that an index is near n, and next to them numbers made of n.
Tensor ends(Inputs x) {
  const Size n = x[0].size(0);
  return concat({x[0].slice(0, n - 2, n), arange(n - 1, n + 1).to(DType::f32),
                 x[0].slice(0, 0, 1) / n, x[0].slice(0, 0, 1) * n});
}

Tensor squares(Inputs x) {
  const Size n = x[0].size(0);
  return arange(n * n - 1, n * n + 2);
}

}  // namespace

TEST_CASE("a trace admits its bounds and nothing beyond", "[sizes]") {
  const Traced any = traced([](Inputs x) { return -x[0]; }, 4096);
  const auto admitted = [&](const Tensor& x) { return admits(any, std::vector{x}); };
  for (const int64_t inside : {2, 3, 4095, 4096}) CHECK(admitted(zeros({inside})));
  for (const int64_t outside : {0, 1, 4097}) CHECK_FALSE(admitted(zeros({outside})));
  CHECK_FALSE(admitted(twos(kMost)));
  CHECK_FALSE(admitted(zeros({2, 2})));
  CHECK_FALSE(admitted(zeros({})));
  CHECK_FALSE(admitted(zeros({4}).to(DType::f64)));
  CHECK_FALSE(admits(any, {}));
  CHECK_FALSE(admits(any, std::vector{zeros({4}), zeros({4})}));
}

TEST_CASE("a graph and a program refuse sizes beyond their bounds", "[sizes]") {
  const Traced any = traced([](Inputs x) { return -x[0]; }, 4096);
  const Program program = plan_memory(schedule(fuse(lower(any.graph))));
  for (const int64_t outside : {0, 1, 4097}) {
    const std::string reason = str("the size n is ", outside, ", which is not in 2..4096");
    const std::vector<Tensor> inputs = {zeros({outside})};
    CHECK_THROWS_WITH(interpret(any.graph, inputs), ContainsSubstring(reason));
    CHECK_THROWS_WITH(interpret(program, inputs), ContainsSubstring(reason));
  }
}

TEST_CASE("a guard that leaves 64 bits admits nothing", "[sizes]") {
  const auto compares = [](Inputs x) {
    const Size n = x[0].size(0);
    return n * n > 1000000 ? x[0].slice(0, 0, 1) : -x[0].slice(0, 0, 1);
  };
  const Traced large = traced(compares, kMost, 2000);
  REQUIRE(large.guards.size() == 1);
  CHECK(large.guards[0].str() == "1000000 < n*n");
  CHECK(admits(large, std::vector{twos(1001)}));
  CHECK(admits(large, std::vector{twos((int64_t{1} << 31) + 1)}));  // squared: 2^62 and more
  CHECK_FALSE(admits(large, std::vector{twos(1000)}));
  CHECK_FALSE(admits(large, std::vector{twos(kMost)}));
  CHECK_THROWS_WITH(traced(compares, kMost, kMost), ContainsSubstring("exceeds 64 bits"));
}

TEST_CASE("sizes above 2^24 are rounded as numbers are", "[sizes]") {
  const Traced symbolic = traced(ends, int64_t{1} << 30);
  const Program lowered = lower(symbolic.graph), planned = plan_memory(schedule(fuse(lowered)));
  verify(planned);
  for (const int64_t n : {(1 << 24) - 1, (1 << 24) + 1, (1 << 24) + 3}) {
    CAPTURE(n);
    const std::vector<Tensor> inputs = {twos(n)};
    const std::vector<Tensor> wanted = {ends(inputs)};
    const float size = static_cast<float>(n);
    CHECK(wanted[0].to_vector<float>() ==
          std::vector<float>{2, 2, static_cast<float>(n - 1), size, 2 / size, 2 * size});
    check_bits(wanted, interpret(symbolic.graph, inputs));
    check_bits(wanted, interpret(lowered, inputs));
    check_bits(wanted, interpret(planned, inputs));
  }
}

TEST_CASE("a size above 2^31 indexes what it should", "[sizes]") {
  const int64_t n = (int64_t{1} << 31) + 11;
  const Traced symbolic = traced(ends, kMost);
  const std::vector<Tensor> inputs = {twos(n)};
  REQUIRE(admits(symbolic, inputs));
  check_bits({ends(inputs)}, interpret(symbolic.graph, inputs));
  const Program program =
      substitute(plan_memory(schedule(fuse(lower(symbolic.graph)))), {{kN, n}});
  REQUIRE_NOTHROW(verify(program));
  CHECK(print(program).find(str("load x0[i0 + ", n - 2, "]")) != std::string::npos);
}

TEST_CASE("products of sizes above 2^31 are exact", "[sizes]") {
  const Traced symbolic = traced(squares, int64_t{1} << 30);
  const Program planned = plan_memory(schedule(fuse(lower(symbolic.graph))));
  verify(planned);
  for (const int64_t n : {46341, 65537, 1 << 20}) {  // n*n: above 2^31, 2^32, 2^39
    CAPTURE(n);
    const std::vector<Tensor> inputs = {twos(n)};
    const std::vector<int64_t> wanted = {n * n - 1, n * n, n * n + 1};
    CHECK(interpret(symbolic.graph, inputs)[0].to_vector<int64_t>() == wanted);
    CHECK(interpret(planned, inputs)[0].to_vector<int64_t>() == wanted);
  }
  CHECK_THROWS_WITH(
      interpret(symbolic.graph, std::vector{twos((1 << 24) + 1)}),
      ContainsSubstring("for n = 16777217") && ContainsSubstring("is beyond 2^48"));
}

TEST_CASE("the number of elements above 2^31 is exact, above 2^48 an error", "[sizes]") {
  const auto count = [](Inputs x) {
    const Size n = x[0].size(0);
    const Size cells = x[0].expand({n, n}).numel();
    return arange(cells, cells + 1);
  };
  const Traced symbolic = traced(count, int64_t{1} << 30);
  CHECK(interpret(symbolic.graph, std::vector{twos(65537)})[0].to_vector<int64_t>() ==
        std::vector<int64_t>{4295098369});
  const auto square = [](Inputs x) { return (x[0].unsqueeze(1) * x[0]).sum(); };
  const Traced large = traced(square, int64_t{1} << 30);
  CHECK_THROWS_WITH(interpret(large.graph, std::vector{twos((1 << 24) + 1)}),
                    ContainsSubstring("has more than 2^48 elements"));
}

TEST_CASE("products of sizes that may leave 64 bits are refused", "[sizes]") {
  const Traced symbolic = traced(squares, kMost);
  CHECK_THROWS_WITH(verify(lower(symbolic.graph)),
                    ContainsSubstring("[n*n - 1] leaves 64 bits"));
  CHECK_THROWS_WITH(traced(
                        [](Inputs x) {
                          const int64_t cells = x[0].size(0) * x[0].size(0);
                          return x[0] * static_cast<double>(cells);
                        },
                        kMost, kMost),
                    ContainsSubstring("1099511627776 * 1099511627776 exceeds 64 bits"));
}
