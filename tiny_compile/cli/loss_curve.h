// The loss of a training over its steps, as text for a terminal and as a picture.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tiny_compile {

struct LossCurve {
  std::vector<float> losses;                     // of each step, in nats a byte
  std::vector<std::pair<int64_t, double>> held;  // (steps done, bits a byte of held-out text)
  double five_gram = 0;                          // its bits a byte; 0: not known
};

// Means of as many steps as a column stands for, in bits a byte: "*"; held out: "o"; the 5-gram: "-".
std::string curve_text(const LossCurve& curve, int columns = 64, int rows = 14);
std::string curve_svg(const LossCurve& curve);

}  // namespace tiny_compile
