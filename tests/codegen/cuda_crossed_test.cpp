// Rows of which some arrays lie along the elements and others along the rows: the interpreter's
// bits, thread by thread, and what goes by way of shared memory.
#include "tests/codegen/cuda_threads.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;
using Catch::Matchers::ContainsSubstring;

namespace {

Out scaled(In i) { return {i[0] * rsqrt(sum(i[0] * i[0], {1}, true) + 1.0)}; }
Out scaled_sum(In i) {
  const Tensor both = i[0] + i[1];
  return {both, both * rsqrt(sum(both * both, {1}, true) + 1.0)};
}
Out scaled_and_transposed(In i) { return {scaled(i)[0].t()}; }
Out softmax_and_transposed(In i) { return {softmax(i[0], 1).t()}; }

// The kernel's line of its schedule.
std::string schedule_for(const Function& function, const std::vector<Tensor>& inputs) {
  const Staged all = check_bits(function, inputs);
  REQUIRE(all.program.kernels.size() == 1);
  return str(*all.program.kernels[0].schedule);
}

}  // namespace

TEST_CASE("of rows that are read across, a block reads pieces of memory",
          "[codegen][threads]") {
  manual_seed(11);
  CHECK(schedule_for(softmax_along, {transposed(512, 64)}) ==
        "layouts rows grid · warp 8 loop register 2 · lane 32 "
        "via load 1 rows lane 4 · vector 2 loop warp 8 · lane 8 from 4 padding 1");
  CHECK_THAT(schedule_for(scaled_and_transposed, {randn({96, 64})}),
             ContainsSubstring("via store 1 rows"));
  const std::string text = check(
      scaled_sum, {transposed(70, 64, bfloat16), randn({70, 64}).to(bfloat16)}, "layouts");
  CHECK_THAT(text, ContainsSubstring("__shared__ alignas(16) tc_bf16 staged"));
  const size_t body = text.find(") {", text.find("extern \"C\""));
  CHECK(text.find("in_x1", body) <
        text.find("__syncthreads", body));  // what lies along the elements
}

TEST_CASE("crossing rows of any size", "[codegen][threads]") {
  manual_seed(12);
  for (auto [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {33, 49}, {45, 70}, {64, 96}, {100, 130}, {35, 260}, {37, 1000}}) {
    INFO(rows << " rows of " << columns);
    check(softmax_along, {transposed(rows, columns)}, "layouts");
    check(softmax_along, {transposed(rows, columns, float16)}, "layouts");
    check(scaled_sum, {transposed(rows, columns), randn({rows, columns})}, "layouts");
    check(softmax_and_transposed, {randn({rows, columns})}, "layouts");
  }
}

TEST_CASE("crossing rows that begin anywhere, or are read once", "[codegen][threads]") {
  manual_seed(13);
  for (int64_t length : {127, 257, 1023}) check(scaled, {transposed(64, length)}, "layouts");
  check(softmax_along, {transposed(64, 257)}, "layouts");
  check([](In i) { return Out{sum(i[0] * i[1], {1})}; }, {transposed(64, 96), randn({64, 96})},
        "layouts");
}

TEST_CASE("of long crossing rows lanes are rows, or warps of a block have chunks",
          "[codegen][threads]") {
  manual_seed(14);
  const std::string schedule = schedule_for(scaled, {transposed(40, 2500)});
  CHECK_THAT(schedule, ContainsSubstring("lane 8 loop register 128 · warp 8"));
  CHECK_THAT(schedule, ContainsSubstring("via store 1 rows"));
  check(softmax_along, {transposed(33, 2999)}, "layouts");
  check(softmax_and_transposed, {randn({20, 2048}).to(bfloat16)}, "layouts",
        without_clusters());
  check(softmax_along, {transposed(10, 5000)}, "layouts", without_clusters());
}
