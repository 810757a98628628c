// How does a chain of views become one index expression, and where does the chain end? Each
// view's index is worked out once, in terms of its own axes v0, v1, ..., from its source's; a
// chain is cut by a copy where the expression would cost more than a trip through memory.
#include "tiny_compile/loops/views.h"

#include <algorithm>

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostIndex = 64;  // parts of an index; beyond, a view is copied first

Shape index_before_reshape(const Node& view, const Shape& source, const Shape& index) {
  const auto is_zero = [](const Expr& at) { return at.is_constant(0); };
  if (std::all_of(index.begin(), index.end(), is_zero)) return Shape(source.size());
  const Expr flat = dot(index, row_major_strides(view.type.shape));
  const Shape strides = row_major_strides(source);
  Shape result(source.size());
  for (size_t k = 0; k < source.size(); k++) {
    if (!source[k].is_constant(1)) result[k] = mod(floor_div(flat, strides[k]), source[k]);
  }
  return result;
}

// Where element `index` of a view lies in the tensor it looks at.
Shape source_index(const Node& view, const Shape& source, Shape index) {
  switch (view.op) {
    case Op::reshape: return index_before_reshape(view, source, index);
    case Op::permute: {
      Shape result(index.size());
      const std::vector<int> axes = view.axes();
      for (size_t k = 0; k < axes.size(); k++) result[axes[k]] = index[k];
      return result;
    }
    case Op::expand: {
      Shape result(index.end() - static_cast<std::ptrdiff_t>(source.size()), index.end());
      for (size_t k = 0; k < source.size(); k++) {
        if (source[k].is_constant(1)) result[k] = 0;
      }
      return result;
    }
    case Op::slice: {
      Expr& at = index[view.integer(Key::axis, 0)];
      at = at * view.attr(Key::step) + view.attr(Key::start);
      return index;
    }
    case Op::flip:
      for (int axis : view.axes()) index[axis] = source[axis] - 1 - index[axis];
      return index;
    case Op::window: {
      Expr& at = index[view.integer(Key::axis, 0)];
      at = at * view.attr(Key::step) + index.back();
      index.pop_back();
      return index;
    }
    default: CHECK(false, info(view.op).name, " is not a view");
  }
  return index;
}

Symbol view_axis(size_t k) { return {str("v", k), SymbolKind::View}; }

Shape axis_symbols(const Shape& shape) {
  Shape index;
  for (size_t k = 0; k < shape.size(); k++)
    index.push_back(shape[k].is_constant(1) ? Expr(0) : Expr::index(view_axis(k), shape[k]));
  return index;
}

int root_of(const Graph& graph, int node) {
  while (is_view(graph[node].op)) node = graph[node].inputs[0];
  return node;
}

void add_view(Views& views, const Graph& graph, int node) {
  const int source = graph[node].inputs[0];
  View& view = views.of[node];
  view.root = source;
  view.at =
      source_index(graph[node], graph[source].type.shape, axis_symbols(graph[node].type.shape));
  if (views.stored[source] || !is_view(graph[source].op)) return;
  const View whole{views.of[source].root, through(views.of[source], view.at)};
  const Node& root = graph[whole.root];
  const Shape strides =
      root.find(Key::strides) ? root.list(Key::strides) : row_major_strides(root.type.shape);
  if (dot(whole.at, strides).size() > kMostIndex)
    views.stored[source] = true;
  else
    view = whole;
}

}  // namespace

bool is_virtual(const Node& node) {
  return is_view(node.op) || node.op == Op::constant || node.op == Op::iota;
}

bool is_empty(const Type& type) { return product(type.shape).is_constant(0); }

Expr dot(const Shape& index, const Shape& strides) {
  Expr sum = 0;
  for (size_t k = 0; k < index.size(); k++) sum = sum + index[k] * strides[k];
  return sum;
}

Shape through(const View& view, const Shape& index) {
  Substitution axes;
  for (size_t k = 0; k < index.size(); k++) axes.push_back({view_axis(k), index[k]});
  Shape result;
  for (const Expr& at : view.at) result.push_back(substitute(at, axes));
  return result;
}

Views::Views(const Graph& graph) : stored(graph.nodes.size()), of(graph.nodes.size()) {
  for (int output : graph.outputs) stored[output] = true;
  for (int node = 0; node < graph.size(); node++) {
    if (!is_virtual(graph[node])) stored[node] = true;
    if (graph[node].op == Op::gather) stored[root_of(graph, graph[node].inputs[0])] = true;
  }
  for (int node = 0; node < graph.size(); node++) {
    if (is_view(graph[node].op) && !is_empty(graph[node].type)) add_view(*this, graph, node);
  }
}

}  // namespace tiny_compile
