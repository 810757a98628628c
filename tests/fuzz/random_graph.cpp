// Nodes are drawn one by one; an op that does not fit its operands is drawn again.
#include "tests/fuzz/random_graph.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/fuzz/outline.h"
#include "tiny_compile/passes/gradient.h"
#include "tiny_compile/passes/partition.h"
#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostElements = 6000;    // of a tensor ...
constexpr int64_t kManyElements = 100000;  // ... and in a few graphs: rows that are split

class Generator {
 public:
  Generator(uint64_t seed, int most_nodes)
      : seed_(seed), random_(seed), most_nodes_(most_nodes) {
    graph_.name = "fuzz";
    most_elements_ = chance(3) ? kManyElements : kMostElements;
    usual_dtype_ = chance(50) ? DType::f32 : static_cast<DType>(below(kDTypeCount));
    for (int64_t& size : usual_sizes_) size = any_size();
    if (seed % 16 == 15) choose_long_rows();
  }

  // One graph of sixteen has a few long rows, and values of one a row or one a column.
  void choose_long_rows() {
    static constexpr int64_t kRows[] = {1000, 1023, 1024, 2049, 4097, 9001, 20000};
    rows_ = true;
    most_elements_ = kManyElements;
    usual_dtype_ = chance(70) ? DType::f32 : DType::bf16;
    usual_sizes_[0] = 2 + below(3);
    usual_sizes_[1] = kRows[below(std::size(kRows))];
    usual_sizes_[2] = 1;
  }

  Graph run() {
    const int inputs = (rows_ ? 2 : 1) + below(3);
    for (int i = 0; i < inputs; i++) add_input();
    if (rows_ && chance(30)) add_plane();
    const int wanted = graph_.size() + 2 + below(most_nodes_ - 2);
    for (int tries = 0; graph_.size() < wanted && tries < 400; tries++)
      chance(rows_ ? 50 : 25) ? add_pattern() : add_op();
    graph_.outputs.push_back(graph_.size() - 1);
    for (int id = 0; id + 1 < graph_.size(); id++) {
      if (chance(uses_[id] == 0 ? 60 : 5)) graph_.outputs.push_back(id);
    }
    donate_some();
    Graph result = dce(graph_);
    if (chance(20)) result = with_calls(std::move(result));
    verify(result);
    return result;
  }

 private:
  // Drawn apart from the rest, which stays what its seed has always made.
  void donate_some() {
    std::mt19937_64 random(seed_);
    for (Node& node : graph_.nodes) {
      const bool whole = !node.find(Key::strides) && !node.find(Key::align);
      if (node.op == Op::input && whole && random() % 2) node.set(Key::donated, {1});
    }
  }

  // The same function; the second call may hold the first.
  Graph with_calls(Graph graph) {
    for (int calls = 1 + below(2); calls > 0; calls--) {
      const int first = below(graph.size());
      graph = outline(graph, first, first + 1 + below(graph.size() - first),
                      chance(50) ? Op::call : Op::checkpoint);
    }
    return graph;
  }

  int below(int64_t n) {
    return static_cast<int>(random_() % static_cast<uint64_t>(std::max<int64_t>(n, 1)));
  }
  bool chance(int percent) { return below(100) < percent; }

  int64_t any_size() {
    static constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 33};
    static constexpr int64_t kLong[] = {1001, 1024, 1100, 2048};
    if (chance(1)) return 0;
    if (most_elements_ == kManyElements && chance(20)) return 16384 + below(3) * 1111;
    return chance(6) ? kLong[below(4)] : kSizes[below(10)];
  }
  // A graph has its own few sizes, so that shapes meet.
  int64_t random_size() { return chance(70) ? usual_sizes_[below(3)] : any_size(); }
  Shape random_shape() {
    const bool whole = graph_.size() == 0;
    if (rows_ && (whole || chance(80))) {
      return {whole || chance(75) ? usual_sizes_[0] : 1,
              whole || chance(75) ? usual_sizes_[1] : 1};
    }
    Shape shape;
    int64_t count = 1;
    for (int rank = below(4); rank > 0; rank--) {
      const int64_t size = random_size();
      if (count * size > most_elements_) break;
      count *= size;
      shape.push_back(size);
    }
    return shape;
  }
  DType random_dtype() {
    return chance(70) ? usual_dtype_ : static_cast<DType>(below(kDTypeCount));
  }

  void add_input() {
    Node node;
    node.type = {random_dtype(), random_shape()};
    node.name = str("x", graph_.size());
    if (chance(30) && node.type.rank() > 0) node.set(Key::strides, random_strides(node.type));
    if (chance(10)) node.set(Key::align, {size_of(node.type.dtype)});
    add(node);
  }

  // Axes in any order, with gaps, some the same place over and over; never backwards: the
  // tracer copies those.
  Shape random_strides(const Type& type) {
    std::vector<size_t> order(type.shape.size());
    for (size_t k = 0; k < order.size(); k++) order[k] = k;
    std::shuffle(order.begin(), order.end(), random_);
    Shape strides(order.size());
    int64_t stride = chance(20) ? 2 : 1;
    for (size_t k : order) {
      strides[k] = chance(5) ? 0 : stride;
      stride = stride * std::max<int64_t>(type.shape[k].constant(), 1) + (chance(10) ? 3 : 0);
    }
    return strides;
  }

  int add(Node node) {
    for (int input : node.inputs) uses_[input]++;
    uses_.push_back(0);
    return graph_.append(std::move(node));
  }

  int any_node() {
    if (chance(40)) {  // a value that nobody uses yet
      const int start = below(graph_.size());
      for (int k = 0; k < graph_.size(); k++) {
        const int id = (start + k) % graph_.size();
        if (uses_[id] == 0) return id;
      }
    }
    return chance(60) ? graph_.size() - 1 - below(std::min(graph_.size(), 4))
                      : below(graph_.size());
  }
  const Type& type(int id) const { return graph_[id].type; }

  // Appends if the shape rules allow it; -1 otherwise.
  int append(Node node) {
    std::vector<Type> types;
    for (int input : node.inputs) {
      if (input < 0) return -1;
      types.push_back(type(input));
    }
    try {
      node.type = infer(node, types);
    } catch (const Error&) {
      return -1;
    }
    if (product(node.type.shape).constant() > most_elements_) return -1;
    return add(std::move(node));
  }
  int append(Op op, std::vector<int> inputs, Type type = {}) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.type = std::move(type);
    return append(std::move(node));
  }

  int constant(const Type& like, double value) {
    Node node;
    node.op = Op::constant;
    node.type = like;
    node.value = Literal::of(like.dtype, value);
    return append(std::move(node));
  }
  int cast(int id, DType dtype) {
    return id < 0 || type(id).dtype == dtype ? id : append(Op::cast, {id}, {dtype, {}});
  }

  // A node of the type, made from an existing one: cast, expanded or a constant.
  int like(Type wanted) {  // a copy: nodes move while they are added
    for (int tries = 0; tries < 4; tries++) {
      const int id = any_node();
      if (type(id).shape == wanted.shape) return cast(id, wanted.dtype);
    }
    const int id = any_node();
    const int expanded = append(Op::expand, {id}, {type(id).dtype, wanted.shape});
    if (expanded >= 0) return cast(expanded, wanted.dtype);
    static constexpr double kValues[] = {0.0, -0.0, 1, -1, 0.5, 2, 3, 1e-40, 1e30};
    return constant(wanted, kValues[below(9)]);
  }

  // Values in [0, limit) of dtype i64 and the shape.
  int index_like(Shape shape, int64_t limit) {
    int id = cast(like({DType::i64, shape}), DType::i64);
    if (id < 0) return -1;
    return append(Op::remainder,
                  {id, constant({DType::i64, shape}, static_cast<double>(limit))});
  }

  void add_op() {
    const Op op = static_cast<Op>(1 + below(kOpCount - 1));
    if (is_pointwise(op)) return add_pointwise(op);
    switch (info(op).op_class) {
      case OpClass::View: return add_view(op, any_node());
      case OpClass::Reduction: return add_reduction(op);
      case OpClass::Matmul: return add_matmul();
      case OpClass::Scan:
      case OpClass::Sort: return add_along(op);
      case OpClass::Scatter: return add_scatter(op);
      case OpClass::Call: return;  // made of what is there: with_calls
      default: return add_other(op);
    }
  }

  // What networks are made of: rows normalised by their own reduction, chains
  // of views, matmuls.
  void add_pattern() {
    static constexpr int kOfRows[] = {0, 3, 4};
    switch (rows_ ? kOfRows[below(3)] : below(4)) {
      case 0: return add_normalised(any_node());
      case 4: return add_loss(any_node());
      case 1:
        for (int views = 2 + below(4); views > 0; views--)
          add_view(static_cast<Op>(static_cast<int>(Op::reshape) + below(6)), last());
        return;
      case 2: return add_matmul();
      default: {  // softmax, or nearly
        const int x = any_node();
        if (!is_float(type(x).dtype)) return;
        const auto [powers, sum] = exponentials(x, random_axes(type(x).rank()));
        combine_with(Op::div, powers, sum);
      }
    }
  }
  int last() const { return graph_.size() - 1; }

  // exp(x - max(x)) and its sum; -1 where the shapes do not allow it.
  std::pair<int, int> exponentials(int x, const std::vector<Expr>& axes) {
    const int powers = append(Op::exp, {combine_with(Op::sub, x, reduce(Op::max, x, axes))});
    return {powers, reduce(Op::sum, powers, axes)};
  }

  // A value a row, stored, and one an element that is made of the same sum: a loss, its gradient.
  void add_loss(int x) {
    if (!is_float(type(x).dtype) || type(x).rank() == 0) return;
    const auto [powers, sum] = exponentials(x, {type(x).rank() - 1});
    const int log = append(Op::log, {sum});
    const int loss = log < 0 ? -1 : append(Op::sub, {log, like(type(log))});
    if (loss >= 0) graph_.outputs.push_back(loss);
    combine_with(Op::div, powers, sum);
  }

  // An input whose first two axes are not one in memory, and its columns' sums over both.
  void add_plane() {
    Node node;
    node.type = {usual_dtype_, {2 + below(40), 25 + 8 * below(2), 8 + below(40)}};
    node.name = str("x", graph_.size());
    const int64_t rows = node.type.shape[1].constant() - 1;
    Node part;
    part.op = Op::slice;
    part.inputs = {add(std::move(node))};
    part.set(Key::axis, {1}).set(Key::start, {0}).set(Key::stop, {rows}).set(Key::step, {1});
    const int apart = append(std::move(part));
    if (apart >= 0) graph_.outputs.push_back(reduce(Op::sum, apart, {0, 1}));
  }

  void add_normalised(int x) {
    static constexpr Op kReductions[] = {Op::sum, Op::max, Op::min, Op::prod};
    static constexpr Op kOps[] = {Op::sub, Op::mul, Op::add, Op::maximum};
    if (type(x).dtype == DType::boolean) return;
    int reduced = reduce(kReductions[below(4)], x, random_axes(type(x).rank()));
    if (reduced >= 0) reduced = cast(reduced, type(x).dtype);
    combine_with(kOps[below(4)], x, reduced);
  }
  std::vector<Expr> random_axes(int rank) {
    std::vector<Expr> axes;
    if (rows_ && rank > 0 && chance(80)) return {rank - 1};
    for (int k = 0; k < rank; k++) {
      if (chance(50)) axes.push_back(k);
    }
    if (chance(20)) std::shuffle(axes.begin(), axes.end(), random_);
    return axes;
  }
  int reduce(Op op, int x, const std::vector<Expr>& axes) {
    Node node;
    node.op = op;
    node.inputs = {x};
    node.set(Key::axes, axes).set(Key::keepdim, {1});
    return append(std::move(node));
  }
  int combine_with(Op op, int x, int reduced) {  // op(x, reduced expanded to x)
    if (x < 0 || reduced < 0) return -1;
    const int wide = append(Op::expand, {reduced}, {type(reduced).dtype, type(x).shape});
    return wide < 0 ? -1 : append(op, {x, wide});
  }

  void add_pointwise(Op op) {
    int a = any_node();
    const Domain domain = info(op).domain;
    if (op == Op::cast) {
      append(op, {a}, {random_dtype(), {}});
      return;
    }
    if (op == Op::bitcast) {
      std::vector<DType> fitting;
      for (int k = 0; k < kDTypeCount; k++) {
        const DType dtype = static_cast<DType>(k);
        if (size_of(dtype) == size_of(type(a).dtype)) fitting.push_back(dtype);
      }
      append(op, {a}, {fitting[below(static_cast<int>(fitting.size()))], {}});
      return;
    }
    if (domain == Domain::Float && !is_float(type(a).dtype))
      a = cast(a, chance(70) ? DType::f32 : DType::bf16);
    if (!accepts(domain, type(a).dtype)) a = cast(a, chance(50) ? DType::i32 : DType::u8);
    if (a < 0 || !accepts(domain, type(a).dtype)) return;
    if (op == Op::where) {
      const int condition = like({DType::boolean, type(a).shape});
      const int other = like(type(a));
      if (condition >= 0 && other >= 0) append(op, {condition, a, other});
      return;
    }
    std::vector<int> inputs = {a};
    for (int k = 1; k < info(op).arity; k++) {
      int b = like(type(a));
      const bool divides = op == Op::floor_divide || op == Op::remainder;
      if (b >= 0 && divides && is_integer(type(a).dtype)) {  // b | 1 is not zero
        b = append(Op::bitwise_or, {b, constant(type(a), 1)});
      }
      if (b < 0) return;
      inputs.push_back(b);
    }
    append(op, inputs);
  }

  void add_view(Op op, int x) {
    const Shape& shape = type(x).shape;
    const int rank = type(x).rank();
    Node node;
    node.op = op;
    node.inputs = {x};
    node.type = type(x);
    const int axis = below(rank);
    const int64_t size = rank ? shape[axis].constant() : 0;
    switch (op) {
      case Op::reshape: node.type.shape = reshaped(product(shape).constant()); break;
      case Op::permute: {
        std::vector<Expr> axes;
        for (int k = 0; k < rank; k++) axes.push_back(k);
        std::shuffle(axes.begin(), axes.end(), random_);
        node.set(Key::axes, axes);
        break;
      }
      case Op::expand:
        for (Expr& s : node.type.shape) {
          if (s.is_constant(1) && chance(50)) s = random_size();
        }
        if (chance(30)) node.type.shape.insert(node.type.shape.begin(), 1 + below(3));
        break;
      case Op::slice: {
        const int64_t start = below(size + 1);
        node.set(Key::axis, {axis})
            .set(Key::start, {start})
            .set(Key::stop, {start + below(size - start + 1)})
            .set(Key::step, {1 + below(3)});
        break;
      }
      case Op::flip:
        node.set(Key::axes, rank ? std::vector<Expr>{axis} : std::vector<Expr>{});
        break;
      default:
        node.set(Key::axis, {axis})
            .set(Key::size, {1 + below(size)})
            .set(Key::step, {1 + below(3)});
        break;
    }
    if (rank || op == Op::reshape || op == Op::expand) append(std::move(node));
  }

  Shape reshaped(int64_t count) {
    Shape shape;
    while (count > 1 && shape.size() < 4) {
      int64_t divisor = 1 + below(std::min<int64_t>(count, 20));
      if (chance(25)) divisor = count;
      if (count % divisor != 0) continue;
      shape.push_back(divisor);
      count /= divisor;
    }
    if (count != 1) shape.push_back(count);
    return shape;
  }

  void add_reduction(Op op) {
    int x = any_node();
    if (op == Op::any || op == Op::all) x = cast(x, DType::boolean);
    if (op == Op::sum_exp && !is_float(type(x).dtype)) x = cast(x, DType::f32);
    if (x < 0) return;
    Node node;
    node.op = op;
    node.inputs = {x};
    node.set(Key::axes, random_axes(type(x).rank()));
    if (chance(40)) node.set(Key::keepdim, {1});
    append(std::move(node));
  }

  void add_matmul() {
    const int a = any_node();
    if (type(a).rank() < 2 || type(a).dtype == DType::boolean) return;
    Shape shape = type(a).shape;
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    std::vector<Expr> axes;
    for (int k = 0; k < type(a).rank(); k++) axes.push_back(k);
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    int b = -1;
    if (chance(60)) {
      Node node;
      node.op = Op::permute;
      node.inputs = {like(type(a))};
      node.set(Key::axes, axes);
      if (node.inputs[0] >= 0) b = append(std::move(node));
    } else {
      shape.back() = random_size();
      b = like({type(a).dtype, shape});
    }
    if (b >= 0) append(Op::matmul, {a, b});
  }

  void add_along(Op op) {
    const int x = any_node();
    const Type& of = type(x);
    if (of.rank() == 0 || (is_scan(op) && of.dtype == DType::boolean)) return;
    if (op == Op::logcumsumexp && !is_float(of.dtype)) return;
    Node node;
    node.op = op;
    node.inputs = {x};
    node.set(Key::axis, {below(of.rank())});
    append(std::move(node));
  }

  void add_scatter(Op op) {
    const int x = any_node(), rank = type(x).rank(), axis = below(rank);
    Shape shape = type(x).shape;
    if (rank == 0 || shape[axis].is_constant(0)) return;
    if (op != Op::scatter && type(x).dtype == DType::boolean) return;
    const int64_t limit = shape[axis].constant();
    shape[axis] = random_size();
    for (int k = 0; k < rank; k++) {
      if (k != axis && chance(20)) shape[k] = 1 + below(shape[k].constant());
      if (k != axis && type(x).shape[k].constant() < shape[k].constant()) return;
    }
    const int index = index_like(shape, limit);
    const int source = index < 0 ? -1 : like({type(x).dtype, shape});
    Node node;
    node.op = op;
    node.inputs = {x, index, source};
    node.set(Key::axis, {axis});
    if (source >= 0) append(std::move(node));
  }

  void add_other(Op op) {
    const int x = any_node();
    const int rank = type(x).rank(), axis = below(rank);
    Node node;
    node.op = op;
    node.set(Key::axis, {axis});
    Shape shape = type(x).shape;
    switch (op) {
      case Op::iota: {
        node = {};
        node.op = op;
        node.type = {DType::i64, {random_size()}};
        if (below(2)) node.set(Key::start, {below(9) - 4});
        append(std::move(node));
        return;
      }
      case Op::constant: constant({random_dtype(), random_shape()}, below(5) - 2); return;
      case Op::philox: {
        const int key = like({DType::u64, {2}});
        node = {};
        node.op = op;
        node.inputs = {key};
        node.type = {DType::u32, random_shape()};
        node.set(Key::draw, {below(5)});
        if (key >= 0) append(std::move(node));
        return;
      }
      case Op::gather: {
        if (rank == 0) return;
        const int64_t limit = shape[axis].constant();
        shape[axis] = random_size();
        const int index = limit > 0 ? index_like(shape, limit) : -1;
        node.inputs = {x, index};
        if (index >= 0) append(std::move(node));
        return;
      }
      case Op::concat: {
        if (rank == 0) return;
        node.inputs = {x};
        for (int parts = below(3); parts > 0; parts--) {
          shape[axis] = random_size();
          const int part = like({type(x).dtype, shape});
          if (part >= 0) node.inputs.push_back(part);
        }
        append(std::move(node));
        return;
      }
      case Op::pad: {
        std::vector<Expr> low, high;
        for (int k = 0; k < rank; k++) {
          low.push_back(below(5) - 2);
          high.push_back(below(5) - 2);
        }
        node = {};
        node.op = op;
        node.inputs = {x};
        node.value = Literal::of(type(x).dtype, below(3) - 1);
        node.set(Key::low, low).set(Key::high, high);
        append(std::move(node));
        return;
      }
      default: return;
    }
  }

  uint64_t seed_;
  std::mt19937_64 random_;
  int most_nodes_;
  int64_t most_elements_ = kMostElements;
  bool rows_ = false;
  DType usual_dtype_ = DType::f32;
  int64_t usual_sizes_[3] = {};
  Graph graph_;
  std::vector<int> uses_;  // of each node
};

double random_value(std::mt19937_64& random) {
  static constexpr double kSpecial[] = {
      0.0,    -0.0, 1.0, -1.0, __builtin_inf(), -__builtin_inf(), 1e-40,
      -1e-40, 3e38, 0.5, 1e-7, -1e-310};
  if (random() % 40 == 0) return __builtin_nan("");
  if (random() % 12 == 0) return kSpecial[random() % 12];
  return std::normal_distribution<double>(0, 2)(random);
}

// The first elements of `values`, again and again, under these strides.
Tensor laid_out(const Tensor& values, const Attr& strides) {
  Sizes layout;
  int64_t reach = 0;
  for (size_t k = 0; k < strides.values.size(); k++) {
    layout.push_back(strides.values[k].constant());
    reach += std::max<int64_t>(values.shape()[k] - 1, 0) * layout.back();
  }
  if (values.numel() == 0) return with_layout(values, values.shape(), layout, 0);
  Tensor memory = empty_tensor(values.dtype(), {reach + 1});
  const size_t width = size_of(values.dtype()), all = static_cast<size_t>(memory.numel());
  for (size_t i = 0; i < all; i++)
    std::memcpy(memory.bytes() + i * width,
                values.bytes() + i % static_cast<size_t>(values.numel()) * width, width);
  return with_layout(memory, values.shape(), layout, 0);
}

}  // namespace

Graph random_graph(uint64_t seed, int most_nodes) { return Generator(seed, most_nodes).run(); }

Graph random_gradient(uint64_t seed) {
  const Graph graph = random_graph(seed), flat = inline_calls(graph);
  const std::vector<int> inputs = graph.inputs();
  std::vector<int> wrt;
  for (size_t k = 0; k < inputs.size(); k++)
    if (is_float(graph[inputs[k]].type.dtype)) wrt.push_back(static_cast<int>(k));
  const bool unknown = std::any_of(flat.nodes.begin(), flat.nodes.end(),
                                   [](const Node& node) { return node.op == Op::zeta; });
  return wrt.empty() || unknown ? graph : vjp(graph, wrt);
}

Graph random_recomputed(uint64_t seed) {
  const Graph graph = random_graph(seed), joint = random_gradient(seed);
  return recompute(joint, graph.outputs.size(), static_cast<double>(seed % 4) / 4);
}

Graph random_twins(uint64_t seed) {
  const Graph one = random_graph(seed);
  Graph twins = one;
  for (Node node : one.nodes) {
    for (int& operand : node.inputs) operand += one.size();
    if (node.op == Op::input) node.name += "_twin";
    twins.append(std::move(node));
  }
  for (const int output : one.outputs) twins.outputs.push_back(output + one.size());
  return twins;
}

Graph flat_random_graph(uint64_t seed, int most_nodes) {
  return inline_calls(random_graph(seed, most_nodes));
}

std::vector<Tensor> random_inputs(const Graph& graph, uint64_t seed) {
  std::mt19937_64 random(seed * 77 + 5);
  std::vector<Tensor> inputs;
  for (int id : graph.inputs()) {
    const Node& node = graph[id];
    Sizes shape;
    for (const Expr& size : node.type.shape) shape.push_back(size.constant());
    Tensor tensor = empty_tensor(node.type.dtype, shape);
    const size_t width = size_of(tensor.dtype());
    const bool tame = random() % 2;  // half of the inputs have no special values
    for (int64_t i = 0; i < tensor.numel(); i++) {
      const double plain = std::normal_distribution<double>(0, 2)(random);
      const Literal value =
          is_float(tensor.dtype())
              ? Literal::of(tensor.dtype(), tame ? plain : random_value(random))
              : Literal::of_integer(
                    tensor.dtype(),
                    static_cast<int64_t>(random() % 2 ? random() % 9 : random()));
      std::memcpy(tensor.bytes() + static_cast<size_t>(i) * width, &value.bits, width);
    }
    if (const Attr* strides = node.find(Key::strides)) tensor = laid_out(tensor, *strides);
    inputs.push_back(tensor);
  }
  return inputs;
}

}  // namespace tiny_compile
