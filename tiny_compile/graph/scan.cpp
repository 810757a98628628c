// The numeric contract's scans, written to be read. cumsum of 40 elements:
//
//   groups of 16   a0 .. a15          b0 .. b15            c0 .. c7
//   within each    a0, a0+a1, ... A   b0, b0+b1, ... B     c0, c0+c1, ...
//   before each    nothing            A                    A + B
//   results        before + within:   A + (b0 + b1),       (A + B) + (c0 + c1)
//
// What stands before a group are the totals of the groups before it, scanned by the same rule: so
// the order depends on the count alone, and groups can be scanned side by side. Groups of groups
// too: the elements 256*k .. 256*k + 255 need only know what stands before them.
#include "tiny_compile/graph/scan.h"

#include <cstring>
#include <limits>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/math.h"

namespace tiny_compile {
namespace {

using namespace prelude;

template <typename T, typename Combine>
std::vector<T> totals_of_groups(const std::vector<T>& values, T identity, Combine combine) {
  std::vector<T> totals;
  for (size_t i = 0; i < values.size(); i++) {
    if (i % kGroup == 0) totals.push_back(identity);
    totals.back() = combine(totals.back(), values[i]);
  }
  return totals;
}

template <typename T, typename Combine>
T total(std::vector<T> values, T identity, Combine combine) {
  if (values.empty()) return identity;
  do values = totals_of_groups(values, identity, combine);
  while (values.size() > 1);
  return values[0];
}

template <typename T, typename Combine>
std::vector<T> running(const std::vector<T>& values, T start, bool exclusive, T identity,
                       Combine combine) {
  std::vector<T> before = {start}, results;  // before: of each group
  if (values.size() > kGroup)
    before =
        running(totals_of_groups(values, identity, combine), start, true, identity, combine);
  T within = identity;
  for (size_t i = 0; i < values.size(); i++) {
    if (i % kGroup == 0) within = identity;
    const T next = combine(within, values[i]);
    results.push_back(combine(before[i / kGroup], exclusive ? within : next));
    within = next;
  }
  return results;
}

// Of a greatest (least) value so far and a later one: an equal one too, and a NaN beats all.
template <typename T>
bool beats(Op op, T value, T now) {
  const bool reaches = op == Op::cummax ? value >= now : value <= now;
  return value != value || (now == now && reaches);
}

// Where the last greatest (least) value so far is.
template <typename T>
std::vector<int64_t> latest(Op op, const std::vector<T>& values) {
  std::vector<int64_t> places;
  size_t best = 0;
  for (size_t i = 0; i < values.size(); i++) {
    if (beats(op, values[i], values[best])) best = i;
    places.push_back(static_cast<int64_t>(best));
  }
  return places;
}

template <typename T>
T identity_of(Op op) {
  using limits = std::numeric_limits<T>;
  switch (op) {
    case Op::cumsum: return T(-0.0);
    case Op::cumprod: return T(1);
    case Op::cummin:
    case Op::minimum: return limits::has_infinity ? limits::infinity() : limits::max();
    default: return limits::has_infinity ? -limits::infinity() : limits::lowest();
  }
}

template <typename T>
T combined(Op op, T a, T b) {
  if (op == Op::maximum) return tc_maximum(a, b);
  if (op == Op::minimum) return tc_minimum(a, b);
  if (op == Op::cummax || op == Op::cummin) return beats(op, b, a) ? b : a;
  if constexpr (std::is_floating_point_v<T>) {
    return op == Op::cumsum ? a + b : op == Op::cumprod ? a * b : tc_logaddexp(a, b);
  } else {
    return op == Op::cumsum ? tc_add(a, b) : tc_mul(a, b);
  }
}

template <typename T>
std::vector<T> typed(const std::byte* values, int64_t count) {
  const T* begin = reinterpret_cast<const T*>(values);
  return std::vector<T>(begin, begin + count);
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// body(T{}), T the type it is computed in.
template <typename Body>
auto with_number(DType dtype, Body body) {
  if (dtype == DType::boolean) fail("a scan of ", dtype);
  return with_type(dtype, [&](auto zero) {
    if constexpr (std::is_same_v<decltype(zero), bool>) {
      return body(uint8_t{});  // not reached: a vector of bools has no data()
    } else {
      return body(zero);
    }
  });
}

}  // namespace

std::vector<std::byte> scan(Op op, DType dtype, const std::byte* values, int64_t count,
                            const ScanStart& start) {
  return with_number(dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> row = typed<T>(values, count);
    if (!combiner(op) && !start.values) return bytes_of(latest(op, row));
    const T identity = identity_of<T>(op);
    const T before = start.before ? start.before->as<T>()[0] : identity;
    return bytes_of(running(row, before, start.exclusive, identity,
                            [op](T a, T b) { return combined(op, a, b); }));
  });
}

Literal scan_total(Op op, DType dtype, const std::byte* values, int64_t count) {
  return with_number(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T result = total(typed<T>(values, count), identity_of<T>(op),
                           [op](T a, T b) { return combined(op, a, b); });
    Literal literal{compute_type(dtype), 0};
    std::memcpy(&literal.bits, &result, sizeof result);
    return literal;
  });
}

bool scatters_in_chunks(Op op, DType dtype) {
  return is_float(dtype) && (op == Op::scatter_add || op == Op::scatter_prod);
}

void update(std::optional<Op> combine, DType dtype, std::byte* to, int64_t i,
            const std::byte* from, int64_t j) {
  Lanes old, value, result;
  load(dtype, to, &i, 1, old);
  load(dtype, from, &j, 1, value);
  if (combine) apply(*combine, dtype, &old, &value, nullptr, 1, result);
  store(combine ? result : value, to, &i, 1);
}

Literal scan_identity(Op op, DType dtype) {
  if (op == Op::logcumsumexp) return Literal::of(dtype, -__builtin_inf());
  const bool sum = op == Op::cumsum || op == Op::scatter_add;
  return Literal::of(dtype, sum ? -0.0 : 1.0);
}

}  // namespace tiny_compile
