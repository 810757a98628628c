// Shapes and strides as numbers alone, without memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace tiny_compile {

using Sizes = std::vector<int64_t>;

// One axis or several: x.sum(1), x.sum({0, 1}); none stands for all of them.
struct Axes : Sizes {
  Axes() = default;
  Axes(int64_t axis) : Sizes{axis} {}                         // NOLINT
  Axes(std::initializer_list<int64_t> axes) : Sizes(axes) {}  // NOLINT
  Axes(const Sizes& axes) : Sizes(axes) {}                    // NOLINT
};

Sizes contiguous_strides(const Sizes& shape);  // [6,4,2] -> [8,2,1]
int64_t element_count(const Sizes& shape);     // throws tc::Error on overflow

// Calls visit(offset of an element) in row-major order.
template <typename Visit>
void for_each_offset(const Sizes& shape, const Sizes& strides, Visit visit) {
  if (element_count(shape) == 0) return;
  Sizes index(shape.size());
  int64_t offset = 0;
  while (true) {
    visit(offset);
    size_t axis = shape.size();
    while (axis > 0) {
      axis--;
      offset += strides[axis];
      if (++index[axis] < shape[axis]) break;
      offset -= strides[axis] * shape[axis];
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (shape.empty()) return;
  }
}

}  // namespace tiny_compile
