#include "tiny_compile/graph/interpreter.h"

#include <sys/resource.h>

#include <atomic>
#include <set>

#include "tests/catch.h"
#include "tests/graph/hand_case.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/base/first_exception.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

// One op on vectors of one dtype: {"add", "f32", {"1 2", "3 4"}, "4 6"}.
struct Row {
  std::string op, dtype;
  std::vector<std::string> operands;
  std::string expected, result = {};  // the result's dtype, where it is another
};

HandCase to_case(const Row& row, int ulps = 0) {
  const bool is_where = std::string_view(row.op) == "where";
  const size_t n = literals(*dtype_from(is_where ? "bool" : row.dtype), row.operands[0]).size();
  std::vector<std::string> parameters, ids;
  for (size_t i = 0; i < row.operands.size(); i++) {
    const bool is_condition = is_where && i == 0;
    parameters.push_back(
        str("%", i, " x", i, ": ", is_condition ? "bool" : row.dtype, "[", n, "]"));
    ids.push_back(str("%", i));
  }
  const std::string result = row.result.empty() ? row.dtype : row.result;
  return {str("graph hand(", join(parameters, ", "), ") {\n  %", ids.size(), ": ", result, "[",
              n, "] = ", row.op, " ", join(ids, ", "), "\n  return %", ids.size(), "\n}"),
          row.operands,
          {row.expected},
          ulps};
}

std::vector<HandCase> to_cases(const std::vector<Row>& rows, int ulps = 0) {
  std::vector<HandCase> cases;
  for (const Row& row : rows) cases.push_back(to_case(row, ulps));
  return cases;
}

std::vector<HandCase> arithmetic() {
  return to_cases({
      // overflow to inf, inf - inf, a sum of denormals, a tie to even, -0 + -0
      {"add",
       "f32",
       {"1.5 -0.0 inf 1e-45 3.4028235e38 16777216 -0.0 nan",
        "2.25 -0.0 -inf 1e-45 3.4028235e38 1 0.0 1"},
       "3.75 -0.0 nan 3e-45 inf 16777216 0.0 nan"},
      {"add",
       "f64",
       {"9007199254740992 5e-324 0.1", "1 5e-324 0.2"},
       "9007199254740992 1e-323 0.30000000000000004"},
      // rounded once: 1 + 2^-11 and 2049 are ties, 65520 is the tie that gives inf
      {"add", "f16", {"1 2048 65504 65504", "0.00048828125 1 15 16"}, "1 2048 65504 inf"},
      {"add", "bf16", {"1 1.0078125 256", "0.00390625 0.00390625 1"}, "1 1.015625 256"},
      {"add", "i8", {"127 -128", "1 -1"}, "-128 127"},
      {"add", "u8", {"255 200", "1 100"}, "0 44"},
      {"add", "i32", {"2147483647 5", "1 -7"}, "-2147483648 -2"},
      {"add", "u32", {"4294967295", "2"}, "1"},
      {"add", "i64", {"9223372036854775807", "1"}, "-9223372036854775808"},
      {"add", "u64", {"18446744073709551615", "3"}, "2"},
      {"sub", "f32", {"1 inf 0 -0.0 1e-45", "3 inf 0 0 1e-45"}, "-2 nan 0 -0.0 0"},
      {"sub", "f16", {"2048 1", "0.25 0.00012207031"}, "2048 1"},
      {"sub", "i32", {"-2147483648 3", "1 5"}, "2147483647 -2"},
      {"sub", "u8", {"0", "1"}, "255"},
      {"sub", "u64", {"0", "1"}, "18446744073709551615"},
      {"mul",
       "f32",
       {"3 inf -1e-30 1e-23 2e38 nan", "-2 0 1e-30 1e-22 2 0"},
       "-6 nan -0.0 1e-45 inf nan"},
      {"mul", "f16", {"1.0009765625 300", "1.0009765625 300"}, "1.001953125 inf"},
      {"mul", "bf16", {"1.0078125 3e38", "1.0078125 2"}, "1.015625 inf"},
      {"mul", "i32", {"65536 46341 -3", "65536 46341 7"}, "0 -2147479015 -21"},
      {"mul", "i8", {"-128 100", "-1 3"}, "-128 44"},
      {"mul", "u32", {"65537", "65537"}, "131073"},
      {"mul", "u64", {"4294967296", "4294967296"}, "0"},
      {"mul", "i64", {"4611686018427387904", "2"}, "-9223372036854775808"},
      {"div",
       "f32",
       {"1 -1 0 1 1 7 inf", "0 0 0 3 -0.0 inf inf"},
       "inf -inf nan 0.33333334 -inf 0 nan"},
      {"div", "f64", {"1 5e-324", "3 2"}, "0.3333333333333333 0"},
      {"div", "f16", {"1", "3"}, "0.33325195"},
      {"div", "bf16", {"1", "3"}, "0.33398438"},
      // towards -infinity, from the exact remainder: 1 // 0.1 is 9
      {"floor_divide",
       "f32",
       {"7 -7 7 1 1 0 -1 0 inf", "2 2 -2 0.1 0 0 inf -5 1"},
       "3 -4 -4 9 inf nan -1 -0.0 nan"},
      {"floor_divide",
       "i32",
       {"7 -7 7 -7 -2147483648", "2 2 -2 -2 -1"},
       "3 -4 -4 3 -2147483648"},
      {"floor_divide", "i8", {"-128 -128", "-1 3"}, "-128 -43"},
      {"floor_divide", "u8", {"255 200", "2 255"}, "127 0"},
      {"remainder",
       "f32",
       {"-7 7 5.5 1 -1 1 inf nan", "2 -2 2 0 inf inf 1 1"},
       "1 -1 1.5 nan inf 1 nan nan"},
      {"remainder", "i32", {"-7 7 -7 -2147483648", "2 -2 -2 -1"}, "1 -1 -1 0"},
      {"remainder", "u64", {"18446744073709551615", "10"}, "5"},
      {"neg", "f32", {"1 0 -0.0 inf nan"}, "-1 -0.0 0 -inf nan"},
      {"neg", "i8", {"-128 5"}, "-128 -5"},
      {"neg", "u32", {"1 0"}, "4294967295 0"},
      {"abs", "f32", {"-1.5 -0.0 -inf nan"}, "1.5 0 inf nan"},
      {"abs", "i8", {"-128 -5"}, "-128 5"},
      {"abs", "u8", {"200"}, "200"},
      {"sign", "f32", {"-3 0 -0.0 1e-45 inf nan"}, "-1 0 0 1 1 nan"},
      {"sign", "i32", {"-2147483648 0 9"}, "-1 0 1"},
      {"sign", "u32", {"4294967295 0"}, "1 0"},
      // NaN wins on either side; -0 is less than +0
      {"minimum",
       "f32",
       {"1 nan 1 0 -0.0 -inf", "2 1 nan -0.0 0 5"},
       "1 nan nan -0.0 -0.0 -inf"},
      {"maximum", "f32", {"1 nan 1 0 -0.0 -inf", "2 1 nan -0.0 0 5"}, "2 nan nan 0 0 5"},
      {"minimum", "u32", {"4294967295", "1"}, "1"},
      {"maximum", "u32", {"4294967295", "1"}, "4294967295"},
      {"minimum", "i32", {"-1", "1"}, "-1"},
      {"maximum", "bf16", {"1.5 nan", "-2 0"}, "1.5 nan"},
  });
}

std::vector<HandCase> powers_and_bits() {
  return to_cases({
      {"pow",
       "f32",
       {"2 0 nan 1 -1 -8 -2 0 -0.0 inf 2 -2 3",
        "10 0 0 nan inf 0.333 3 -1 -1 -1 -149 0.5 -inf"},
       "1024 1 1 1 1 nan -8 inf -inf 0 1e-45 nan 0"},
      {"pow", "f64", {"2 -3 0.5", "-1074 3 1074"}, "5e-324 -27 5e-324"},
      {"pow", "f16", {"2 3 10", "-24 2 5"}, "5.9604645e-8 9 inf"},
      // wraps; a negative exponent gives 0 but for 1 and -1
      {"pow",
       "i32",
       {"2 -3 2 2 1 -1 -1 0 3", "10 3 31 -1 -5 -3 -2 0 21"},
       "1024 -27 -2147483648 0 1 -1 1 1 1870418611"},
      {"pow", "u8", {"2 3", "8 5"}, "0 243"},
      {"logaddexp",
       "f32",
       {"-inf -inf inf 0 nan -0.0 100", "-inf -0.0 -inf inf 0 -inf -100"},
       "-inf -0.0 inf inf nan -0.0 100"},
      {"logaddexp",
       "f32",
       {"inf nan inf 0 1 3e38", "inf inf nan 0 1 3e38"},
       "inf nan nan 0.6931472 1.6931472 3e38"},
      {"pow", "i64", {"-2", "63"}, "-9223372036854775808"},
      {"bitwise_and", "i32", {"12 -1", "10 7"}, "8 7"},
      {"bitwise_and", "bool", {"true true false", "true false false"}, "true false false"},
      {"bitwise_or", "u8", {"12", "3"}, "15"},
      {"bitwise_or", "bool", {"true false", "false false"}, "true false"},
      {"bitwise_xor", "i64", {"-1 6", "1 3"}, "-2 5"},
      {"bitwise_xor", "bool", {"true true", "true false"}, "false true"},
      {"bitwise_not", "i32", {"0 5"}, "-1 -6"},
      {"bitwise_not", "u8", {"1"}, "254"},
      {"bitwise_not", "bool", {"true false"}, "false true"},
      // a count of the width or more, or a negative one, shifts everything out
      {"shift_left", "i32", {"3 1 1 1", "1 31 32 -1"}, "6 -2147483648 0 0"},
      {"shift_left", "i8", {"64 1 1", "1 8 100"}, "-128 0 0"},
      {"shift_left", "u8", {"1 255", "7 4"}, "128 240"},
      {"shift_left", "i64", {"1 1", "63 64"}, "-9223372036854775808 0"},
      {"shift_left", "u64", {"1", "18446744073709551615"}, "0"},
      {"shift_right", "i32", {"-8 -1 -1 5 -5", "1 31 32 32 -1"}, "-4 -1 -1 0 -1"},
      {"shift_right", "i8", {"-128 -128 127", "7 8 8"}, "-1 -1 0"},
      {"shift_right", "u32", {"4294967295 4294967295", "31 32"}, "1 0"},
      {"popcount", "i8", {"-1 0 5"}, "8 0 2"},
      {"popcount", "i32", {"-1 255 -2147483648"}, "32 8 1"},
      {"popcount", "u64", {"18446744073709551615"}, "64"},
      {"popcount", "i64", {"-1"}, "64"},
  });
}

std::vector<HandCase> comparisons() {
  std::vector<Row> rows;
  const auto add = [&](const std::string& dtype, std::vector<std::string> operands,
                       std::vector<std::string> expected) {
    const char* ops[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    for (size_t i = 0; i < 6; i++)
      rows.push_back({ops[i], dtype, operands, expected[i], "bool"});
  };
  add("f32", {"1 nan nan -0.0 inf", "2 nan 1 0 inf"},
      {"false false false true true", "true true true false false",
       "true false false false false", "true false false true true",
       "false false false false false", "false false false true true"});
  add("u64", {"18446744073709551615", "1"},
      {"false", "true", "false", "false", "true", "true"});
  add("i32", {"-1 4", "1 4"},
      {"false true", "true false", "true false", "true true", "false false", "false true"});
  add("bool", {"false true", "true true"},
      {"false true", "true false", "true false", "true true", "false false", "false true"});
  add("f16", {"65504", "inf"}, {"false", "true", "true", "true", "false", "false"});
  rows.push_back({"where", "f32", {"true false true", "1 nan -0.0", "nan 2 7"}, "1 2 -0.0"});
  rows.push_back({"fma",
                  "f32",
                  {"2 8388609 inf -0.0 1e38 1", "3 8388609 0 1 10 -0.0",
                   "4 -70368760954880 1 -0.0 -inf 0"},
                  "10 1 nan -0.0 -inf 0"});
  rows.push_back({"fma", "f16", {"2 256", "0.5 256", "-1 -65504"}, "0 32"});
  rows.push_back({"where", "i64", {"false true", "1 2", "3 4"}, "3 2"});
  rows.push_back({"where", "bool", {"false true", "true true", "false false"}, "false true"});
  return to_cases(rows);
}

// What a function of a real number does at its edges: exact.
std::vector<HandCase> function_edges() {
  return to_cases({
      {"exp", "f32", {"0 -0.0 -inf inf nan 89 -105"}, "1 1 0 inf nan inf 0"},
      {"exp", "f16", {"1 11 12"}, "2.71875 59872 inf"},
      {"exp", "bf16", {"1 -200"}, "2.71875 0"},
      {"exp", "f64", {"0 710 -746"}, "1 inf 0"},
      {"expm1", "f32", {"0 -0.0 1e-10 -inf inf nan -3e-45"}, "0 -0.0 1e-10 -1 inf nan -3e-45"},
      {"log", "f32", {"1 0 -0.0 -1 inf nan"}, "0 -inf -inf nan inf nan"},
      {"log1p", "f32", {"0 -0.0 -1 -2 inf 1e-10 nan"}, "0 -0.0 -inf nan inf 1e-10 nan"},
      {"sin", "f32", {"0 -0.0 inf -inf nan 1e-20"}, "0 -0.0 nan nan nan 1e-20"},
      {"cos", "f32", {"0 -0.0 inf nan"}, "1 1 nan nan"},
      {"exp2", "f32", {"0 -0.0 3 -149 -150 128 inf -inf nan"}, "1 1 8 1e-45 0 inf inf 0 nan"},
      {"exp2", "f64", {"10 -1074 1024 nan"}, "1024 5e-324 inf nan"},
      {"log2", "f32", {"1 8 1e-45 0 -0.0 -1 inf nan"}, "0 3 -149 -inf -inf nan inf nan"},
      {"log2", "f64", {"1 8 5e-324 0 -1 inf nan"}, "0 3 -1074 -inf nan inf nan"},
      {"log10", "f32", {"1 1000 0 -0.0 -1 inf nan"}, "0 3 -inf -inf nan inf nan"},
      {"tan", "f32", {"0 -0.0 inf -inf nan 1e-20"}, "0 -0.0 nan nan nan 1e-20"},
      {"tan", "f64", {"0 -0.0 inf nan"}, "0 -0.0 nan nan"},
      {"asin",
       "f32",
       {"0 -0.0 1 -1 1.0000001 inf nan"},
       "0 -0.0 1.5707964 -1.5707964 nan nan nan"},
      {"acos", "f32", {"1 -1 0 -1.0000001 -inf nan"}, "0 3.1415927 1.5707964 nan nan nan"},
      {"atan", "f32", {"0 -0.0 inf -inf nan"}, "0 -0.0 1.5707964 -1.5707964 nan"},
      // the sign of either zero counts, and of infinities the diagonal
      {"atan2",
       "f32",
       {"0 -0.0 0 -0.0 1 -1 -inf inf 1 1 nan 1 1e-45",
        "0 0 -0.0 -0.0 0 -0.0 -inf -1 inf -inf 1 nan -1"},
       "0 -0.0 3.1415927 -3.1415927 1.5707964 -1.5707964 -2.3561945 1.5707964 0 "
       "3.1415927 nan nan 3.1415927"},
      {"atan2", "f16", {"1 0", "1 -1"}, "0.78515625 3.140625"},
      {"erfinv", "f32", {"0 -0.0 1 -1 1.0000001 inf nan"}, "0 -0.0 inf -inf nan nan nan"},
      {"erfinv", "f64", {"0 -0.0 1 -1 2 nan"}, "0 -0.0 inf -inf nan nan"},
      // infinite at 0, at negative whole numbers and at both infinities; 0 at 1 and 2
      {"lgamma",
       "f32",
       {"1 2 0 -0.0 -1 -20000000 inf -inf nan"},
       "0 0 inf inf inf inf inf inf nan"},
      {"lgamma", "f64", {"1 2 0 -3 inf -inf nan"}, "0 0 inf inf inf inf nan"},
      {"digamma", "f32", {"0 -0.0 -1 -20000000 inf -inf nan"}, "-inf inf nan nan inf nan nan"},
      {"digamma", "f64", {"0 -0.0 -2 inf -inf nan"}, "-inf inf nan inf nan nan"},
      {"zeta",
       "f32",
       {"1 0.5 2 2 2 2.5 2 2 inf inf nan 2", "3 3 0 -0.0 -4 -0.5 inf -inf 1 2 1 nan"},
       "inf nan inf inf inf nan 0 inf 1 0 nan nan"},
      {"tanh", "f32", {"0 -0.0 inf -inf nan 1e-20 20"}, "0 -0.0 1 -1 nan 1e-20 1"},
      {"sigmoid", "f32", {"0 inf -inf nan 40"}, "0.5 1 0 nan 1"},
      {"erf", "f32", {"0 -0.0 inf -inf nan 5"}, "0 -0.0 1 -1 nan 1"},
      {"gelu", "f32", {"0 -0.0 inf -inf nan 20 -40 -3e38"}, "0 -0.0 inf -0.0 nan 20 -0.0 -0.0"},
      {"gelu", "f16", {"1 -inf 2"}, "0.84130859375 -0.0 1.9541016"},
      {"gelu", "bf16", {"1 nan"}, "0.83984375 nan"},
      {"silu",
       "f32",
       {"0 -0.0 inf -inf nan 90 -200 -3e38"},
       "0 -0.0 inf -0.0 nan 90 -0.0 -0.0"},
      {"silu", "f16", {"1 -1 -inf inf 60000"}, "0.73095703125 -0.26904296875 -0.0 inf 60000"},
      {"silu", "bf16", {"1 nan -0.0 -100"}, "0.73046875 nan -0.0 -0.0"},
      {"softplus", "f32", {"inf -inf nan 40 -200 3e38"}, "inf 0 nan 40 0 3e38"},
      {"softplus", "f16", {"1 -1 -inf inf 60000"}, "1.3134765625 0.313232421875 0 inf 60000"},
      {"softplus", "bf16", {"1 nan -200"}, "1.3125 nan 0"},
      {"sqrt",
       "f32",
       {"4 2 -1 -0.0 inf nan 1e-45"},
       "2 1.4142135 nan -0.0 inf nan 3.743392e-23"},
      {"sqrt", "f16", {"2"}, "1.4140625"},
      {"sqrt", "f64", {"2"}, "1.4142135623730951"},
      {"rsqrt", "f32", {"4 0 -0.0 -1 inf"}, "0.5 inf -inf nan 0"},
      {"reciprocal", "f32", {"2 0 -0.0 inf 3 3e38"}, "0.5 inf -inf 0 0.33333334 3.3333334e-39"},
      {"floor", "f32", {"1.5 -1.5 -0.5 -0.0 inf 8388609 nan"}, "1 -2 -1 -0.0 inf 8388609 nan"},
      {"ceil", "f32", {"1.2 -0.5 -1.5 nan"}, "2 -0.0 -1 nan"},
      {"round", "f32", {"0.5 1.5 2.5 -0.5 -1.5 0.49999997"}, "0 2 2 -0.0 -2 0"},
      {"round", "bf16", {"2.5 3.5"}, "2 4"},
      {"trunc", "f32", {"1.7 -1.7 -0.5 -inf"}, "1 -1 -0.0 -inf"},
  });
}

// The same functions at places known to 16 digits: within the two (f64: four) ulp promised.
std::vector<HandCase> function_values() {
  std::vector<HandCase> cases = to_cases(
      {
          {"exp",
           "f32",
           {"1 -1 10 -100"},
           "2.718281828459045 0.36787944117144233 22026.465794806718 3.7200759760208356e-44"},
          {"expm1",
           "f32",
           {"1 0.5 -1"},
           "1.718281828459045 0.6487212707001282 -0.6321205588285577"},
          {"log",
           "f32",
           {"2 10 1e-45"},
           "0.6931471805599453 2.302585092994046 -103.27892990343184"},
          {"log1p", "f32", {"1 -0.5"}, "0.6931471805599453 -0.6931471805599453"},
          {"sin",
           "f32",
           {"1 3.1415927 1e10"},
           "0.8414709848078965 -8.742277657347586e-8 -0.48750602508751067"},
          {"cos", "f32", {"1 1.5707964"}, "0.5403023058681398 -4.371138828673793e-8"},
          {"tanh",
           "f32",
           {"0.5 1 -1"},
           "0.46211715726000976 0.7615941559557649 -0.7615941559557649"},
          {"sigmoid",
           "f32",
           {"1 -1 -100"},
           "0.7310585786300049 0.2689414213699951 3.7200759760208356e-44"},
          {"erf",
           "f32",
           {"0.5 1 -1 3"},
           "0.5204998778130465 0.8427007929497149 -0.8427007929497149 0.9999779095030014"},
          {"gelu",
           "f32",
           {"1 -1 -10"},
           "0.8413447460685429 -0.15865525393145707 -7.619853024160527e-23"},
          {"silu",
           "f32",
           {"1 -1 -10 -90"},
           "0.7310585786300049 -0.2689414213699951 -0.00045397868702434396 "
           "-7.374611361591464e-38"},
          {"softplus",
           "f32",
           {"0 1 -1 -10 -90"},
           "0.6931471805599453 1.3132616875182228 0.31326168751822286 4.539889921686465e-05 "
           "8.194012623990515e-40"},
          {"rsqrt", "f32", {"2"}, "0.7071067811865475"},
          {"exp2",
           "f32",
           {"0.5 -0.3 -140.5"},
           "1.414213562373095 0.81225238964462787 5.0732423505427123e-43"},
          {"log2",
           "f32",
           {"3 0.7 1e-40"},
           "1.5849625007211562 -0.51457319739870857 -132.87713157148089"},
          {"log10", "f32", {"2 0.05"}, "0.3010299956639812 -1.3010299891924892"},
          {"tan",
           "f32",
           {"1 -2 10000000000.0"},
           "1.5574077246549022 2.185039863261519 -0.55834963781124185"},
          {"asin",
           "f32",
           {"0.5 -0.9 0.01"},
           "0.52359877559829887 -1.119769460301664 0.010000166450638519"},
          {"acos",
           "f32",
           {"0.5 -0.9 0.999"},
           "1.0471975511965977 2.6905657870965606 0.044724799210927852"},
          {"atan",
           "f32",
           {"0.5 -3 10000000000.0"},
           "0.46364760900080612 -1.2490457723982544 1.5707963266948966"},
          {"atan2",
           "f32",
           {"1 -1 3 inf", "-2 -2 0.5 inf"},
           "2.6779450445889871 -2.6779450445889871 1.4056476493802698 0.7853981633974483"},
          {"erfinv",
           "f32",
           {"0.5 -0.999 0.9999999"},
           "0.47693627620446987 -2.3267563267961548 3.7439211627767996"},
          {"lgamma",
           "f32",
           {"0.5 10 -2.5 1e-10"},
           "0.57236494292470009 12.80182748008147 -0.056243716497674051 23.025850916531303"},
          {"digamma",
           "f32",
           {"0.5 10 -2.5"},
           "-1.9635100260214235 2.2517525890667211 1.1031566406452432"},
          {"zeta",
           "f32",
           {"2 3 2 3.5", "1 0.5 -1.5 10"},
           "1.6449340668482264 8.41439832211716 9.3792466449891238 0.0014322106437178635"},
          {"pow", "f32", {"2 10", "0.5 -0.5"}, "1.4142135623730951 0.31622776601683794"},
      },
      2);
  const std::vector<HandCase> wide = to_cases(
      {
          {"exp", "f64", {"1 700"}, "2.718281828459045 1.0142320547350045e304"},
          {"log", "f64", {"2"}, "0.6931471805599453"},
          {"sin", "f64", {"1e22"}, "-0.8522008497671888"},
          {"cos", "f64", {"1e22"}, "0.5232147853951389"},
          {"erf", "f64", {"1"}, "0.8427007929497149"},
          {"gelu", "f64", {"-10"}, "-7.619853024160527e-23"},
          {"exp2", "f64", {"0.5 -1073.5"}, "1.414213562373095 6.9871433705131321e-324"},
          {"log2", "f64", {"3"}, "1.5849625007211562"},
          {"log10", "f64", {"2"}, "0.3010299956639812"},
          {"tan", "f64", {"1e22"}, "-1.6287782256068989"},
          {"asin", "f64", {"0.5"}, "0.52359877559829887"},
          {"acos", "f64", {"-0.75"}, "2.4188584057763776"},
          {"atan", "f64", {"3"}, "1.2490457723982544"},
          {"atan2", "f64", {"-3", "-4"}, "-2.4980915447965089"},
          {"erfinv", "f64", {"0.5 -0.9375"}, "0.47693627620446987 -1.3171503349861307"},
          {"lgamma",
           "f64",
           {"0.5 30.5 -0.5"},
           "0.57236494292470009 72.953471184169408 1.2655121234846454"},
          {"digamma",
           "f64",
           {"0.5 30.5 -0.25"},
           "-1.9635100260214235 3.4012436689616611 2.9141391202135278"},
          {"zeta", "f64", {"2 4", "1 0.25"}, "1.6449340668482264 256.46369066819807"},
      },
      4);
  cases.insert(cases.end(), wide.begin(), wide.end());
  return cases;
}

std::vector<HandCase> casts() {
  return to_cases({
      // float to integer: towards zero, saturating, NaN to 0
      {"cast",
       "f32",
       {"1.9 -1.9 nan inf -inf 3e9 -0.5"},
       "1 -1 0 2147483647 -2147483648 2147483647 0",
       "i32"},
      {"cast", "f32", {"256 -1 255.9 nan"}, "255 0 255 0", "u8"},
      {"cast", "f32", {"127.9 128 -128.9 -129"}, "127 127 -128 -128", "i8"},
      {"cast",
       "f64",
       {"9.3e18 -9.3e18 1e10"},
       "9223372036854775807 -9223372036854775808 10000000000",
       "i64"},
      {"cast",
       "f64",
       {"1.9e19 -1 1.8e19"},
       "18446744073709551615 0 18000000000000000000",
       "u64"},
      {"cast", "f32", {"4294967296 4294967040 -3"}, "4294967295 4294967040 0", "u32"},
      {"cast", "f16", {"inf 65504 -2.5"}, "2147483647 65504 -2", "i32"},
      {"cast", "f32", {"0 -0.0 nan 1e-45"}, "false false true true", "bool"},
      // integer to integer wraps
      {"cast", "i32", {"256 -1 257"}, "0 255 1", "u8"},
      {"cast", "i32", {"128 -129"}, "-128 127", "i8"},
      {"cast", "u8", {"200"}, "-56", "i8"},
      {"cast", "i8", {"-1"}, "18446744073709551615", "u64"},
      {"cast", "u64", {"18446744073709551615"}, "-1", "i64"},
      {"cast", "i64", {"4294967297"}, "1", "i32"},
      {"cast", "i64", {"256 0"}, "true false", "bool"},
      {"cast", "bool", {"true false"}, "1 0", "i32"},
      {"cast", "bool", {"true false"}, "1 0", "bf16"},
      // integer to float: nearest, ties to even
      {"cast", "i32", {"16777217 16777219"}, "16777216 16777220", "f32"},
      {"cast", "i64", {"9007199254740993"}, "9007199254740992", "f64"},
      {"cast", "u64", {"18446744073709551615"}, "18446744073709551616", "f32"},
      {"cast", "i32", {"65520 2049 2051"}, "inf 2048 2052", "f16"},
      {"cast", "i32", {"257 259"}, "256 260", "bf16"},
      // float to float
      {"cast",
       "f32",
       {"1.00048828125 1.00146484375 65519.996 65520 2.9802322e-8 2.9802326e-8 -1e-10"},
       "1 1.001953125 65504 inf 0 5.9604645e-8 -0.0",
       "f16"},
      {"cast",
       "f32",
       {"1.00390625 1.01171875 3.4e38 3.39e38 nan"},
       "1 1.015625 inf 3.3895314e38 nan",
       "bf16"},
      // f64 to a half is rounded once: by way of f32 these would be ties, and give 1
      {"cast", "f64", {"1.000488281250001"}, "1.0009765625", "f16"},
      {"cast", "f64", {"1.0039062500000002"}, "1.0078125", "bf16"},
      {"cast", "f64", {"1e300 1e-300 -1e-300"}, "inf 0 -0.0", "f32"},
      {"cast", "f16", {"5.9604645e-8 65504 nan"}, "5.9604644775390625e-08 65504 nan", "f64"},
      {"cast", "bf16", {"1.0078125"}, "1.0078125", "f16"},
      // the same bits; every NaN is the quiet one, since which it is depends on the machine
      {"bitcast",
       "f32",
       {"1 -0.0 1e-45 -inf nan"},
       "1065353216 -2147483648 1 -8388608 2143289344",
       "i32"},
      {"bitcast", "i32", {"1065353216 -2147483648 1 2139095041"}, "1 -0.0 1e-45 nan", "f32"},
      {"bitcast", "u32", {"3221225472"}, "-2", "f32"},
      {"bitcast",
       "f64",
       {"1 -0.0 nan"},
       "4607182418800017408 9223372036854775808 9221120237041090560",
       "u64"},
      {"bitcast", "i64", {"4607182418800017408 -1"}, "1 nan", "f64"},
      {"bitcast", "i32", {"-1 5"}, "4294967295 5", "u32"},
      {"bitcast", "i64", {"-1"}, "18446744073709551615", "u64"},
      {"bitcast", "i8", {"-1 0 1"}, "255 0 1", "u8"},
      {"bitcast", "u8", {"255 0 2"}, "true false true", "bool"},
      {"bitcast", "bool", {"true false"}, "1 0", "i8"},
      // 0x3c00 and 0x3f80; f16's NaN is 0x7e00, a number of bf16
      {"bitcast",
       "f16",
       {"1 -0.0 nan inf"},
       "0.0078125 -0.0 4.2535296e37 2.6584559915698317e36",
       "bf16"},
      {"bitcast", "bf16", {"1 -0.0 nan 0.0078125"}, "1.875 -0.0 nan 1", "f16"},
  });
}

std::vector<HandCase> views() {
  const std::string six = "0 1 2 3 4 5";
  return {
      {"graph reshape(%0 x: i32[2,3]) {\n %1: i32[3,2] = reshape %0\n return %1\n}",
       {six},
       {six}},
      {"graph to_scalar(%0 x: f32[1,1]) {\n %1: f32[] = reshape %0\n return %1\n}",
       {"7"},
       {"7"}},
      {"graph copies(%0 x: i32[2,3]) {\n %1: i32[3,2] = permute %0 {axes=[1,0]}\n"
       " %2: i32[6] = reshape %1\n return %1, %2\n}",
       {six},
       {"0 3 1 4 2 5", "0 3 1 4 2 5"}},
      {"graph permute(%0 x: i8[1,2,3]) {\n %1: i8[3,1,2] = permute %0 {axes=[2,0,1]}\n"
       " return %1\n}",
       {six},
       {"0 3 1 4 2 5"}},
      {"graph expand(%0 x: u8[2,1]) {\n %1: u8[2,2,3] = expand %0\n return %1\n}",
       {"7 9"},
       {"7 7 7 9 9 9 7 7 7 9 9 9"}},
      {"graph slice(%0 x: i32[2,6]) {\n %1: i32[2,2] = slice %0 {axis=1, start=1, stop=5, "
       "step=2}\n"
       " %2: i32[0,6] = slice %0 {axis=0, start=1, stop=1, step=1}\n return %1, %2\n}",
       {"0 1 2 3 4 5 6 7 8 9 10 11"},
       {"1 3 7 9", ""}},
      {"graph flip(%0 x: i32[2,3]) {\n %1: i32[2,3] = flip %0 {axes=[1]}\n"
       " %2: i32[2,3] = flip %0 {axes=[0,1]}\n"
       " %3: i32[2,2] = slice %2 {axis=1, start=0, stop=3, step=2}\n return %1, %2, %3\n}",
       {six},
       {"2 1 0 5 4 3", "5 4 3 2 1 0", "5 3 2 0"}},
      {"graph flip_nothing(%0 x: i32[0,3]) {\n %1: i32[0,3] = flip %0 {axes=[0,1]}\n return "
       "%1\n}",
       {""},
       {""}},
      {"graph window(%0 x: i32[6]) {\n %1: i32[2,3] = window %0 {axis=0, step=2, size=3}\n"
       " return %1\n}",
       {six},
       {"0 1 2 2 3 4"}},
      {"graph window_rows(%0 x: i32[3,2]) {\n %1: i32[2,2,2] = window %0 {axis=0, step=1, "
       "size=2}\n"
       " return %1\n}",
       {six},
       {"0 2 1 3 2 4 3 5"}},
      {"graph strided(%0 x: f32[2,3] {strides=[1,2]}) {\n return %0\n}", {six}, {six}},
  };
}

std::vector<HandCase> sources() {
  return {
      {"graph constant() {\n %0: f16[2,2] = constant {value=0.1}\n return %0\n}",
       {},
       {"0.099975586 0.099975586 0.099975586 0.099975586"}},
      {"graph empty() {\n %0: i64[0] = constant {value=3}\n return %0\n}", {}, {""}},
      {"graph iota() {\n %0: i64[5] = iota\n return %0\n}", {}, {"0 1 2 3 4"}},
      // counter 0, key 0: the first of Random123's known answers for philox4x32-10, then the
      // first word of the block at counter 1
      {"graph philox() {\n %0: u64[2] = constant {value=0}\n %1: u32[4] = philox %0 {draw=0}\n"
       " %2: u32[2,2] = philox %0 {draw=0}\n return %1, %2\n}",
       {},
       {"1713891541 3781805453 3159862348 2600524760",
        "1713891541 3781805453 3159862348 2600524760"}},
  };
}

std::vector<HandCase> indexed() {
  return {
      {"graph gather(%0 x: f32[3,2], %1 i: i64[4,2]) {\n %2: f32[4,2] = gather %0, %1 "
       "{axis=0}\n"
       " return %2\n}",
       {"0 1 10 11 20 21", "2 0 0 2 1 1 2 2"},
       {"20 1 0 21 10 11 20 21"}},
      {"graph gather_last(%0 x: bool[2,3], %1 i: i32[1,2]) {\n"
       " %2: bool[1,2] = gather %0, %1 {axis=1}\n return %2\n}",
       {"false true false true true true", "1 0"},
       {"true false"}},
      {"graph gather_nothing(%0 x: f32[0], %1 i: i64[0]) {\n %2: f32[0] = gather %0, %1 "
       "{axis=0}\n"
       " return %2\n}",
       {"", ""},
       {""}},
      {"graph scatter(%0 x: i32[3,2], %1 i: i64[2,2], %2 s: i32[2,2]) {\n"
       " %3: i32[3,2] = scatter_add %0, %1, %2 {axis=0}\n return %3, %0\n}",
       {"1 1 1 1 1 1", "2 0 2 1", "10 20 30 40"},
       {"1 21 1 41 41 1", "1 1 1 1 1 1"}},
      // ascending: (1e8 + 1) - 1e8 + 1 is 1, in any other order it is not
      {"graph ascending(%0 x: f32[1], %1 i: i32[4], %2 s: f32[4]) {\n"
       " %3: f32[1] = scatter_add %0, %1, %2 {axis=0}\n return %3\n}",
       {"0", "0 0 0 0", "1e8 1 -1e8 1"},
       {"1"}},
      // each update is rounded: 2048 + 1 + 1 in f16 stays 2048
      {"graph rounded(%0 x: f16[1], %1 i: i32[2], %2 s: f16[2]) {\n"
       " %3: f16[1] = scatter_add %0, %1, %2 {axis=0}\n return %3\n}",
       {"2048", "0 0", "1 1"},
       {"2048"}},
      {"graph concat(%0 a: i8[2,1], %1 b: i8[2,2], %2 c: i8[2,0]) {\n"
       " %3: i8[2,4] = concat %0, %1, %2, %0 {axis=1}\n %4: i8[4,1] = concat %0, %0 {axis=0}\n"
       " return %3, %4\n}",
       {"1 2", "3 4 5 6", ""},
       {"1 3 4 1 2 5 6 2", "1 2 1 2"}},
      {"graph pad(%0 x: f32[2,2]) {\n %1: f32[3,5] = pad %0 {low=[1,2], high=[0,1], "
       "value=-0.0}\n"
       " return %1\n}",
       {"1 2 3 4"},
       {"-0.0 -0.0 -0.0 -0.0 -0.0 -0.0 -0.0 1 2 -0.0 -0.0 -0.0 3 4 -0.0"}},
      // negative entries crop, even past the other end
      {"graph crop(%0 x: i32[5]) {\n %1: i32[4] = pad %0 {low=[-2], high=[1], value=9}\n"
       " %2: i32[4] = pad %0 {low=[1], high=[-2], value=9}\n"
       " %3: i32[2] = pad %0 {low=[-6], high=[3], value=9}\n"
       " %4: i32[2] = pad %0 {low=[3], high=[-6], value=9}\n"
       " %5: i32[0] = pad %0 {low=[-2], high=[-3], value=9}\n return %1, %2, %3, %4, %5\n}",
       {"1 2 3 4 5"},
       {"3 4 5 9", "9 1 2 3", "9 9", "9 9", ""}},
      {"graph cumsum(%0 x: i32[2,3]) {\n %1: i32[2,3] = cumsum %0 {axis=1}\n"
       " %2: i32[2,3] = cumsum %0 {axis=0}\n return %1, %2\n}",
       {"1 2 2147483647 4 5 6"},
       {"1 3 -2147483646 4 9 15", "1 2 2147483647 5 7 -2147483643"}},
      // f16 runs on in f32: 2048 + 1 + 1 rounds to 2048, then 2050; a first -0 stays
      {"graph running(%0 x: f16[4], %1 y: f32[3]) {\n %2: f16[4] = cumsum %0 {axis=0}\n"
       " %3: f32[3] = cumsum %1 {axis=0}\n return %2, %3\n}",
       {"2048 1 1 nan", "-0.0 -0.0 1"},
       {"2048 2048 2050 nan", "-0.0 -0.0 1"}},
      // groups of 16: 2^24 + 1 is 2^24, but the next group adds its ones before it is added
      {"graph groups(%0 x: f32[19]) {\n %1: f32[19] = cumsum %0 {axis=0}\n return %1\n}",
       {"16777216 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 1"},
       {"16777216 16777216 16777216 16777216 16777216 16777216 16777216 "
        "16777216 16777216 16777216 16777216 16777216 16777216 16777216 "
        "16777216 16777216 16777216 16777218 16777220"}},
      {"graph cumprod(%0 x: i8[4], %1 y: f32[4]) {\n %2: i8[4] = cumprod %0 {axis=0}\n"
       " %3: f32[4] = cumprod %1 {axis=0}\n return %2, %3\n}",
       {"2 -3 50 2", "-0.0 2 -1 nan"},
       {"2 -6 -44 -88", "-0.0 -0.0 0 nan"}},
      {"graph logcumsumexp(%0 x: f32[5], %1 y: f32[3]) {\n %2: f32[5] = logcumsumexp %0 "
       "{axis=0}\n %3: f32[3] = logcumsumexp %1 {axis=0}\n return %2, %3\n}",
       {"-inf -0.0 -inf inf nan", "1000 -1000 0"},
       {"-inf -0.0 -0.0 inf nan", "1000 1000 1000"}},
      // the last of equals, -0 = 0; NaN stays, and a later one is the place
      {"graph cummax(%0 x: f32[8], %1 y: i32[2,2]) {\n %2: i64[8] = cummax %0 {axis=0}\n"
       " %3: i64[2,2] = cummax %1 {axis=0}\n return %2, %3\n}",
       {"0 -0.0 2 1 2 nan 3 nan", "1 2 0 2"},
       {"0 1 2 2 4 5 5 7", "0 0 0 1"}},
      {"graph cummin(%0 x: f32[6]) {\n %1: i64[6] = cummin %0 {axis=0}\n return %1\n}",
       {"3 inf 3 -inf nan -inf"},
       {"0 0 2 3 4 4"}},
      // equals in order, -0 = 0, NaN greater than all
      {"graph sorts(%0 x: f32[8], %1 y: i32[2,3]) {\n %2: i64[8] = argsort %0 {axis=0}\n"
       " %3: i64[8] = argsort_descending %0 {axis=0}\n %4: i64[2,3] = argsort %1 {axis=0}\n"
       " %5: i64[2,3] = argsort_descending %1 {axis=1}\n return %2, %3, %4, %5\n}",
       {"0 nan -0.0 inf -inf 1 nan 0", "1 2 2 0 2 3"},
       {"4 0 2 7 5 3 1 6", "1 6 3 5 0 2 7 4", "1 0 0 0 1 1", "1 2 0 2 1 0"}},
      {"graph sort_others(%0 x: bool[5], %1 y: u64[3], %2 z: f16[4]) {\n"
       " %3: i64[5] = argsort %0 {axis=0}\n %4: i64[3] = argsort_descending %1 {axis=0}\n"
       " %5: i64[4] = argsort %2 {axis=0}\n return %3, %4, %5\n}",
       {"true false true false true", "1 18446744073709551615 2", "0.5 nan -inf -2"},
       {"1 3 0 2 4", "1 2 0", "2 3 0 1"}},
      {"graph last_wins(%0 x: bool[3], %1 i: i64[4], %2 s: bool[4]) {\n"
       " %3: bool[3] = scatter %0, %1, %2 {axis=0}\n return %3\n}",
       {"true true false", "0 2 2 0", "true false true false"},
       {"false true true"}},
      {"graph extremes(%0 x: f32[3], %1 i: i64[4], %2 s: f32[4]) {\n"
       " %3: f32[3] = scatter_max %0, %1, %2 {axis=0}\n"
       " %4: f32[3] = scatter_min %0, %1, %2 {axis=0}\n"
       " %5: f32[3] = scatter_prod %0, %1, %2 {axis=0}\n return %3, %4, %5\n}",
       {"1 -0.0 5", "0 1 2 0", "3 0 nan 2"},
       {"3 0 nan", "1 -0.0 nan", "6 -0.0 nan"}},
  };
}

void check_output(const Tensor& actual, const std::string& expected, int ulps) {
  const std::vector<Literal> wanted = literals(actual.dtype(), expected),
                             found = literals(actual.dtype(), text_of(actual));
  REQUIRE(found.size() == wanted.size());
  for (size_t i = 0; i < found.size(); i++) {
    INFO("element " << i << " is " << found[i].str() << ", expected " << wanted[i].str());
    CHECK(is_near(found[i], wanted[i], ulps));
  }
}

void check(const std::vector<HandCase>& cases) {
  for (const HandCase& hand : cases) {
    INFO(hand.graph << "\n of " << join(hand.inputs, " | "));
    const std::vector<Tensor> outputs = run(hand.graph, hand.inputs);
    REQUIRE(outputs.size() == hand.outputs.size());
    for (size_t i = 0; i < outputs.size(); i++)
      check_output(outputs[i], hand.outputs[i], hand.ulps);
  }
}

std::vector<HandCase> calls() {
  return {{R"(graph hand(%0 x: f32[3]) {
  %1: (f32[3], f32[]) = call %0 {
    graph body(%0 x: f32[3]) {
      %1: f32[3] = neg %0
      %2: f32[] = max %1 {axes=[0]}
      return %1, %2
    }
  }
  %2: f32[] = item %1 {index=1}
  %3: f32[3] = item %1 {index=0}
  return %2, %3
})",
           {"1 -2 3"},
           {"2", "-1 2 -3"}},
          {R"(graph hand(%0 x: f32[3]) {
  %1: (f32[3]) = custom_vjp %0 {
    graph forward(%0 x: f32[3]) {
      %1: f32[3] = neg %0
      return %1
    }
    graph backward(%0 x: f32[3], %1 y: f32[3], %2 g: f32[3]) {
      return %2
    }
  }
  %2: f32[3] = item %1 {index=0}
  return %2
})",
           {"1 -2 3"},
           {"-1 2 -3"}},
          {R"(graph hand(%0 x: f32[3]) {
  %1: (f32[3]) = checkpoint %0 {
    graph region(%0 x: f32[3]) {
      %1: f32[3] = neg %0
      return %1
    }
  }
  %2: f32[3] = item %1 {index=0}
  return %2
})",
           {"1 -2 3"},
           {"-1 2 -3"}}};
}

std::vector<std::vector<HandCase>> all_cases() {
  return {arithmetic(),      powers_and_bits(), comparisons(), function_edges(),
          function_values(), casts(),           views(),       sources(),
          indexed(),         reduction_cases(), calls()};
}

std::string error_of(const std::string& graph, const std::vector<std::string>& inputs) {
  try {
    run(graph, inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("arithmetic wraps, rounds once and follows IEEE", "[interpreter]") {
  check(arithmetic());
}

TEST_CASE("a call gives its graph's results", "[interpreter]") { check(calls()); }

TEST_CASE("integer powers wrap and shifts past the width give 0 or the sign", "[interpreter]") {
  check(powers_and_bits());
}

TEST_CASE("comparisons know NaN, -0 and unsigned numbers", "[interpreter]") {
  check(comparisons());
}

TEST_CASE("functions are exact at their edges", "[interpreter]") { check(function_edges()); }

TEST_CASE("functions reach known values within their ulps", "[interpreter]") {
  check(function_values());
}

TEST_CASE("casts saturate, wrap and round once", "[interpreter]") { check(casts()); }

TEST_CASE("views rearrange elements", "[interpreter]") { check(views()); }

TEST_CASE("sources make numbers from nothing", "[interpreter]") { check(sources()); }

TEST_CASE("indexed ops move and add elements", "[interpreter]") { check(indexed()); }

TEST_CASE("an integer divided by zero is an error that says so", "[interpreter]") {
  for (const char* op : {"floor_divide", "remainder"}) {
    for (const char* dtype : {"i8", "u8", "i32", "u32", "i64", "u64"}) {
      const HandCase hand = to_case({op, dtype, {"4 5 6", "2 0 3"}, ""});
      INFO(hand.graph);
      CHECK_THAT(error_of(hand.graph, hand.inputs), ContainsSubstring("divided by zero"));
    }
  }
}

TEST_CASE("an index out of range is an error that names the place", "[interpreter]") {
  const std::string gather =
      "graph f(%0 x: f32[3], %1 i: i64[2]) {\n"
      " %2: f32[2] = gather %0, %1 {axis=0}  # mlp.cpp:14\n return %2\n}";
  const std::string scatter =
      "graph f(%0 x: i32[3], %1 i: i32[2], %2 s: i32[2]) {\n"
      " %3: i32[3] = scatter_add %0, %1, %2 {axis=0}  # mlp.cpp:15\n return %3\n}";
  CHECK(error_of(gather, {"1 2 3", "0 2"}) == "no error");
  for (const char* bad : {"0 3", "-1 0", "9223372036854775807 0", "0 -9223372036854775808"}) {
    const std::string message = error_of(gather, {"1 2 3", bad});
    CHECK_THAT(message, ContainsSubstring("mlp.cpp:14: gather: an index is out of range: ") &&
                            ContainsSubstring(" for size 3"));
  }
  CHECK_THAT(error_of(scatter, {"1 2 3", "0 3", "1 1"}), ContainsSubstring("mlp.cpp:15"));
  CHECK_THAT(error_of(scatter, {"1 2 3", "-1 0", "1 1"}), ContainsSubstring("out of range"));
}

TEST_CASE("out of memory in a loop of many threads is an error of the op", "[interpreter]") {
  if (!kLimitsMemory) SKIP("built with a sanitizer");
  const Tensor x = full({}, 1).expand({3'000'000'000});
  CHECK(in_child([&] {
          const rlimit limit{size_t{4} << 30, size_t{4} << 30};
          setrlimit(RLIMIT_AS, &limit);
          const std::string message = message_of([&] { x.sum(); });
          const bool tells = message.find("sum: out of memory") != std::string::npos;
          return tells && x.slice(0, 0, 3).sum().item<float>() == 3 ? 0 : 1;
        }) == 0);
}

TEST_CASE("the first exception leaves a parallel region, and no other", "[interpreter]") {
  FirstException first;
  std::atomic<int> run = 0;
#pragma omp parallel for
  for (int i = 0; i < 1000; i++) {
    first.run([&] {
      run++;
      throw std::bad_alloc();
    });
  }
  CHECK_THROWS_AS(first.rethrow(), std::bad_alloc);
  CHECK(run >= 1);
  FirstException none;
  none.run([] {});
  CHECK_NOTHROW(none.rethrow());
}

TEST_CASE("an error leaves nothing behind for the next op", "[interpreter]") {
  const HandCase bad = to_case({"remainder", "i32", {"4", "0"}, ""});
  const HandCase good = to_case({"remainder", "i32", {"4", "3"}, "1"});
  CHECK_THAT(error_of(bad.graph, bad.inputs), ContainsSubstring("divided by zero"));
  check({good});
}

TEST_CASE("inputs must be those of the graph", "[interpreter]") {
  const Graph graph = parse_graph("graph f(%0 x: f32[2]) {\n return %0\n}");
  const auto message = [&](const std::vector<Tensor>& inputs) -> std::string {
    try {
      interpret(graph, inputs);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const Tensor good = tensor_of(DType::f32, {2}, "1 2");
  CHECK(message({good}) == "no error");
  CHECK_THAT(message({}), ContainsSubstring("more inputs than the 0 given"));
  CHECK_THAT(message({good, good}), ContainsSubstring("has 1 inputs, but 2 were given"));
  CHECK_THAT(message({tensor_of(DType::f64, {2}, "1 2")}), ContainsSubstring("f64[2]"));
  CHECK_THAT(message({tensor_of(DType::f32, {3}, "1 2 3")}), ContainsSubstring("input x"));
  CHECK_THAT(message({Tensor()}), ContainsSubstring("undefined"));
}

TEST_CASE("sizes are those of the inputs, within their bounds", "[interpreter]") {
  const std::string text =
      "graph f[n: 1..8](%0 x: f32[n]) {\n %1: f32[n] = neg %0\n return %1\n}";
  const std::vector<Tensor> two = {tensor_of(DType::f32, {2}, "1 2")};
  CHECK(same_bits(interpret(parse_graph(text), two)[0], tensor_of(DType::f32, {2}, "-1 -2")));
  const std::vector<Tensor> nine = {filled_tensor(Literal::of(DType::f32, 1), {9})};
  CHECK_THROWS_AS(interpret(parse_graph(text), nine), Error);
}

TEST_CASE("views share their operand's storage, other results do not", "[interpreter]") {
  const Graph graph = parse_graph(R"(graph f(%0 x: f32[4,6]) {
  %1: f32[6,4] = permute %0 {axes=[1,0]}
  %2: f32[2,6,4] = expand %1
  %3: f32[2,3,4] = slice %2 {axis=1, start=0, stop=6, step=2}
  %4: f32[2,3,4] = flip %3 {axes=[0,2]}
  %5: f32[2,3,2,3] = window %4 {axis=2, step=1, size=3}
  %6: f32[24] = reshape %0
  %7: f32[24] = reshape %1
  %8: f32[24] = neg %6
  return %5, %7, %8
})");
  const std::vector<Tensor> inputs = {filled_tensor(Literal::of(DType::f32, 1), {4, 6})};
  const std::vector<Tensor> values = interpret_all(graph, inputs);
  for (int view = 1; view <= 6; view++) {
    CAPTURE(view);
    CHECK(values[view].info().storage == inputs[0].info().storage);
  }
  CHECK(values[7].info().storage != inputs[0].info().storage);
  CHECK(values[8].info().storage != inputs[0].info().storage);
}

TEST_CASE("inputs may have any strides", "[interpreter]") {
  const Graph graph = parse_graph(R"(graph f(%0 x: i32[3,2], %1 i: i64[3,2]) {
  %2: i32[3,2] = add %0, %0
  %3: i64[3] = sum %0 {axes=[1]}
  %4: i32[2,3] = permute %0 {axes=[1,0]}
  %5: i32[3,3] = matmul %0, %4
  %6: i32[3,2] = gather %0, %1 {axis=0}
  %7: i32[3,2] = scatter_add %0, %1, %0 {axis=0}
  %8: i32[4,2] = pad %0 {low=[1,0], high=[0,0], value=0}
  %9: i32[3,4] = concat %0, %0 {axis=1}
  %10: i32[3,2] = cumsum %0 {axis=0}
  return %2, %3, %5, %6, %7, %8, %9, %10
})");
  const Tensor x = tensor_of(DType::i32, {3, 2}, "1 2 3 4 5 6"),
               i = tensor_of(DType::i64, {3, 2}, "2 1 0 0 1 2"),
               bytes = tensor_of(DType::i32, {12}, "0 6 0 5 0 4 0 3 0 2 0 1"),
               indices = tensor_of(DType::i64, {6}, "2 0 1 1 0 2");
  const Tensor backwards = with_layout(bytes, {3, 2}, {-4, -2}, 11),
               columns = with_layout(indices, {3, 2}, {1, 3}, 0);
  const std::vector<Tensor> plain = {x, i}, strided = {backwards, columns};
  const std::vector<Tensor> expected = interpret(graph, plain),
                            actual = interpret(graph, strided);
  REQUIRE(same_bits(backwards, x));
  REQUIRE(same_bits(columns, i));
  for (size_t k = 0; k < expected.size(); k++) {
    CAPTURE(k);
    CHECK(same_bits(actual[k], expected[k]));
  }
}

TEST_CASE("every op of the table has a hand case", "[interpreter]") {
  std::set<std::string> covered;
  for (const std::vector<HandCase>& cases : all_cases()) {
    for (const HandCase& hand : cases) {
      const Graph graph = parse_graph(hand.graph);
      for (int output : graph.outputs) {
        covered.insert(info(graph[output].op).name);
        if (graph[output].op == Op::item)
          covered.insert(info(graph[graph[output].inputs[0]].op).name);
      }
    }
  }
  for (int i = 0; i < kOpCount; i++) {
    const char* op = info(static_cast<Op>(i)).name;
    INFO("no hand case returns the result of " << op);
    CHECK(covered.count(op) == 1);
  }
}
