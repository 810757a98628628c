// A scatter whose updates an earlier kernel has sorted by place: the interpreter's bits, in CUDA's
// text thread by thread, and what the verifier refuses.
#include "tiny_compile/loops/order_updates.h"
#include "tests/codegen/cuda_threads.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/nvrtc.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kOrdered = " by load p";
constexpr int64_t kMany = (1 << 13) + 1;

Tensor places(int64_t count, int64_t targets) {
  return minimum((rand({count}) * static_cast<double>(targets)).to(int64), targets - 1);
}

Out added(In i) { return {scatter_add(i[0], 0, i[1], i[2])}; }

Out rows_added(In i) {
  return {scatter_add(i[0], 0, expand(i[1].unsqueeze(1), {i[2].size(0), i[2].size(1)}), i[2])};
}

std::string program_of(const Function& function, const Out& inputs,
                       Target target = Target::Cuda) {
  const Graph graph = trace(function, inputs, "f").graph;
  return print(run_pipeline(default_pipeline(), graph, true, target).program);
}

void check_ordered(const Function& function, const Out& inputs) {
  const Staged all = check_bits(function, inputs);
  const std::string text = print(all.program);
  CHECK_THAT(text, ContainsSubstring(kOrdered));
  CHECK(parse_program(text) == all.program);
  if (why_no_nvrtc().empty()) CHECK(compile_cuda(all.source.text, "sm_90").size() > 4);
}

}  // namespace

TEST_CASE("many updates go by the order of their places, of every type",
          "[scatter][threads][order]") {
  manual_seed(1);
  for (DType type : {float32, float64, bfloat16}) {
    CAPTURE(c_type(type));
    check_ordered(added, {(randn({3000}) * 8).to(type), places(kMany, 3000),
                          (randn({kMany}) * 8).to(type)});
  }
  for (DType type : {float16, int32}) {  // more targets than chunks of integers may have
    check_ordered(added, {(randn({7000}) * 8).to(type), places(kMany, 7000),
                          (randn({kMany}) * 8).to(type)});
  }
  check_ordered(added, {randn({200000}), places(kMany + 77, 200000), randn({kMany + 77})});
}

TEST_CASE("ordered updates of rows: in packs, ragged, more columns than threads",
          "[scatter][threads][order]") {
  manual_seed(2);
  check_ordered(rows_added, {randn({1100, 8}).to(bfloat16), places(kMany, 1100),
                             randn({kMany, 8}).to(bfloat16)});
  check_ordered(rows_added, {randn({200, 5}), places(kMany, 200), randn({kMany, 5})});
  check_ordered(rows_added, {randn({60, 35}).to(float16), places(kMany, 60),
                             randn({kMany, 35}).to(float16)});  // two columns a thread
  check_ordered(
      [](In i) {
        return Out{scatter_add(i[0], 1, expand(i[1], {2, kMany}), i[2])};
      },
      {randn({2, 1300}), places(kMany, 1300).to(int32), randn({2, kMany})});
}

TEST_CASE("ordered updates: one target of all, sorted, reversed, most targets bare",
          "[scatter][threads][order]") {
  manual_seed(3);
  const Tensor d = randn({kMany}), x = randn({5000});
  check_ordered(added, {x, places(kMany, 1) + 4321, d});
  std::vector<int64_t> rising;
  for (int64_t k = 0; k < kMany; k++) rising.push_back(k * 5000 / kMany);
  check_ordered(added, {x, from_vector(rising), d});
  check_ordered(added, {x, 4999 - from_vector(rising), d});
  check_ordered(added, {randn({150000}), places(kMany, 100) * 1499, d});
}

TEST_CASE("ordered zeros, infinities, NaN and roundings", "[scatter][threads][order]") {
  manual_seed(4);
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor special = from_vector<float>({-0.0f, infinity, NAN, 3e38f, -infinity, 0.0f});
  const Tensor x = concat({special, randn({1000}) * 0.0}, 0);
  const Tensor d = concat({special, randn({kMany - 6})}, 0);
  for (DType type : {float32, bfloat16, float16})
    check_ordered(added, {x.to(type), places(kMany, 900), d.to(type)});
}

TEST_CASE("which scatters go by an order", "[scatter][order]") {
  const auto inputs = [](int64_t targets, int64_t updates) {
    return Out{zeros({targets}), zeros({updates}).to(int64), zeros({updates})};
  };
  CHECK_THAT(program_of(added, inputs(3000, kMany)), ContainsSubstring(kOrdered));
  CHECK_THAT(program_of(added, inputs(3000, kMany - 1)), !ContainsSubstring(kOrdered));
  CHECK_THAT(program_of(added, inputs(10, kMany)), !ContainsSubstring(kOrdered));  // in chunks
  CHECK_THAT(program_of(added, inputs(3000, kMany), Target::Cpp), !ContainsSubstring(kOrdered));
  const Out each = {zeros({3000, 2}), zeros({kMany, 2}).to(int64), zeros({kMany, 2})};
  CHECK_THAT(program_of(added, each), !ContainsSubstring(kOrdered));  // an index for each
}

TEST_CASE("an order that is not the sort of the places is refused", "[scatter][order]") {
  const Out inputs = {zeros({3000}), zeros({kMany}).to(int64), zeros({kMany})};
  const std::string text = program_of(added, inputs);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const size_t at = changed.rfind(from);
    REQUIRE(at != std::string::npos);
    return changed.replace(at, from.size(), to);
  };
  CHECK_NOTHROW(parse_program(text));
  CAPTURE(text);
  CHECK_THROWS_WITH(parse_program(with("at0 = load x1[j1]", "at0 = load x1[8192 - j1]")),
                    ContainsSubstring("not seen to be the sort of its own places"));
  CHECK_THROWS_WITH(parse_program(with("by load p4_scatter_add_3[j1]", "by load x1[j1]")),
                    ContainsSubstring("goes by an order that no sort has made"));
  CHECK_THROWS_WITH(parse_program(with(" in 16384 from", " in 8192 from")),
                    ContainsSubstring("not seen to be"));
  CHECK_THROWS_WITH(parse_program(with("p4_scatter_add_3: i64", "p4_scatter_add_3: u64")),
                    ContainsSubstring("goes by the words of a sort, not by its places"));
}
