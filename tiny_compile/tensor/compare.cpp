// When are two tensors the same? When dtype, shape and every bit are, whatever their strides; all
// NaNs count as equal, -0 and +0 do not.
//
//   first_difference([1 2 nan], [1 3 nan])  =>  1
#include <algorithm>
#include <cstring>

#include "tiny_compile/tensor/element.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {
namespace {

bool same_literal(const Literal& a, const Literal& b) {
  if (a.bits == b.bits) return true;
  if (!is_float(a.dtype)) return false;
  const double x = a.as_double(), y = b.as_double();
  return x != x && y != y;
}

}  // namespace

std::optional<int64_t> first_difference(const Tensor& lhs, const Tensor& rhs) {
  if (lhs.dtype() != rhs.dtype() || lhs.shape() != rhs.shape()) return 0;
  const Tensor a = on_host(lhs.is_contiguous() ? lhs : contiguous_copy(lhs)),
               b = on_host(rhs.is_contiguous() ? rhs : contiguous_copy(rhs));
  const size_t width = size_of(a.dtype()), count = static_cast<size_t>(a.numel());
  constexpr size_t kBlock = 4096;
  for (size_t start = 0; start < count; start += kBlock) {
    const size_t n = std::min(kBlock, count - start);
    const std::byte *x = a.bytes() + start * width, *y = b.bytes() + start * width;
    if (std::memcmp(x, y, n * width) == 0) continue;
    for (size_t i = 0; i < n; i++) {
      if (!same_literal(literal_at(a.dtype(), x + i * width),
                        literal_at(a.dtype(), y + i * width)))
        return static_cast<int64_t>(start + i);
    }
  }
  return std::nullopt;
}

bool same_bits(const Tensor& lhs, const Tensor& rhs) {
  return lhs.dtype() == rhs.dtype() && lhs.shape() == rhs.shape() &&
         !first_difference(lhs, rhs);
}

}  // namespace tiny_compile
