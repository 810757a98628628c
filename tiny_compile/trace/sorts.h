// PyTorch's sort, argsort and topk.
#pragma once

#include <utility>

#include "tiny_compile/trace/functions.h"

namespace tiny_compile {

// Values and their places along an axis, i64: by value, equals in order; NaN is
// greater than all.
std::pair<Tensor, Tensor> sort(const Operand& x, int64_t axis = -1, bool descending = false);
Tensor argsort(const Operand& x, int64_t axis = -1, bool descending = false);
std::pair<Tensor, Tensor> topk(const Operand& x, int64_t k, int64_t axis = -1,
                               bool largest = true);  // the first k of a sort

}  // namespace tiny_compile
