// What is a view? No loop and no bytes: to read its element is to read one of its operand. So
// a view is a function from places to places.
//
//   %1: f32[3,4] = permute %0 {axes=[1,0]}      %1 [i0,k]  =>  %0 [k,i0]
//   %2: f32[12] = reshape %1                    %2 [i0]    =>  %1 #i0  =>  %1 [(i0 / n4),(i0 % n4)]
//
// A size of 4 is written as n4, which is defined where a kernel begins. Left out: what a reshape's
// formulas would shrink to, such as i / n3 * n3 + i % n3; behind a permute each doubles them.
#pragma once

#include "lessons/small/07_save_recompute.h"

namespace small {

// Along one axis: a loop's variable, or a formula of such.
struct Coordinate {
  Text text = Text("0");
  unsigned loops = 0;  // a bit for each loop that it depends on
  bool is_variable() const { return loops != 0 && text.s[0] != '('; }
};
// Of an element: its coordinate along each axis or, flat, its number.
struct Place {
  std::vector<Coordinate> along;
  bool flat = false;
  unsigned loops() const {
    unsigned all = 0;
    for (const Coordinate& one : along) all |= one.loops;
    return all;
  }
};
inline Text size_name(int64_t size) { return size == 1 ? Text("1") : str("n", size); }
inline Coordinate variable(size_t loop, size_t loops) {
  return {loop + 1 == loops ? "k" : str("i", loop), 1u << loop};
}
inline std::string name_of(const Place& at) {
  std::string text;
  for (const Coordinate& one : at.along) text += (text.empty() ? "" : ",") + one.text.s;
  return (at.flat ? "#" : "[") + text + (at.flat ? "" : "]");
}

inline Text stride_name(const Shape& shape, size_t axis) {
  Text stride("1");
  for (size_t k = shape.size() - 1; k > axis; k--)
    if (shape[k] != 1) stride = size_name(shape[k]) * stride;
  return stride;
}
inline Coordinate flattened(const Place& at, const Shape& shape) {
  if (at.flat) return at.along[0];
  Coordinate sum;
  for (size_t k = 0; k < shape.size(); k++) {
    if (at.along[k].text.s == "0") continue;
    sum = {sum.text + at.along[k].text * stride_name(shape, k), sum.loops | at.along[k].loops};
  }
  return sum;
}
inline Place spread(const Coordinate& number, const Shape& shape) {
  Place at{std::vector<Coordinate>(shape.size())};
  bool first = true;
  for (size_t k = 0; k < shape.size(); k++) {
    if (shape[k] == 1) continue;
    const Text above = number.text / stride_name(shape, k);
    at.along[k] = {first ? above : above % size_name(shape[k]), number.loops};
    first = false;
  }
  return at;
}

inline int64_t base_of(const Graph& graph, int64_t id) {
  while (info(graph[id].op).kind == Kind::View) id = graph[id].inputs[0];
  return id;
}

// Where a view's element comes from.
inline Place seen_through(const Graph& graph, const Node& view, const Place& at) {
  const Shape& from = graph[view.inputs[0]].shape;
  if (from == view.shape && view.op != Op::Permute) return at;
  if (view.op == Op::Reshape) return {{flattened(at, view.shape)}, true};
  const Place result = at.flat ? spread(at.along[0], view.shape) : at;
  Place operand{std::vector<Coordinate>(from.size())};
  for (size_t k = 0; k < from.size(); k++)
    if (view.op == Op::Permute)
      operand.along[view.axes[k]] = result.along[k];
    else if (from[k] != 1)
      operand.along[k] = result.along[k];
  return operand;
}

}  // namespace small
