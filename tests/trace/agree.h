// What the tests of traced functions share: one call that runs a function eagerly and compiled
// and wants the same bits, and comparison with a reference in double precision.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/runtime/scratch.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

namespace tiny_compile::tests {

using Values = std::vector<double>;

// The eager outputs, once the compiled ones are the same bits; a vector of tensors each.
template <typename Function, typename... Args>
std::vector<Tensor> agreed(const Function& function, const Args&... args) {
  const Scratch cache;
  const Setting setting("TC_CACHE_DIR", cache.path("cache"));
  manual_seed(11);
  const std::vector<Tensor> eager = function(args...);
  manual_seed(11);
  const std::vector<Tensor> compiled = compile(function)(args...);
  REQUIRE(eager.size() == compiled.size());
  for (size_t i = 0; i < eager.size(); i++) {
    INFO("output " << i << "\neager " << eager[i] << "\ncompiled " << compiled[i]);
    CHECK(same_bits(eager[i], compiled[i]));
  }
  return eager;
}

// Shape and values; `tolerance` is relative for values above 1 and absolute below.
inline void check_near(const Tensor& tensor, const Sizes& shape, const Values& expected,
                       double tolerance = 2e-6) {
  REQUIRE(tensor.shape() == shape);
  const Values values = tensor.to_vector<double>();
  REQUIRE(values.size() == expected.size());
  size_t wrong = values.size();
  for (size_t i = values.size(); i-- > 0;) {
    const double a = values[i], e = expected[i];
    const bool near = std::isnan(e) ? std::isnan(a)
                      : std::isinf(e)
                          ? a == e
                          : std::abs(a - e) <= tolerance * std::max(1., std::abs(e));
    if (!near) wrong = i;
  }
  if (wrong < values.size()) {
    INFO("element " << wrong << " of " << values.size() << ": " << values[wrong]
                    << ", expected " << expected[wrong]);
    CHECK(wrong == values.size());
  } else {
    CHECK(true);
  }
}

// Integers and other exact values.
inline void check_is(const Tensor& tensor, DType dtype, const Sizes& shape,
                     const Values& expected) {
  CHECK(tensor.dtype() == dtype);
  check_near(tensor, shape, expected, 0);
}

}  // namespace tiny_compile::tests
