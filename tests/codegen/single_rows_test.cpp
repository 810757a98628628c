// Rows of one element: points with the interpreter's bits.
#include "tiny_compile/loops/single_rows.h"
#include "tests/codegen/cuda_threads.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;

TEST_CASE("rows of one element are points", "[codegen][threads]") {
  manual_seed(5);
  const Tensor special =
      from_vector<float>({NAN, INFINITY, -INFINITY, -0.0f, 0.0f, 1, -2}, Sizes{7, 1});
  for (const Tensor& x : {randn({1001, 1}), special, randn({4999, 1}).to(bfloat16)}) {
    const std::string text =
        check([](In i) { return Out{softmax(i[0], 1)}; }, {x}, "pointwise");
    CHECK(text.find("tc_tree") == std::string::npos);
    CHECK((text.find("tc_pack") != std::string::npos) == (x.numel() > 4096));
    check(
        [](In i) {
          return Out{i[0].sum(1), max(i[0], {1}), min(i[0], {1})};
        },
        {x}, "pointwise");
    check(
        [](In i) {
          return Out{argmax(i[0], 1), i[0].prod({1}), i[0] - i[0].mean(1, true)};
        },
        {x}, "pointwise");
  }
}

TEST_CASE("rows of one integer or bool", "[codegen][threads]") {
  manual_seed(6);
  const Tensor numbers = randint(-9, 9, {300, 1});
  check(
      [](In i) {
        return Out{(i[0] > 3).sum(1), any(i[0] > 3, {1}), max(i[0], {1})};
      },
      {numbers}, "pointwise");
}
