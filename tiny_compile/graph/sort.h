// Where the elements of a row stand in order: the numeric contract's sort, shared by both
// interpreters.
#pragma once

#include <cstdint>
#include <vector>

#include "tiny_compile/graph/lanes.h"

namespace tiny_compile {

// The places of `count` values in lane layout (graph/lanes.h), the least first for Op::argsort,
// the greatest first for Op::argsort_descending; i64. NaN is greater than all, -0 = 0, and equals keep
// their order. With a `run`, the elements run*k .. run*k + run - 1 are sorted among themselves.
std::vector<std::byte> argsort(Op op, DType dtype, const std::byte* values, int64_t count,
                               int64_t run = 0);

}  // namespace tiny_compile
