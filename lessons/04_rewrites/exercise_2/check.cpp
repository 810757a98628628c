#include "lessons/tools/check.h"
#include "exercise.h"

#include <cmath>

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::counterexample;
using exercise::kRules;
using exercise::Rule;

namespace {

constexpr int kCount = 12;

std::string value_at(const Tensor& tensor, int64_t at) { return tensor.element({at}).str(); }

// Numbers of every size and sign, and all that are strange.
Tensor samples() {
  manual_seed(11);
  std::vector<float> values = {0.0f,   -0.0f, 1,      -1,       2,         0.5f,         1e-45f,
                               3e-45f, 3e38f, -3e38f, INFINITY, -INFINITY, std::nanf("")};
  for (int exponent = -149; exponent < 128; exponent++) {
    for (float value : (randn({20})).to_vector<float>())
      values.push_back(std::ldexp(value, exponent));
    values.push_back(std::ldexp(1.0f, exponent));
  }
  return from_vector(values);
}

}  // namespace

TEST_CASE("a rule that you reject is broken by your x") {
  for (int k = 0; k < kCount; k++) {
    const std::optional<float> x = counterexample(k);
    if (!x) continue;
    const Rule& rule = kRules[static_cast<size_t>(k)];
    const Tensor one = from_vector(std::vector<float>{*x}), before = rule.before(one),
                 after = rule.after(one);
    EXPECT(same_bits(before, after) ? str(rule.text, ": for your x, ", value_at(one, 0),
                                          ", both sides give ", value_at(before, 0))
                                    : "");
  }
}

TEST_CASE("a rule that you accept keeps every bit") {
  const Tensor x = samples();
  for (int k = 0; k < kCount; k++) {
    if (counterexample(k)) continue;
    const Rule& rule = kRules[static_cast<size_t>(k)];
    const bool same = same_bits(rule.before(x), rule.after(x));
    EXPECT(same ? "" : str(rule.text, ": there is an x that breaks it"));
  }
}
