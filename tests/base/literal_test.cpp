#include "tiny_compile/base/literal.h"

#include <cmath>
#include <cstdint>
#include <random>

#include "tests/catch.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

const DType kFloats[] = {float32, float64, float16, bfloat16};

Literal with_bits(DType dtype, uint64_t bits) {
  const size_t width = 8 * size_of(dtype);
  return {dtype, width == 64 ? bits : bits & ((uint64_t{1} << width) - 1)};
}

bool is_nan(const Literal& value) {
  return is_float(value.dtype) && std::isnan(value.as_double());
}

std::string error_of(DType dtype, const std::string& text) {
  try {
    parse_literal(dtype, text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a literal prints as a number of its dtype", "[literal]") {
  CHECK(Literal::of(float32, 0.1).str() == "0.1");
  CHECK(Literal::of(float64, 0.1).str() == "0.1");
  CHECK(Literal::of(float16, 0.1).str() == "0.099975586");
  CHECK(Literal::of(float32, 1).str() == "1.0");
  CHECK(Literal::of(float32, -0.0).str() == "-0.0");
  CHECK(Literal::of(float32, 1e-5).str() == "1e-05");
  CHECK(Literal::of(bfloat16, INFINITY).str() == "inf");
  CHECK(Literal::of(float64, -INFINITY).str() == "-inf");
  CHECK(Literal::of(float16, -NAN).str() == "nan");
  CHECK(Literal::of(uint8, 255).str() == "255");
  CHECK(Literal::of(int8, -128).str() == "-128");
  CHECK(Literal::of(boolean, 1).str() == "true");
  CHECK(Literal{}.str() == "0.0");
  CHECK(Literal::of_unsigned(uint64, ~uint64_t{0}).str() == "18446744073709551615");
  CHECK(Literal::of_integer(int64, INT64_MIN).str() == "-9223372036854775808");
}

TEST_CASE("every 16-bit and 8-bit pattern round-trips through its text", "[literal]") {
  for (const DType dtype : {float16, bfloat16, int8, uint8, boolean}) {
    const uint64_t count = dtype == boolean ? 2 : uint64_t{1} << (8 * size_of(dtype));
    for (uint64_t bits = 0; bits < count; bits++) {
      const Literal value{dtype, bits}, back = parse_literal(dtype, value.str());
      if (is_nan(value)) {
        REQUIRE(back == Literal::of(dtype, NAN));
      } else {
        INFO(value.str());
        REQUIRE(back == value);
      }
    }
  }
}

TEST_CASE("random bits of the wide dtypes round-trip through their text", "[literal]") {
  std::mt19937_64 random(1);
  for (const DType dtype : {float32, float64, int32, int64, uint32, uint64}) {
    for (int i = 0; i < 20000; i++) {
      const Literal value = with_bits(dtype, i < 200 ? static_cast<uint64_t>(i) : random());
      if (is_nan(value)) continue;
      INFO(dtype << " " << value.str());
      REQUIRE(parse_literal(dtype, value.str()) == value);
    }
  }
}

TEST_CASE("all NaNs become one", "[literal]") {
  const uint64_t canonical[] = {0x7fc00000, 0x7ff8000000000000, 0x7e00, 0x7fc0};
  for (int i = 0; i < 4; i++) {
    const DType dtype = kFloats[i];
    CAPTURE(dtype);
    CHECK(Literal::of(dtype, NAN).bits == canonical[i]);
    CHECK(Literal::of(dtype, -NAN).bits == canonical[i]);
    CHECK(parse_literal(dtype, "nan").bits == canonical[i]);
    CHECK(parse_literal(dtype, "-nan").bits == canonical[i]);
    CHECK(Literal::of(dtype, NAN).is(-NAN));
  }
}

TEST_CASE("a double is rounded to the dtype once", "[literal]") {
  CHECK(Literal::of(float16, 1.00048828125).as_double() == 1);  // a tie
  CHECK(Literal::of(float16, 1.000488281250001).as_double() == 1.0009765625);
  CHECK(Literal::of(bfloat16, 1.00390625).as_double() == 1);
  CHECK(Literal::of(bfloat16, 1.0039062500000002).as_double() == 1.0078125);
  CHECK(Literal::of(float16, 65519.99).as_double() == 65504);
  CHECK(Literal::of(float16, 65520).as_double() == INFINITY);
  CHECK(Literal::of(float32, 16777217).as_double() == 16777216);
}

TEST_CASE("a text is rounded to the dtype once", "[literal]") {
  // by way of f32 these would be ties, and give 1
  CHECK(parse_literal(float16, "1.000488281250001").as_double() == 1.0009765625);
  CHECK(parse_literal(bfloat16, "1.0039062500001").as_double() == 1.0078125);
  // by way of f64 this would be a tie, and give 1
  CHECK(parse_literal(float32, "1.00000005960464477539062500001").as_double() ==
        1.00000011920928955078125);
}

TEST_CASE("a float becomes an integer towards zero and saturates", "[literal]") {
  CHECK(Literal::of(int8, 200).as_integer() == 127);
  CHECK(Literal::of(int8, -200).as_integer() == -128);
  CHECK(Literal::of(uint8, -0.5).as_integer() == 0);
  CHECK(Literal::of(uint8, -3).as_integer() == 0);
  CHECK(Literal::of(int32, 2.9).as_integer() == 2);
  CHECK(Literal::of(int32, -2.9).as_integer() == -2);
  CHECK(Literal::of(int32, NAN).as_integer() == 0);
  CHECK(Literal::of(int64, 1e30).as_integer() == INT64_MAX);
  CHECK(Literal::of(int64, -INFINITY).as_integer() == INT64_MIN);
  CHECK(Literal::of(uint64, 1e30).bits == ~uint64_t{0});
  CHECK(Literal::of(boolean, 0.1).bits == 1);
  CHECK(Literal::of(boolean, -0.0).bits == 0);
  CHECK(Literal::of(float32, INFINITY).as_integer() == INT64_MAX);
  CHECK(Literal::of(float32, -1.5).as_integer() == -1);
}

TEST_CASE("integers are exact in i64 and wrap in narrower ones", "[literal]") {
  CHECK(Literal::of_integer(int64, INT64_MAX).as_integer() == INT64_MAX);
  CHECK(Literal::of_integer(int8, 300).as_integer() == 44);
  CHECK(Literal::of_integer(uint8, -1).as_integer() == 255);
  CHECK(Literal::of_integer(int32, -1).bits == 0xffffffff);
  CHECK(Literal::of_integer(int32, -1).as_integer() == -1);
  CHECK(Literal::of_integer(boolean, 256).bits == 1);
  CHECK(Literal::of_integer(uint64, -1).bits == ~uint64_t{0});
  CHECK(Literal::of_unsigned(uint64, ~uint64_t{0}).as_double() == 0x1p64);
  CHECK(Literal::of_unsigned(int8, 255).as_integer() == -1);
  CHECK(Literal::of_integer(float32, 16777217).as_double() == 16777216);
  CHECK(Literal::of_unsigned(float64, ~uint64_t{0}).as_double() == 0x1p64);
}

TEST_CASE("is() compares bits", "[literal]") {
  CHECK(Literal::of(float32, 0.1).is(0.1));
  CHECK(Literal::of(float16, 0.1).is(0.1));
  CHECK_FALSE(Literal::of(float32, -0.0).is(0.0));
  CHECK(Literal::of(float32, -0.0).is(-0.0));
  CHECK(Literal::of(int32, 3).is(3));
  CHECK_FALSE(Literal::of(int32, 3) == Literal::of(int64, 3));
}

TEST_CASE("what is no number of the dtype is an error", "[literal]") {
  CHECK(parse_literal(float32, "1e-5") == Literal::of(float32, 1e-5));
  CHECK(parse_literal(float32, "-inf") == Literal::of(float32, -INFINITY));
  CHECK(parse_literal(int32, "-7") == Literal::of(int32, -7));
  for (const char* text : {"", "x", "1x", " 1", "1 ", "--1", "0x10", "1e", "+1", "true"}) {
    for (const DType dtype : {float32, float16, float64, int32, uint64}) {
      INFO("'" << text << "' as " << dtype);
      CHECK_THAT(error_of(dtype, text), ContainsSubstring(str("is no ", dtype)));
    }
  }
  for (const char* text : {"", "1", "0", "True", "nan"})
    CHECK_THAT(error_of(boolean, text), ContainsSubstring("write true or false"));
  CHECK_THAT(error_of(int32, "1.5"), ContainsSubstring("is no i32"));
  CHECK_THAT(error_of(uint64, "-1"), ContainsSubstring("is no u64"));
  CHECK_THAT(error_of(uint8, "-1"), ContainsSubstring("out of range"));
  CHECK_THAT(error_of(uint8, "256"), ContainsSubstring("out of range for u8"));
  CHECK_THAT(error_of(int8, "-129"), ContainsSubstring("out of range"));
  CHECK_THAT(error_of(int64, "9223372036854775808"), ContainsSubstring("out of range"));
  CHECK_THAT(error_of(uint64, "18446744073709551616"), ContainsSubstring("out of range"));
}

TEST_CASE("a number too large for a float dtype is an error, not inf", "[literal]") {
  CHECK_THAT(error_of(float64, "1e309"), ContainsSubstring("out of range for f64"));
  CHECK_THAT(error_of(float32, "1e39"), ContainsSubstring("out of range for f32"));
  CHECK_THAT(error_of(float16, "65520"), ContainsSubstring("out of range for f16"));
  CHECK_THAT(error_of(float16, "-1e9"), ContainsSubstring("out of range for f16"));
  CHECK_THAT(error_of(bfloat16, "3.4e38"), ContainsSubstring("out of range for bf16"));
  CHECK(parse_literal(float16, "65519").as_double() == 65504);
}
