// How many elements has a shape, and how far apart do they stand row by row? A size of 0 makes
// no elements, but strides as if it were 1: those of [2,0,3] are [3,3,1].
#include "tiny_compile/tensor/sizes.h"

#include <algorithm>

#include "tiny_compile/base/error.h"

namespace tiny_compile {

Sizes contiguous_strides(const Sizes& shape) {
  Sizes strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

int64_t element_count(const Sizes& shape) {
  int64_t count = 1;
  bool is_empty = false;
  for (int64_t size : shape) {
    if (size < 0)
      fail("a size of ", size, " in [", join(shape, ","), "]: sizes are not negative");
    is_empty |= size == 0;  // the others must multiply all the same: strides do
    if (__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count) ||
        count > (int64_t{1} << 60))
      fail("[", join(shape, ","), "] has too many elements");
  }
  return is_empty ? 0 : count;
}

}  // namespace tiny_compile
