// fails: a rule that you accept keeps every bit
#include "exercise.h"

#include <cmath>

namespace exercise {

std::optional<float> counterexample(int rule) {
  switch (rule) {
    case 1: return 5.0f;                // 1/3 is rounded, and the product again
    case 2: return -0.0f;               // -0.0 + 0.0 is 0.0
    case 4: return 3e38f;               // x * 2 is infinite
    case 5: return 1e-45f;              // the half of the smallest is 0
    case 6: return 1.0f;                // -(0.0) is -0.0
    case 9: return -1.0f;               // a NaN
    case 11: return std::ldexp(1, 24);  // 2^24 + 1 is no float, and rounds down
    default: return std::nullopt;
  }
}

}  // namespace exercise
