// How does a layout read?
#include "tiny_compile/loops/layout.h"

#include <algorithm>

#include "tiny_compile/base/error.h"

namespace tiny_compile {

const LevelInfo& info(Level level) {
  static constexpr LevelInfo kLevels[] = {
#define X(name, text, part_of, combined_by) {text, PartOf::part_of, CombinedBy::combined_by},
      TC_LEVELS(X)
#undef X
  };
  return kLevels[static_cast<int>(level)];
}

void add_part(Layout& layout, Level level, int64_t extent, int64_t step) {
  if (extent > 1) layout.push_back({level, extent, step});
}

std::string str(const Layout& layout) {
  std::vector<std::string> parts;
  for (const Part& part : layout) {
    std::string text = name_of(part.level);
    if (part.level != Level::Grid) text += str(" ", part.extent);
    if (part.step != 1) text += str(" from ", part.step);
    parts.push_back(text);
  }
  return join(parts, " · ");
}

std::string str(const Via& via) {
  std::string text = str("via ", via.stores ? "store " : "load ", via.number);
  if (!via.rows.empty()) text += " rows " + str(via.rows);
  if (!via.loop.empty()) text += " loop " + str(via.loop);
  if (via.padding != 0) text += str(" padding ", via.padding);
  return via.pieces == 1 ? text : text + str(" pieces ", via.pieces);
}

std::vector<Bit> bits_in_order(const Layout& layout) {
  constexpr size_t kDigit = 10;
  std::vector<Bit> bits, order;
  int64_t stride = 1;
  for (size_t p = layout.size(); p-- > 0;) {
    const Part& part = layout[p];
    for (int64_t half = 1; half < part.extent; half *= 2, stride *= 2)
      bits.push_back({part.level, stride, part.step * half});
  }
  for (size_t digit = 0; digit < bits.size(); digit += kDigit) {
    for (size_t b = std::min(digit + kDigit, bits.size()); b-- > digit;)
      order.push_back(bits[b]);
  }
  return order;
}

bool joins(const Bit& before, const Bit& later) {
  const bool is_exchanged = combined_by(later.level) == CombinedBy::Exchange;
  return before.level == later.level && (!is_exchanged || later.step * 2 == before.step);
}

int64_t extent_of(const Layout& layout, Level level) {
  int64_t extent = 1;
  for (const Part& part : layout) extent *= part.level == level ? part.extent : 1;
  return extent;
}

int64_t own_elements(const Layout& layout) {
  int64_t elements = 1;
  for (const Part& part : layout) elements *= is_own(part.level) ? part.extent : 1;
  return elements;
}

int64_t covered_by(const Layout& layout) {
  int64_t covered = 1;
  for (const Part& part : layout) covered *= part.extent;
  return covered;
}

}  // namespace tiny_compile
