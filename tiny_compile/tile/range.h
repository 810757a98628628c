// Which values has an index? Those of an interval, some number apart.
#pragma once

#include <cstdint>

#include "tiny_compile/base/expr.h"

namespace tiny_compile {

// low, low + step, ..., high at most. Sharper than an Expr's bounds where vectors are counted:
//
//   4*lane % 40   =>   0, 4, ..., 36   for lanes 0 .. 31
struct Range {
  int64_t low = 0, high = 0, step = 1;
  bool is_below(int64_t count) const { return low >= 0 && high < count; }
  bool has_only_multiples_of(int64_t width) const;
};

Range range_of(const Expr& expr);

}  // namespace tiny_compile
