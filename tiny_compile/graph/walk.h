// Where do the elements of a strided tensor lie, one after the other?
//
//   Walk({2, 2}, {1, 4}, 0) gives the offsets 0 4 1 5
#pragma once

#include <cstdint>

#include "tiny_compile/tensor/sizes.h"

namespace tiny_compile {

// The element offsets of a strided tensor, in row-major order, from any element on.
class Walk {
 public:
  Walk(const Sizes& shape, const Sizes& strides, int64_t start)
      : shape_(shape), strides_(strides), index_(shape.size()) {
    for (size_t axis = shape.size(); axis-- > 0;) {
      index_[axis] = shape[axis] > 0 ? start % shape[axis] : 0;
      start = shape[axis] > 0 ? start / shape[axis] : 0;
      offset_ += index_[axis] * strides[axis];
    }
  }
  int64_t offset() const { return offset_; }
  const Sizes& index() const { return index_; }
  void next() {
    for (size_t axis = shape_.size(); axis-- > 0;) {
      offset_ += strides_[axis];
      if (++index_[axis] < shape_[axis]) return;
      offset_ -= strides_[axis] * shape_[axis];
      index_[axis] = 0;
    }
  }
  void take(int n, int64_t* offsets) {
    for (int i = 0; i < n; i++, next()) offsets[i] = offset_;
  }

 private:
  const Sizes& shape_;
  const Sizes& strides_;
  Sizes index_;
  int64_t offset_ = 0;
};

}  // namespace tiny_compile
