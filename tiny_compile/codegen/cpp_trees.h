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

}  // namespace tiny_compile
