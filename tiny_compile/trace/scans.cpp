// PyTorch's running results and its updates of places that data choose, in primitives.
//
//   cummax(x, 1)                          cummax {axis=1} for the places, a gather for the values
//   scatter_reduce(x, 0, i, u, "amax")    scatter_max {axis=0}
#include <array>

#include "tiny_compile/trace/functions.h"

namespace tiny_compile {
namespace {

Tensor scan_along(Op op, const Operand& x, const Tensor& tensor, int64_t axis) {
  Node node;
  node.op = op;
  node.set(Key::axis, {normal_axis(axis, tensor.rank(), x.where)});
  return apply(std::move(node), {tensor}, x.where);
}

// Integers and bools as i64, as PyTorch has them.
Tensor widened(const Operand& x) {
  const Tensor tensor = x.captured();
  if (is_float(tensor.dtype())) return tensor;
  return cast_to(tensor, tensor.dtype() == DType::u64 ? DType::u64 : DType::i64, x.where);
}

// The places, which the primitive gives, and the values there.
std::pair<Tensor, Tensor> running_extreme(Op op, const Operand& x, int64_t axis) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  const bool is_bool = tensor.dtype() == DType::boolean;
  const Tensor places =
      scan_along(op, x, is_bool ? cast_to(tensor, DType::u8, x.where) : tensor, axis);
  return {gather(tensor, axis, places), places};
}

// As in PyTorch the index may be smaller than the source: what it leaves out is not used.
Tensor scatter_op(Op op, const Operand& x, int64_t axis, const Operand& index,
                  const Operand& source) {
  const Tensor tensor = x.captured(), chosen = as_index(index);
  Tensor updates = cast_to(source.captured(), tensor.dtype(), x.where);
  if (updates.rank() == 0 && chosen.rank() > 0) updates = expand(updates, chosen.sizes());
  for (int64_t k = 0; k < chosen.rank() && chosen.rank() == updates.rank(); k++)
    if (!same_expression(chosen.size(k), updates.size(k)) && chosen.size(k) < updates.size(k))
      updates = slice(updates, k, 0, chosen.size(k));
  Node node;
  node.op = op;
  node.set(Key::axis, {normal_axis(axis, tensor.rank(), x.where)});
  return apply(std::move(node), {tensor, chosen, updates}, x.where);
}

}  // namespace

Tensor cumsum(const Operand& x, int64_t axis) {
  const Scope scope(x.where);
  return scan_along(Op::cumsum, x, widened(x), axis);
}

Tensor cumprod(const Operand& x, int64_t axis) {
  const Scope scope(x.where);
  return scan_along(Op::cumprod, x, widened(x), axis);
}

Tensor logcumsumexp(const Operand& x, int64_t axis) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  if (!is_float(tensor.dtype()))
    fail_at(current_place(x.where), str("logcumsumexp: wants floats, not ", tensor.dtype(),
                                        "; cast first, as in x.to(tc::float32)"));
  return scan_along(Op::logcumsumexp, x, tensor, axis);
}

std::pair<Tensor, Tensor> cummax(const Operand& x, int64_t axis) {
  return running_extreme(Op::cummax, x, axis);
}

std::pair<Tensor, Tensor> cummin(const Operand& x, int64_t axis) {
  return running_extreme(Op::cummin, x, axis);
}

Tensor scatter(const Operand& x, int64_t axis, const Operand& index, const Operand& source) {
  const Scope scope(x.where);
  return scatter_op(Op::scatter, x, axis, index, source);
}

Tensor scatter_add(const Operand& x, int64_t axis, const Operand& index,
                   const Operand& source) {
  const Scope scope(x.where);
  return scatter_op(Op::scatter_add, x, axis, index, source);
}

Tensor scatter_reduce(const Operand& x, int64_t axis, const Operand& index,
                      const Operand& source, const std::string& reduce) {
  const Scope scope(x.where);
  static constexpr std::array<std::pair<std::string_view, Op>, 4> kOps = {
      {{"sum", Op::scatter_add},
       {"prod", Op::scatter_prod},
       {"amax", Op::scatter_max},
       {"amin", Op::scatter_min}}};
  for (const auto& [name, op] : kOps) {
    if (reduce == name) return scatter_op(op, x, axis, index, source);
  }
  fail_at(current_place(x.where), str("scatter_reduce: no reduction is called '", reduce,
                                      "'; take sum, prod, amax or amin"));
}

}  // namespace tiny_compile
