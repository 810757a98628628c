// fails: a row of negative numbers has a negative maximum
#include "exercise.h"

#include <algorithm>

namespace exercise {

// Lane l takes elements l, l + 8, ...; the elements behind the last whole eight go to the first
// lanes. Then 8 lanes become 4, 2, 1.
std::string write_row_max(int length) {
  const int lanes = std::min(length, 8), whole = length / lanes * lanes;
  std::string text = "extern \"C\" value row_max(const value* x) {\n";
  text += str("  value m[", lanes, "];\n");
  text +=
      str("  for (int l = 0; l < ", lanes, "; l++) m[l] = tc_maximum(x[l], value(0.0f));\n");
  text += str("  for (int j = ", lanes, "; j < ", whole, "; j += ", lanes, ")\n");
  text += str("    for (int l = 0; l < ", lanes, "; l++) m[l] = tc_maximum(m[l], x[j + l]);\n");
  text += str("  for (int j = ", whole, "; j < ", length, "; j++)\n");
  text += str("    m[j - ", whole, "] = tc_maximum(m[j - ", whole, "], x[j]);\n");
  text += str("  for (int n = ", lanes, "; n > 1; n = (n + 1) / 2)\n");
  text += "    for (int l = 0; l < n / 2; l++) m[l] = tc_maximum(m[l], m[l + (n + 1) / 2]);\n";
  return text + "  return m[0];\n}\n";
}

}  // namespace exercise
