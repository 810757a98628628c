// 10-2 ★★ Eight maxima instead of one
//
// The maximum of a row, as start.cpp writes it for a row of 257:
//   extern "C" value row_max(const value* x) {
//     value m = x[0];
//     for (int j = 1; j < 257; j++) m = tc_maximum(m, x[j]);
//     return m;
//   }
// Each tc_maximum waits for the one before it: a chain of 256. A processor has 4, 8 or 16 lanes
// for the same instruction, and all but one have nothing to do. g++ may not cut the chain, because
// in floating point another order can be another result. You know better: of a maximum, any order
// gives the same bits.
//
// Write the text so that the chain is short: eight running maxima, each of every eighth element,
// which become one at the end. For a row of n elements at most n/8 + 16 may wait for each other.
// n may be anything from 1 up, also less than eight. Read nothing behind the row.
//
// `value` is float when your text runs, and a float that counts its waiting when it is checked.
// All you may do with values is copy them, keep them in arrays and call tc_maximum(a, b).
#pragma once

#include <string>

#include "tiny_compile/base/error.h"

namespace exercise {

using tiny_compile::str;  // str("j < ", 257) is "j < 257"

std::string write_row_max(int length);

}  // namespace exercise
