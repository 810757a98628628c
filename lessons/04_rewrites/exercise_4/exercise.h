// 04-4 ★★★ Eight bits
//
// All rewrites so far kept every bit. This one trades bits for a bound that you can state: a
// matmul of f32 becomes a matmul of small integers.
//
//   a: [...,M,K], b: [...,K,N]
//   s[m] = max over k of |a[m,k]|, / 127        a scale for each row of a
//   t[n] = max over k of |b[k,n]|, / 127        a scale for each column of b
//   p    = a / s, rounded to the nearest        integers in -127..127: cast to i8
//   q    = b / t, rounded to the nearest
//   a b  ≈ (p q) * s * t                        p q is summed in i32
//
// Rounding moves a/s and b/t by at most 1/2, and both are at most 127, so each of the K products
// is off by at most (127/2 + 127/2 + 1/4) s t. With a little room for the roundings of f32:
//
//   | error[m,n] |  <=  127.5 * K * s[m] * t[n]
//
// Write the pass, so that this holds for each element, whatever the sizes of the other rows are.
// Inputs are finite, each 0 or of a magnitude from 2^-40 to 2^40; rows of zeros give zeros.
//
// Only matmuls of f32 are rewritten, of any rank, and only where K is known, 1 or more, and so
// small that the sum of K products of 127 * 127 is sure to fit an i32: K <= 2^17. A matmul of i8
// gives i8, and wraps: cast the i8 once more, to i32. Everything else stays.
//
// A size, out[id].type.shape.back() for one, is an Expr, a number or a symbol: .is_constant() says
// whether it is a number, .constant() which (an int64_t). out.append() may move the nodes: copy a
// shape before you append.
//
// A default pipeline must not do this. A user who asks for it puts it there: with_mine().
#pragma once

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/passes/passes.h"

namespace exercise {

using namespace tiny_compile;

Graph quantise_matmuls(const Graph& graph);  // yours

inline Pipeline with_mine() {
  return insert_after(default_pipeline(), "dce", {"quantise", quantise_matmuls});
}

// What you need to build nodes. Each appends to `out` and returns the new id.

// The node with the type that its op infers.
inline int append(Graph& out, Node node) {
  std::vector<Type> types;
  for (int input : node.inputs) types.push_back(out[input].type);
  node.type = infer(node, types);
  return out.append(std::move(node));
}

// append(out, Op::div, {3, 4}): dtypes and shapes of the operands must agree.
inline int append(Graph& out, Op op, std::vector<int> inputs) {
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  return append(out, std::move(node));
}

inline int append_cast(Graph& out, int input, DType dtype) {
  Node node;
  node.op = Op::cast;
  node.inputs = {input};
  node.type.dtype = dtype;
  return append(out, std::move(node));
}

// The maximum along an axis, which stays with size 1.
inline int append_max(Graph& out, int input, int axis) {
  Node node;
  node.op = Op::max;
  node.inputs = {input};
  node.set(Key::axes, {axis}).set(Key::keepdim, {1});
  return append(out, std::move(node));
}

// Axes of size 1 repeated to this shape.
inline int append_expand(Graph& out, int input, const Shape& shape) {
  Node node;
  node.op = Op::expand;
  node.inputs = {input};
  node.type = {out[input].type.dtype, shape};
  return append(out, std::move(node));
}

// This f32 everywhere.
inline int append_number(Graph& out, double value, const Shape& shape) {
  Node node;
  node.op = Op::constant;
  node.type = {DType::f32, shape};
  node.value = Literal::of(DType::f32, value);
  return append(out, std::move(node));
}

}  // namespace exercise
