// Views never move data: which element of which stored tensor is an element of a view?
//
//   %1 = permute x {axes=[1,0]} ; %2 = flip %1 {axes=[0]}    of x: f32[8,4]
//   =>  %2[v0, v1] is x[v1, 3 - v0]
#pragma once

#include <vector>

#include "tiny_compile/graph/graph.h"

namespace tiny_compile {

// A chain of views as one: its element [v0, v1, ...] is element `at` of node `root`.
struct View {
  int root = -1;
  Shape at;
};

Shape through(const View& view, const Shape& index);  // where element `index` is in the root

// The views of a graph, and which nodes have a buffer: those that compute, outputs, constants
// that are read through an index, and views under views whose index would grow too long
// (reshapes that do not nest double it).
struct Views {
  std::vector<bool> stored;
  std::vector<View> of;  // of each view

  explicit Views(const Graph& graph);
};

bool is_virtual(const Node& node);  // needs no kernel: a view, a constant, iota
bool is_empty(const Type& type);
Expr dot(const Shape& index, const Shape& strides);

}  // namespace tiny_compile
