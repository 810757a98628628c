// Why does a product of halves over 2389 elements take five times as long as one over 2392? The
// library's fast kernels take 16 bytes at once, along the axis in which a matrix lies in memory.
// Zeros behind that axis change no sum, and what they fill of a result is not read:
//
//   %2: bf16[4096,1024] = matmul %0, %1            %0: bf16[4096,2389], %1: bf16[2389,1024]
// =>
//   %2: bf16[4096,2392] = pad %0 {low=[0,0], high=[0,3]}
//   %3: bf16[2392,1024] = pad %1 {low=[0,0], high=[3,0]}
//   %4: bf16[4096,1024] = matmul %2, %3
//
// Longer rows alone would not do: it is the number of elements that the library looks at.
#include <algorithm>
#include <map>
#include <tuple>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

constexpr int64_t kAligned = 16;  // bytes
// So many multiply-adds, of whole tiles, lose as much as copying one element takes, and each term of a sum, which a
// tile's threads wait for, as much as copying so many. (H200: 600 TFLOP/s become 95, and a term takes 23 ns more; an
// element's copy is 4 bytes at 3.4 TB/s. NOTES, "Odd products".) A third of that where two elements or four are whole.
constexpr double kMultiplied = 64, kTerm = 1 << 14;
constexpr double kOfEven = 1.0 / 3;
constexpr int64_t kTile = 64;
constexpr int64_t kWide = 4;  // times as many columns as rows

// What is missing of each axis of a product, m x k by k x n, and what is copied for it.
struct Zeros {
  int64_t m = 0, n = 0, k = 0;
  bool of_a() const { return m != 0 || k != 0; }
  bool of_b() const { return n != 0 || k != 0; }
  bool of_result() const { return m != 0 || n != 0; }
};

class Padding {
 public:
  Padding(Graph& out, bool always) : out_(out), always_(always) {}

  // What stands for the product; its own node where nothing is gained.
  int visit(Node product) {
    if (product.op != Op::matmul || !is_half(product.type.dtype))
      return out_.append(std::move(product));
    const int a = product.inputs[0], b = product.inputs[1];
    if (!has_fixed_sizes(out_[a].type) || !has_fixed_sizes(out_[b].type))
      return out_.append(std::move(product));
    const int last = product.type.rank() - 1;
    const int along_a = contiguous_axis(out_, a), along_b = contiguous_axis(out_, b);
    Zeros zeros;
    if (along_a == last - 1) zeros.m = missing(a, last - 1);
    if (along_a == last || along_b == last - 1) zeros.k = missing(a, last);
    // Of a wide result whose factor is even as it lies, pad_rows makes longer rows (loops/pad_rows.h).
    const bool is_wide = size(b, last) >= kWide * size(a, last - 1);
    if (along_b == last || zeros.k != 0 || !is_wide) zeros.n = missing(b, last);
    if (!pays(product, zeros)) return out_.append(std::move(product));
    const Shape exact = product.type.shape;
    product.inputs = {padded(a, zeros.m, zeros.k), padded(b, zeros.k, zeros.n)};
    const Location where = product.where;
    const int whole = append_inferred(out_, std::move(product));
    return cut(cut(whole, last - 1, exact, where), last, exact, where);
  }

 private:
  int64_t size(int id, int axis) const { return out_[id].type.shape[axis].constant(); }

  int64_t missing(int id, int axis) const {
    return whole_packs(size(id, axis), out_[id].type.dtype) - size(id, axis);
  }

  bool pays(const Node& product, const Zeros& zeros) const {
    if (!zeros.of_a() && !zeros.of_b()) return false;
    const int a = product.inputs[0], b = product.inputs[1], last = product.type.rank() - 1;
    double copied = 0, products = 1;
    const auto copy = [&](const Type& type) { copied += count(type) + kLaunchInElements; };
    if (zeros.of_a()) copy(out_[a].type);
    if (zeros.of_b()) copy(out_[b].type);
    if (zeros.of_result()) copy(product.type);
    for (int axis = 0; axis < last - 1; axis++) products *= static_cast<double>(size(a, axis));
    const int64_t m = size(a, last - 1), k = size(a, last), n = size(b, last);
    double lost = 0;
    for (const auto& [axis, missing] :
         {std::pair{m, zeros.m}, std::pair{n, zeros.n}, std::pair{k, zeros.k}}) {
      if (missing != 0) lost = std::max(lost, lost_by_odd_axis(axis, products, m, n, k));
    }
    return always_ || lost > copied;
  }

  static double count(const Type& type) {
    return static_cast<double>(product(type.shape).constant());
  }

  // Zeros behind the last two axes, in the order in which the elements lie.
  int padded(int id, int64_t rows, int64_t columns) {
    if (rows == 0 && columns == 0) return id;
    const auto known = padded_.find({id, rows, columns});
    if (known != padded_.end()) return known->second;
    const Node node = out_[id];
    const int last = node.type.rank() - 1;
    std::vector<Expr> high(node.type.shape.size(), Expr(0));
    high[last - 1] = rows, high[last] = columns;
    int result;
    if (node.op == Op::permute) {
      const std::vector<int> axes = node.axes();
      std::vector<Expr> before(high.size());
      for (size_t axis = 0; axis < axes.size(); axis++) before[axes[axis]] = high[axis];
      Node transposed = node;
      transposed.inputs = {with_zeros(node.inputs[0], before, node.where)};
      result = append_inferred(out_, std::move(transposed));
    } else {
      result = with_zeros(id, high, node.where);
    }
    padded_[{id, rows, columns}] = result;
    return result;
  }

  int with_zeros(int id, const std::vector<Expr>& high, const Location& where) {
    Node pad;
    pad.op = Op::pad;
    pad.inputs = {id};
    pad.value = Literal::of(out_[id].type.dtype, 0);
    pad.set(Key::low, std::vector<Expr>(high.size(), Expr(0))).set(Key::high, high);
    pad.where = where;
    return append_inferred(out_, std::move(pad));
  }

  int cut(int id, int axis, const Shape& exact, const Location& where) {
    if (out_[id].type.shape[axis] == exact[axis]) return id;
    return append_slice(out_, id, axis, 0, exact[axis], where);
  }

  Graph& out_;
  bool always_;
  std::map<std::tuple<int, int64_t, int64_t>, int> padded_;  // id, rows, columns
};

}  // namespace

int64_t whole_packs(int64_t elements, DType dtype) {
  const int64_t pack = kAligned / size_of(dtype);
  return ceil_divide(elements, pack) * pack;
}

int contiguous_axis(const Graph& graph, int id) {
  const Node& node = graph[id];
  const int last = node.type.rank() - 1;
  const auto one_of_two = [&](int axis) { return axis >= last - 1 ? axis : -1; };
  if (node.op == Op::permute) {
    const std::vector<int> axes = node.axes();
    const auto at = std::find(axes.begin(), axes.end(), last);
    return one_of_two(static_cast<int>(at - axes.begin()));
  }
  if (const Attr* strides = node.find(Key::strides)) {
    const auto at = std::find(strides->values.begin(), strides->values.end(), Expr(1));
    if (at == strides->values.end()) return -1;
    return one_of_two(static_cast<int>(at - strides->values.begin()));
  }
  return last;
}

double lost_by_odd_axis(int64_t axis, double count, int64_t m, int64_t n, int64_t k) {
  const auto whole = [](int64_t size) {
    return static_cast<double>(ceil_divide(size, kTile) * kTile);
  };
  const double terms = static_cast<double>(k), all = count * whole(m) * whole(n) * terms,
               lost = std::max(all / kMultiplied, terms * kTerm);
  return axis % 2 != 0 ? lost : lost * kOfEven;
}

Graph pad_products(const Graph& graph, bool always) {
  std::optional<Padding> padding;
  return rebuild(graph, [&](Graph& out, Node node) {
    if (!padding) padding.emplace(out, always);
    return padding->visit(std::move(node));
  });
}

}  // namespace tiny_compile
