#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "tests/catch.h"
#include "tests/graph/hand_case.h"
#include "tiny_compile/base/math.h"
#include "tiny_compile/graph/lanes.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

// {"sum", "f32", "1 2 3", "6"} reduces one vector; the result's dtype where it is another.
struct Row {
  std::string op, dtype, operand, expected, result = {};
};

HandCase to_case(const Row& row) {
  const size_t n = literals(*dtype_from(row.dtype), row.operand).size();
  return {str("graph hand(%0 x: ", row.dtype, "[", n,
              "]) {\n  %1: ", row.result.empty() ? row.dtype : row.result, "[] = ", row.op,
              " %0 {axes=[0]}\n  return %1\n}"),
          {row.operand},
          {row.expected}};
}

std::vector<Row> rows() {
  return {
      // the halves: (a + c) + (b + d), where left to right gives 1
      {"sum", "f32", "1e8 1 -1e8 1", "2"},
      // five elements: ((a + e) + c) + (b + d)
      {"sum", "f32", "1e8 1 1 1 -1e8", "3"},
      {"sum", "f32", "-0.0 -0.0", "-0.0"},
      {"sum", "f32", "-0.0 0", "0"},
      {"sum", "f32", "", "0"},
      {"sum", "f32", "inf -inf 1", "nan"},
      {"sum", "f32", "1 nan", "nan"},
      {"sum", "f32", "1e-45 1e-45", "3e-45"},
      {"sum", "f64", "1e16 1 -1e16 1", "2"},
      // accumulated in f32, rounded once: in f16 2048 + 1 + 1 would stay 2048
      {"sum", "f16", "2048 1 1", "2050"},
      {"sum", "f16", "60000 60000 -60000", "60000"},
      {"sum", "f16", "", "0"},
      {"sum", "bf16", "256 1 1 nan", "nan"},
      {"sum", "bf16", "256 1 1", "258"},
      {"sum", "i8", "127 127 -1", "253", "i64"},
      {"sum", "u8", "255 255", "510", "i64"},
      {"sum", "i32", "2147483647 1", "2147483648", "i64"},
      {"sum", "u32", "4294967295 1", "4294967296", "i64"},
      {"sum", "i64", "9223372036854775807 1", "-9223372036854775808"},
      {"sum", "u64", "18446744073709551615 2", "1"},
      {"sum", "bool", "true false true", "2", "i64"},
      {"sum", "bool", "", "0", "i64"},
      // (2^100 * 2^-100) * (2^100 * 2^-100), where left to right overflows
      {"prod", "f32", "1.2676506e30 1.2676506e30 7.888609e-31 7.888609e-31", "1"},
      {"prod", "f32", "", "1"},
      {"prod", "f32", "-0.0 3", "-0.0"},
      {"prod", "f32", "inf 0", "nan"},
      {"prod", "f16", "256 256 0.00390625", "256"},
      {"prod", "bf16", "", "1"},
      {"prod", "i8", "100 100", "10000", "i64"},
      {"prod", "i64", "4611686018427387904 2", "-9223372036854775808"},
      {"prod", "u64", "18446744073709551615 18446744073709551615", "1"},
      {"prod", "u8", "", "1", "i64"},
      {"prod", "bool", "true false", "0", "i64"},
      {"prod", "bool", "", "1", "i64"},
      // any NaN gives NaN; a zero result is +0
      {"max", "f32", "1 -2 3", "3"},
      {"max", "f32", "-0.0 -0.0", "0"},
      {"max", "f32", "-1 -0.0", "0"},
      {"max", "f32", "1 nan 3", "nan"},
      {"max", "f32", "-inf -inf", "-inf"},
      {"max", "f16", "-65504 -inf", "-65504"},
      {"max", "i8", "-128 -5", "-5"},
      {"max", "u64", "18446744073709551615 1", "18446744073709551615"},
      {"max", "u32", "1 4294967295", "4294967295"},
      {"min", "f32", "1 -2 3", "-2"},
      {"min", "f32", "-0.0 1", "0"},
      {"min", "f32", "nan -inf", "nan"},
      {"min", "bf16", "3 1.5", "1.5"},
      {"min", "i64", "-9223372036854775808 0", "-9223372036854775808"},
      {"min", "u64", "18446744073709551615 9223372036854775808", "9223372036854775808"},
      // the first NaN, else the first of equals; -0 equals +0
      {"argmax", "f32", "1 3 3 2", "1", "i64"},
      {"argmax", "f32", "-0.0 0", "0", "i64"},
      {"argmax", "f32", "5 nan inf nan", "1", "i64"},
      {"argmax", "f32", "nan 5", "0", "i64"},
      {"argmax", "f32", "-inf -inf", "0", "i64"},
      {"argmax", "u64", "1 18446744073709551615", "1", "i64"},
      {"argmax", "i8", "-3 -3 -128", "0", "i64"},
      {"argmin", "f32", "0 -0.0", "0", "i64"},
      {"argmin", "f32", "2 1 1", "1", "i64"},
      {"argmin", "f32", "-inf 3 nan", "2", "i64"},
      {"argmin", "u32", "4294967295 7 7", "1", "i64"},
      {"argmin", "bf16", "1 -1", "1", "i64"},
      {"any", "bool", "false true", "true"},
      {"any", "bool", "false false", "false"},
      {"any", "bool", "", "false"},
      {"all", "bool", "true true", "true"},
      {"all", "bool", "true false", "false"},
      {"all", "bool", "", "true"},
      // the maximum is clamped to finite: exp(-inf - -max) is 0, exp(inf - max) is inf
      {"sum_exp", "f32", "7", "1"},
      {"sum_exp", "f32", "1000 1000 -1000", "2"},
      {"sum_exp", "f32", "-inf -inf", "0"},
      {"sum_exp", "f32", "inf 0", "inf"},
      {"sum_exp", "f32", "1 nan", "nan"},
      {"sum_exp", "f32", "", "0"},
      {"sum_exp", "f64", "-0.0 0", "2"},
      {"sum_exp", "f16", "3 3 3", "3"},
  };
}

std::vector<HandCase> axes_cases() {
  const std::string cube = "0 1 2 3 4 5 6 7 8 9 10 11";  // [2,3,2]
  return {
      {"graph axes(%0 x: i32[2,3,2]) {\n %1: i64[3] = sum %0 {axes=[0,2]}\n"
       " %2: i64[2,1,2] = sum %0 {axes=[1], keepdim=1}\n %3: i64[2,3,2] = sum %0 {axes=[]}\n"
       " return %1, %2, %3\n}",
       {cube},
       {"14 22 30", "6 9 24 27", cube}},
      {"graph empty(%0 x: f32[2,0,3]) {\n %1: f32[2,3] = sum %0 {axes=[1]}\n"
       " %2: f32[2,1,3] = prod %0 {axes=[1], keepdim=1}\n %3: f32[0,3] = max %0 {axes=[0]}\n"
       " return %1, %2, %3\n}",
       {""},
       {"0 0 0 0 0 0", "1 1 1 1 1 1", ""}},
      // along the axes as listed: element [1,0] is 1 by rows, 2 by columns
      {"graph listed(%0 x: f32[2,2]) {\n %1: i64[] = argmax %0 {axes=[0,1]}\n"
       " %2: i64[] = argmax %0 {axes=[1,0]}\n %3: i64[1,1] = argmin %0 {axes=[1,0], "
       "keepdim=1}\n"
       " return %1, %2, %3\n}",
       {"1 0 5 -2"},
       {"2", "1", "3"}},
      // by rows (1e8 + -1e8) + (1 + 1), by columns (1e8 + 1) + (-1e8 + 1)
      {"graph order(%0 x: f32[2,2]) {\n %1: f32[] = sum %0 {axes=[0,1]}\n"
       " %2: f32[] = sum %0 {axes=[1,0]}\n return %1, %2\n}",
       {"1e8 1 -1e8 1"},
       {"2", "0"}},
  };
}

std::vector<HandCase> matmul_cases() {
  const auto product = [](const std::string& dtype, const std::string& a, const std::string& b,
                          const std::string& expected) -> HandCase {
    const size_t k = literals(*dtype_from(dtype), a).size();
    return {str("graph dot(%0 a: ", dtype, "[1,", k, "], %1 b: ", dtype, "[", k, ",1]) {\n",
                " %2: ", dtype, "[1,1] = matmul %0, %1\n return %2\n}"),
            {a, b},
            {expected}};
  };
  return {
      {"graph square(%0 a: f32[2,3], %1 b: f32[3,2]) {\n %2: f32[2,2] = matmul %0, %1\n"
       " return %2\n}",
       {"1 2 3 4 5 6", "7 8 9 10 11 12"},
       {"58 64 139 154"}},
      {"graph batch(%0 a: i32[2,1,2], %1 b: i32[2,2,1]) {\n %2: i32[2,1,1] = matmul %0, %1\n"
       " return %2\n}",
       {"1 2 3 4", "5 6 7 8"},
       {"17 53"}},
      {"graph nothing(%0 a: f32[2,0], %1 b: f32[0,2], %2 c: f32[0,2]) {\n"
       " %3: f32[2,2] = matmul %0, %1\n %4: f32[0,0] = matmul %2, %0\n return %3, %4\n}",
       {"", "", ""},
       {"0 0 0 0", ""}},
      product("f32", "1e8 1 -1e8 1", "1 1 1 1", "1"),  // k ascending
      product("f32", "-0.0", "1", "0"),                // from +0
      product("f32", "1e-30", "-1e-30", "0"),          // to +0: a zero has no sign
      product("f32", "1e-30 0", "-1e-30 1", "0"),
      product("f16", "6e-8", "-6e-8", "-0.0"),  // not zero before it is rounded
      product("f32", "inf 1", "0 1", "nan"),
      // fma: (1 + 2^-12)^2 - 1 keeps its last bit, which a rounded product loses
      product("f32", "-1 1.000244140625", "1 1.000244140625", "0.00048834085464477539"),
      product("f16", "2048 1 1", "1 1 1", "2050"),  // in f32, rounded once
      product("f16", "300 1", "300 1", "inf"),
      product("bf16", "256 1 1", "1 1 1", "258"),
      product("i8", "100 1", "2 0", "-56"),
      product("u8", "16 1", "16 7", "7"),
      product("i32", "65536 3", "65536 5", "15"),
      product("u32", "65537", "65537", "131073"),
      product("i64", "4611686018427387904", "2", "-9223372036854775808"),
      product("u64", "4294967296 1", "4294967296 9", "9"),
  };
}

std::vector<float> random_floats(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> exponent(-12, 12), sign(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = std::copysign(std::exp2(exponent(random)), sign(random));
  return values;
}

// The contract by residues: all elements i = r mod d of a chunk, which are the sum of those
// that are r and those that are r + d mod 2d. Independent of the halving in graph/reduce.cpp.
template <typename T>
T residue_sum(const std::vector<T>& values, size_t start, size_t r, size_t d) {
  if (d == 1024) return start + r < values.size() ? values[start + r] : T(-0.0);
  return residue_sum(values, start, r, 2 * d) + residue_sum(values, start, r + d, 2 * d);
}

template <typename T>
T contract_sum(std::vector<T> values) {
  do {
    std::vector<T> chunks;
    for (size_t start = 0; start < values.size(); start += 1024)
      chunks.push_back(residue_sum(values, start, 0, 1));
    values = chunks;
  } while (values.size() > 1);
  return values[0];
}

Tensor reduced(const char* op, const Tensor& x) {
  const std::string type = str(x.dtype(), "[", join(x.shape(), ","), "]");
  const Graph graph = parse_graph(str("graph f(%0 x: ", type, ") {\n %1: ", x.dtype(),
                                      "[] = ", op, " %0 {axes=[0]}\n return %1\n}"));
  return interpret(graph, std::vector<Tensor>{x})[0];
}

std::string error_of(const Row& row) {
  try {
    const HandCase hand = to_case(row);
    run(hand.graph, hand.inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

std::vector<HandCase> tiny_compile::tests::reduction_cases() {
  std::vector<HandCase> cases;
  for (const Row& row : rows()) cases.push_back(to_case(row));
  for (const HandCase& hand : axes_cases()) cases.push_back(hand);
  for (const HandCase& hand : matmul_cases()) cases.push_back(hand);
  return cases;
}

TEST_CASE("reductions and dot products of worked examples", "[interpreter]") {
  for (const HandCase& hand : reduction_cases()) {
    INFO(hand.graph << "\n of " << join(hand.inputs, " | "));
    const std::vector<Tensor> outputs = run(hand.graph, hand.inputs);
    REQUIRE(outputs.size() == hand.outputs.size());
    for (size_t i = 0; i < outputs.size(); i++) {
      INFO("output " << i << " is " << text_of(outputs[i]) << ", not " << hand.outputs[i]);
      CHECK(literals(outputs[i].dtype(), text_of(outputs[i])) ==
            literals(outputs[i].dtype(), hand.outputs[i]));
    }
  }
}

TEST_CASE("nothing has no maximum", "[interpreter]") {
  for (const char* op : {"max", "min", "argmax", "argmin"}) {
    const std::string result = op[0] == 'a' ? "i64" : "f32";
    CHECK_THAT(error_of({op, "f32", "", "", result}), ContainsSubstring("axis 0 is empty"));
    CHECK(error_of({op, "f32", "1", "", result}) == "no error");
  }
}

TEST_CASE("a sum's order is the contract's, whatever the length", "[interpreter]") {
  for (const size_t count : {1, 2, 3, 7, 33, 512, 1023, 1024, 1025, 2048, 5000, 300000}) {
    CAPTURE(count);
    const std::vector<float> values = random_floats(count, static_cast<unsigned>(count));
    CHECK(reduced("sum", from_vector(values)).item<float>() == contract_sum(values));
    const std::vector<double> wide(values.begin(), values.end());
    CHECK(reduced("sum", from_vector(wide)).item<double>() == contract_sum(wide));
  }
}

TEST_CASE("more than 1024 chunks make a third level", "[interpreter]") {
  const std::vector<float> values = random_floats(1024 * 1024 + 1, 7);
  CHECK(reduced("sum", from_vector(values)).item<float>() == contract_sum(values));
}

TEST_CASE("halves sum in f32 and round once", "[interpreter]") {
  std::vector<float> values = random_floats(3000, 11);
  Tensor half = empty_tensor(DType::bf16, {3000});
  for (size_t i = 0; i < values.size(); i++) {
    const prelude::tc_bf16 rounded = prelude::tc_to_bf16(values[i]);
    half.data<prelude::tc_bf16>()[i] = rounded;
    values[i] = prelude::tc_to_f32(rounded);
  }
  const Literal expected = Literal::of(DType::bf16, contract_sum(values));
  CHECK(reduced("sum", half).element({}) == expected);
}

TEST_CASE("a sum's order depends on neither axis nor batch nor layout", "[interpreter]") {
  const size_t rows = 3, count = 1500;
  const std::vector<float> values = random_floats(rows * count, 5);
  const Graph along = parse_graph(
      "graph f(%0 x: f32[3,1500]) {\n %1: f32[3] = sum %0 {axes=[1]}\n return %1\n}");
  const Graph across = parse_graph(
      "graph f(%0 x: f32[1500,3]) {\n %1: f32[3] = sum %0 {axes=[0]}\n return %1\n}");
  const Tensor x = from_vector(values, Sizes{3, 1500});
  const Tensor transposed = with_layout(x, {1500, 3}, {1, 1500}, 0);
  const Tensor by_row = interpret(along, std::vector<Tensor>{x})[0];
  CHECK(same_bits(by_row, interpret(across, std::vector<Tensor>{transposed})[0]));
  CHECK(same_bits(by_row,
                  interpret(across, std::vector<Tensor>{contiguous_copy(transposed)})[0]));
  for (size_t row = 0; row < rows; row++) {
    const auto begin = values.begin() + static_cast<long>(row * count);
    CHECK(by_row.to_vector<float>()[row] ==
          contract_sum(std::vector<float>(begin, begin + 1500)));
  }
}

TEST_CASE("sum_exp takes each chunk against its own maximum", "[interpreter]") {
  const size_t count = 2500;
  std::vector<float> values = random_floats(count, 3);
  for (float& value : values) value = value > 50 ? 50 : value < -50 ? -50 : value;
  std::vector<float> sums, maxima;
  for (size_t start = 0; start < count; start += 1024) {
    std::vector<float> chunk(values.begin() + static_cast<long>(start),
                             values.begin() + static_cast<long>(std::min(count, start + 1024)));
    maxima.push_back(*std::max_element(chunk.begin(), chunk.end()));
    for (float& value : chunk) value = prelude::tc_exp(value - maxima.back());
    sums.push_back(contract_sum(chunk));
  }
  const float most = *std::max_element(maxima.begin(), maxima.end());
  for (size_t i = 0; i < sums.size(); i++) sums[i] *= prelude::tc_exp(maxima[i] - most);
  CHECK(reduced("sum_exp", from_vector(values)).item<float>() == contract_sum(sums));

  double exact = 0;
  for (const float value : values) exact += std::exp(static_cast<double>(value) - most);
  CHECK(std::abs(contract_sum(sums) - exact) <= 1e-6 * exact);
}

TEST_CASE("a chunk of -inf adds nothing to sum_exp", "[interpreter]") {
  std::vector<float> values(1025, -INFINITY);
  CHECK(reduced("sum_exp", from_vector(values)).item<float>() == 0);
  values[1024] = -3;
  CHECK(reduced("sum_exp", from_vector(values)).item<float>() == 1);
  values[0] = NAN;
  CHECK(std::isnan(reduced("sum_exp", from_vector(values)).item<float>()));
}

TEST_CASE("a dot product is a chain of fma, first element first", "[interpreter]") {
  const size_t depth = 777;
  const std::vector<float> a = random_floats(2 * depth, 21), b = random_floats(3 * depth, 22);
  const Graph graph = parse_graph(
      "graph f(%0 a: f32[2,777], %1 b: f32[777,3]) {\n %2: f32[2,3] = matmul %0, %1\n"
      " return %2\n}");
  const std::vector<float> result =
      interpret(graph, std::vector<Tensor>{from_vector(a, Sizes{2, 777}),
                                           from_vector(b, Sizes{777, 3})})[0]
          .to_vector<float>();
  for (size_t m = 0; m < 2; m++) {
    for (size_t n = 0; n < 3; n++) {
      float sum = 0;
      for (size_t k = 0; k < depth; k++) sum = std::fma(a[m * depth + k], b[k * 3 + n], sum);
      CHECK(result[m * 3 + n] == sum);
    }
  }
}

namespace {

// Philox4x32-10 as in the paper: two multiplications a round, the key bumped between rounds.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; round++) {
    if (round > 0) key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
    const uint64_t even = uint64_t{0xD2511F53} * counter[0],
                   odd = uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<uint32_t>(odd >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(odd),
        static_cast<uint32_t>(even >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(even)};
  }
  return counter;
}

}  // namespace

TEST_CASE("this file's philox gives Random123's known answers", "[philox]") {
  using Block = std::array<uint32_t, 4>;
  const uint32_t f = 0xffffffff;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({f, f, f, f}, {f, f}) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

// An index is of 64 bits and a block has four words, so that the counter's word 1 stays below
// 2^30: the published vectors of ones and of pi are out of reach, their neighbours are not.
TEST_CASE("word i of a draw is word i % 4 of the block with counter (i / 4, draw)",
          "[philox]") {
  std::mt19937_64 random(4);
  const auto word = [](uint64_t seed, uint64_t draw, uint64_t index) {
    return philox({static_cast<uint32_t>(index / 4), static_cast<uint32_t>(index / 4 >> 32),
                   static_cast<uint32_t>(draw), static_cast<uint32_t>(draw >> 32)},
                  {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)})[index % 4];
  };
  for (int i = 0; i < 2000; i++) {
    const uint64_t seed = random(), draw = random(), index = random();
    REQUIRE(prelude::tc_philox(seed, draw, index) == word(seed, draw, index));
  }
  const uint64_t ones = ~uint64_t{0}, pi_seed = 0x299f31d0a4093822,
                 pi_draw = 0x0370734413198a2e;
  for (uint64_t k = 0; k < 4; k++) {
    CHECK(prelude::tc_philox(ones, ones, ones - k) == word(ones, ones, ones - k));
    const uint64_t pi_index = 4 * 0x05a308d3243f6a88 + k;
    CHECK(prelude::tc_philox(pi_seed, pi_draw, pi_index) == word(pi_seed, pi_draw, pi_index));
  }
  const std::vector<Tensor> outputs =
      run("graph f(%0 key: u64[2]) {\n %1: u32[3,5000] = philox %0 {draw=0}\n"
          " %2: u32[7] = philox %0 {draw=9}\n return %1, %2\n}",
          {"12345678901234567890 42"});
  const std::vector<uint32_t> first = outputs[0].to_vector<uint32_t>(),
                              second = outputs[1].to_vector<uint32_t>();
  for (size_t i = 0; i < first.size(); i++)
    REQUIRE(first[i] == word(12345678901234567890u, 42, i));
  for (size_t i = 0; i < second.size(); i++)
    CHECK(second[i] == word(12345678901234567890u, 42 + 9, i));
}
