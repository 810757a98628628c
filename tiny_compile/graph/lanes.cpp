// What does one scalar op do? The op table's formulas, compiled over blocks of lanes.
//
//   X(sigmoid, 1, Float, Same, tc_sigmoid(a), 0)  =>  for (i < n) out[i] = tc_sigmoid(a[i]);
//
// f16 and bf16 lanes are floats that the dtype can hold; each result is rounded to
// the dtype once.
#include "tiny_compile/graph/lanes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/math.h"

namespace tiny_compile {
namespace {

thread_local std::string bad_index;  // of this thread's error word: the first

using namespace prelude;

void round_lanes(DType dtype, float* values, int n) {
  if (dtype == DType::f16) {
    for (int i = 0; i < n; i++) values[i] = tc_to_f32(tc_to_f16(values[i]));
  } else if (dtype == DType::bf16) {
    for (int i = 0; i < n; i++) values[i] = tc_to_f32(tc_to_bf16(values[i]));
  }
}

// The float formula of every pointwise op whose result is of its operands' type.
template <typename T>
void apply_float(Op op, DType dtype, const T* pa, const T* pb, const T* pc, int n, T* out) {
#define X(name, function)                                                                \
  if (op == Op::name && is_half(dtype)) {                                                \
    std::transform(pa, pa + n, out,                                                      \
                   [](T a) { return static_cast<T>(function(static_cast<float>(a))); }); \
    return;                                                                              \
  }
  TC_HALF_FORMULAS(X)
#undef X
  switch (op) {
#define X(name, arity, domain, result, cost, on_floats, on_integers) \
  case Op::name:                                                     \
    for (int i = 0; i < n; i++) {                                    \
      [[maybe_unused]] const T a = pa[i], b = pb ? pb[i] : pa[i];    \
      [[maybe_unused]] const T c = pc ? pc[i] : a;                   \
      out[i] = static_cast<T>(on_floats);                            \
    }                                                                \
    return;
    TC_POINTWISE_OPS(X)
#undef X
    default: break;
  }
}

// Integer formulas that are defined on T; the others are never asked for.
template <typename T>
T integer_formula(Op op, T a, T b) {
  switch (op) {
    case Op::add: return tc_add(a, b);
    case Op::sub: return tc_sub(a, b);
    case Op::mul: return tc_mul(a, b);
    case Op::floor_divide: return tc_floor_divide(a, b);
    case Op::remainder: return tc_remainder(a, b);
    case Op::pow: return tc_pow(a, b);
    case Op::minimum: return tc_minimum(a, b);
    case Op::maximum: return tc_maximum(a, b);
    case Op::neg: return tc_neg(a);
    case Op::abs: return tc_abs(a);
    case Op::sign: return tc_sign(a);
    case Op::shift_left: return tc_shl(a, b);
    case Op::shift_right: return tc_shr(a, b);
    case Op::popcount: return tc_popcount(a);
    default: return T{};
  }
}

template <typename T>
T bits_formula(Op op, T a, T b) {
  switch (op) {
    case Op::bitwise_and: return static_cast<T>(a & b);
    case Op::bitwise_or: return static_cast<T>(a | b);
    case Op::bitwise_xor: return static_cast<T>(a ^ b);
    default: return tc_not(a);
  }
}

template <typename T>
bool comparison(Op op, T a, T b) {
  switch (op) {
    case Op::eq: return a == b;
    case Op::ne: return a != b;
    case Op::lt: return a < b;
    case Op::le: return a <= b;
    case Op::gt: return a > b;
    default: return a >= b;
  }
}

template <typename T>
void apply_integer(Op op, const T* a, const T* b, int n, T* out) {
  const bool bits = info(op).domain == Domain::Bits;
  for (int i = 0; i < n; i++) {
    const T y = b ? b[i] : a[i];
    if (bits) {
      out[i] = bits_formula(op, a[i], y);
    } else if constexpr (!std::is_same_v<T, bool>) {
      out[i] = integer_formula(op, a[i], y);
    }
  }
}

void convert(const Lanes& from, DType to, int n, Lanes& out) {
  with_type(from.dtype, [&](auto source) {
    using From = decltype(source);
    const From* a = from.as<From>();
    if (is_half(to)) {
      for (int i = 0; i < n; i++) {
        if constexpr (std::is_same_v<From, double>) {
          out.as<float>()[i] =
              to == DType::f16 ? tc_to_f32(tc_to_f16(a[i])) : tc_to_f32(tc_to_bf16(a[i]));
        } else {
          out.as<float>()[i] = static_cast<float>(a[i]);
        }
      }
      return round_lanes(to, out.as<float>(), n);
    }
    with_type(to, [&](auto target) {
      using To = decltype(target);
      for (int i = 0; i < n; i++) out.as<To>()[i] = tc_cast<To>(a[i]);
    });
  });
}

// The same bits as another dtype: see tc_bitcast. Of two halves both are f32 lanes.
void reinterpret(const Lanes& from, DType to, int n, Lanes& out) {
  if (is_half(to) && from.dtype != to) {
    const bool widens = to == DType::bf16;
    for (int i = 0; i < n; i++) {
      const float a = from.as<float>()[i];
      out.as<float>()[i] = widens ? tc_f16_as_bf16(a) : tc_bf16_as_f16(a);
    }
    return;
  }
  with_type(from.dtype, [&](auto source) {
    with_type(to, [&](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      if constexpr (sizeof(From) == sizeof(To)) {
        for (int i = 0; i < n; i++) {
          const From a = from.as<From>()[i];
          if constexpr (std::is_same_v<From, To>) {
            out.as<To>()[i] = a;
          } else {
            out.as<To>()[i] = tc_bitcast<To>(a);
          }
        }
      }
    });
  });
}

}  // namespace

void apply(Op op, DType result, const Lanes* a, const Lanes* b, const Lanes* c, int n,
           Lanes& out) {
  out.dtype = result;
  if (op == Op::cast) return convert(*a, result, n, out);
  if (op == Op::bitcast) return reinterpret(*a, result, n, out);
  if (op == Op::where) {
    const bool* condition = a->as<bool>();
    return with_type(result, [&](auto zero) {
      using T = decltype(zero);
      for (int i = 0; i < n; i++) out.as<T>()[i] = condition[i] ? b->as<T>()[i] : c->as<T>()[i];
    });
  }
  const DType dtype = a->dtype;
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = a->as<T>();
    const T* y = b ? b->as<T>() : nullptr;
    if (info(op).result == Result::Bool) {
      for (int i = 0; i < n; i++) out.as<bool>()[i] = comparison(op, x[i], y[i]);
    } else if constexpr (std::is_floating_point_v<T>) {
      apply_float(op, dtype, x, y, c ? c->as<T>() : nullptr, n, out.as<T>());
      if constexpr (std::is_same_v<T, float>) round_lanes(result, out.as<float>(), n);
    } else {
      apply_integer(op, x, y, n, out.as<T>());
    }
  });
}

void load(DType dtype, const std::byte* base, const int64_t* offsets, int n, Lanes& out) {
  out.dtype = dtype;
  if (dtype == DType::f16) {
    for (int i = 0; i < n; i++)
      out.as<float>()[i] = tc_to_f32(reinterpret_cast<const tc_f16*>(base)[offsets[i]]);
  } else if (dtype == DType::bf16) {
    for (int i = 0; i < n; i++)
      out.as<float>()[i] = tc_to_f32(reinterpret_cast<const tc_bf16*>(base)[offsets[i]]);
  } else if (dtype == DType::boolean) {  // whatever the byte, one of two values
    for (int i = 0; i < n; i++)
      out.as<bool>()[i] = reinterpret_cast<const uint8_t*>(base)[offsets[i]] != 0;
  } else {
    with_type(dtype, [&](auto zero) {
      using T = decltype(zero);
      for (int i = 0; i < n; i++) out.as<T>()[i] = reinterpret_cast<const T*>(base)[offsets[i]];
    });
  }
}

void store(const Lanes& values, std::byte* base, const int64_t* offsets, int n) {
  if (values.dtype == DType::f16) {
    for (int i = 0; i < n; i++)
      reinterpret_cast<tc_f16*>(base)[offsets[i]] = tc_to_f16(values.as<float>()[i]);
  } else if (values.dtype == DType::bf16) {
    for (int i = 0; i < n; i++)
      reinterpret_cast<tc_bf16*>(base)[offsets[i]] = tc_to_bf16(values.as<float>()[i]);
  } else {
    with_type(values.dtype, [&](auto zero) {
      using T = decltype(zero);
      for (int i = 0; i < n; i++) reinterpret_cast<T*>(base)[offsets[i]] = values.as<T>()[i];
    });
  }
}

void fill(const Literal& value, int n, Lanes& out) {
  const std::vector<int64_t> zeros(static_cast<size_t>(n), 0);
  load(value.dtype, reinterpret_cast<const std::byte*>(&value.bits), zeros.data(), n, out);
}

void fill_iota(const int64_t* values, int n, Lanes& out) {
  out.dtype = DType::i64;
  std::memcpy(out.data, values, static_cast<size_t>(n) * sizeof(int64_t));
}

int64_t lane_integer(const Lanes& lanes, int i) {
  int64_t result = 0;
  with_type(lanes.dtype, [&](auto zero) {
    using T = decltype(zero);
    result = static_cast<int64_t>(lanes.as<T>()[i]);
  });
  return result;
}

unsigned take_errors() {
  const unsigned bits = error_word;
  error_word = 0;
  return bits;
}

void raise_error(unsigned bits) { error_word |= bits; }

bool index_fits(int64_t index, int64_t size) {
  if (index >= 0 && index < size) return true;
  if (!(error_word & 1)) bad_index = tiny_compile::str(index, " for size ", size);
  raise_error(1);
  return false;
}

void throw_errors(unsigned bits, const std::string& where, const std::string& suspects) {
  if (!(bits & 1)) fail(where, ": an integer was divided by zero: check the divisor's values");
  std::string which = std::exchange(bad_index, "");
  if (which.empty() && !suspects.empty()) which = "in " + suspects;
  throw IndexError(tiny_compile::str(where, ": an index is out of range",
                                     which.empty() ? "" : ": ", which,
                                     "; check the values of the index tensor"));
}

}  // namespace tiny_compile
