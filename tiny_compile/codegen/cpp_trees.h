// The functions of the contract's summation trees.
#pragma once

#include <string>

#include "tiny_compile/codegen/calls.h"
#include "tiny_compile/codegen/index_text.h"
#include "tiny_compile/graph/op.h"

namespace tiny_compile {

// What the tree over the first `count` elements of an array comes to, which are used up: there is room for
// the next power of two, or multiple of 1024. A zero maximum is +0.
std::string tree_call(Calls& calls, Op op, DType type, const std::string& array,
                      const Expr& count);

// The functions that such calls need; adds what these call.
std::string reduction_helpers(Calls& calls);

// What a chunk's elements at 128 * part, for parts 0 .. 7, come to: the tree's first three halvings.
template <typename At, typename Pair>
std::string of_eighths(const At& at, const Pair& pair) {
  const auto quarter = [&](int part) {
    return pair(pair(at(part), at(part + 4)), pair(at(part + 2), at(part + 6)));
  };
  return pair(quarter(0), quarter(1));
}

}  // namespace tiny_compile
