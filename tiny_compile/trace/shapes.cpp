// Views, joins, matmul and indices in primitives. A negative axis counts from the end; sizes
// are checked where a primitive could not name the user's own numbers.
#include <algorithm>

#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/trace/functions.h"

namespace tiny_compile {
namespace {

Tensor view_op(Op op, const Tensor& x, const SizeList& shape, const Location& where) {
  Node node;
  node.op = op;
  node.type = {x.dtype(), shape.exprs()};
  return apply(std::move(node), {x}, where);
}

Tensor reshape_to(const Tensor& x, const SizeList& shape, const Location& where) {
  return same_shape(x, shape) ? x : view_op(Op::reshape, x, shape, where);
}

// permute or flip
Tensor axes_op(Op op, const Operand& x, const Sizes& axes) {
  Node node;
  node.op = op;
  const Tensor tensor = x.captured();
  std::vector<Expr> normal;
  for (int64_t axis : axes) normal.push_back(normal_axis(axis, tensor.rank(), x.where));
  node.set(Key::axes, normal);
  return apply(std::move(node), {tensor}, x.where);
}

constexpr int64_t kFar = int64_t{1}
                         << 48;  // beyond all sizes; a sum with one does not overflow

// Axis row index against column index: row + diagonal >= column keeps the lower triangle.
Tensor triangle(const Operand& x, int64_t diagonal, bool lower) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  if (tensor.rank() < 2)
    fail_at(current_place(x.where), "tril/triu: the tensor needs at least 2 axes");
  auto indices = [&](const Size& size) {
    Node node;
    node.op = Op::iota;
    node.type = {DType::i64, {size.expr()}};
    return copy_to(apply(std::move(node), {}, x.where), tensor.device());
  };
  const Tensor rows = unsqueeze(indices(tensor.size(-2)), 1),
               columns = indices(tensor.size(-1));
  // Column j is kept up to, or from, rows' i + diagonal: one sum a row, one comparison an element.
  const int64_t shift = std::clamp(diagonal, -kFar, kFar);
  const Tensor edge = rows + shift;
  return where(lower ? columns <= edge : columns >= edge, tensor,
               as_tensor(Operand(0), tensor.dtype(), x.where));
}

Tensor gather_op(const Tensor& x, int64_t axis, const Tensor& index, const Location& where) {
  Node node;
  node.op = Op::gather;
  node.set(Key::axis, {axis});
  return apply(std::move(node), {x, index}, where);
}

}  // namespace

Tensor as_index(const Operand& index) {
  const Tensor tensor = index.captured();
  if (is_float(tensor.dtype()) || tensor.dtype() == DType::boolean)
    fail_at(current_place(index.where),
            str("an index of dtype ", tensor.dtype(), ": indices are integers"));
  return tensor.dtype() == DType::i32 ? tensor : cast_to(tensor, DType::i64, index.where);
}

Tensor reshape(const Operand& x, SizeList shape) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  Size known = 1;
  Size* open = nullptr;
  for (Size& size : shape) {
    const bool is_open = size.is_number(-1);
    if (is_open && open) fail_at(current_place(x.where), "reshape: only one size may be -1");
    if (is_open) open = &size;
    if (!is_open) known = known * size;
  }
  if (open) {
    if (known == 0 || tensor.numel() % known != 0)
      fail_at(current_place(x.where), str("reshape: ", tensor.numel(),
                                          " elements do not fill [", join(shape, ","), "]"));
    *open = tensor.numel() / known;
  }
  return reshape_to(tensor, shape, x.where);
}

Tensor permute(const Operand& x, const Sizes& axes) { return axes_op(Op::permute, x, axes); }

Tensor transpose(const Operand& x, int64_t axis0, int64_t axis1) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  Sizes axes;
  for (int64_t axis = 0; axis < tensor.rank(); axis++) axes.push_back(axis);
  std::swap(axes[normal_axis(axis0, tensor.rank(), x.where)],
            axes[normal_axis(axis1, tensor.rank(), x.where)]);
  return permute(tensor, axes);
}

Tensor expand(const Operand& x, SizeList shape) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  const SizeList from = tensor.sizes();
  const size_t added = shape.size() - std::min(shape.size(), from.size());
  for (size_t k = added; k < shape.size(); k++) {
    if (shape[k].is_number(-1)) shape[k] = from[k - added];
  }
  return expand_to(tensor, shape, x.where);
}

Tensor slice(const Operand& x, int64_t axis, const std::optional<Size>& start,
             const std::optional<Size>& stop, int64_t step) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  axis = normal_axis(axis, tensor.rank(), x.where);
  if (step < 1)
    fail_at(current_place(x.where),
            "slice: the step must be positive; flip() reverses an axis");
  const Size size = tensor.size(axis);
  auto bound = [&](const Size& at) { return max(min(at < 0 ? at + size : at, size), Size(0)); };
  const Size from = bound(start.value_or(0)), to = max(from, bound(stop.value_or(size)));
  Node node;
  node.op = Op::slice;
  node.set(Key::axis, {axis})
      .set(Key::start, {from.expr()})
      .set(Key::stop, {to.expr()})
      .set(Key::step, {step});
  return apply(std::move(node), {tensor}, x.where);
}

Tensor select(const Operand& x, int64_t axis, int64_t index) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  axis = normal_axis(axis, tensor.rank(), x.where);
  const Size size = tensor.size(axis), first = index < 0 ? size + index : Size(index);
  if (first < 0 || first >= size)
    fail_at(current_place(x.where),
            str("select: index ", index, " is out of range for size ", size));
  return squeeze(slice(tensor, axis, first, first + 1), axis);
}

Tensor flip(const Operand& x, const Axes& axes) { return axes_op(Op::flip, x, axes); }

Tensor unfold(const Operand& x, int64_t axis, int64_t size, int64_t step) {
  const Scope scope(x.where);
  Node node;
  node.op = Op::window;
  const Tensor tensor = x.captured();
  axis = normal_axis(axis, tensor.rank(), x.where);
  const Size length = tensor.size(axis);
  if (size > length)
    fail_at(current_place(x.where), str("unfold: a window of ", size, " does not fit the size ",
                                        length, "; pad first"));
  node.set(Key::axis, {axis}).set(Key::size, {size}).set(Key::step, {step});
  return apply(std::move(node), {tensor}, x.where);
}

Tensor squeeze(const Operand& x, std::optional<int64_t> axis) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  SizeList shape;
  const int64_t only = axis ? normal_axis(*axis, tensor.rank(), x.where) : -1;
  for (int64_t k = 0; k < tensor.rank(); k++) {
    if ((axis && k != only) || tensor.size(k) != 1) shape.push_back(tensor.size(k));
  }
  return reshape_to(tensor, shape, x.where);
}

Tensor unsqueeze(const Operand& x, int64_t axis) {
  const Tensor tensor = x.captured();
  SizeList shape = tensor.sizes();
  shape.insert(shape.begin() + normal_axis(axis, tensor.rank() + 1, x.where), Size(1));
  return reshape_to(tensor, shape, x.where);
}

Tensor flatten(const Operand& x, int64_t first, int64_t last) {
  const Tensor tensor = x.captured();
  if (tensor.rank() == 0) return reshape_to(tensor, {1}, x.where);
  first = normal_axis(first, tensor.rank(), x.where);
  last = normal_axis(last, tensor.rank(), x.where);
  if (first > last)
    fail_at(current_place(x.where),
            str("flatten: the first axis, ", first, ", comes after the last, ", last));
  const SizeList from = tensor.sizes();
  SizeList shape(from.begin(), from.begin() + first);
  Size joined = 1;
  for (int64_t k = first; k <= last; k++) joined = joined * from[k];
  shape.push_back(joined);
  shape.insert(shape.end(), from.begin() + last + 1, from.end());
  return reshape_to(tensor, shape, x.where);
}

// Layout is not part of a graph's meaning: while tracing this is the tensor itself.
Tensor contiguous(const Operand& x) {
  const Tensor tensor = x.captured();
  return tensor.is_traced() || tensor.is_contiguous() ? tensor : row_major_copy(tensor);
}

Tensor concat(const std::vector<Tensor>& parts, int64_t axis, Here here) {
  const Location where = location_of(here);
  const Scope scope(where);
  if (parts.empty()) fail_at(current_place(where), "concat: no tensors to join");
  for (const Tensor& part : parts) {
    if (!part.defined()) fail_at(current_place(where), "concat: a part is an undefined tensor");
  }
  DType dtype = parts[0].dtype();
  for (const Tensor& part : parts) dtype = promote(dtype, part.dtype());
  std::vector<Tensor> cast;
  for (const Tensor& part : parts) cast.push_back(cast_to(seen(part, where), dtype, where));
  Node node;
  node.op = Op::concat;
  node.set(Key::axis, {normal_axis(axis, parts[0].rank(), where)});
  return apply(std::move(node), cast, where);
}

Tensor cat(const std::vector<Tensor>& parts, int64_t axis, Here here) {
  return concat(parts, axis, here);
}

// roll by 2: the last 2, then the others
Tensor roll(const Operand& x, const Axes& shifts, const Axes& axes) {
  const Scope scope(x.where);
  Tensor tensor = x.captured();
  const bool flat = axes.empty();
  if (flat ? shifts.size() != 1 : shifts.size() != axes.size())
    fail_at(current_place(x.where), str("roll: ", shifts.size(), " shifts for ", axes.size(),
                                        " axes; give one an axis, or one alone"));
  if (tensor.numel() == 0) return tensor;
  if (flat) return reshape(roll(reshape(tensor, {-1}), shifts, 0), tensor.sizes());
  for (size_t k = 0; k < axes.size(); k++) {
    const int64_t axis = normal_axis(axes[k], tensor.rank(), x.where);
    const Size start = -shifts[k] % tensor.size(axis);
    if (start.is_number(0)) continue;
    const Tensor last = slice(tensor, axis, start), first = slice(tensor, axis, 0, start);
    tensor = concat({last, first}, axis);
  }
  return tensor;
}

Tensor stack(const std::vector<Tensor>& parts, int64_t axis, Here here) {
  const Location where = location_of(here);
  const Scope scope(where);
  std::vector<Tensor> longer;
  for (const Tensor& part : parts) {
    longer.push_back(unsqueeze({part, here}, axis));
    if (!same_shape(part, parts[0].sizes()))
      fail_at(current_place(where),
              str("stack: shapes [", join(parts[0].sizes(), ","), "] and [",
                  join(part.sizes(), ","), "] differ; concat joins along an axis they have"));
  }
  if (parts.empty()) fail_at(current_place(where), "stack: no tensors to join");
  return concat(longer, normal_axis(axis, parts[0].rank() + 1, where), here);
}

std::vector<Tensor> split(const Operand& x, int64_t size, int64_t axis) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  if (size < 1) fail_at(current_place(x.where), "split: the size of a part must be positive");
  std::vector<Tensor> parts;
  axis = normal_axis(axis, tensor.rank(), x.where);
  const int64_t length = tensor.size(axis);  // how many parts: a number
  for (int64_t start = 0; start < length; start += size)
    parts.push_back(slice(tensor, axis, start, std::min(start + size, length)));
  return parts;
}

Tensor pad(const Operand& x, const Sizes& pads, double value) {
  const Tensor tensor = x.captured();
  const size_t rank = static_cast<size_t>(tensor.rank());
  if (pads.size() % 2 || pads.size() > 2 * rank)
    fail_at(current_place(x.where),
            "pad: give a (low, high) pair for each of the last axes, the last axis first");
  std::vector<Expr> low(rank, 0), high(rank, 0);
  for (size_t k = 0; k < pads.size() / 2; k++) {
    low[low.size() - 1 - k] = pads[2 * k];
    high[high.size() - 1 - k] = pads[2 * k + 1];
  }
  Node node;
  node.op = Op::pad;
  node.value = Literal::of(tensor.dtype(), value);
  node.set(Key::low, low).set(Key::high, high);
  return apply(std::move(node), {tensor}, x.where);
}

Tensor tril(const Operand& x, int64_t diagonal) { return triangle(x, diagonal, true); }
Tensor triu(const Operand& x, int64_t diagonal) { return triangle(x, diagonal, false); }

// Vectors become matrices, batches broadcast, and added axes go again.
Tensor matmul(const Operand& a, const Operand& b) {
  const Scope scope(a.where);
  Tensor x = a.captured(), y = b.captured();
  if (x.rank() == 0 || y.rank() == 0)
    fail_at(current_place(a.where),
            "matmul: both operands need at least one axis; use * for scalars");
  const bool row = x.rank() == 1, column = y.rank() == 1;
  const DType dtype = promote(x.dtype(), y.dtype());
  x = cast_to(row ? unsqueeze(x, 0) : x, dtype, a.where);
  y = cast_to(column ? unsqueeze(y, 1) : y, dtype, a.where);
  if (x.size(-1) != y.size(-2))
    fail_at(current_place(a.where),
            str("matmul: inner sizes ", x.size(-1), " and ", y.size(-2), " differ ([",
                join(a.tensor.sizes(), ","), "] with [", join(b.tensor.sizes(), ","), "])"));
  const SizeList x_sizes = x.sizes(), y_sizes = y.sizes();
  const SizeList batch = broadcast_shapes({SizeList(x_sizes.begin(), x_sizes.end() - 2),
                                           SizeList(y_sizes.begin(), y_sizes.end() - 2)},
                                          a.where);
  auto batched = [&](const Tensor& t) {
    SizeList shape = batch;
    const SizeList own = t.sizes();
    shape.insert(shape.end(), own.end() - 2, own.end());
    return expand_to(t, shape, a.where);
  };
  Node node;
  node.op = Op::matmul;
  Tensor result = apply(std::move(node), {batched(x), batched(y)}, a.where);
  if (column) result = squeeze(result, -1);
  if (row) result = squeeze(result, column ? -1 : -2);
  return result;
}

Tensor outer(const Operand& a, const Operand& b) {
  const Scope scope(a.where);
  const Tensor x = a.captured(), y = b.captured();
  if (x.rank() != 1 || y.rank() != 1)
    fail_at(current_place(a.where), str("outer: wants two vectors, not [", join(x.sizes(), ","),
                                        "] and [", join(y.sizes(), ","), "]"));
  return unsqueeze(x, 1) * y;
}

Tensor gather(const Operand& x, int64_t axis, const Operand& index) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  return gather_op(tensor, normal_axis(axis, tensor.rank(), x.where), as_index(index), x.where);
}

// Row index[k] of the axis, whole: the index is expanded over the other axes.
Tensor index_select(const Operand& x, int64_t axis, const Operand& index) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured(), chosen = as_index(index);
  axis = normal_axis(axis, tensor.rank(), x.where);
  if (chosen.rank() != 1)
    fail_at(current_place(x.where), "index_select: the index needs exactly one axis");
  SizeList wide = tensor.sizes(), narrow(wide.size(), Size(1));
  narrow[axis] = wide[axis] = chosen.numel();
  return gather_op(tensor, axis, expand_to(reshape_to(chosen, narrow, x.where), wide, x.where),
                   x.where);
}

Tensor embedding(const Operand& index, const Operand& table) {
  const Scope scope(index.where);
  const Tensor rows = table.captured(), chosen = as_index(index);
  if (rows.rank() != 2)
    fail_at(current_place(index.where), "embedding: the table needs two axes, [rows, width]");
  SizeList shape = chosen.sizes();
  const Tensor flat = index_select(rows, 0, reshape(chosen, {-1}));
  shape.push_back(rows.size(1));
  return reshape_to(flat, shape, index.where);
}

Tensor one_hot(const Operand& index, int64_t classes) {
  const Scope scope(index.where);
  Node node;
  node.op = Op::iota;
  node.type = {DType::i64, {classes}};
  const Tensor chosen = as_index(index);
  const Tensor numbers = copy_to(apply(std::move(node), {}, index.where), chosen.device());
  return cast_to(unsqueeze(chosen, -1) == numbers, DType::i64, index.where);
}

}  // namespace tiny_compile
