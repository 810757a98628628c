// A long scan in pieces: the interpreter's bits, in C++ too, whatever the length.
#include "tiny_compile/loops/split_scan.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/tiny_compile.h"
#include "tiny_compile/trace/tracer.h"

#include "tests/catch.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

using Out = std::vector<Tensor>;
using In = std::span<const Tensor>;

Staged staged(const std::function<Out(In)>& function, const Out& inputs, Target target) {
  return run_pipeline(default_pipeline(), trace(function, inputs, "f").graph, true, target);
}

void check_split(const std::function<Out(In)>& function, const Out& inputs, Target target) {
  const Graph graph = trace(function, inputs, "f").graph;
  const Staged all = staged(function, inputs, target);
  const std::string text = print(all.program);
  INFO(text);
  CHECK_THAT(text, ContainsSubstring("_totals") && ContainsSubstring("_starts"));
  CHECK(parse_program(text) == all.program);
  const Out wanted = interpret(graph, inputs), got = interpret(all.program, inputs);
  for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
  if (target != Target::Cpp) return;
  const Out ran = build(all.program, all.source).run(inputs);
  for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(ran[k], wanted[k]));
}

}  // namespace

TEST_CASE("a long scan becomes totals, their scan, and pieces", "[scan]") {
  manual_seed(1);
  const auto sums = [](In i) { return Out{cumsum(i[0], -1)}; };
  for (int64_t length : {32768, 32771, 40011}) {
    check_split(sums, {randn({length})}, Target::Cuda);
    check_split(sums, {randn({3, length}).to(float16)}, Target::Cuda);
  }
  check_split([](In i) { return Out{cumsum(exp(i[0]), 0)}; }, {randn({4100, 3})}, Target::Cuda);
  check_split(
      [](In i) {
        return Out{cumprod(i[0], 0), logcumsumexp(i[0], 0)};
      },
      {randn({33000})}, Target::Cuda);
}

TEST_CASE("the totals of a ragged row are those of its whole pieces", "[scan]") {
  const Staged all =
      staged([](In i) { return Out{cumsum(i[0], 0)}; }, {ones({1000003})}, Target::Cuda);
  CHECK_THAT(print(all.program, all.program.kernels[0]),
             ContainsSubstring("rows(i0: 244)") && !ContainsSubstring(" if "));
}

TEST_CASE("cummax and cummin of a long row become two scans of many pieces", "[scan]") {
  manual_seed(3);
  const auto places = [](In i) {
    const auto [most, at_most] = cummax(i[0], -1);
    const auto [least, at_least] = cummin(i[0], -1);
    return Out{most, at_most, least, at_least};
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int64_t length : {32768, 32771}) {
    const Tensor x =
        (randn({3, length}) * 3.0).to(DType::i32).to(float32) * -1.0;  // equals, -0
    check_split(places, {x}, Target::Cuda);
    check_split(places, {masked_fill(x, x > 8.0, nan)}, Target::Cuda);
    check_split(places, {masked_fill(x, x > 8.0, nan).to(float16)}, Target::Cuda);
    check_split(places, {x.to(DType::i8)}, Target::Cuda);
  }
  check_split(places, {(randn({(1 << 18) + 7}) * 3.0).to(DType::i32)}, Target::Cpp);
  check_split(places, {full({1 << 18}, -1.0 / 0.0)}, Target::Cpp);
}

TEST_CASE("running maxima of a long row keep the sign of a zero", "[scan]") {
  manual_seed(4);
  const auto values = [](In i) { return Out{cummax(i[0], -1).first, cummin(i[0], -1).first}; };
  const Tensor zeros_of_both_signs = where(randn({3, 32771}) > 0.0, 0.0, -0.0),
               mixed = where(randn({3, 32771}) > 1.0, zeros_of_both_signs, -1.0);
  for (const Tensor& x : {zeros_of_both_signs, mixed, mixed * -1.0}) {
    check_split(values, {x.to(float32)}, Target::Cuda);
    check_split(values, {x.to(bfloat16)}, Target::Cuda);
  }
  const Tensor row = randn({(1 << 18) + 7});
  check_split(values, {where(row > 1.0, where(row > 2.0, 0.0, -0.0), -1.0)}, Target::Cpp);
}

TEST_CASE("starts that are many are split themselves", "[scan]") {
  const Tensor x = ones({1}).expand({int64_t{1} << 27});
  const Staged all = staged([](In i) { return Out{cumsum(i[0], 0)}; }, {x}, Target::Cuda);
  CHECK_THAT(print(all.program), ContainsSubstring("_starts_starts"));
}

TEST_CASE("threads of a CPU share one long row", "[scan]") {
  manual_seed(2);
  const auto sums = [](In i) { return Out{cumsum(i[0], 0)}; };
  check_split(sums, {randn({1 << 18})}, Target::Cpp);
  check_split(sums, {randn({(1 << 18) + 7})}, Target::Cpp);
}

TEST_CASE("short rows and many rows stay whole", "[scan]") {
  const auto sums = [](In i) { return Out{cumsum(i[0], 1)}; };
  for (const Sizes& shape :
       {Sizes{4096, 4097}, Sizes{3, 1000}, Sizes{3, 32767}, Sizes{70, 32768}}) {
    const Out inputs = {zeros(shape)};
    CHECK(staged(sums, inputs, Target::Cuda).program.kernels.size() == 1);
  }
}
