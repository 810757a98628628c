// One typed number: the value of a constant, of padding, of an identity of a reduction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tiny_compile/base/dtype.h"

namespace tiny_compile {

// `bits` is the storage bit pattern of the dtype, zero-extended; equal literals
// have equal bits.
struct Literal {
  DType dtype = DType::f32;
  uint64_t bits = 0;

  // Rounds once to the dtype; float -> integer saturates, NaN -> 0 (the numeric contract).
  static Literal of(DType dtype, double value);
  static Literal of_integer(DType dtype,
                            int64_t value);  // exact for i64; wraps in narrower integers
  static Literal of_unsigned(DType dtype, uint64_t value);

  double as_double() const;
  int64_t as_integer() const;   // u64 values keep their bits
  bool is(double value) const;  // bitwise: Literal::of(f32, -0.0).is(0.0) is false

  std::string str() const;  // round-trips: "0.1", "-0.0", "inf", "nan", "255", "true"
  bool operator==(const Literal&) const = default;
};

// The inverse of str() for a dtype ("1e-5" for f32 and so on); throws tc::Error.
Literal parse_literal(DType dtype, std::string_view text);

}  // namespace tiny_compile
