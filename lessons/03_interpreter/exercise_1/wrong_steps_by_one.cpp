// fails: a repeated axis does not step
#include "exercise.h"

namespace exercise {

Sizes expanded_strides(const Sizes& shape, const Sizes& strides, const Sizes& to) {
  if (to.size() < shape.size())
    fail("expand: [", join(shape, ","), "] to fewer axes, [", join(to, ","), "]");
  const size_t added = to.size() - shape.size();
  Sizes result(to.size(), 1);
  for (size_t k = 0; k < shape.size(); k++) {
    if (shape[k] == to[added + k])
      result[added + k] = strides[k];
    else if (shape[k] != 1)
      fail("expand: size ", shape[k], " cannot become ", to[added + k]);
  }
  return result;
}

}  // namespace exercise
