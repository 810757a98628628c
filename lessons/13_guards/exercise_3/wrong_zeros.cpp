// fails: added rows raise no error that the user's rows do not
#include "exercise.h"

namespace exercise {

Tensor call_padded(const RowFunction& f, const Tensor& x) {
  const int64_t batch = x.size(0);
  int64_t padded = 1;
  while (padded < batch) padded *= 2;
  if (batch == 0 || padded == batch) return f(x);
  Sizes shape = x.shape();
  shape[0] = padded - batch;
  const Tensor copies = zeros(shape, x.dtype());
  return f(concat({x, copies})).slice(0, 0, batch);
}

}  // namespace exercise
