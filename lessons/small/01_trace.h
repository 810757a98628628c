// How does running code write itself down? The function is called once, with handles in place of
// numbers. An operation on handles computes nothing: it notes itself in a graph, with the line
// it stands on, and returns a handle to its result.
//
//   trace([](const Tensors& in) { return Tensors{exp(in[0]) * 2}; }, {{4, 3}})
//     =>  %0 = input [4,3]   %1 = exp %0   %2 = constant 2 [4,3]   %3 = mul %1, %2   return %3
//
// A shape that does not fit is noted too: step 02 refuses it. Left out: dtypes except f32, captured
// tensors, branches on values: a handle has none.
#pragma once

#include <algorithm>
#include <source_location>
#include <utility>

#include "lessons/small/00_elements.h"

namespace small {

enum class Kind { Source, Pointwise, View, Reduction, Product };
struct OpInfo {
  const char* name;
  Kind kind;
  size_t operands;
  float (*of)(float) = nullptr;
};
// clang-format off
enum class Op { Input, Constant, Neg, Exp, Log, Rsqrt, Erf, Add, Sub, Mul, Div,
                Reshape, Permute, Expand, Detach, Sum, Max, Matmul };
constexpr OpInfo kOps[] = {
    {"input", Kind::Source, 0}, {"constant", Kind::Source, 0}, {"neg", Kind::Pointwise, 1},
    {"exp", Kind::Pointwise, 1, prelude::tc_exp}, {"log", Kind::Pointwise, 1, prelude::tc_log},
    {"rsqrt", Kind::Pointwise, 1, prelude::tc_rsqrt}, {"erf", Kind::Pointwise, 1, prelude::tc_erf},
    {"add", Kind::Pointwise, 2}, {"sub", Kind::Pointwise, 2}, {"mul", Kind::Pointwise, 2},
    {"div", Kind::Pointwise, 2}, {"reshape", Kind::View, 1}, {"permute", Kind::View, 1},
    {"expand", Kind::View, 1}, {"detach", Kind::View, 1}, {"sum", Kind::Reduction, 1},
    {"max", Kind::Reduction, 1}, {"matmul", Kind::Product, 2}};
// clang-format on
constexpr const OpInfo& info(Op op) { return kOps[static_cast<size_t>(op)]; }

struct Where {  // a line of user code
  const char* file = "";
  unsigned line = 0;
};
[[noreturn]] inline void fail(const Where& where, const std::string& message) {
  throw Error(where.line ? str(where.file, ":", where.line, ": ", message) : message);
}
struct Node {
  Op op = Op::Input;
  Ids inputs = {};   // earlier nodes
  Shape shape = {};  // of the result; a reduction keeps its axes, as 1
  Axes axes = {};    // permute: result axis k is the operand's axes[k]; reductions
  float value = 0;   // constant
  Where where = {};
};

struct Graph {
  std::vector<Node> nodes;
  Ids outputs;
  const Node& operator[](int64_t id) const { return nodes[static_cast<size_t>(id)]; }
  int64_t size() const { return std::ssize(nodes); }
  int64_t add(Node node) { return nodes.push_back(std::move(node)), size() - 1; }
};

struct Tensor {  // a handle
  Graph* graph = nullptr;
  int64_t id = -1;
  Shape shape() const { return (*graph)[id].shape; }
};
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;
// What an operation is given: a tensor or a number, and the line of the call.
struct Operand {
  Operand(Tensor t, std::source_location at = std::source_location::current())
      : tensor(t), where{at.file_name(), at.line()} {
    if (!t.graph) fail(where, "a tensor that no operation made");
  }
  Operand(double v, std::source_location at = std::source_location::current())
      : value(static_cast<float>(v)), where{at.file_name(), at.line()} {}
  Graph& graph() const {
    if (!tensor.graph) fail(where, "a number where a tensor is needed");
    return *tensor.graph;
  }
  const Shape& shape() const { return graph()[tensor.id].shape; }
  Tensor tensor = {};
  float value = 0;
  Where where;
};

inline Tensor record(Op op, const Operand& x, const Shape& shape, const Axes& axes = {}) {
  return {&x.graph(), x.graph().add({op, {x.tensor.id}, shape, axes, 0, x.where})};
}
inline Tensor reshape(const Operand& x, const Shape& to) { return record(Op::Reshape, x, to); }
inline Tensor expand(const Operand& x, const Shape& to) { return record(Op::Expand, x, to); }
inline Tensor detach(const Operand& x) { return record(Op::Detach, x, x.shape()); }
inline Tensor permute(const Operand& x, const Axes& axes) {
  const Shape& from = x.shape();
  Shape to;
  for (const int64_t axis : axes)
    to.push_back(axis < 0 || axis >= std::ssize(from) ? 1 : from[axis]);
  return record(Op::Permute, x, to, axes);
}
inline Tensor reduce(Op op, const Operand& x, const Axes& axes) {
  Shape to = x.shape();
  for (const int64_t axis : axes)
    if (axis >= 0 && axis < std::ssize(to)) to[axis] = 1;
  return record(op, x, to, axes);
}
inline Tensor sum(const Operand& x, const Axes& axes) { return reduce(Op::Sum, x, axes); }
inline Tensor max(const Operand& x, const Axes& axes) { return reduce(Op::Max, x, axes); }
// In the shape of what it is combined with: a number fills it, an axis of 1 is repeated.
inline int64_t expanded(Graph& graph, const Operand& x, const Shape& to) {
  if (!x.tensor.graph) return graph.add({Op::Constant, {}, to, {}, x.value, x.where});
  if (x.tensor.graph != &graph) fail(x.where, "a tensor of another trace");
  return x.shape() == to ? x.tensor.id : expand(x, to).id;
}
inline Tensor pointwise(Op op, const Operand& a, const Operand& b) {
  Graph& graph = (a.tensor.graph ? a : b).graph();
  Shape to = (a.tensor.graph ? a : b).shape();
  for (size_t k = 0; b.tensor.graph && k < std::min(to.size(), b.shape().size()); k++)
    if (to[k] == 1) to[k] = b.shape()[k];
  const Ids inputs = {expanded(graph, a, to), expanded(graph, b, to)};
  return {&graph, graph.add({op, inputs, to, {}, 0, a.where})};
}
inline Tensor operator+(const Operand& a, const Operand& b) { return pointwise(Op::Add, a, b); }
inline Tensor operator-(const Operand& a, const Operand& b) { return pointwise(Op::Sub, a, b); }
inline Tensor operator*(const Operand& a, const Operand& b) { return pointwise(Op::Mul, a, b); }
inline Tensor operator/(const Operand& a, const Operand& b) { return pointwise(Op::Div, a, b); }
inline Tensor operator-(const Operand& x) { return record(Op::Neg, x, x.shape()); }
inline Tensor exp(const Operand& x) { return record(Op::Exp, x, x.shape()); }
inline Tensor log(const Operand& x) { return record(Op::Log, x, x.shape()); }
inline Tensor rsqrt(const Operand& x) { return record(Op::Rsqrt, x, x.shape()); }
inline Tensor erf(const Operand& x) { return record(Op::Erf, x, x.shape()); }
inline Tensor matmul(const Operand& a, const Operand& b) {
  const Shape &x = a.shape(), &y = b.shape();
  Shape to = {x.empty() ? 1 : x.front(), y.empty() ? 1 : y.back()};
  const Ids inputs = {a.tensor.id, b.tensor.id};
  return {&a.graph(), a.graph().add({Op::Matmul, inputs, to, {}, 0, a.where})};
}

inline Graph trace(const Function& function, const std::vector<Shape>& shapes) {
  Graph graph;
  Tensors inputs;
  for (const Shape& shape : shapes)
    inputs.push_back({&graph, graph.add({Op::Input, {}, shape})});
  for (const Tensor& result : function(inputs)) graph.outputs.push_back(result.id);
  return graph;
}

}  // namespace small
