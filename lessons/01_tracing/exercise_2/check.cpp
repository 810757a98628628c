#include "lessons/tools/check.h"
#include "exercise.h"

#include <cmath>

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

auto compiled() {
  return compile([](Tensor gradient) { return exercise::clip(gradient, 2.0); },
                 {.backend = "interpreter"});
}

template <typename Function>
std::string other_result(const Function& function, const Tensor& gradient) {
  const Tensor want = exercise::clip_with_branch(gradient, 2.0), got = function(gradient);
  if (same_bits(want, got)) return "";
  const Tensor norm = sqrt((gradient * gradient).sum());
  return str("with a norm of ", norm.item<float>(), " the branch gives\n", want,
             "\nand yours\n", got);
}

}  // namespace

TEST_CASE("one graph serves large and small gradients") {
  const auto clipped = compiled();
  manual_seed(5);
  for (double scale : {1.0, 0.001, 0.1, 100.0, 0.4}) {
    const Tensor gradient = randn({9}) * scale;
    EXPECT(other_result(clipped, gradient));
  }
}

TEST_CASE("with numbers it gives the same") {
  manual_seed(6);
  auto called = [](const Tensor& gradient) { return exercise::clip(gradient, 2.0); };
  for (double scale : {0.1, 100.0}) EXPECT(other_result(called, randn({257}) * scale));
}

TEST_CASE("a norm of zero changes nothing") {
  EXPECT(other_result(compiled(), tensor({0.0f, -0.0f, 0.0f})));
}

TEST_CASE("a NaN norm leaves the gradient as it is") {
  EXPECT(other_result(compiled(), tensor({3.0f, std::nanf(""), -5.0f})));
}

TEST_CASE("an infinite norm is larger than any bound") {
  EXPECT(other_result(compiled(), tensor({1e30f, 2.0f, -3.0f})));
  EXPECT(other_result(compiled(), tensor({INFINITY, 2.0f, -0.0f})));
}

TEST_CASE("small gradients keep their bits") {
  EXPECT(other_result(compiled(), tensor({1e-40f, -0.0f, 1.1f, -1e-45f})));
}
