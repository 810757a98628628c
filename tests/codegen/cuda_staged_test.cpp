// Rows that a block copies into shared memory first: the interpreter's bits, thread by thread.
#include "tiny_compile/codegen/cuda_staged.h"
#include "tests/codegen/cuda_threads.h"
#include "tiny_compile/runtime/nvrtc.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;
using Catch::Matchers::ContainsSubstring;

namespace {

Out normed(In i) { return {layer_norm(i[0], {i[0].size(1)}, i[1], i[2])}; }

void check_compiles(const std::string& text) {
  if (why_no_nvrtc().empty()) CHECK(compile_cuda(text, "sm_90").size() > 4);
}

void check_staged(const Function& function, const std::vector<Tensor>& inputs) {
  CHECK_THAT(check(function, inputs, "rows", without_layouts()),
             ContainsSubstring("TC_SHARED(shared, "));
}

}  // namespace

TEST_CASE("rows across the grain: strips in shared memory", "[codegen][threads]") {
  manual_seed(5);
  const std::string text = check(softmax_along, {turned(260, 100)}, "rows", without_layouts());
  CHECK_THAT(text, ContainsSubstring("TC_SHARED(shared, "));
  check_compiles(text);
  check_staged(softmax_along, {turned(272, 1024)});
  check_staged(softmax_along, {turned(257, 37)});
  check_staged(normed, {turned(264, 130), randn({130}), randn({130})});
}

TEST_CASE("rows across the grain that several warps share", "[codegen][threads]") {
  manual_seed(6);
  const Function of_two = [](In i) {
    return Out{softmax(i[0], 1), i[0] * argmax(i[0], 1, true).to(float32)};
  };
  const std::string text = check(of_two, {turned(257, 1030)}, "rows");
  CHECK_THAT(text, ContainsSubstring("TC_SHARED(shared, "));
  check_compiles(text);
}

TEST_CASE("rows across the grain whose warps meet once, in two turns", "[codegen][threads]") {
  manual_seed(12);
  const Function shares = [](In i) { return Out{i[0] / i[0].sum(1, true)}; };
  CHECK_THAT(check(shares, {turned(257, 2050)}, "rows", without_layouts(without_clusters())),
             ContainsSubstring("TC_SHARED(shared, "));
}

TEST_CASE("rows across the grain of other types, several loads, batches",
          "[codegen][threads]") {
  manual_seed(7);
  check_staged(softmax_along, {turned(272, 70, bfloat16)});
  check_staged(softmax_along, {turned(273, 70, float16)});
  check_staged(softmax_along, {turned(258, 65, float64)});
  const Function of_two = [](In i) { return Out{softmax(i[0] + i[1], 1), max(i[0], {1})}; };
  CHECK_THAT(check(of_two, {turned(260, 96), turned(260, 96)}, "rows", without_layouts()),
             ContainsSubstring("TC_SHARED(shared, "));
  check_staged(
      [](In i) {
        return Out{softmax(i[0].permute({0, 2, 1}) + i[1], 2)};
      },
      {randn({3, 50, 101}), randn({101, 50})});
  check_staged([](In i) { return Out{i[0] - min(i[0], {1}, true)}; },
               {(randn({40, 300}) * 100.0).to(int64).t()});
}

TEST_CASE("results across the grain go back in strips", "[codegen][threads]") {
  manual_seed(11);
  const Function turned_softmax = [](In i) { return Out{softmax(i[0], 1).t()}; };
  check_staged(turned_softmax, {randn({264, 100})});
  check_staged(turned_softmax, {randn({261, 1100}).to(bfloat16)});
  const Function of_two = [](In i) { return Out{softmax(i[0] + i[1], 1).t(), i[0].sum(1)}; };
  CHECK_THAT(check(of_two, {randn({257, 33}), turned(257, 33)}, "rows", without_layouts()),
             ContainsSubstring("TC_SHARED(shared, "));
}

TEST_CASE("short rows: a thread each", "[codegen][threads]") {
  manual_seed(8);
  const std::string text = check(softmax_along, {randn({20000, 7})}, "rows", without_layouts());
  CHECK_THAT(text, ContainsSubstring("result_2"));
  check_compiles(text);
  for (int64_t length : {2, 3, 5, 6, 9, 14, 31})
    check_staged(softmax_along, {randn({16385 + length, length})});
  check_staged(normed, {randn({16384, 7}), randn({7}), randn({7})});
}

TEST_CASE("short rows: two outputs, other types, sums alone, special values",
          "[codegen][threads]") {
  manual_seed(9);
  check_staged(
      [](In i) {
        return Out{softmax(i[0], 1), max(i[0], {1}), i[0] + i[1]};
      },
      {randn({16390, 5}), randn({16390, 5})});
  check_staged(softmax_along, {randn({16401, 7}).to(bfloat16)});
  check_staged(softmax_along, {randn({16401, 12}).to(float16)});
  check_staged(softmax_along, {randn({16401, 3}).to(float64)});
  check_staged([](In i) { return Out{i[0].sum(1)}; }, {(randn({16401, 3}) * 100.0).to(int64)});
  check_staged([](In i) { return Out{i[0].sum(1)}; }, {randn({16500, 11})});
  check_staged([](In i) { return Out{argmax(i[0], 1)}; }, {randn({16500, 11})});
  Tensor special = randn({16384, 7});
  float* values = static_cast<float*>(static_cast<void*>(special.bytes()));
  for (size_t k = 0; k < 7000; k += 3)
    values[k] = std::array{NAN, INFINITY, -INFINITY, -0.0f, 0.0f}[k % 5];
  check_staged(softmax_along, {special});
  check_staged(
      [](In i) {
        return Out{i[0].sum(1), max(i[0], {1}), argmax(i[0], 1)};
      },
      {special});
}

TEST_CASE("short rows whose results alone, or parts of wider rows, lie otherwise",
          "[codegen][threads]") {
  manual_seed(10);
  check_staged(softmax_along, {turned(16390, 7)});
  check_staged(softmax_along, {turned(16390, 8)});
  check([](In i) { return Out{softmax(i[0].slice(1, 1, 8), 1)}; }, {randn({16390, 9})}, "rows",
        without_layouts());
  check([](In i) { return Out{softmax(i[0].slice(0, 1, 16391), 1)}; }, {randn({16391, 7})},
        "rows", without_layouts());
}
