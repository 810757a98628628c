// fails: what is not chosen is not seen
#include "exercise.h"

namespace exercise {
namespace {

template <typename T>
T at(const View<T>& view, const Sizes& index) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < index.size(); axis++) offset += index[axis] * view.strides[axis];
  return view.data[offset];
}

}  // namespace

void choose(const Sizes& shape, const View<bool>& condition, const View<float>& a,
            const View<float>& b, float* out) {
  if (element_count(shape) == 0) return;
  Sizes index(shape.size());
  do {
    *out++ = at(condition, index) * at(a, index) + !at(condition, index) * at(b, index);
  } while (next(shape, index));
}

}  // namespace exercise
