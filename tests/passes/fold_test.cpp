// What is computed while compiling: the very bits that the op would have given, and no error.
#include "tests/passes/rewrites.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;

namespace {

// An op on two constants of one dtype becomes this constant.
void folds(const std::string& dtype, const std::string& op, const std::string& a,
           const std::string& b, const std::string& result) {
  const std::string t = ": " + dtype + "[3]";
  check_becomes(fold, "",
                "%0" + t + " = constant {value=" + a + "}; %1" + t + " = constant {value=" + b +
                    "}; %2" + t + " = " + op + " %0, %1; return %2",
                "%0" + t + " = constant {value=" + result + "}; return %0");
}

void folds_one(const std::string& from, const std::string& op, const std::string& a,
               const std::string& to, const std::string& result) {
  check_becomes(fold, "",
                "%0: " + from + "[3] = constant {value=" + a + "}; %1: " + to + "[3] = " + op +
                    " %0; return %1",
                "%0: " + to + "[3] = constant {value=" + result + "}; return %0");
}

}  // namespace

TEST_CASE("floats fold with IEEE's signs of zero, infinities and NaN", "[fold]") {
  folds("f32", "add", "-0.0", "-0.0", "-0.0");
  folds("f32", "add", "-0.0", "0.0", "0.0");
  folds("f32", "mul", "-0.0", "5.0", "-0.0");
  folds("f32", "sub", "inf", "inf", "nan");
  folds("f32", "mul", "0.0", "inf", "nan");
  folds("f32", "div", "0.0", "0.0", "nan");
  folds("f64", "div", "0.0", "0.0", "nan");
  folds("bf16", "div", "0.0", "-0.0", "nan");
  folds("f16", "sub", "inf", "inf", "nan");
  folds("f32", "div", "1.0", "-0.0", "-inf");
  folds("f32", "mul", "1e-45", "0.5", "0.0");  // halves to even
  folds("f32", "mul", "-1e-45", "0.5", "-0.0");
  folds("f32", "minimum", "nan", "1.0", "nan");
  folds("f32", "maximum", "1.0", "nan", "nan");
  folds("f32", "minimum", "0.0", "-0.0", "-0.0");
  folds("f32", "maximum", "-0.0", "0.0", "0.0");
}

TEST_CASE("denormals are kept and halves are rounded once", "[fold]") {
  folds("f32", "add", "1e-45", "1e-45", "3e-45");
  folds("f32", "mul", "1.1754944e-38", "0.5", "5.877472e-39");
  folds("f16", "add", "2048.0", "1.0", "2048.0");
  folds("f16", "mul", "65504", "2.0", "inf");
  folds("bf16", "add", "256.0", "1.0", "256.0");
  folds("f32", "add", "16777216.0", "1.0", "16777216.0");
}

TEST_CASE("integers fold wrapping", "[fold]") {
  folds("i8", "add", "127", "1", "-128");
  folds("i8", "mul", "-128", "-1", "-128");
  folds("u8", "sub", "0", "1", "255");
  folds("i32", "mul", "65536", "65536", "0");
  folds("i64", "add", "9223372036854775807", "1", "-9223372036854775808");
  folds("u64", "sub", "0", "1", "18446744073709551615");
  folds("i32", "shift_left", "1", "32", "0");
  folds("i32", "shift_right", "-8", "40", "-1");
  folds("i32", "floor_divide", "-7", "2", "-4");
  folds("i32", "remainder", "-7", "2", "1");
  folds_one("i8", "neg", "-128", "i8", "-128");
}

TEST_CASE("casts fold as they saturate, wrap and round", "[fold]") {
  folds_one("f32", "cast", "nan", "i32", "0");
  folds_one("f32", "cast", "3e+38", "i8", "127");
  folds_one("f32", "cast", "-inf", "i64", "-9223372036854775808");
  folds_one("f32", "cast", "-1.5", "i32", "-1");
  folds_one("f32", "cast", "nan", "bool", "true");
  folds_one("i32", "cast", "300", "u8", "44");
  folds_one("i32", "cast", "16777217", "f32", "16777216.0");
  folds_one("f64", "cast", "1e+40", "f32", "inf");
  folds_one("f32", "cast", "nan", "f16", "nan");
  folds_one("f32", "cast", "0.1", "bf16", "0.100097656");
}

TEST_CASE("functions fold to the interpreter's bits", "[fold]") {
  for (const char* op :
       {"exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "sigmoid", "erf", "gelu", "silu",
        "softplus", "sqrt", "rsqrt", "reciprocal", "floor", "round", "sign"}) {
    for (const std::string dtype : {"f32", "f64", "f16", "bf16"}) {
      for (const std::string& value : special_values(*dtype_from(dtype))) {
        const Graph graph =
            graph_of("", "%0: " + dtype + "[2] = constant {value=" + value + "}; %1: " + dtype +
                             "[2] = " + op + " %0; return %1");
        const Graph folded = dce(fold(graph));
        INFO(print(graph) << print(folded));
        REQUIRE_NOTHROW(verify(folded));
        CHECK(folded.size() == 1);
        CHECK(same_bits(interpret(graph, {})[0], interpret(folded, {})[0]));
      }
    }
  }
}

TEST_CASE("chains, comparisons and choices of constants fold in one sweep", "[fold]") {
  check_becomes(fold, "",
                "%0: f32[2] = constant {value=nan}; %1: f32[2] = constant {value=2.0}; %2: "
                "bool[2] = lt %0, %1; %3: f32[2] = where %2, %0, %1; %4: f32[2] = sqrt %3; %5: "
                "f32[2] = mul %4, %4; return %5, %2",
                "%0: bool[2] = constant {value=false}; %1: f32[2] = constant "
                "{value=1.9999999}; return %1, %0");
}

TEST_CASE("views of a constant are constants of their shape", "[fold]") {
  check_becomes(fold, "%0 x: f32[2,3]",
                "%1: f32[] = constant {value=-0.0}; %2: f32[1,1] = reshape %1; %3: f32[2,3] = "
                "expand %2; %4: f32[3,2] = permute %3 {axes=[1,0]}; %5: f32[3,2] = neg %4; "
                "%6: f32[2,3] = permute %5 {axes=[1,0]}; %7: f32[2,3] = add %0, %6; return %7",
                "%1: f32[2,3] = constant {value=0.0}; %2: f32[2,3] = add %0, %1; return %2");
  check_becomes(fold, "",
                "%0: i8[4] = constant {value=7}; %1: i8[0] = slice %0 {axis=0, start=4, "
                "stop=4, step=1}; return %1",
                "%0: i8[0] = constant {value=7}; return %0");
}

TEST_CASE("an integer divided by zero is left to raise its error", "[fold]") {
  for (const std::string op : {"floor_divide", "remainder"}) {
    const Graph graph = graph_of(
        "", "%0: i32[2] = constant {value=1}; %1: i32[2] = constant {value=0}; %2: i32[2] = " +
                op + " %0, %1; return %2");
    CHECK(print(fold(graph)) == print(graph));
    CHECK_THROWS_AS(interpret(fold(graph), {}), Error);
  }
  // Nothing is divided where there are no elements.
  const Graph none = graph_of("",
                              "%0: i32[0] = constant {value=1}; %1: i32[0] = constant "
                              "{value=0}; %2: i32[0] = floor_divide %0, %1; return %2");
  CHECK(interpret(fold(none), {})[0].numel() == 0);
}

TEST_CASE("what is not uniform, random or large in work is not folded", "[fold]") {
  const auto stays = [](const std::string& inputs, const std::string& body) {
    check_stays(fold, inputs, body);
  };
  stays("", "%0: i64[4] = iota; %1: i64[4] = neg %0; return %1");
  stays("", "%0: u64[2] = constant {value=1}; %1: u32[4] = philox %0 {draw=0}; return %1");
  stays("", "%0: f32[2] = constant {value=1.0}; %1: f32[] = sum %0 {axes=[0]}; return %1");
  stays(
      "",
      "%0: f32[2] = constant {value=1.0}; %1: f32[3] = pad %0 {low=[1], high=[0], value=2.0}; "
      "%2: f32[3] = neg %1; return %2");
  stays("%0 x: f32[2]",
        "%1: f32[2] = constant {value=0.0}; %2: f32[2] = mul %0, %1; return %2");
}

TEST_CASE("a constant's place is that of the op it stands for", "[fold]") {
  check_becomes(
      fold, "",
      "%0: f32[2] = constant {value=4.0}  # a.cpp:1; %1: f32[2] = sqrt %0  # a.cpp:2; "
      "return %1",
      "%0: f32[2] = constant {value=2.0}  # a.cpp:2; return %0");
}

TEST_CASE("sizes that are symbols fold as well", "[fold]") {
  const Graph graph = parse_graph(R"(graph g[n: 0..8]() {
  %0: f32[] = constant {value=4.0}
  %1: f32[n] = expand %0
  %2: f32[n] = sqrt %1
  return %2
}
)");
  CHECK(print(dce(fold(graph))) == R"(graph g[n: 0..8]() {
  %0: f32[n] = constant {value=2.0}
  return %0
}
)");
}
