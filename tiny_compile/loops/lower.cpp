// Which loops is an op? Each graph node becomes one kernel over flat buffers.
//
//   %2: f32[8,4] = permute %0 {axes=[1,0]}     (no kernel: a view is an index)
//   %3: f32[8,4] = exp %2
// =>
//   kernel exp_3 rows(i0: 8, i1: 4) { store t3[i0*4 + i1] = exp(load x[i1*8 + i0]) }
//
// Invariant: a temporary is row-major and written entirely by one kernel, at the row-major
// index of its axes. Axes of extent 1 are not loops; a node without elements gets no kernel.
#include "tiny_compile/loops/lower.h"

#include <algorithm>
#include <set>

#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/loops/empty.h"
#include "tiny_compile/loops/short_concats.h"
#include "tiny_compile/loops/simplify_under_mask.h"
#include "tiny_compile/loops/views.h"
#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

Expr first_of(const Node& iota) {
  const Attr* start = iota.find(Key::start);
  return start ? start->values[0] : Expr(0);
}

// Whether it gathers of an array what stands at the places that its cummax or cummin gives: the
// running values themselves.
bool is_running_extreme(const Graph& graph, const Node& node) {
  if (node.op != Op::gather) return false;
  const Node& places = graph[node.inputs[1]];
  return (places.op == Op::cummax || places.op == Op::cummin) &&
         places.inputs[0] == node.inputs[0] &&
         places.integer(Key::axis, 0) == node.integer(Key::axis, 0);
}

// Of each node, whether it is places that nobody asks for but such gathers.
std::vector<bool> unread_places(const Graph& graph) {
  std::vector<bool> read(graph.nodes.size());
  for (int output : graph.outputs) read[output] = true;
  for (const Node& node : graph.nodes) {
    const size_t inputs = is_running_extreme(graph, node) ? 1 : node.inputs.size();
    for (size_t k = 0; k < inputs; k++) read[node.inputs[k]] = true;
  }
  std::vector<bool> result(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    if (is_running_extreme(graph, node)) result[node.inputs[1]] = !read[node.inputs[1]];
  }
  return result;
}

// One kernel under construction: its axes, its scalars and how to read a node at an index.
class KernelBuilder {
 public:
  KernelBuilder(const Graph& graph, const Views& views, const Program& program,
                const std::vector<int>& buffers)
      : graph_(graph), views_(views), program_(program), buffers_(buffers), table_(kernel_) {}

  // A loop of this extent; extent 1 gives the constant 0 and no loop.
  Expr add_axis(const Expr& extent, bool row) {
    if (extent.is_constant(1)) return 0;
    Axis axis{tiny_compile::str(row ? "i" : "j", kernel_.axes.size()), extent};
    if (row) kernel_.rows++;
    if (!row) inner_.push_back(static_cast<int>(kernel_.axes.size()));
    kernel_.axes.push_back(axis);
    return axis.symbol();
  }
  Shape add_rows(const Shape& shape) {
    Shape index;
    for (const Expr& extent : shape) index.push_back(add_axis(extent, true));
    return index;
  }

  // The scalar that is element `index` of a node. Under a mask the element may not exist.
  int value_at(int node, Shape index, int mask = -1, const std::vector<int>& indirect = {},
               const std::vector<Expr>& limits = {}) {
    if (buffers_[node] < 0 && is_view(graph_[node].op)) {
      index = through(views_.of[node], index);
      node = views_.of[node].root;
    }
    if (buffers_[node] < 0 && graph_[node].op == Op::constant && indirect.empty())
      return table_.constant(graph_[node].value);
    if (buffers_[node] < 0 && graph_[node].op == Op::iota && indirect.empty())
      return table_.index(index[0] + first_of(graph_[node]));
    CHECK(buffers_[node] >= 0, "node %", node, " has no buffer");
    const Buffer& buffer = program_.buffers[buffers_[node]];
    Scalar load;
    load.kind = ScalarKind::Load;
    load.dtype = buffer.type.dtype;
    load.buffer = buffers_[node];
    load.index =
        buffer.offset + dot(index, buffer.strides.empty() ? row_major_strides(buffer.type.shape)
                                                          : buffer.strides);
    load.index = simplify_under_mask(kernel_, mask, load.index);
    load.value = Literal{load.dtype, 0};
    load.mask = mask;
    load.operands = indirect;
    load.limits = limits;
    return table_.add(std::move(load));
  }

  // Where element `index` of a buffer that is written lies.
  Expr place(int buffer, const Shape& index) const {
    return dot(index, row_major_strides(program_.buffers[buffer].type.shape));
  }

  int as_index(int scalar) {  // an i64
    if (kernel_.scalars[scalar].dtype == DType::i64) return scalar;
    return table_.apply(Op::cast, DType::i64, {scalar});
  }
  int compare(Op op, const Expr& lhs, const Expr& rhs) {
    return table_.apply(op, DType::boolean, {table_.index(lhs), table_.index(rhs)});
  }
  int both(int lhs, int rhs) {  // lhs and rhs, where -1 is "always"
    if (lhs < 0 || rhs < 0) return std::max(lhs, rhs);
    return table_.apply(Op::bitwise_and, DType::boolean, {lhs, rhs});
  }
  // `otherwise` where the mask is false; a load says that itself.
  int masked(int mask, int value, const Literal& otherwise) {
    if (mask < 0) return value;
    Scalar scalar = kernel_.scalars[value];
    if (scalar.kind == ScalarKind::Load && scalar.mask == mask) {
      scalar.value = otherwise;
      return table_.add(std::move(scalar));
    }
    return table_.apply(Op::where, otherwise.dtype, {mask, value, table_.constant(otherwise)});
  }

  int reduce(StepKind kind, Op op, DType dtype, int value, int other = -1) {
    Step step;
    step.kind = kind;
    step.op = op;
    step.dtype = dtype;
    step.inner = inner_;
    step.value = value;
    step.rhs = other;
    kernel_.steps.push_back(std::move(step));
    inner_.clear();
    Scalar result;
    result.kind = ScalarKind::Register;
    result.dtype = dtype;
    result.step = static_cast<int>(kernel_.steps.size()) - 1;
    return table_.add(std::move(result));
  }
  Step& write(StepKind kind, int buffer, const Expr& index, int value) {
    Step step;
    step.kind = kind;
    step.dtype = program_.buffers[buffer].type.dtype;
    step.inner = inner_;
    step.buffer = buffer;
    step.index = index;
    step.value = value;
    kernel_.steps.push_back(std::move(step));
    inner_.clear();
    return kernel_.steps.back();
  }

  Kernel finish(const std::string& name, const Node& node) {
    kernel_.name = name;
    kernel_.again = static_cast<int>(node.integer(Key::again, 0));
    if (!node.where.file.empty()) kernel_.where = {node.where};
    return normalize(std::move(kernel_));
  }
  const Graph& graph() const { return graph_; }
  ScalarTable& table() { return table_; }
  void discard_inner() { inner_.clear(); }

 private:
  const Graph& graph_;
  const Views& views_;
  const Program& program_;
  const std::vector<int>& buffers_;
  Kernel kernel_;
  std::vector<int> inner_;  // axes added since the last step, for the next one
  ScalarTable table_;
};

// --- what an op computes ---

void build_copy(KernelBuilder& k, int id, int buffer) {
  const Shape index = k.add_rows(k.graph()[id].type.shape);
  k.write(StepKind::Store, buffer, k.place(buffer, index), k.value_at(id, index));
}

void build_pointwise(KernelBuilder& k, const Node& node, int buffer) {
  const Shape index = k.add_rows(node.type.shape);
  std::vector<int> operands;
  for (int input : node.inputs) operands.push_back(k.value_at(input, index));
  const int value = k.table().apply(node.op, node.type.dtype, operands);
  k.write(StepKind::Store, buffer, k.place(buffer, index), value);
}

// %1: f32[8] = sum %0 {axes=[1]}
//   =>  rows(i0: 8) { r0 = sum(j0: 4) load x[..] ; store t1[i0] = r0 }
void build_reduction(KernelBuilder& k, const Node& node, int buffer) {
  const Type& source = k.graph()[node.inputs[0]].type;
  const std::vector<int> axes = node.axes();
  Shape index(source.shape.size()), kept;
  for (size_t axis = 0; axis < index.size(); axis++) {
    if (std::count(axes.begin(), axes.end(), static_cast<int>(axis))) continue;
    index[axis] = k.add_axis(source.shape[axis], true);
    kept.push_back(index[axis]);
  }
  for (int axis : axes) index[axis] = k.add_axis(source.shape[axis], false);
  if (node.integer(Key::keepdim, 0)) {
    kept = index;
    for (int axis : axes) kept[axis] = 0;
  }
  const DType dtype = node.type.dtype;
  const int result = is_empty(source) ? k.table().constant(of_nothing(node.op, dtype))
                                      : k.reduce(StepKind::Reduce, node.op, dtype,
                                                 k.value_at(node.inputs[0], index));
  k.discard_inner();
  k.write(StepKind::Store, buffer, k.place(buffer, kept), result);
}

void build_matmul(KernelBuilder& k, const Node& node, int buffer) {
  const Shape& lhs_shape = k.graph()[node.inputs[0]].type.shape;
  const Shape index = k.add_rows(node.type.shape);
  if (lhs_shape.back().is_constant(0)) {
    k.write(StepKind::Store, buffer, k.place(buffer, index),
            k.table().constant(of_nothing(node.op, node.type.dtype)));
    return;
  }
  Shape lhs = index, rhs = index;
  lhs.back() = k.add_axis(lhs_shape.back(), false);
  rhs[rhs.size() - 2] = lhs.back();
  const int a = k.value_at(node.inputs[0], lhs), b = k.value_at(node.inputs[1], rhs);
  const int result = k.reduce(StepKind::Dot, Op::matmul, node.type.dtype, a, b);
  k.write(StepKind::Store, buffer, k.place(buffer, index), result);
}

void build_philox(KernelBuilder& k, const Node& node, int buffer) {
  const Shape index = k.add_rows(node.type.shape);
  Scalar word;
  word.kind = ScalarKind::Philox;
  word.dtype = DType::u32;
  word.operands = {k.value_at(node.inputs[0], {0}), k.value_at(node.inputs[0], {1})};
  word.value = Literal::of_integer(DType::i64, node.integer(Key::draw, 0));
  word.index = k.place(buffer, index);
  k.write(StepKind::Store, buffer, word.index, k.table().add(word));
}

Step& build_along(KernelBuilder& k, const Node& node, int buffer, StepKind kind) {
  const int axis = static_cast<int>(node.integer(Key::axis, 0));
  Shape index(node.type.shape.size());
  for (int a = 0; a < node.type.rank(); a++) {
    if (a != axis) index[a] = k.add_axis(node.type.shape[a], true);
  }
  index[axis] = k.add_axis(node.type.shape[axis], false);
  Step& step = k.write(kind, buffer, k.place(buffer, index), k.value_at(node.inputs[0], index));
  step.op = node.op;
  return step;
}

Expr indirect_symbol(const Expr& limit) { return Expr::index(indirect(0), max(limit, 1)); }

void build_gather(KernelBuilder& k, const Node& node, int buffer) {
  if (is_running_extreme(k.graph(), node)) {
    Step& step = build_along(k, node, buffer, StepKind::Scan);
    step.op = k.graph()[node.inputs[1]].op;
    step.values = true;
    return;
  }
  const int axis = static_cast<int>(node.integer(Key::axis, 0));
  const Expr limit = k.graph()[node.inputs[0]].type.shape[axis];
  const Shape index = k.add_rows(node.type.shape);
  const int where = k.as_index(k.value_at(node.inputs[1], index));
  Shape at = index;
  at[axis] = indirect_symbol(limit);
  k.write(StepKind::Store, buffer, k.place(buffer, index),
          k.value_at(node.inputs[0], at, -1, {where}, {limit}));
}

// rows(others) { store y for (j: D) = data
//                scatter y[.. at0 ..; at0 = index] for (j: J) = scatter_add src }
void build_scatter(KernelBuilder& k, const Node& node, int buffer) {
  const int axis = static_cast<int>(node.integer(Key::axis, 0));
  const Shape& shape = node.type.shape;
  const Shape& updates = k.graph()[node.inputs[1]].type.shape;
  Shape index(shape.size());
  for (int a = 0; a < node.type.rank(); a++) {
    if (a != axis) index[a] = k.add_axis(shape[a], true);
  }
  Shape at = index;
  at[axis] = k.add_axis(shape[axis], false);
  k.write(StepKind::Store, buffer, k.place(buffer, at), k.value_at(node.inputs[0], at));
  if (product(updates).is_constant(0)) return;
  int mask = -1;
  for (int a = 0; a < node.type.rank(); a++) {
    if (a != axis && updates[a] != shape[a])
      mask = k.both(mask, k.compare(Op::lt, index[a], updates[a]));
  }
  at[axis] = k.add_axis(updates[axis], false);
  const int where = k.as_index(k.value_at(node.inputs[1], at, mask));
  const int update = k.value_at(node.inputs[2], at, mask);
  at[axis] = indirect_symbol(shape[axis]);
  Step& step = k.write(StepKind::Scatter, buffer, k.place(buffer, at), update);
  step.op = node.op;
  step.rhs = where;
  step.limit = shape[axis];
  step.mask = mask;
}

// concat of a (3 long) and b: where(i < 3, load a[i] if i < 3 else 0, load b[i - 3] if i >= 3
// else 0)
void build_concat(KernelBuilder& k, const Node& node, int buffer) {
  const int axis = static_cast<int>(node.integer(Key::axis, 0));
  const Shape index = k.add_rows(node.type.shape);
  std::vector<int> parts;
  for (int input : node.inputs) {
    if (!is_empty(k.graph()[input].type)) parts.push_back(input);
  }
  int value = -1;
  Expr end = node.type.shape[axis];
  for (size_t p = parts.size(); p-- > 0;) {
    const Expr start = end - k.graph()[parts[p]].type.shape[axis];
    int mask = -1;
    if (p > 0) mask = k.compare(Op::ge, index[axis], start);
    if (p + 1 < parts.size()) mask = k.both(mask, k.compare(Op::lt, index[axis], end));
    Shape at = index;
    at[axis] = index[axis] - start;
    const int part = k.value_at(parts[p], at, mask);
    const int before_end = value < 0 ? -1 : k.compare(Op::lt, index[axis], end);
    value = value < 0 ? part
                      : k.table().apply(Op::where, node.type.dtype, {before_end, part, value});
    end = start;
  }
  k.write(StepKind::Store, buffer, k.place(buffer, index), value);
}

void build_pad(KernelBuilder& k, const Node& node, int buffer) {
  const Type& source = k.graph()[node.inputs[0]].type;
  const Shape index = k.add_rows(node.type.shape);
  if (is_empty(source)) {
    k.write(StepKind::Store, buffer, k.place(buffer, index), k.table().constant(node.value));
    return;
  }
  Shape at = index;
  int mask = -1;
  for (size_t a = 0; a < at.size(); a++) {
    at[a] = index[a] - node.list(Key::low)[a];
    if (at[a].bounds().low < 0) mask = k.both(mask, k.compare(Op::ge, at[a], 0));
    if (at[a].bounds().high >= source.shape[a].bounds().low)
      mask = k.both(mask, k.compare(Op::lt, at[a], source.shape[a]));
  }
  const int value = k.masked(mask, k.value_at(node.inputs[0], at, mask), node.value);
  k.write(StepKind::Store, buffer, k.place(buffer, index), value);
}

void build(KernelBuilder& k, int id, int buffer) {
  const Node& node = k.graph()[id];
  if (is_virtual(node)) return build_copy(k, id, buffer);
  switch (info(node.op).op_class) {
    case OpClass::Pointwise: return build_pointwise(k, node, buffer);
    case OpClass::Reduction: return build_reduction(k, node, buffer);
    case OpClass::Scan: build_along(k, node, buffer, StepKind::Scan); return;
    case OpClass::Sort: build_along(k, node, buffer, StepKind::Sort); return;
    case OpClass::Matmul: return build_matmul(k, node, buffer);
    case OpClass::Scatter: return build_scatter(k, node, buffer);
    default: break;
  }
  switch (node.op) {
    case Op::philox: return build_philox(k, node, buffer);
    case Op::gather: return build_gather(k, node, buffer);
    case Op::concat: return build_concat(k, node, buffer);
    case Op::pad: return build_pad(k, node, buffer);
    default: CHECK(false, "no lowering for ", info(node.op).name);
  }
}

// --- buffers and kernels ---

struct Lowering {
  explicit Lowering(const Graph& g) : graph(g), views(g), buffers(g.nodes.size(), -1) {}

  const Graph& graph;
  const Views views;
  Program program;
  std::vector<int> buffers;     // of each node, -1 where it has none
  std::set<std::string> taken;  // names of inputs
};

void add_input(Lowering& l, int id) {
  const Node& node = l.graph[id];
  Buffer buffer{node.name, Role::Input, node.type, product(node.type.shape), {}, 0};
  buffer.align = static_cast<int>(node.integer(Key::align, 16));
  buffer.donated = node.find(Key::donated) != nullptr;
  if (node.find(Key::strides) && !is_empty(node.type)) {
    buffer.strides = node.list(Key::strides);
    buffer.size = 1;
    for (size_t k = 0; k < buffer.strides.size(); k++) {
      const Expr reach = (node.type.shape[k] - 1) * buffer.strides[k];
      const bool backwards = buffer.strides[k].bounds().high < 0;
      buffer.size = backwards ? buffer.size - reach : buffer.size + reach;
      if (backwards) buffer.offset = buffer.offset - reach;
    }
  }
  l.buffers[id] = static_cast<int>(l.program.buffers.size());
  l.program.buffers.push_back(std::move(buffer));
}

// Only a user's input can have taken the name.
std::string unused(const Lowering& l, std::string name) {
  while (l.taken.count(name)) name += "_";
  return name;
}

void add_kernel(Lowering& l, int id, bool output) {
  const Node& node = l.graph[id];
  const std::string name = str(output ? "y" : "t", id);
  l.program.buffers.push_back({unused(l, name),
                               output ? Role::Output : Role::Temporary,
                               node.type,
                               product(node.type.shape),
                               {},
                               0});
  const int buffer = static_cast<int>(l.program.buffers.size()) - 1;
  if (!is_empty(node.type)) {
    KernelBuilder builder(l.graph, l.views, l.program, l.buffers);
    build(builder, id, buffer);
    const char* verb = is_virtual(node) ? "copy" : info(node.op).name;
    l.program.launches.push_back({static_cast<int>(l.program.kernels.size())});
    l.program.kernels.push_back(builder.finish(str(verb, "_", id), node));
  }
  l.buffers[id] = buffer;  // only now: a copy of a view reads through the view
}

Program lowered(const Graph& graph) {
  Lowering l(graph);
  l.program.name = graph.name;
  for (int node : graph.inputs()) add_input(l, node);
  for (const Buffer& input : l.program.buffers) l.taken.insert(input.name);
  const std::vector<bool> unread = unread_places(graph);
  const std::set<int> outputs(graph.outputs.begin(), graph.outputs.end());
  for (int node = 0; node < graph.size(); node++) {
    if (graph[node].op != Op::input && l.views.stored[node] && !unread[node])
      add_kernel(l, node, outputs.count(node) > 0);
  }
  for (int output : graph.outputs) l.program.outputs.push_back(l.buffers[output]);
  return std::move(l.program);
}

// A size called like a loop gets another name: graph f[i0: 1..8] => program f[i0_: 1..8].
Graph without_loop_names(const Graph& graph) {
  std::set<std::string> names;
  for (const Expr& size : symbols(graph)) names.insert(size.name());
  Substitution others;
  for (const Expr& size : symbols(graph)) {
    std::string name = size.name();
    while (is_loop_name(name) || (name != size.name() && names.count(name))) name += '_';
    if (name == size.name()) continue;
    names.insert(name);
    others.push_back({size.symbol(), Expr::symbol({name, SymbolKind::Size}, size.bounds().low,
                                                  size.bounds().high)});
  }
  return substitute(graph, others);
}

}  // namespace

Program lower(const Graph& graph) {
  const Graph renamed = without_loop_names(graph);
  return lowered(with_short_concats(inline_calls(renamed)));
}

}  // namespace tiny_compile
