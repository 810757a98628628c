// 04-2 ★ Which rule is wrong, and for what?
//
// A dozen rewrites that somebody proposes for f32. For each, answer with a number x for which
// `after` has other bits than `before`, or with std::nullopt where there is none. (All NaNs are
// equal; 0.0 and -0.0 are not.) The checks compute both sides with your x.
//
// It is allowed to search by program. It is quicker to think: of 0.0 and -0.0, infinity and NaN,
// the largest float 3.4e38, the smallest 1e-45, and of numbers that have to be rounded.
#pragma once

#include <optional>
#include <vector>

#include "tiny_compile/tiny_compile.h"

namespace exercise {

using namespace tiny_compile;

struct Rule {
  const char* text;
  Tensor (*before)(const Tensor& x);
  Tensor (*after)(const Tensor& x);
};

// clang-format off
inline const std::vector<Rule> kRules = {
    {" 0: x / 4 => x * 0.25",
     [](const Tensor& x) { return x / 4; }, [](const Tensor& x) { return x * 0.25; }},
    {" 1: x / 3 => x * (1/3)",
     [](const Tensor& x) { return x / 3; }, [](const Tensor& x) { return x * (1.0 / 3); }},
    {" 2: x + 0.0 => x",
     [](const Tensor& x) { return x + 0.0; }, [](const Tensor& x) { return x; }},
    {" 3: x + x => x * 2",
     [](const Tensor& x) { return x + x; }, [](const Tensor& x) { return x * 2; }},
    {" 4: x * 2 / 2 => x",
     [](const Tensor& x) { return x * 2 / 2; }, [](const Tensor& x) { return x; }},
    {" 5: x / 2 * 2 => x",
     [](const Tensor& x) { return x / 2 * 2; }, [](const Tensor& x) { return x; }},
    {" 6: -(x - 1) => 1 - x",
     [](const Tensor& x) { return -(x - 1); }, [](const Tensor& x) { return 1 - x; }},
    {" 7: maximum(x, 1) => where(x > 1, x, 1)",
     [](const Tensor& x) { return maximum(x, 1); },
     [](const Tensor& x) { return where(x > 1, x, 1); }},
    {" 8: abs(x) * abs(x) => x * x",
     [](const Tensor& x) { return abs(x) * abs(x); }, [](const Tensor& x) { return x * x; }},
    {" 9: sqrt(x) * sqrt(x) => x",
     [](const Tensor& x) { return sqrt(x) * sqrt(x); }, [](const Tensor& x) { return x; }},
    {"10: x - 1 => x + -1",
     [](const Tensor& x) { return x - 1; }, [](const Tensor& x) { return x + -1; }},
    {"11: (x + 1) + 1 => x + 2",
     [](const Tensor& x) { return (x + 1) + 1; }, [](const Tensor& x) { return x + 2; }},
};
// clang-format on

std::optional<float> counterexample(int rule);

}  // namespace exercise
