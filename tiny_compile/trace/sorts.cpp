// What stands where in order? PyTorch's sort, argsort and topk: the places are a primitive's, the values
// a gather.
//
//   topk(x, 8)    argsort_descending {axis=1}, its first 8 places, gather
//
// of a long row in parts of 1024 first, then among the places that these gave.
#include "tiny_compile/trace/sorts.h"

#include "tiny_compile/tensor/cuda_memory.h"

namespace tiny_compile {
namespace {

constexpr int64_t kPart = 1024;

Tensor argsort_of(const Operand& x, const Tensor& tensor, int64_t axis, bool descending) {
  Node node;
  node.op = descending ? Op::argsort_descending : Op::argsort;
  node.set(Key::axis, {axis});
  return apply(std::move(node), {tensor}, x.where);
}

Tensor first_of_parts(const Operand& x, const Tensor& rows, int64_t axis, int64_t parts,
                      int64_t k, bool largest) {
  Sizes split = rows.shape(), starts(split.size() + 1, 1), joined = split;
  split[static_cast<size_t>(axis)] = starts[static_cast<size_t>(axis)] = parts;
  split.insert(split.begin() + axis + 1, kPart);
  joined[static_cast<size_t>(axis)] = parts * k;
  const Tensor in_parts = reshape(slice(rows, axis, 0, parts * kPart), split);
  const Tensor places = slice(argsort_of(x, in_parts, axis + 1, largest), axis + 1, 0, k);
  Node number;
  number.op = Op::iota;
  number.type = {DType::i64, {parts}};
  const Tensor numbers = copy_to(apply(std::move(number), {}, x.where), rows.device());
  return reshape(places + reshape(numbers * kPart, starts), joined);
}

// The first k places of a sort. Of a long row, those among the first k of each part of it: equals
// stand there as they do in the row.
Tensor first_places(const Operand& x, const Tensor& rows, int64_t axis, int64_t k,
                    bool largest) {
  const int64_t length = rows.size(axis), parts = length / kPart;
  if (k == 0 || 8 * k > kPart || parts < 2)
    return slice(argsort_of(x, rows, axis, largest), axis, 0, k);
  std::vector<Tensor> places = {first_of_parts(x, rows, axis, parts, k, largest)};
  if (parts * kPart < length) {
    const Tensor rest = slice(rows, axis, parts * kPart);
    places.push_back(slice(argsort_of(x, rest, axis, largest), axis, 0, k) + parts * kPart);
  }
  const Tensor among = concat(places, axis);
  return gather(among, axis, first_places(x, gather(rows, axis, among), axis, k, largest));
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
    const Tensor places = first_places(x, rows, of, k, largest);
    const bool whole = is_number && k == 1;
    return std::pair{back(gather(rows, of, places), whole), back(places, whole)};
  });
}

}  // namespace tiny_compile
