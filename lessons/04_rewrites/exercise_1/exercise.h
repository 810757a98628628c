// 04-1 ★ Three sound rules
//
// Write a pass of three rules, each where it keeps every bit, and only there:
//
//   1. abs(neg x)                  =>  abs x
//   2. where(bitwise_not c, a, b)  =>  where(c, b, a)
//   3. bitwise_not(lt a b)         =>  ge a b           and so for le gt ge eq ne
//
// (bitwise_not of a bool is "not".) One of the rules is sound as it stands. One is wrong for some
// integers, and one for NaN: which parts of them can you keep? (Integer arithmetic wraps; abs
// and neg of an i8 -128 are -128.) What dies is left to dce.
//
//   out[node.inputs[0]].op            the op below, in the new graph; .inputs, .type.dtype
//   is_float(dtype), is_integer(dtype), category(dtype) == Category::Signed
//                                     (a Category is Bool, Unsigned, Signed or Float)
#pragma once

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/passes/passes.h"

namespace exercise {

using namespace tiny_compile;

Graph apply_three_rules(const Graph& graph);

inline Pipeline with_mine() {
  return insert_after(default_pipeline(), "simplify", {"three_rules", apply_three_rules});
}

}  // namespace exercise
