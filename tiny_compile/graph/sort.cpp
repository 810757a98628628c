// In which order do elements stand? By value, then by place: no two are equal, so every algorithm
// gives the same places.
//
//   argsort       3 nan 1 -0 0 1   =>   3 4 2 5 0 1
//   argsort_descending  3 nan 1 -0 0 1   =>   1 0 2 5 3 4
#include "tiny_compile/graph/sort.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

// Whether a stands before b, wherever they are.
template <typename T>
bool stands_before(Op op, T a, T b) {
  return op == Op::argsort_descending ? a > b || (a != a && b == b)
                                      : a < b || (b != b && a == a);
}

template <typename T>
std::vector<std::byte> sorted(Op op, const std::byte* values, int64_t count, int64_t run) {
  const T* keys = reinterpret_cast<const T*>(values);
  std::vector<int64_t> places(static_cast<size_t>(count));
  std::iota(places.begin(), places.end(), 0);
  const int64_t length = run > 0 ? run : std::max<int64_t>(count, 1);
  for (int64_t begin = 0; begin < count; begin += std::min(length, count - begin)) {
    const auto first = places.begin() + begin;
    std::stable_sort(first, first + std::min(length, count - begin),
                     [&](int64_t i, int64_t j) { return stands_before(op, keys[i], keys[j]); });
  }
  std::vector<std::byte> bytes(places.size() * sizeof(int64_t));
  if (count > 0) std::memcpy(bytes.data(), places.data(), bytes.size());
  return bytes;
}

}  // namespace

std::vector<std::byte> argsort(Op op, DType dtype, const std::byte* values, int64_t count,
                               int64_t run) {
  return with_type(dtype,
                   [&](auto zero) { return sorted<decltype(zero)>(op, values, count, run); });
}

}  // namespace tiny_compile
