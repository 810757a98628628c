// 03-2 ★ where
//
// Write the loop of the op where(condition, a, b) for f32: element i of the result is a[i] where
// condition[i], else b[i]. The operands are views: element [i,j] of one lies at
// data[i * strides[0] + j * strides[1]], and strides may be 0 or negative. The result is
// row-major, and has room for its elements and nothing else.
//
// What is not chosen must not be seen: not a NaN of it, not an infinity, not the sign of its zero.
// A shape {} is one number; a shape with a 0 in it has no element.
#pragma once

#include "tiny_compile/tensor/tensor.h"

namespace exercise {

using namespace tiny_compile;

template <typename T>
struct View {
  const T* data;  // element [0,...,0]
  Sizes strides;  // one for each axis
};

void choose(const Sizes& shape, const View<bool>& condition, const View<float>& a,
            const View<float>& b, float* out);

// To the next index of a shape in row-major order; false after the last one.
inline bool next(const Sizes& shape, Sizes& index) {
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (++index[axis] < shape[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

}  // namespace exercise
