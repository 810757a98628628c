// The functions of the contract's summation trees.
#pragma once

#include <string>

#include "tiny_compile/codegen/calls.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The helper functions that reduce steps of these kernels call, each once; adds what
// these call.
std::string reduction_helpers(const Program& program, Calls& calls);

// What a chunk's elements at 128 * part, for parts 0 .. 7, come to: the tree's first three halvings.
template <typename At, typename Pair>
std::string of_eighths(const At& at, const Pair& pair) {
  const auto quarter = [&](int part) {
    return pair(pair(at(part), at(part + 4)), pair(at(part + 2), at(part + 6)));
  };
  return pair(quarter(0), quarter(1));
}

// "sum_float": the suffix of helper names for a reduction in this accumulator type.
std::string helper_suffix(Op op, DType accumulator);

}  // namespace tiny_compile
