// The numeric contract's reductions, written to be read. 5 elements of a sum:
//
//   chunk     a b c d e -0 -0 ...        (filled with the identity to 1024)
//   halvings  512, 256, ..., 4, 2, 1:    ((a + e) + c) + (b + d)
//
// Chunks of 1024, then the chunks' results by the same rule: the order depends on
// the count alone.
#include <algorithm>
#include <limits>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/math.h"
#include "tiny_compile/graph/lanes.h"

namespace tiny_compile {
namespace {

using namespace prelude;

// values[i] = values[i] combined with values[i + half], by the op table's formula.
template <typename T>
void halve(Op pair, DType dtype, T* values, int64_t half) {
  Lanes a, b, both;
  a.dtype = b.dtype = dtype;
  for (int64_t first = 0; first < half; first += kLanes) {
    const int64_t n = std::min<int64_t>(kLanes, half - first);
    std::copy_n(values + first, n, a.as<T>());
    std::copy_n(values + first + half, n, b.as<T>());
    apply(pair, dtype, &a, &b, nullptr, static_cast<int>(n), both);
    std::copy_n(both.as<T>(), n, values + first);
  }
}

template <typename T>
T reduce_chunk(Op pair, DType dtype, const T* values, int64_t count, T identity) {
  std::vector<T> l(kChunk, identity);
  std::copy(values, values + count, l.begin());
  for (int64_t half = kChunk / 2; half >= 1; half /= 2) halve(pair, dtype, l.data(), half);
  return l[0];
}

template <typename T>
T identity_of(Op op, DType dtype) {
  Lanes one;
  fill(Literal::of(dtype, reduction_info(op).identity), 1, one);
  return one.as<T>()[0];
}

// `dtype` is held as a T. The order does not matter to integers, so theirs is the same.
template <typename T>
T reduce_tree(Op op, DType dtype, std::vector<T> values) {
  const T identity = identity_of<T>(op, dtype);
  if (values.empty()) return static_cast<T>(identity + T{0});  // the sum of nothing is +0
  do {
    std::vector<T> results;
    for (size_t start = 0; start < values.size(); start += kChunk) {
      const int64_t count =
          std::min<int64_t>(kChunk, static_cast<int64_t>(values.size() - start));
      results.push_back(
          reduce_chunk(pairwise(op), dtype, values.data() + start, count, identity));
    }
    values = std::move(results);
  } while (values.size() > 1);
  return values[0];
}

template <typename T>
T largest(const std::vector<T>& values) {
  T most = values[0];
  for (T value : values) most = tc_maximum(most, value);
  return most;
}

template <typename T>
T sum(std::vector<T> values) {
  const DType dtype = std::is_same_v<T, double> ? DType::f64 : DType::f32;
  return reduce_tree(Op::sum, dtype, std::move(values));
}

// sum of exp(x - max x), each chunk against its own maximum so that one read suffices.
template <typename T>
T sum_exp(const std::vector<T>& values) {
  if (values.empty()) return 0;
  const T limit = std::numeric_limits<T>::max();
  std::vector<T> sums, maxima;
  for (size_t start = 0; start < values.size(); start += kChunk) {
    std::vector<T> chunk(values.begin() + start,
                         values.begin() + std::min(values.size(), start + kChunk));
    const T m = tc_minimum(tc_maximum(largest(chunk), -limit), limit);
    for (T& value : chunk) value = tc_exp(value - m);
    sums.push_back(sum(std::move(chunk)));
    maxima.push_back(m);
  }
  if (sums.size() == 1) return sums[0];
  const T m = largest(maxima);
  for (size_t c = 0; c < sums.size(); c++) sums[c] = sums[c] * tc_exp(maxima[c] - m);
  return sum(std::move(sums));
}

// First NaN, else first of equals.
template <typename T>
int64_t arg_reduce(Op op, const std::vector<T>& values) {
  CHECK(!values.empty(), "arg reduction of nothing");
  size_t best = 0;
  for (size_t i = 1; i < values.size(); i++) {
    const T value = values[i], now = values[best];
    if (now != now) break;
    if (value != value || (op == Op::argmax ? value > now : value < now)) best = i;
  }
  return static_cast<int64_t>(best);
}

template <typename T>
std::vector<T> typed(const std::byte* values, int64_t count) {
  const T* begin = reinterpret_cast<const T*>(values);
  return std::vector<T>(begin, begin + count);
}

// visit(T{}), T what a vector holds values of the dtype in: a bool is 0 or 1.
template <typename Visit>
auto with_held(DType dtype, Visit visit) {
  return with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    return visit(std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>{});
  });
}

template <typename T>
Literal literal_of(DType dtype, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return Literal::of(dtype, value);
  } else {
    return Literal::of_unsigned(dtype, static_cast<uint64_t>(value));
  }
}

template <typename T>
Literal reduce_typed(Op op, DType dtype, const std::byte* data, int64_t count) {
  const std::vector<T> values = typed<T>(data, count);
  CHECK(count > 0 || !needs_an_element(op), info(op).name, " of nothing");
  const DType result = reduction_result(op, dtype);
  if (reduction_info(op).result == ReducedTo::Place)
    return Literal::of_integer(result, arg_reduce(op, values));
  if constexpr (std::is_floating_point_v<T>) {
    if (op == Op::sum_exp) return Literal::of(result, sum_exp(values));
  }
  return with_held(compute_type(result), [&](auto zero) {
    using R = decltype(zero);
    const R all = reduce_tree<R>(op, compute_type(result), {values.begin(), values.end()});
    return literal_of(result, needs_an_element(op) ? static_cast<R>(all + 0) : all);  // not -0
  });
}

// acc = fma(a, b, acc), ascending; a zero is +0.
template <typename T>
T dot_float(const std::byte* a, const std::byte* b, int64_t count) {
  T sum = 0;
  for (int64_t k = 0; k < count; k++)
    sum = tc_fma(reinterpret_cast<const T*>(a)[k], reinterpret_cast<const T*>(b)[k], sum);
  return sum + 0;
}

template <typename T>
uint64_t dot_integer(const std::byte* a, const std::byte* b, int64_t count) {
  uint64_t sum = 0;
  for (int64_t k = 0; k < count; k++)
    sum += static_cast<uint64_t>(reinterpret_cast<const T*>(a)[k]) *
           static_cast<uint64_t>(reinterpret_cast<const T*>(b)[k]);
  return sum;
}

}  // namespace

Literal reduce(Op op, DType dtype, const std::byte* values, int64_t count) {
  return with_held(
      dtype, [&](auto zero) { return reduce_typed<decltype(zero)>(op, dtype, values, count); });
}

Literal dot(DType dtype, const std::byte* a, const std::byte* b, int64_t count) {
  return with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>) {
      return Literal::of(dtype, dot_float<T>(a, b, count));
    } else {
      return Literal::of_unsigned(dtype, dot_integer<T>(a, b, count));
    }
  });
}

}  // namespace tiny_compile
