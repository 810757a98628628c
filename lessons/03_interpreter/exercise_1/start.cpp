#include "exercise.h"

namespace exercise {

Sizes expanded_strides(const Sizes& shape, const Sizes& strides, const Sizes& to) {
  if (to.size() < shape.size())
    fail("expand: [", join(shape, ","), "] to fewer axes, [", join(to, ","), "]");
  // TODO: which axis of `to` is which axis of `shape`, and where does it step?
  Sizes result = strides;
  result.resize(to.size(), 1);
  return result;
}

}  // namespace exercise
