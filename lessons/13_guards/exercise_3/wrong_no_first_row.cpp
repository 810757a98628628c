// fails: a batch of nothing is called as it is
#include "exercise.h"

namespace exercise {

Tensor call_padded(const RowFunction& f, const Tensor& x) {
  const int64_t batch = x.size(0);
  int64_t padded = 1;
  while (padded < batch) padded *= 2;
  if (padded == batch) return f(x);
  Sizes shape(x.shape().size(), -1);
  shape[0] = padded - batch;
  const Tensor copies = x.slice(0, 0, 1).expand(shape);
  return f(concat({x, copies})).slice(0, 0, batch);
}

}  // namespace exercise
