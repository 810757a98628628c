// How does running write code down? A traced tensor knows its trace and its node;
// apply() appends a node instead of computing. Nothing else in the library knows whether
// it is being traced.
//
//   trace([](span x) { return {x[0] + x[0]}; }, {f32[4]})
//     =>  graph f(%0 x0: f32[4]) { %1 = add %0, %0 ; return %1 }
#include "tiny_compile/trace/tracer.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/graph/sizes.h"

namespace tiny_compile {
namespace {

Type type_of(const Tensor& tensor) { return {tensor.dtype(), tensor.sizes().exprs()}; }

std::vector<Expr> exprs(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }

// What is gone by now was the function's own.
void check_variable(Captured& captured, const std::string& name) {
  if (!captured.variable) return;
  if (!captured.variable->exists()) captured.variable.reset();
  if (captured.variable && (**captured.variable).handle() != captured.tensor.handle())
    fail(name,
         ": assigned to a tensor that it captured, which a compiled function would do once "
         "and never again: return the new one instead");
}

}  // namespace

class Trace {
 public:
  // `outer`: the trace within which this one runs, or null.
  Trace(const std::string& name, Trace* outer) : outer_(outer) {
    graph_.name = name;
    if (outer) return;
    origins_.emplace();
    own_sizes_.place = current_place;
  }

  // What is decided about symbolic ones, here and in the traces around.
  SizeTrace& sizes() { return outer_ ? outer_->sizes() : own_sizes_; }

  Tensor add_input(const Type& type, const std::string& name) {
    Node node;
    node.type = type;
    node.name = name;
    return handle(graph_.append(std::move(node)));
  }

  Tensor add_input(const Tensor& like, const std::string& name) {
    Node node;
    node.type = type_of(like);
    node.name = name;
    if (!like.is_traced() && !like.is_contiguous() && !has_reversed_axes(like))
      node.set(Key::strides, exprs(like.strides()));  // reversed axes are copied
    if (!like.is_traced() && alignment(like) < 16) node.set(Key::align, {alignment(like)});
    return handle(graph_.append(std::move(node)));
  }

  // The node of an operand; a tensor with values is captured as an input, once a variable.
  int node_of(const Tensor& tensor, const Location& where) {
    const TensorData& data = tensor.info();
    if (data.trace == this) return data.node;
    if (outer_) return captured_from(outer_->node_of(tensor, where));
    if (data.trace)
      fail_at(where,
              "this tensor belongs to another trace, or to one that has ended: return it from "
              "the traced function instead of keeping it");
    const Variable variable = origins_->of(tensor);
    const auto [known, is_new] =
        captured_nodes_.try_emplace(std::pair(tensor.handle().get(), variable));
    if (!is_new) return known->second;
    captured_.push_back({tensor, variable});
    return known->second = add_input(tensor, str("w", captured_.size() - 1)).info().node;
  }

  const Location& where(int node) const { return graph_[node].where; }

  Tensor record(Node node) { return handle(graph_.append(std::move(node))); }

  RandomKey next_draw() {
    if (outer_) {
      const RandomKey next = outer_->next_draw();
      return {handle(node_of(next.key, {})), next.draw};
    }
    if (key_ < 0) {
      Node node;
      node.type = {DType::u64, {2}};
      node.name = "philox_key";
      key_ = graph_.append(std::move(node));
    }
    return {handle(key_), draws_++};
  }

  // Inputs first: the function's, captured ones in order, the key.
  Traced finish(std::vector<int> outputs) {
    graph_.outputs = std::move(outputs);
    Graph ordered;
    ordered.name = graph_.name;
    std::vector<int> ids(graph_.nodes.size(), -1);
    auto move_node = [&](int id) {
      Node node = std::move(graph_.nodes[id]);
      for (int& input : node.inputs) input = ids[input];
      ids[id] = ordered.append(std::move(node));
    };
    for (int id : graph_.inputs()) {
      if (id != key_) move_node(id);
    }
    if (key_ >= 0) move_node(key_);
    for (int id = 0; id < graph_.size(); id++) {
      if (ids[id] < 0) move_node(id);
    }
    for (int output : graph_.outputs) ordered.outputs.push_back(ids[output]);
    ordered = substitute(ordered, sizes().known);
    verify(ordered);
    for (Captured& captured : captured_) check_variable(captured, graph_.name);
    return {std::move(ordered), std::move(captured_), draws_, {}, std::move(own_sizes_.guards)};
  }

  Type type_of_operand(const Tensor& tensor) const {
    const TensorData& data = tensor.info();
    return data.trace == this ? graph_[data.node].type : type_of(tensor);  // maybe a tuple
  }

  // As the trace knows it by now: a size that was asked for is a number.
  void apply_known(Node& node, std::vector<Type>& operands) {
    const Substitution& known = sizes().known;
    if (known.empty()) return;
    node.type.shape = substitute(node.type.shape, known);
    for (Attr& attr : node.attrs) attr.values = substitute(attr.values, known);
    for (Type& type : operands) type.shape = substitute(type.shape, known);
  }

  Tensor handle(int node) {
    auto data = std::make_shared<TensorData>();
    data->dtype = graph_[node].type.dtype;
    const Shape& shape = graph_[node].type.shape;
    const auto is_number = [](const Expr& size) { return size.is_constant(); };
    const bool numbers = std::all_of(shape.begin(), shape.end(), is_number);
    auto layout = std::make_shared<TensorLayout>();
    if (!numbers) layout->symbolic = shape;
    for (size_t k = 0; k < shape.size() && numbers; k++)
      layout->shape.push_back(shape[k].constant());
    layout->strides = contiguous_strides(layout->shape);
    data->layout = std::move(layout);
    data->trace = this;
    data->node = node;
    return Tensor(std::move(data));
  }

 private:
  int captured_from(int outer_node) {
    const auto [known, is_new] = outer_nodes_.try_emplace(outer_node);
    if (!is_new) return known->second;
    const Tensor tensor = outer_->handle(outer_node);
    captured_.push_back({tensor, {}});
    return known->second = add_input(tensor, str("w", captured_.size() - 1)).info().node;
  }

  Graph graph_;
  Trace* outer_;
  SizeTrace own_sizes_;             // of the outermost trace, as are
  std::optional<Origins> origins_;  // these
  std::map<int, int> outer_nodes_;  // captured from the trace around: its node, ours
  std::map<std::pair<const TensorData*, Variable>, int> captured_nodes_;
  std::vector<Captured> captured_;
  int key_ = -1;
  int64_t draws_ = 0;
};

namespace {

thread_local Trace* current_trace = nullptr;
thread_local const Location* current_scope = nullptr;

std::mutex generator_mutex;
uint64_t generator_seed = 0, generator_draws = 0;

struct TraceGuard {
  explicit TraceGuard(Trace* trace) : before_(std::exchange(current_trace, trace)) {}
  ~TraceGuard() { current_trace = before_; }

 private:
  Trace* before_;
};

}  // namespace

// A CPU tensor of one element, expanded or not: it may meet tensors of any device.
bool goes_along(const Tensor& tensor) {
  return tensor.device() == cpu && byte_span(tensor.info()).second <= size_of(tensor.dtype());
}

// Where an op on these runs.
Device device_of(std::span<const Tensor> operands, const Location& where) {
  const Tensor* first = nullptr;
  for (const Tensor& operand : operands) {
    if (goes_along(operand)) continue;
    if (first && operand.device() != first->device())
      fail_at(where, str("operands on ", first->device().str(), " and on ",
                         operand.device().str(), ": move one with to(...)"));
    first = first ? first : &operand;
  }
  return first ? first->device() : cpu;
}

Location location_of(const Here& here) {
  return {here.file_name(), static_cast<int>(here.line())};
}

bool is_tracing() { return current_trace != nullptr; }

Location recorded_at(const Tensor& traced) {
  const bool here = current_trace && traced.info().trace == current_trace;
  return here ? current_trace->where(traced.info().node) : Location{};
}

Tensor seen(const Tensor& tensor, const Location& where) {
  if (!current_trace || !tensor.defined() || tensor.is_traced()) return tensor;
  return current_trace->handle(current_trace->node_of(tensor, where));
}

Tensor apply(Node node, std::span<const Tensor> operands, const Location& where) {
  node.where = current_place(where);
  std::vector<Type> types;
  for (const Tensor& operand : operands) {
    if (!operand.defined())
      fail_at(node.where, str(info(node.op).name, ": an operand is an undefined tensor"));
    types.push_back(current_trace ? current_trace->type_of_operand(operand) : type_of(operand));
  }
  if (current_trace) current_trace->apply_known(node, types);
  try {
    node.type = infer(node, types);
  } catch (const Error& error) {
    fail_at(node.where, error.what());
  }
  if (!current_trace) {
    for (const Tensor& operand : operands) {
      if (operand.is_traced())
        fail_at(node.where,
                "this tensor belongs to a trace that has ended: return it from the traced "
                "function instead of keeping it");
    }
    const Device device = device_of(operands, node.where);
    return device == cpu ? evaluate(node, operands) : apply_on_device(node, operands, device);
  }
  for (const Tensor& operand : operands)
    node.inputs.push_back(current_trace->node_of(operand, node.where));
  return current_trace->record(std::move(node));
}

Tensor row_major_copy(const Tensor& tensor) {
  if (tensor.device() == cpu) return contiguous_copy(tensor);
  Node node;
  node.op = Op::cast;
  node.type.dtype = tensor.dtype();
  return apply(std::move(node), {tensor}, {});
}

static Traced run_trace(Trace& trace, const TensorFunction& function,
                        std::span<const Tensor> inputs, const std::string& name) {
  const TraceGuard guard(&trace);
  const SizeTraceScope sizes(&trace.sizes());
  std::vector<int> outputs;
  for (const Tensor& output : function(inputs)) {
    if (!output.defined()) fail(name, ": returned an undefined tensor");
    outputs.push_back(trace.node_of(output, {}));
  }
  return trace.finish(std::move(outputs));
}

Traced trace(const TensorFunction& function, std::span<const Tensor> inputs,
             const std::string& name) {
  Trace trace(name, current_trace);
  std::vector<Tensor> traced;
  for (size_t i = 0; i < inputs.size(); i++)
    traced.push_back(trace.add_input(inputs[i], str("x", i)));
  Traced result = run_trace(trace, function, traced, name);
  for (const Tensor& input : inputs) result.given.push_back(type_of(input));
  return result;
}

Traced trace_symbolic(const TensorFunction& function, const std::vector<Type>& inputs,
                      const std::string& name, const std::optional<SymbolValues>& example) {
  Trace trace(name, current_trace);
  if (example) trace.sizes().example = example;
  std::vector<Tensor> traced;
  for (size_t i = 0; i < inputs.size(); i++)
    traced.push_back(trace.add_input(inputs[i], str("x", i)));
  Traced result = run_trace(trace, function, traced, name);
  result.given = inputs;
  return result;
}

RandomKey next_draw() {
  if (current_trace) return current_trace->next_draw();
  const auto [seed, draw] = reserve_draws(1);
  return {from_vector<uint64_t>({seed, draw}), 0};
}

std::pair<uint64_t, uint64_t> reserve_draws(int64_t count) {
  const std::lock_guard lock(generator_mutex);
  const uint64_t first = generator_draws;
  generator_draws += static_cast<uint64_t>(count);
  return {generator_seed, first};
}

void manual_seed(uint64_t seed) {
  const std::lock_guard lock(generator_mutex);
  generator_seed = seed;
  generator_draws = 0;
}

Scope::Scope(const Location& where) : outermost_(current_scope == nullptr) {
  if (outermost_) current_scope = &where;
}
Scope::~Scope() {
  if (outermost_) current_scope = nullptr;
}

Location current_place(const Location& fallback) {
  return current_scope ? *current_scope : fallback;
}

}  // namespace tiny_compile
