// When is a product no work for a library of matrices? Where one factor has one row, each element of the other is
// used once: the product is a sum along its rows, which takes as long as they take to be read, and what computes a
// factor or goes on with the result may be one kernel with it:
//
//   %2: bf16[1,4096] = matmul %0, %1                       %0: bf16[1,1024], %1: bf16[1024,4096]
// =>
//   %4: f32[4096,1024] = mul %2, %3                        %2 and %3: the row and the other's rows, as f32
//   %5: f32[4096] = sum %4 {axes=[1]}
//   %6: f32[4096] = add %5, 0.0                            a product's zero is +0
//   %7: bf16[4096] = cast %6                               and %8: bf16[1,4096] = reshape %7
//
// So it is with a few rows, each a sum of its own, where the library does badly: where the other factor is computed of
// fewer bytes than it has, as weights of bytes and their scales are, which the library wants written as halves first,
// and where it is halves in rows that begin anywhere. A factor that all of a batch share is used by each of them.
#include <algorithm>
#include <set>

#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

// Rows where the library does badly. (H200, us, before and by sums: bf16 of i8[25128,3072] with its scales, one row, two,
// four, eight: 105, 44, 86, 88, 146; of [128256,256] 49, 17, 22, 31, 50; of [2561,6144] by the number of rows 33 12, 46
// 15, 51 22, 61 33; of bf16[50257,129] one row, two, four 16 11, 19 13, 25 17. But of even bf16[32000,5120] 82 76, 81 103,
// 81 142.)
constexpr int64_t kFewRows = 4;
constexpr int64_t kAligned = 16;   // bytes
constexpr size_t kMostNodes = 32;  // that compute a factor
constexpr double kFewer = 0.75;    // of a factor's bytes, which it is computed of

// Elements, and as many as numbers say.
bool has_elements(const Type& type) {
  return has_fixed_sizes(type) && product(type.shape) != 0;
}

// What pointwise ops and views compute a value of.
struct Sources {
  std::set<int> nodes;
  bool are_all = true;       // not more than are looked at
  bool has_windows = false;  // which repeat elements
};

Sources sources_of(const Graph& graph, int id) {
  Sources sources;
  std::set<int> seen;
  std::vector<int> left = {id};
  while (!left.empty()) {
    const int node = left.back();
    left.pop_back();
    if (!seen.insert(node).second) continue;
    if (seen.size() > kMostNodes) sources.are_all = false;
    if (!sources.are_all) break;
    sources.has_windows |= graph[node].op == Op::window;
    if (is_pointwise(graph[node].op) || is_view(graph[node].op))
      left.insert(left.end(), graph[node].inputs.begin(), graph[node].inputs.end());
    else
      sources.nodes.insert(node);
  }
  return sources;
}

double bytes_of(const Graph& graph, const Sources& sources) {
  double bytes = 0;
  for (const int source : sources.nodes)
    bytes += static_cast<double>(bytes_of(graph[source].type));
  return bytes;
}

// How many of a batch share it.
int64_t shared_by(const Graph& graph, int id) {
  while (graph[id].op == Op::permute) id = graph[id].inputs[0];
  if (graph[id].op != Op::expand) return 1;
  const Type &one = graph[graph[id].inputs[0]].type, &all = graph[id].type;
  return product(all.shape).constant() / product(one.shape).constant();
}

class Thin {
 public:
  explicit Thin(Graph& out) : out_(out) {}

  int visit(Node product) {
    if (product.op != Op::matmul || !is_float(product.type.dtype)) return out_.append(product);
    const int a = product.inputs[0], b = product.inputs[1];
    if (!has_elements(out_[a].type) || !has_elements(out_[b].type) ||
        product.type.dtype == DType::f64)
      return out_.append(product);
    const int last = product.type.rank() - 1;
    where_ = product.where;
    left_ = a;
    if (is_thin(size(a, last - 1), b)) return sums(a, swapped(b), product.type, last - 1);
    if (is_thin(size(b, last), a)) return sums(swapped(b), a, product.type, last);
    return out_.append(product);
  }

 private:
  int64_t size(int id, int axis) const { return out_[id].type.shape[axis].constant(); }

  int terms_of(int factor) const {  // the axis that is summed over
    return out_[factor].type.rank() - (factor == left_ ? 1 : 2);
  }

  // Products of windows are not the library's.
  bool is_thin(int64_t rows, int other) const {
    const int64_t shared = shared_by(out_, other), uses = rows * shared;
    if (uses > kFewRows) return false;
    const Sources sources = sources_of(out_, other);
    if (!sources.are_all || sources.has_windows) return false;
    const double own =
        static_cast<double>(bytes_of(out_[other].type)) / static_cast<double>(shared);
    return uses == 1 || has_odd_rows(other) || bytes_of(out_, sources) < kFewer * own;
  }

  // Of halves that lie along the terms of a sum.
  bool has_odd_rows(int other) const {
    const Type& type = out_[other].type;
    const int axis = contiguous_axis(out_, other);
    return is_half(type.dtype) && axis == terms_of(other) &&
           size(other, axis) * size_of(type.dtype) % kAligned != 0;
  }

  // few [.., f, k] and wide [.., w, k]: f sums [.., w], side by side along `axis` of the result.
  int sums(int few, int wide, const Type& result, int axis) {
    const int rows = result.rank() - 2;
    const int64_t count = size(few, rows);
    const int row = as_f32(few), other = as_f32(wide);
    Shape one = result.shape;
    one[axis] = 1;
    Node all = node_of(Op::concat, {});
    for (int64_t f = 0; f < count; f++) {
      const int spread =
          typed(Op::expand, count == 1 ? row : append_slice(out_, row, rows, f, f + 1, where_),
                out_[other].type);
      Node sum = node_of(Op::sum, {append(node_of(Op::mul, {spread, other}))});
      sum.set(Key::axes, {rows + 1});
      const int made = with_positive_zero(append(std::move(sum)));
      const int rounded = typed(Op::cast, made, {result.dtype, out_[made].type.shape});
      all.inputs.push_back(typed(Op::reshape, rounded, {result.dtype, one}));
    }
    if (count == 1) return all.inputs[0];
    all.set(Key::axis, {axis});
    return append(std::move(all));
  }

  int with_positive_zero(int id) {
    Node zero = node_of(Op::constant, {});
    zero.value = Literal::of(DType::f32, 0.0);
    zero.type = {DType::f32, {}};
    const int zeros = typed(Op::expand, append(std::move(zero)), out_[id].type);
    return append(node_of(Op::add, {id, zeros}));
  }

  int as_f32(int id) { return typed(Op::cast, id, {DType::f32, out_[id].type.shape}); }

  int swapped(int id) {  // its last two axes
    Node node = node_of(Op::permute, {id});
    const int rank = out_[id].type.rank();
    std::vector<Expr> axes;
    for (int axis = 0; axis < rank - 2; axis++) axes.push_back(axis);
    axes.push_back(rank - 1);
    axes.push_back(rank - 2);
    node.set(Key::axes, axes);
    return append(std::move(node));
  }

  // One of the ops whose type is their own; none where it is that already.
  int typed(Op op, int id, Type type) {
    if (out_[id].type == type) return id;
    Node node = node_of(op, {id});
    node.type = type;
    return append(std::move(node));
  }

  static Node node_of(Op op, std::vector<int> inputs) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    return node;
  }

  int append(Node node) {
    node.where = where_;
    return append_inferred(out_, std::move(node));
  }

  Graph& out_;
  int left_ = -1;  // the product's first factor
  Location where_;
};

}  // namespace

Graph thin_products(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) { return Thin(out).visit(std::move(node)); });
}

}  // namespace tiny_compile
