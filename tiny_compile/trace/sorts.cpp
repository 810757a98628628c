// What stands where in order? PyTorch's sort, argsort and topk: the places are a primitive's, the values
// a gather.
//
//   topk(x, 8)    argsort_descending {axis=1}, its first 8 places, gather
#include "tiny_compile/trace/sorts.h"

namespace tiny_compile {
namespace {

Tensor argsort_of(const Operand& x, const Tensor& tensor, int64_t axis, bool descending) {
  Node node;
  node.op = descending ? Op::argsort_descending : Op::argsort;
  node.set(Key::axis, {axis});
  return apply(std::move(node), {tensor}, x.where);
}

// One number is a row of one: body(row, axis), and back.
template <typename Body>
auto in_rows(const Operand& x, int64_t axis, Body body) {
  const Tensor tensor = x.captured();
  const bool is_number = tensor.rank() == 0;
  const int64_t of_row = normal_axis(axis, is_number ? 1 : tensor.rank(), x.where);
  return body(is_number ? reshape(tensor, {1}) : tensor, of_row, is_number);
}

Tensor back(const Tensor& row, bool is_number) { return is_number ? reshape(row, {}) : row; }

}  // namespace

Tensor argsort(const Operand& x, int64_t axis, bool descending) {
  const Scope scope(x.where);
  return in_rows(x, axis, [&](const Tensor& rows, int64_t of, bool is_number) {
    return back(argsort_of(x, rows, of, descending), is_number);
  });
}

std::pair<Tensor, Tensor> sort(const Operand& x, int64_t axis, bool descending) {
  const Scope scope(x.where);
  return in_rows(x, axis, [&](const Tensor& rows, int64_t of, bool is_number) {
    const Tensor places = argsort_of(x, rows, of, descending);
    return std::pair{back(gather(rows, of, places), is_number), back(places, is_number)};
  });
}

std::pair<Tensor, Tensor> topk(const Operand& x, int64_t k, int64_t axis, bool largest) {
  const Scope scope(x.where);
  return in_rows(x, axis, [&](const Tensor& rows, int64_t of, bool is_number) {
    const int64_t length = rows.size(of);
    if (k < 0 || k > length)
      fail_at(current_place(x.where),
              str("topk: k = ", k, " of the ", length, " elements along axis ", axis));
    const Tensor places = slice(argsort_of(x, rows, of, largest), of, 0, k);
    const bool whole = is_number && k == 1;
    return std::pair{back(gather(rows, of, places), whole), back(places, whole)};
  });
}

}  // namespace tiny_compile
