// 03-1 ★ Strides of a broadcast
//
// A view is only other numbers. Write the numbers of expand: the strides with which a tensor of
// `shape` and `strides` is read as one of shape `to`. As in the lesson, axes are matched from the
// last to the first; an axis of size 1 may be repeated, and `to` may have more axes in front.
//
//   shape [3,1], strides [4,1], to [2,3,4]   =>   [0,4,0]
//
// A size that is neither the same nor 1, and a `to` with fewer axes, are a tc::Error.
#pragma once

#include "tiny_compile/base/error.h"
#include "tiny_compile/tensor/tensor.h"

namespace exercise {

using namespace tiny_compile;

// Sizes is std::vector<int64_t>.
Sizes expanded_strides(const Sizes& shape, const Sizes& strides, const Sizes& to);

}  // namespace exercise
