// Which local rules fire, and which tempting ones must not: each with the bits
// that would change.
#include "tests/passes/rewrites.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;

namespace {

void becomes(const std::string& inputs, const std::string& before, const std::string& after) {
  check_becomes(simplify, inputs, before, after);
}
void stays(const std::string& inputs, const std::string& body, const std::string& wrong = "") {
  check_stays(simplify, inputs, body, wrong);
}

// "%1: T[2] = constant {value=V}; %2: T[2] = OP %0, %1; return %2", or with operands exchanged.
std::string with_constant(const std::string& dtype, const std::string& op,
                          const std::string& value, bool left = false) {
  return "%1: " + dtype + "[2] = constant {value=" + value + "}; %2: " + dtype + "[2] = " + op +
         (left ? " %1, %0" : " %0, %1") + "; return %2";
}

}  // namespace

TEST_CASE("adding -0.0 and subtracting 0.0 change nothing", "[simplify]") {
  for (const std::string dtype : {"f32", "f64", "f16", "bf16"}) {
    const std::string x = "%0 x: " + dtype + "[2]";
    becomes(x, with_constant(dtype, "add", "-0.0"), "return %0");
    becomes(x, with_constant(dtype, "add", "-0.0", true), "return %0");
    becomes(x, with_constant(dtype, "sub", "0.0"), "return %0");
  }
}

TEST_CASE("adding 0.0 and subtracting -0.0 turn -0.0 into 0.0, and stay", "[simplify]") {
  for (const std::string dtype : {"f32", "f64", "f16", "bf16"}) {
    const std::string x = "%0 x: " + dtype + "[2]";
    stays(x, with_constant(dtype, "add", "0.0"), "return %0");
    stays(x, with_constant(dtype, "add", "0.0", true), "return %0");
    stays(x, with_constant(dtype, "sub", "-0.0"), "return %0");
  }
}

TEST_CASE("0 - x is not -x: 0.0 - 0.0 is 0.0", "[simplify]") {
  stays("%0 x: f32[2]", with_constant("f32", "sub", "0.0", true),
        "%1: f32[2] = neg %0; return %1");
}

TEST_CASE("integers have one zero", "[simplify]") {
  for (const std::string dtype : {"i8", "u8", "i32", "u32", "i64", "u64"}) {
    const std::string x = "%0 x: " + dtype + "[2]";
    becomes(x, with_constant(dtype, "add", "0"), "return %0");
    becomes(x, with_constant(dtype, "add", "0", true), "return %0");
    becomes(x, with_constant(dtype, "sub", "0"), "return %0");
    becomes(x, with_constant(dtype, "mul", "1"), "return %0");
    stays(x, with_constant(dtype, "add", "1"), "return %0");
    stays(x, with_constant(dtype, "sub", "0", true));
  }
}

TEST_CASE("one is neutral in products and as a divisor, not as a dividend", "[simplify]") {
  for (const std::string dtype : {"f32", "f64", "f16", "bf16"}) {
    const std::string x = "%0 x: " + dtype + "[2]";
    becomes(x, with_constant(dtype, "mul", "1.0"), "return %0");
    becomes(x, with_constant(dtype, "mul", "1.0", true), "return %0");
    becomes(x, with_constant(dtype, "div", "1.0"), "return %0");
    stays(x, with_constant(dtype, "div", "1.0", true), "return %0");
    stays(x, with_constant(dtype, "mul", "-1.0"), "return %0");
  }
}

TEST_CASE("x*0 and x - x are not 0: NaN, Inf and -0.0", "[simplify]") {
  stays("%0 x: f32[2]", with_constant("f32", "mul", "0.0"),
        "%1: f32[2] = constant {value=0.0}; return %1");
  stays("%0 x: f32[2]", "%1: f32[2] = sub %0, %0; return %1",
        "%1: f32[2] = constant {value=0.0}; return %1");
  stays("%0 x: f32[2]", "%1: f32[2] = div %0, %0; return %1",
        "%1: f32[2] = constant {value=1.0}; return %1");
  stays("%0 x: f32[2]", "%1: bool[2] = eq %0, %0; return %1",
        "%1: bool[2] = constant {value=true}; return %1");
}

TEST_CASE("a square is neither a power nor of an absolute value made", "[simplify]") {
  stays("%0 x: f32[2]", with_constant("f32", "pow", "2.0"));
  stays("%0 x: f32[2]", with_constant("f32", "pow", "0.5"),
        "%1: f32[2] = sqrt %0; return %1");  // pow(-0.0, 0.5) is 0.0
}

TEST_CASE("dividing by a power of two is multiplying", "[simplify]") {
  const std::pair<const char*, const char*> exact[] = {
      {"8.0", "0.125"}, {"-0.5", "-2.0"}, {"1024.0", "0.0009765625"}, {"0.25", "4.0"}};
  for (const std::string dtype : {"f32", "f64", "f16", "bf16"}) {
    for (const auto& [divisor, factor] : exact) {
      INFO(dtype << " / " << divisor);
      becomes("%0 x: " + dtype + "[2]", with_constant(dtype, "div", divisor),
              with_constant(dtype, "mul", factor));
    }
  }
}

TEST_CASE("other divisors stay: their reciprocals round, overflow or lose digits",
          "[simplify]") {
  stays("%0 x: f32[2]", with_constant("f32", "div", "3.0"),
        with_constant("f32", "mul", "0.33333334"));
  stays("%0 x: f32[2]", with_constant("f32", "div", "10.0"),
        with_constant("f32", "mul", "0.1"));
  for (const char* divisor : {"0.0", "-0.0", "inf", "nan", "1e-45", "1.7014118e+38"})
    stays("%0 x: f32[2]", with_constant("f32", "div", divisor));
  for (const char* divisor : {"6e-08", "32768.0", "3.0517578e-05"})
    stays("%0 x: f16[2]", with_constant("f16", "div", divisor));
}

TEST_CASE("a uniform value is seen through views", "[simplify]") {
  becomes("%0 x: f32[2,3]",
          "%1: f32[] = constant {value=1.0}; %2: f32[2,3] = expand %1; %3: f32[2,3] = mul %0, "
          "%2; return %3",
          "return %0");
  stays("%0 x: f32[2,3]",
        "%1: f32[1,3] = constant {value=-0.0}; %2: f32[2,3] = pad %1 {low=[1,0], high=[0,0], "
        "value=1.0}; %3: f32[2,3] = add %0, %2; return %3",
        "return %0");
}

TEST_CASE("two negations cancel, also of the least integer", "[simplify]") {
  for (const std::string dtype : {"f32", "bf16", "i8", "u8", "i64"}) {
    const std::string t = dtype + "[2]";
    becomes("%0 x: " + t, "%1: " + t + " = neg %0; %2: " + t + " = neg %1; return %2, %1",
            "%1: " + t + " = neg %0; return %0, %1");
    becomes("%0 x: " + t,
            "%1: " + t + " = neg %0; %2: " + t + " = neg %1; %3: " + t + " = neg %2; return %3",
            "%1: " + t + " = neg %0; return %1");
  }
  for (const std::string dtype : {"bool", "i8", "u32"}) {
    const std::string t = dtype + "[2]";
    becomes("%0 x: " + t,
            "%1: " + t + " = bitwise_not %0; %2: " + t + " = bitwise_not %1; return %2",
            "return %0");
  }
  stays("%0 x: i8[2]", "%1: i8[2] = neg %0; %2: i8[2] = bitwise_not %1; return %2",
        "return %0");
}

TEST_CASE("two absolute values are one; one of a negation stays", "[simplify]") {
  becomes("%0 x: i8[2]", "%1: i8[2] = abs %0; %2: i8[2] = abs %1; return %2",
          "%1: i8[2] = abs %0; return %1");  // abs(-128) is -128
  becomes("%0 x: f32[2]", "%1: f32[2] = abs %0; %2: f32[2] = abs %1; return %2",
          "%1: f32[2] = abs %0; return %1");
  stays("%0 x: f32[2]", "%1: f32[2] = exp %0; %2: f32[2] = exp %1; return %2");
}

TEST_CASE("an operand with itself: min, max, and, or; not xor", "[simplify]") {
  for (const std::string op : {"minimum", "maximum"}) {
    for (const std::string dtype : {"f32", "f64", "f16", "i8", "u64"})
      becomes("%0 x: " + dtype + "[2]", "%1: " + dtype + "[2] = " + op + " %0, %0; return %1",
              "return %0");
  }
  for (const std::string op : {"bitwise_and", "bitwise_or"}) {
    for (const std::string dtype : {"bool", "i8", "u64"})
      becomes("%0 x: " + dtype + "[2]", "%1: " + dtype + "[2] = " + op + " %0, %0; return %1",
              "return %0");
  }
  stays("%0 x: i8[2]", "%1: i8[2] = bitwise_xor %0, %0; return %1", "return %0");
}

TEST_CASE("minimum and maximum of two things are neither of them", "[simplify]") {
  stays("%0 x: f32[2]", with_constant("f32", "maximum", "0.0"), "return %0");
  stays("%0 x: f32[2], %1 y: f32[2]", "%2: f32[2] = minimum %0, %1; return %2", "return %0");
}

TEST_CASE("a choice between one thing and itself is that thing", "[simplify]") {
  becomes("%0 c: bool[2], %1 x: f32[2]", "%2: f32[2] = where %0, %1, %1; return %2",
          "return %1");
  const std::string both =
      "%1: bool[2] = constant {value=true}; %2: bool[2] = constant {value=false}; ";
  becomes("%0 c: bool[2]", both + "%3: bool[2] = where %0, %1, %2; return %3", "return %0");
  stays("%0 c: bool[2]", both + "%3: bool[2] = where %0, %2, %1; return %3", "return %0");
  stays("%0 c: bool[2], %1 x: f32[2], %2 y: f32[2]", "%3: f32[2] = where %0, %1, %2; return %3",
        "return %1");
}

TEST_CASE("a cast to what it is goes; casts that round or wrap stay", "[simplify]") {
  becomes("%0 x: bf16[2]", "%1: bf16[2] = cast %0; return %1", "return %0");
  stays("%0 x: f32[2]", "%1: bf16[2] = cast %0; %2: f32[2] = cast %1; return %2", "return %0");
  stays("%0 x: f64[2]", "%1: f32[2] = cast %0; %2: f16[2] = cast %1; return %2");
  stays("%0 x: i32[2]", "%1: f32[2] = cast %0; %2: i32[2] = cast %1; return %2", "return %0");
  stays("%0 x: i32[2]", "%1: u8[2] = cast %0; %2: i32[2] = cast %1; return %2", "return %0");
  stays("%0 x: i8[2]", "%1: bool[2] = cast %0; %2: i8[2] = cast %1; return %2", "return %0");
}

TEST_CASE("a cast there and back goes where there is room for every value", "[simplify]") {
  becomes("%0 x: f16[2]", "%1: f32[2] = cast %0; %2: f16[2] = cast %1; return %2", "return %0");
  becomes("%0 x: f32[2]", "%1: f64[2] = cast %0; %2: f32[2] = cast %1; return %2", "return %0");
  stays("%0 x: f16[2]", "%1: bf16[2] = cast %0; %2: f16[2] = cast %1; return %2", "return %0");
  stays("%0 x: f16[2]", "%1: f32[2] = cast %0; %2: bf16[2] = cast %1; return %2", "return %0");
}

TEST_CASE("what is gathered of a cast is cast afterwards, where that is less", "[simplify]") {
  const Graph graph = parse_graph(R"(graph g(%0 x: bf16[8,64], %1 at: i64[8,1]) {
  %2: f32[8,64] = cast %0
  %3: f32[8,1] = gather %2, %1 {axis=1}
  return %3
}
)");
  const Graph less = dce(simplify(graph));
  REQUIRE(print(less) == R"(graph g(%0 x: bf16[8,64], %1 at: i64[8,1]) {
  %2: bf16[8,1] = gather %0, %1 {axis=1}
  %3: f32[8,1] = cast %2
  return %3
}
)");
  const Graph more = parse_graph(R"(graph g(%0 x: bf16[4], %1 at: i64[100]) {
  %2: f32[4] = cast %0
  %3: f32[100] = gather %2, %1 {axis=0}
  return %3
}
)");
  REQUIRE(simplify(more) == more);
}

TEST_CASE("views that change nothing go", "[simplify]") {
  const std::string x = "%0 x: f32[2,3]";
  for (const std::string view :
       {"reshape %0", "expand %0", "permute %0 {axes=[0,1]}", "flip %0 {axes=[]}",
        "slice %0 {axis=1, start=0, stop=3, step=1}"})
    becomes(x, "%1: f32[2,3] = " + view + "; return %1", "return %0");
  stays(x, "%1: f32[2,3] = flip %0 {axes=[1]}; return %1", "return %0");
  stays("%0 x: f32[3,3]", "%1: f32[3,3] = permute %0 {axes=[1,0]}; return %1", "return %0");
  stays(x, "%1: f32[2,2] = slice %0 {axis=1, start=0, stop=3, step=2}; return %1");
  stays(x, "%1: f32[2,2] = slice %0 {axis=1, start=0, stop=2, step=1}; return %1");
  stays(x, "%1: f32[2,3,1] = window %0 {axis=1, step=1, size=1}; return %1");
}

TEST_CASE("views of views of one kind become one", "[simplify]") {
  becomes("%0 x: f32[2,3,5]",
          "%1: f32[3,5,2] = permute %0 {axes=[1,2,0]}; %2: f32[5,2,3] = permute %1 "
          "{axes=[1,2,0]}; return %2",
          "%1: f32[5,2,3] = permute %0 {axes=[2,0,1]}; return %1");
  becomes("%0 x: f32[2,3,5]",
          "%1: f32[3,5,2] = permute %0 {axes=[1,2,0]}; %2: f32[2,3,5] = permute %1 "
          "{axes=[2,0,1]}; return %2",
          "return %0");
  becomes("%0 x: f32[6]",
          "%1: f32[2,3] = reshape %0; %2: f32[3,2] = reshape %1; %3: f32[1,6] = reshape %2; "
          "return %3",
          "%1: f32[1,6] = reshape %0; return %1");
  becomes("%0 x: f32[6]", "%1: f32[2,3] = reshape %0; %2: f32[6] = reshape %1; return %2",
          "return %0");
  becomes("%0 x: f32[1,3]", "%1: f32[2,3] = expand %0; %2: f32[4,2,3] = expand %1; return %2",
          "%1: f32[4,2,3] = expand %0; return %1");
}

TEST_CASE("views of other kinds do not merge", "[simplify]") {
  stays("%0 x: f32[2,3]",
        "%1: f32[3,2] = permute %0 {axes=[1,0]}; %2: f32[2,3] = reshape %1; return %2",
        "return %0");
  stays("%0 x: f32[3]", "%1: f32[2,3] = expand %0; %2: f32[6] = reshape %1; return %2");
  stays("%0 x: f32[8]",
        "%1: f32[4] = slice %0 {axis=0, start=1, stop=8, step=2}; %2: f32[2] = slice %1 "
        "{axis=0, start=0, stop=4, step=2}; return %2");
}

TEST_CASE("one sweep sees what earlier rules made", "[simplify]") {
  becomes("%0 x: f32[2], %1 c: bool[2]",
          "%2: f32[2] = neg %0; %3: f32[2] = neg %2; %4: f32[2] = where %1, %3, %0; %5: f32[2] "
          "= constant {value=1.0}; %6: f32[2] = div %4, %5; %7: f32[2] = exp %6; return %7",
          "%2: f32[2] = exp %0; return %2");
}

TEST_CASE("reductions, matmuls and sizes that are symbols are left as they are", "[simplify]") {
  stays("%0 x: f32[2,3]", "%1: f32[2,3] = sum %0 {axes=[]}; return %1");
  const std::string text = R"(graph g[n: 1..8](%0 x: f32[n,2]) {
  %1: f32[n,2] = slice %0 {axis=0, start=0, stop=n, step=1}
  %2: f32[n,1] = slice %1 {axis=1, start=0, stop=1, step=1}
  return %2
}
)";
  CHECK(print(simplify(parse_graph(text))) == R"(graph g[n: 1..8](%0 x: f32[n,2]) {
  %1: f32[n,1] = slice %0 {axis=1, start=0, stop=1, step=1}
  return %1
}
)");
}

TEST_CASE("what a rule makes is at the place of what it replaced", "[simplify]") {
  becomes(
      "%0 x: f32[2]",
      "%1: f32[2] = constant {value=4.0}  # mlp.cpp:3; %2: f32[2] = div %0, %1  # mlp.cpp:4; "
      "%3: f32[2] = exp %2  # mlp.cpp:5; return %3",
      "%1: f32[2] = constant {value=0.25}  # mlp.cpp:4; %2: f32[2] = mul %0, %1  # "
      "mlp.cpp:4; %3: f32[2] = exp %2  # mlp.cpp:5; return %3");
}
