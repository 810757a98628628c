// A number in the bits of its dtype: Literal::of(DType::bf16, 1.00390625) is {bf16, 0x3f80}.
#include "tiny_compile/base/literal.h"

#include <charconv>
#include <cmath>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/math.h"

namespace tiny_compile {
namespace {

using namespace prelude;

uint64_t low_bits(DType dtype, uint64_t bits) {
  const size_t width = 8 * size_of(dtype);
  return width == 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

template <typename Float>
std::string shortest(Float value) {
  if (value != value) return "nan";
  if (value - value != 0) return value > 0 ? "inf" : "-inf";
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string result(text, end);
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

// An f32 is read as one and a half from a double: rounded once, of up to 16 digits in a half.
Literal parse_float(DType dtype, std::string_view text) {
  const char *begin = text.data(), *end = begin + text.size();
  double wide = 0;
  float narrow = 0;
  const bool is_wide = dtype != DType::f32;
  const auto [stop, error] =
      is_wide ? std::from_chars(begin, end, wide) : std::from_chars(begin, end, narrow);
  if (stop != end || error == std::errc::invalid_argument) fail("'", text, "' is no ", dtype);
  if (!is_wide) wide = static_cast<double>(narrow);
  const Literal result = Literal::of(dtype, wide);
  const bool overflows = std::isinf(result.as_double()) && !std::isinf(wide);
  if (error == std::errc::result_out_of_range || overflows)
    fail("'", text, "' is out of range for ", dtype);
  return result;
}

Literal parse_integer(DType dtype, std::string_view text) {
  const char *begin = text.data(), *end = begin + text.size();
  int64_t value = 0;
  uint64_t unsigned_value = 0;
  const bool is_u64 = dtype == DType::u64;
  const auto [stop, error] =
      is_u64 ? std::from_chars(begin, end, unsigned_value) : std::from_chars(begin, end, value);
  if (stop != end || error == std::errc::invalid_argument) fail("'", text, "' is no ", dtype);
  const Literal result =
      is_u64 ? Literal::of_unsigned(dtype, unsigned_value) : Literal::of_integer(dtype, value);
  if (error != std::errc() || (!is_u64 && result.as_integer() != value))
    fail("'", text, "' is out of range for ", dtype);
  return result;
}

}  // namespace

Literal Literal::of(DType dtype, double value) {
  if (value != value) value = __builtin_nan("");  // one NaN: all are equal
  switch (dtype) {
    case DType::f32: return {dtype, tc_bits(static_cast<float>(value))};
    case DType::f64: return {dtype, tc_bits(value)};
    case DType::f16: return {dtype, tc_to_f16(value).bits};
    case DType::bf16: return {dtype, tc_to_bf16(value).bits};
    default: break;
  }
  return with_type(dtype, [&](auto zero) -> Literal {
    const auto nearest = tc_cast<decltype(zero)>(value);
    return {dtype, low_bits(dtype, static_cast<uint64_t>(nearest))};
  });
}

Literal Literal::of_integer(DType dtype, int64_t value) {
  if (is_float(dtype)) return of(dtype, static_cast<double>(value));
  if (dtype == DType::boolean) return {dtype, value != 0};
  return {dtype, low_bits(dtype, static_cast<uint64_t>(value))};
}

Literal Literal::of_unsigned(DType dtype, uint64_t value) {
  if (is_float(dtype)) return of(dtype, static_cast<double>(value));
  if (dtype == DType::boolean) return {dtype, value != 0};
  return {dtype, low_bits(dtype, value)};
}

double Literal::as_double() const {
  switch (dtype) {
    case DType::f32: return tc_from_bits(static_cast<unsigned>(bits));
    case DType::f64: return tc_from_bits(static_cast<unsigned long long>(bits));
    case DType::f16: return tc_to_f32(tc_f16{static_cast<unsigned short>(bits)});
    case DType::bf16: return tc_to_f32(tc_bf16{static_cast<unsigned short>(bits)});
    case DType::u64: return static_cast<double>(bits);
    default: return static_cast<double>(as_integer());
  }
}

int64_t Literal::as_integer() const {
  if (is_float(dtype)) return tc_cast<long long>(as_double());
  if (category(dtype) != Category::Signed) return static_cast<int64_t>(bits);
  const int shift = static_cast<int>(64 - 8 * size_of(dtype));
  return static_cast<int64_t>(bits << shift) >> shift;
}

bool Literal::is(double value) const { return *this == of(dtype, value); }

std::string Literal::str() const {
  if (dtype == DType::f64) return shortest(as_double());
  if (is_float(dtype)) return shortest(static_cast<float>(as_double()));
  if (dtype == DType::boolean) return bits ? "true" : "false";
  return dtype == DType::u64 ? std::to_string(bits) : std::to_string(as_integer());
}

Literal parse_literal(DType dtype, std::string_view text) {
  if (is_float(dtype)) return parse_float(dtype, text);
  if (dtype != DType::boolean) return parse_integer(dtype, text);
  if (text != "true" && text != "false") fail("'", text, "' is no bool: write true or false");
  return {dtype, text == "true"};
}

}  // namespace tiny_compile
