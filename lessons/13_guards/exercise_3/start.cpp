#include "exercise.h"

namespace exercise {

Tensor call_padded(const RowFunction& f, const Tensor& x) {
  // TODO: as many rows as the next power of two, then only the rows of x.
  return f(x);
}

}  // namespace exercise
