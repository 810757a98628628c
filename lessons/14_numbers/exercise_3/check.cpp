#include "lessons/tools/check.h"
#include "exercise.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::Overflow;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// What the format says, word for word.
double meaning(int code) {
  const int exponent = (code >> 3) & 15, mantissa = code & 7;
  if ((code & 127) == 127) return double(kNaN);
  const double magnitude =
      exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(double(mantissa), -9);
  return code & 128 ? -magnitude : magnitude;
}

bool is_nan_code(int code) { return (code & 127) == 127; }

// The nearest of all codes, found by looking at each, as if 480 were one: what is nearest to it
// has overflowed. Of two that are equally near the even one.
int nearest(float x, Overflow overflow) {
  if (std::isnan(x)) return 127;
  const double magnitude = std::fabs(double(x)), top = std::min(magnitude, 500.0);
  int best = 0;
  for (int code = 0; code <= 127; code++) {
    const double value = code == 127 ? 480.0 : meaning(code);
    const double near = std::fabs((best == 127 ? 480.0 : meaning(best)) - top);
    const double distance = std::fabs(value - top);
    if (distance < near || (distance == near && code % 2 == 0)) best = code;
  }
  if (best == 127 && overflow == Overflow::Saturate) best = 126;
  return best | (std::signbit(x) ? 128 : 0);
}

std::string hexadecimal(int code) {
  char text[8];
  std::snprintf(text, sizeof text, "0x%02x", unsigned(code));
  return text;
}

std::string other_code(float x, Overflow overflow = Overflow::ToNaN) {
  const int wanted = nearest(x, overflow), got = exercise::to_fp8(x, overflow).bits;
  if (wanted == got || (is_nan_code(wanted) && is_nan_code(got))) return "";
  char text[160];
  std::snprintf(text, sizeof text, "to_fp8(%.9g, %s) is %s (%g), not %s (%g)", double(x),
                overflow == Overflow::Saturate ? "Saturate" : "ToNaN", hexadecimal(got).c_str(),
                meaning(got), hexadecimal(wanted).c_str(), meaning(wanted));
  return text;
}

// Both modes, both signs.
std::string other_codes(float x) {
  for (Overflow overflow : {Overflow::ToNaN, Overflow::Saturate}) {
    for (float signed_x : {x, -x}) {
      if (const std::string trouble = other_code(signed_x, overflow); !trouble.empty())
        return trouble;
    }
  }
  return "";
}

Tensor codes_of(const std::vector<float>& values) {
  std::vector<uint8_t> codes;
  for (float value : values) codes.push_back(uint8_t(nearest(value, Overflow::ToNaN)));
  return from_vector(codes);
}

std::string other_outputs(const std::string& inputs, const std::string& body,
                          const std::vector<Tensor>& given, const std::vector<Tensor>& wanted) {
  const Graph graph = graph_of(inputs, body);
  const std::vector<Tensor> got = exercise::interpret_fp8(graph, given, Overflow::ToNaN);
  if (got.size() != wanted.size()) return str("you return ", got.size(), " outputs");
  for (size_t k = 0; k < wanted.size(); k++) {
    if (got[k].dtype() != wanted[k].dtype() || got[k].shape() != wanted[k].shape())
      return str("output ", k, " is ", got[k].dtype(), "[", join(got[k].shape(), ","),
                 "], not ", wanted[k].dtype(), "[", join(wanted[k].shape(), ","), "]\n",
                 print(graph));
    if (first_difference(wanted[k], got[k]))
      return str("output ", k, " is ", got[k].str(), ", not ", wanted[k].str(), "\n",
                 print(graph));
  }
  return "";
}

}  // namespace

TEST_CASE("all 256 codes mean what the format says") {
  for (int code = 0; code < 256; code++) {
    const float got = exercise::to_f32({uint8_t(code)});
    const double wanted = meaning(code);
    const bool right = std::isnan(wanted)
                           ? std::isnan(got)
                           : double(got) == wanted && std::signbit(got) == std::signbit(wanted);
    INFO("to_f32(" << hexadecimal(code) << ") is " << got << ", not " << wanted);
    REQUIRE(right);
  }
}

TEST_CASE("every code that is a number comes back as itself") {
  for (int code = 0; code < 256; code++) {
    if (is_nan_code(code)) continue;
    for (Overflow overflow : {Overflow::ToNaN, Overflow::Saturate}) {
      const int got = exercise::to_fp8(float(meaning(code)), overflow).bits;
      INFO(hexadecimal(code) << " is " << meaning(code) << ", and that became "
                             << hexadecimal(got));
      REQUIRE(got == code);
    }
  }
}

TEST_CASE("halfway goes to the even code, less or more than that to the nearer one") {
  for (int code = 0; code < 126; code++) {
    const float middle = float((meaning(code) + meaning(code + 1)) / 2);
    for (float x : {middle, std::nextafterf(middle, 0.0f), std::nextafterf(middle, kInf)})
      EXPECT(other_codes(x));
  }
}

TEST_CASE("what is below the normal numbers keeps its bits and its sign") {
  for (int i = 0; i <= 4096; i++) EXPECT(other_codes(float(i) * 0x1p-18f));
  for (float x : {0.0f, 0x1p-10f, 0x1.000002p-10f, 0x1p-126f, 0x1p-149f})
    EXPECT(other_codes(x));
}

TEST_CASE("beyond 448 it is NaN, or 448 where that is asked for") {
  for (float x : {448.0f, 455.0f, 463.99997f, 464.0f, 464.00003f, 470.0f, 480.0f, 512.0f, 1e30f,
                  std::numeric_limits<float>::max(), kInf})
    EXPECT(other_codes(x));
}

TEST_CASE("NaN stays NaN in both modes") {
  for (float x : {kNaN, -kNaN, prelude::tc_from_bits(0x7f800001u)}) EXPECT(other_codes(x));
}

TEST_CASE("floats of any bits become the nearest code") {
  uint64_t random = 1;
  for (int i = 0; i < 60000; i++) {
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    const uint32_t any = uint32_t(random >> 32);
    const uint32_t near = 0x3b000000u + any % 0x09000000u;  // 2^-9 to 2^9
    EXPECT(other_code(prelude::tc_from_bits(i % 2 ? any : near | (any & 0x80000000u)),
                      i % 3 ? Overflow::ToNaN : Overflow::Saturate));
  }
}

TEST_CASE("a stored tensor is a byte an element, row by row") {
  const Tensor x = from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, Sizes{2, 3});
  for (const Tensor& given : {x, x.t(), x.flip({1}), x.slice(1, 1)}) {
    const Tensor codes = exercise::store_fp8(given, Overflow::ToNaN);
    REQUIRE(codes.dtype() == uint8);
    REQUIRE(codes.shape() == given.shape());
    CHECK(codes.is_contiguous());
    CHECK(same_bits(exercise::load_fp8(codes), given));
  }
}

TEST_CASE("every value of a graph is rounded, not only its outputs") {
  // 1.1 is stored as 1.125, 17 as 16; 16 * 1.125 is 18, a number; 17 * 1.125 would round to 20.
  EXPECT(other_outputs("%0 x: f32[2], %1 y: f32[2]",
                       "%2: f32[2] = add %0, %1; %3: f32[2] = constant {value=1.125};"
                       "%4: f32[2] = mul %2, %3; return %2, %4",
                       {tensor({16.0f, 1.0f}), tensor({1.0f, 0.1f})},
                       {codes_of({16, 1.125f}), codes_of({18, 1.25f})}));
}

TEST_CASE("inputs and constants are stored before they are read") {
  // 17 is stored as 16, and 1.187 as 1.125; 30 * 1.125 is 33.75 and rounds to 32.
  EXPECT(other_outputs(
      "%0 x: f32[2]", "%1: f32[2] = constant {value=1.187}; %2: f32[2] = mul %0, %1; return %2",
      {tensor({17.0f, 30.0f})}, {codes_of({18, 32})}));
}

TEST_CASE("a sum adds up in f32 and is rounded once") {
  // In fp8, 16 + 1 is 16, and 200 ones would never be more.
  EXPECT(other_outputs("%0 x: f32[200]", "%1: f32[] = sum %0 {axes=[0]}; return %1",
                       {ones({200})}, {codes_of({200}).reshape({})}));
}

TEST_CASE("views and strided inputs read the right bytes") {
  const Tensor x = from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, Sizes{2, 3});
  EXPECT(other_outputs("%0 x: f32[3,2]",
                       "%1: f32[2,3] = permute %0 {axes=[1,0]}; %2: f32[6] = reshape %1;"
                       "%3: f32[6] = flip %2 {axes=[0]}; return %3",
                       {x.t()}, {codes_of({6, 5, 4, 3, 2, 1})}));
}

TEST_CASE("other dtypes stay as they are") {
  EXPECT(other_outputs("%0 x: f32[3], %1 n: i64[3]",
                       "%2: i64[3] = add %1, %1; %3: bool[3] = lt %0, %0;"
                       "%4: i64[] = argmax %0 {axes=[0]}; %5: f32[3] = cast %2; return %2, %3, "
                       "%4, %5",
                       {tensor({1.0f, 1.01f, 0.5f}), tensor({1000, 1, 2})},
                       {tensor({2000, 2, 4}), tensor({false, false, false}),
                        tensor({int64_t{0}}).reshape({}), codes_of({kNaN, 2, 4})}));
}

TEST_CASE("a linear layer in a quarter of the bytes is near the f32 one") {
  manual_seed(8);
  const Tensor x = randn({33, 257}), w = randn({257, 65}) * 0.1;
  const Graph graph = graph_of("%0 x: f32[33,257], %1 w: f32[257,65]",
                               "%2: f32[33,65] = matmul %0, %1; return %2");
  const Tensor right = matmul(x, w);
  const Tensor codes = exercise::interpret_fp8(graph, {x, w}, Overflow::ToNaN)[0];
  const Tensor error = (exercise::load_fp8(codes) - right).abs().mean();
  const double relative = error.item<double>() / right.abs().mean().item<double>();
  score("mean error in 1/1000 of the mean", int64_t(1000 * relative), 50);
  CHECK(relative < 0.06);
}
