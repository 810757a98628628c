// Question: what does an op return for operands of these types, and which does it refuse?
//
//   matmul of f32[2,3] with f32[3,5]   =>  f32[2,5]
//   add of f32[2,3] with f32[3]        =>  Error: shapes differ
//
// Nothing broadcasts or promotes here: the tracer writes the expand and the cast out, so that
// later passes see them. Sizes may be symbolic. Two sizes are equal if their Exprs are; an
// order between sizes is refused only where their bounds exclude it (a slice 0..4 of an axis
// n: 2..4096 is accepted).
#include <algorithm>
#include <iterator>

#include "tiny_compile/graph/graph.h"

namespace tiny_compile {
namespace {

using Types = std::vector<Type>;

std::string with_operands(const Types& operands) {
  std::vector<std::string> texts;
  for (const Type& type : operands) texts.push_back(type.str());
  return texts.empty() ? "" : " (" + join(texts, " with ") + ")";
}

// "matmul: inner sizes 3 and 4 differ (f32[2,3] with f32[4,5])"
template <typename... Parts>
[[noreturn]] void reject(const Node& node, const Types& operands, const Parts&... parts) {
  fail(info(node.op).name, ": ", parts..., with_operands(operands));
}

bool can_be_at_most(const Expr& lhs, const Expr& rhs) { return (rhs - lhs).bounds().high >= 0; }

bool can_be_equal(const Expr& lhs, const Expr& rhs) {
  return can_be_at_most(lhs, rhs) && can_be_at_most(rhs, lhs);
}

size_t at(int64_t axis) { return static_cast<size_t>(axis); }

// --- axes ------------------------------------------------------------------------------------

void check_axis(const Node& node, const Types& operands, int64_t axis) {
  const int rank = operands[0].rank();
  if (axis >= 0 && axis < rank) return;
  if (rank == 0) reject(node, operands, "a 0-d operand has no axis ", axis);
  reject(node, operands, "axis ", axis, " is not one of the axes 0..", rank - 1);
}

size_t axis_of(const Node& node, const Types& operands) {
  const int64_t axis = node.attr(Key::axis).constant();
  check_axis(node, operands, axis);
  return at(axis);
}

// The listed axes, distinct and in range.
std::vector<size_t> axes_of(const Node& node, const Types& operands) {
  std::vector<size_t> result;
  for (const Expr& listed : node.list(Key::axes)) {
    const int64_t axis = listed.constant();
    check_axis(node, operands, axis);
    if (std::find(result.begin(), result.end(), at(axis)) != result.end()) {
      reject(node, operands, "axis ", axis, " is listed twice");
    }
    result.push_back(at(axis));
  }
  return result;
}

// --- sizes -----------------------------------------------------------------------------------

// Refuses negative sizes and absurd ones, before anything multiplies them.
void check_sizes(const Node& node, const Shape& shape) {
  const char* op = info(node.op).name;
  if (shape.size() > kMaxRank) {
    fail(op, ": ", shape.size(), " axes; a tensor has ", kMaxRank, " at most");
  }
  int64_t elements = 1;
  for (const Expr& size : shape) {
    const Interval bounds = size.bounds();
    if (bounds.high < 0) fail(op, ": size ", size, " is negative in [", join(shape, ","), "]");
    const int64_t least = std::max<int64_t>(bounds.low, 1);
    if (least > kMaxElements / elements) {
      fail(op, ": [", join(shape, ","), "] has more than 2^48 elements");
    }
    elements *= least;
  }
}

void require_same_shape(const Node& node, const Types& operands, const Type& lhs,
                        const Type& rhs) {
  if (lhs.shape == rhs.shape) return;
  reject(node, operands, "shapes differ; expand or reshape the operands to one shape first");
}

void require_same_dtype(const Node& node, const Types& operands, DType lhs, DType rhs) {
  if (lhs == rhs) return;
  reject(node, operands, "dtypes ", lhs, " and ", rhs, " differ; cast one of them first");
}

void require_number(const Node& node, const Types& operands) {
  if (operands[0].dtype != DType::boolean) return;
  reject(node, operands, "takes numbers, not bool; cast to an integer first");
}

// Sizes agree on every axis but one (rank: on all).
void require_same_sizes_elsewhere(const Node& node, const Types& operands, const Type& other,
                                  size_t axis) {
  const Shape& shape = operands[0].shape;
  if (other.shape.size() != shape.size()) reject(node, operands, "ranks differ");
  for (size_t i = 0; i < shape.size(); i++) {
    if (i == axis || other.shape[i] == shape[i]) continue;
    reject(node, operands, "sizes ", shape[i], " and ", other.shape[i], " differ on axis ", i);
  }
}

// --- pointwise -------------------------------------------------------------------------------

const char* wanted(Domain domain) {
  switch (domain) {
    case Domain::Number: return "numbers, not bool";
    case Domain::Float: return "floats; cast first";
    case Domain::Integer: return "integers";
    case Domain::Bits: return "integers or bool";
    case Domain::Bool: return "bool; compare (ne) first";
    default: return "any dtype";
  }
}

Type infer_pointwise(const Node& node, const Types& operands) {
  const OpInfo& op = info(node.op);
  const size_t first = op.domain == Domain::Where ? 1 : 0;
  if (first == 1 && operands[0].dtype != DType::boolean) {
    reject(node, operands, "the condition must be bool; compare it with 0 (ne) first");
  }
  const DType dtype = operands[first].dtype;
  if (!accepts(op.domain, dtype)) reject(node, operands, "takes ", wanted(op.domain));
  for (size_t i = 0; i < operands.size(); i++) {
    require_same_shape(node, operands, operands[first], operands[i]);
    if (i >= first) require_same_dtype(node, operands, dtype, operands[i].dtype);
  }
  if (op.result == Result::Bool) return {DType::boolean, operands[0].shape};
  if (node.op == Op::bitcast && size_of(node.type.dtype) != size_of(dtype))
    reject(node, operands, "an element of ", node.type.dtype, " has ", size_of(node.type.dtype),
           " bytes, one of ", dtype, " ", size_of(dtype), "; cast converts values");
  if (op.result == Result::Cast) return {node.type.dtype, operands[0].shape};
  return {dtype, operands[0].shape};
}

// --- sources ---------------------------------------------------------------------------------

Type infer_input(const Node& node) {
  const int64_t align = node.integer(Key::align, 16);
  if (align != 1 && align != 2 && align != 4 && align != 8 && align != 16)
    fail("input: align is 1, 2, 4, 8 or 16 bytes, not ", align);
  if (node.integer(Key::donated, 1) != 1) fail("input: donated is 1, or absent");
  const Attr* strides = node.find(Key::strides);
  if (!strides) return node.type;
  if (strides->values.size() != node.type.shape.size()) {
    fail("input: ", strides->values.size(), " strides for ", node.type.str(),
         "; give one an axis");
  }
  Expr last = 0;  // offset of the last element
  for (size_t i = 0; i < strides->values.size(); i++) {
    const Expr& stride = strides->values[i];
    if (!can_be_at_most(0, stride)) fail("input: stride ", stride, " is negative");
    last = last + max(node.type.shape[i] - 1, 0) * stride;
  }
  if (!can_be_at_most(last, kMaxElements)) fail("input: strides span more than 2^48 elements");
  return node.type;
}

Type infer_source(const Node& node, const Types& operands) {
  const Type& type = node.type;
  if (type.is_tuple()) reject(node, operands, "makes a tensor, not the tuple ", type.str());
  switch (node.op) {
    case Op::input: return infer_input(node);
    case Op::constant:
      if (node.value.dtype != type.dtype) {
        reject(node, operands, "the value is ", node.value.dtype, ", the type ", type.str());
      }
      return type;
    case Op::iota:
      if (type.rank() != 1) reject(node, operands, "makes i64[n] of rank 1, not ", type.str());
      return {DType::i64, type.shape};
    default: {  // philox
      const bool is_key = operands[0] == Type{DType::u64, {2}};
      if (!is_key) reject(node, operands, "the key must be u64[2]: the seed and the counter");
      return {DType::u32, type.shape};
    }
  }
}

// --- views -----------------------------------------------------------------------------------

Type infer_reshape(const Node& node, const Types& operands) {
  check_sizes(node, node.type.shape);
  const Expr before = product(operands[0].shape), after = product(node.type.shape);
  if (!can_be_equal(before, after)) {
    reject(node, operands, "[", join(node.type.shape, ","), "] has ", after,
           " elements, the operand ", before);
  }
  return {operands[0].dtype, node.type.shape};
}

Type infer_expand(const Node& node, const Types& operands) {
  const Shape &from = operands[0].shape, &to = node.type.shape;
  if (to.size() < from.size()) {
    reject(node, operands, "[", join(to, ","), "] has fewer axes than the operand");
  }
  const size_t added = to.size() - from.size();
  for (size_t i = 0; i < from.size(); i++) {
    if (from[i].is_constant(1) || from[i] == to[added + i]) continue;
    reject(node, operands, "size ", from[i], " of axis ", i, " cannot become ", to[added + i],
           "; only size 1 expands");
  }
  return {operands[0].dtype, to};
}

Type infer_permute(const Node& node, const Types& operands) {
  Type result = {operands[0].dtype, {}};
  for (const size_t axis : axes_of(node, operands)) {
    result.shape.push_back(operands[0].shape[axis]);
  }
  if (result.rank() != operands[0].rank()) {
    reject(node, operands, "axes=[", join(node.list(Key::axes), ","), "] must list every axis");
  }
  return result;
}

Type infer_slice(const Node& node, const Types& operands) {
  Type result = operands[0];
  Expr& size = result.shape[axis_of(node, operands)];
  const Expr &start = node.attr(Key::start), &stop = node.attr(Key::stop);
  const Expr& step = node.attr(Key::step);
  if (step.constant() < 1)
    reject(node, operands, "step ", step, " is not positive; flip reverses");
  const bool can_be_ordered =
      can_be_at_most(0, start) && can_be_at_most(start, stop) && can_be_at_most(stop, size);
  if (!can_be_ordered) {
    reject(node, operands, start, "..", stop, " is not within 0..", size, " in order");
  }
  size = ceil_div(stop - start, step);
  return result;
}

Type infer_window(const Node& node, const Types& operands) {
  Type result = operands[0];
  Expr& size = result.shape[axis_of(node, operands)];
  const Expr &taken = node.attr(Key::size), &step = node.attr(Key::step);
  if (step.constant() < 1) reject(node, operands, "step ", step, " is not positive");
  if (!can_be_at_most(1, taken) || !can_be_at_most(taken, size)) {
    reject(node, operands, "a window of ", taken, " does not fit 1..", size, "; pad first");
  }
  size = floor_div(size - taken, step) + 1;
  result.shape.push_back(taken);
  return result;
}

Type infer_view(const Node& node, const Types& operands) {
  switch (node.op) {
    case Op::reshape: return infer_reshape(node, operands);
    case Op::expand: return infer_expand(node, operands);
    case Op::permute: return infer_permute(node, operands);
    case Op::slice: return infer_slice(node, operands);
    case Op::window: return infer_window(node, operands);
    default: axes_of(node, operands); return operands[0];  // flip
  }
}

// --- reductions ------------------------------------------------------------------------------

void check_reduced_dtype(const Node& node, const Types& operands) {
  const Domain domain = reduction_info(node.op).domain;
  if (domain == Domain::Number) return require_number(node, operands);
  if (!accepts(domain, operands[0].dtype)) reject(node, operands, "takes ", wanted(domain));
}

Type infer_reduction(const Node& node, const Types& operands) {
  check_reduced_dtype(node, operands);
  const Shape& shape = operands[0].shape;
  std::vector<bool> is_reduced(shape.size());
  for (const size_t axis : axes_of(node, operands)) {
    is_reduced[axis] = true;
    if (shape[axis].is_constant(0) && needs_an_element(node.op)) {
      reject(node, operands, "axis ", axis, " is empty, which has no ", info(node.op).name);
    }
  }
  const bool keeps = node.find(Key::keepdim) != nullptr;
  Type result = {reduction_result(node.op, operands[0].dtype), {}};
  for (size_t i = 0; i < shape.size(); i++) {
    if (!is_reduced[i]) result.shape.push_back(shape[i]);
    if (is_reduced[i] && keeps) result.shape.push_back(1);
  }
  return result;
}

// --- matmul ----------------------------------------------------------------------------------

Type infer_matmul(const Node& node, const Types& operands) {
  const Type &lhs = operands[0], &rhs = operands[1];
  require_number(node, operands);
  require_same_dtype(node, operands, lhs.dtype, rhs.dtype);
  if (lhs.rank() < 2 || lhs.rank() != rhs.rank()) {
    reject(node, operands, "takes [...,M,K] and [...,K,N] of one rank, 2 or more");
  }
  const size_t batch = lhs.shape.size() - 2;
  for (size_t i = 0; i < batch; i++) {
    if (lhs.shape[i] == rhs.shape[i]) continue;
    reject(node, operands, "batch sizes ", lhs.shape[i], " and ", rhs.shape[i], " differ");
  }
  const Expr &inner = lhs.shape[batch + 1], &other = rhs.shape[batch];
  if (inner != other) reject(node, operands, "inner sizes ", inner, " and ", other, " differ");
  Type result = lhs;  // [...,M,K] => [...,M,N]
  result.shape[batch + 1] = rhs.shape[batch + 1];
  return result;
}

// --- indexed ---------------------------------------------------------------------------------

// gather and scatters: an index may be longer than the data on the indexed axis only.
void check_index(const Node& node, const Types& operands, size_t axis) {
  const Type &data = operands[0], &index = operands[1];
  if (index.dtype != DType::i64 && index.dtype != DType::i32) {
    reject(node, operands, "the index must be i64 or i32; cast it first");
  }
  if (index.rank() != data.rank()) reject(node, operands, "data and index differ in rank");
  for (size_t i = 0; i < data.shape.size(); i++) {
    if (i == axis || can_be_at_most(index.shape[i], data.shape[i])) continue;
    reject(node, operands, "the index's size ", index.shape[i], " exceeds the data's ",
           data.shape[i], " on axis ", i);
  }
}

Type infer_scatter(const Node& node, const Types& operands) {
  check_index(node, operands, axis_of(node, operands));
  if (node.op != Op::scatter) require_number(node, operands);
  require_same_dtype(node, operands, operands[0].dtype, operands[2].dtype);
  require_same_shape(node, operands, operands[1], operands[2]);
  return operands[0];
}

Type infer_scan(const Node& node, const Types& operands) {
  axis_of(node, operands);
  require_number(node, operands);
  if (node.op == Op::logcumsumexp && !is_float(operands[0].dtype))
    reject(node, operands, "takes floats, not ", operands[0].dtype);
  return {scan_result(node.op, operands[0].dtype), operands[0].shape};
}

Type infer_sort(const Node& node, const Types& operands) {
  axis_of(node, operands);
  return {DType::i64, operands[0].shape};
}

Type infer_concat(const Node& node, const Types& operands) {
  const size_t axis = axis_of(node, operands);
  Type result = operands[0];
  for (size_t i = 1; i < operands.size(); i++) {
    require_same_dtype(node, operands, result.dtype, operands[i].dtype);
    require_same_sizes_elsewhere(node, operands, operands[i], axis);
    result.shape[axis] = result.shape[axis] + operands[i].shape[axis];
  }
  return result;
}

Type infer_pad(const Node& node, const Types& operands) {
  Type result = operands[0];
  const std::vector<Expr>&low = node.list(Key::low), &high = node.list(Key::high);
  if (low.size() != result.shape.size() || high.size() != result.shape.size()) {
    reject(node, operands, "low and high need one entry an axis, and have ", low.size(),
           " and ", high.size());
  }
  require_same_dtype(node, operands, node.value.dtype, result.dtype);
  for (size_t i = 0; i < result.shape.size(); i++) {
    result.shape[i] = result.shape[i] + low[i] + high[i];
    if (can_be_at_most(0, result.shape[i])) continue;
    reject(node, operands, "crops more than there is on axis ", i);
  }
  return result;
}

Type infer_indexed(const Node& node, const Types& operands) {
  switch (node.op) {
    case Op::gather:
      check_index(node, operands, axis_of(node, operands));
      return {operands[0].dtype, operands[1].shape};
    case Op::concat: return infer_concat(node, operands);
    default: return infer_pad(node, operands);
  }
}

// --- graphs in nodes -------------------------------------------------------------------------

// What a graph inside gives for these.
Type infer_graph(const Node& node, const Types& operands, const Graph& body,
                 const Types& given) {
  const std::vector<int> inputs = body.inputs();
  if (inputs.size() != given.size())
    reject(node, operands, "graph ", body.name, " has ", inputs.size(), " inputs, here are ",
           given.size(), " operands");
  for (size_t i = 0; i < inputs.size(); i++) {
    const Node& input = body[inputs[i]];
    if (input.type != given[i])
      reject(node, operands, "input ", input.name, " of graph ", body.name, " is ",
             input.type.str(), ", its operand ", given[i].str());
  }
  if (body.outputs.empty()) reject(node, operands, "graph ", body.name, " returns nothing");
  Type result;
  for (const int output : body.outputs) result.items.push_back(body[output].type);
  return result;
}

Types floats_among(const Types& types) {
  Types result;
  std::copy_if(types.begin(), types.end(), std::back_inserter(result),
               [](const Type& type) { return is_float(type.dtype); });
  return result;
}

Type infer_call(const Node& node, const Types& operands) {
  const Type result = infer_graph(node, operands, node.graphs[0], operands);
  if (node.op != Op::custom_vjp) return result;
  const Graph& backward = node.graphs[1];
  Types given = operands;
  for (const Types& more : {result.items, floats_among(result.items)})
    given.insert(given.end(), more.begin(), more.end());
  const Types made = infer_graph(node, operands, backward, given).items;
  if (made != floats_among(operands))
    reject(node, operands, "graph ", backward.name, " returns ", Type{{}, {}, made}.str(),
           ", not a cotangent of each operand of floats");
  return result;
}

Type infer_item(const Node& node, const Types& operands) {
  const int64_t index = node.attr(Key::index).constant();
  const std::vector<Type>& items = operands[0].items;
  if (items.empty()) reject(node, operands, "takes a tuple, the results of a call");
  if (index >= static_cast<int64_t>(items.size()))
    reject(node, operands, "index ", index, " is not one of the results 0..", items.size() - 1);
  return items[at(index)];
}

Type infer_by_class(const Node& node, const Types& operands) {
  switch (info(node.op).op_class) {
    case OpClass::Pointwise: return infer_pointwise(node, operands);
    case OpClass::Source: return infer_source(node, operands);
    case OpClass::View: return infer_view(node, operands);
    case OpClass::Reduction: return infer_reduction(node, operands);
    case OpClass::Scan: return infer_scan(node, operands);
    case OpClass::Sort: return infer_sort(node, operands);
    case OpClass::Matmul: return infer_matmul(node, operands);
    case OpClass::Scatter: return infer_scatter(node, operands);
    case OpClass::Call:
      return node.op == Op::item ? infer_item(node, operands) : infer_call(node, operands);
    default: return infer_indexed(node, operands);
  }
}

}  // namespace

Type infer(const Node& node, const std::vector<Type>& operands) {
  check_form(node, operands.size());
  for (const Type& operand : operands) check_sizes(node, operand.shape);
  const Type result = infer_by_class(node, operands);
  check_sizes(node, result.shape);
  return result;
}

}  // namespace tiny_compile
