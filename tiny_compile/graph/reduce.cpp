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

template <typename T, typename Combine>
T reduce_chunk(const T* values, int64_t count, T identity, Combine combine) {
  std::vector<T> l(kChunk, identity);
  std::copy(values, values + count, l.begin());
  for (int64_t half = kChunk / 2; half >= 1; half /= 2) {
    for (int64_t i = 0; i < half; i++) l[i] = combine(l[i], l[i + half]);
  }
  return l[0];
}

template <typename T, typename Combine>
T reduce_tree(std::vector<T> values, T identity, Combine combine) {
  if (values.empty()) return T{0};
  do {
    std::vector<T> results;
    for (size_t start = 0; start < values.size(); start += kChunk) {
      const int64_t count =
          std::min<int64_t>(kChunk, static_cast<int64_t>(values.size() - start));
      results.push_back(reduce_chunk(values.data() + start, count, identity, combine));
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
  return reduce_tree(std::move(values), T(-0.0), [](T a, T b) { return a + b; });
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

// What two values of a reduction become, by the op table's formula.
template <typename T>
T both(Op pair, DType dtype, T a, T b) {
  Lanes lhs, rhs, result;
  lhs.dtype = rhs.dtype = dtype;
  *lhs.as<T>() = a, *rhs.as<T>() = b;
  apply(pair, dtype, &lhs, &rhs, nullptr, 1, result);
  return *result.as<T>();
}

template <typename T>
Literal reduce_float(Op op, DType dtype, std::vector<T> values) {
  if (op == Op::sum) return Literal::of(dtype, sum(std::move(values)));
  if (op == Op::sum_exp) return Literal::of(dtype, sum_exp(values));
  if (needs_an_element(op)) {
    T result = values[0];
    for (T value : values)
      result = op == Op::max ? tc_maximum(result, value) : tc_minimum(result, value);
    return Literal::of(dtype, result + T(0));  // a zero result is +0
  }
  const T identity = static_cast<T>(reduction_info(op).identity);
  if (values.empty()) return Literal::of(dtype, identity);
  const DType held = std::is_same_v<T, double> ? DType::f64 : DType::f32;
  return Literal::of(dtype, reduce_tree(std::move(values), identity, [&](T a, T b) {
                       return op == Op::prod ? a * b : both(pairwise(op), held, a, b);
                     }));
}

// Integers and bool: the order does not matter. Sums and products wrap in 64 bits.
template <typename T>
Literal reduce_exact(Op op, DType dtype, const std::vector<T>& values) {
  const Op pair = pairwise(op);
  const bool is_counted =
      pair == Op::add || pair == Op::mul || info(pair).domain == Domain::Bits;
  const double identity = is_counted ? reduction_info(op).identity : 0;  // a bool is 0 or 1
  auto result = static_cast<uint64_t>(static_cast<int64_t>(identity));
  T best = values.empty() ? T{} : values[0];
  for (size_t i = 0; i < values.size(); i++) {
    const T value = values[i];
    const auto bits = static_cast<uint64_t>(value);
    switch (pair) {
      case Op::add: result += bits; break;
      case Op::mul: result *= bits; break;
      case Op::bitwise_and: result &= bits; break;
      case Op::bitwise_or: result |= bits; break;
      case Op::bitwise_xor: result ^= bits; break;
      case Op::maximum: best = std::max(best, value); break;
      case Op::minimum: best = std::min(best, value); break;
      default: best = i == 0 ? value : both(pair, dtype, best, value);
    }
  }
  return Literal::of_unsigned(reduction_result(op, dtype),
                              is_counted ? result : static_cast<uint64_t>(best));
}

template <typename T>
Literal reduce_typed(Op op, DType dtype, const std::byte* data, int64_t count) {
  std::vector<T> values = typed<T>(data, count);
  CHECK(count > 0 || !needs_an_element(op), info(op).name, " of nothing");
  if (op == Op::argmax || op == Op::argmin)
    return Literal::of_integer(DType::i64, arg_reduce(op, values));
  if constexpr (std::is_floating_point_v<T>) {
    return reduce_float(op, dtype, std::move(values));
  } else {
    return reduce_exact(op, dtype, values);
  }
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
  return with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    using Held = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;  // a bool is 0 or 1
    return reduce_typed<Held>(op, dtype, values, count);
  });
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
