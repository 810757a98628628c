// Which nodes are one: equal in op, operands, type and attributes, and nothing less.
#include "tests/passes/rewrites.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;

namespace {

void becomes(const std::string& inputs, const std::string& before, const std::string& after) {
  check_becomes(cse, inputs, before, after);
}
void stays(const std::string& inputs, const std::string& body) {
  check_stays(cse, inputs, body);
}

const std::string kTwo = "%0 x: f32[2], %1 y: f32[2]";

}  // namespace

TEST_CASE("of two equal nodes the first stays, with its place", "[cse]") {
  becomes(
      kTwo,
      "%2: f32[2] = exp %0  # a.cpp:1; %3: f32[2] = exp %0  # a.cpp:2; %4: f32[2] = add %2, "
      "%3  # a.cpp:3; return %4, %3",
      "%2: f32[2] = exp %0  # a.cpp:1; %3: f32[2] = add %2, %2  # a.cpp:3; return %3, %2");
}

TEST_CASE("equal trees fall together from the leaves up", "[cse]") {
  becomes(kTwo,
          "%2: f32[2] = mul %0, %1; %3: f32[2] = exp %2; %4: f32[2] = mul %0, %1; %5: f32[2] = "
          "exp %4; %6: f32[2] = sub %3, %5; return %6",
          "%2: f32[2] = mul %0, %1; %3: f32[2] = exp %2; %4: f32[2] = sub %3, %3; return %4");
}

TEST_CASE("operands of ops that commute may change places, NaN and zeros included", "[cse]") {
  for (const std::string op : {"add", "mul", "minimum", "maximum"}) {
    for (const std::string dtype : {"f32", "f64", "f16", "bf16", "i8", "u64"}) {
      const std::string t = dtype + "[2]";
      INFO(op << " " << dtype);
      becomes(
          "%0 x: " + t + ", %1 y: " + t,
          "%2: " + t + " = " + op + " %0, %1; %3: " + t + " = " + op + " %1, %0; return %2, %3",
          "%2: " + t + " = " + op + " %0, %1; return %2, %2");
    }
  }
  for (const std::string op : {"eq", "ne"})
    becomes(kTwo,
            "%2: bool[2] = " + op + " %0, %1; %3: bool[2] = " + op + " %1, %0; return %2, %3",
            "%2: bool[2] = " + op + " %0, %1; return %2, %2");
  for (const std::string op : {"bitwise_and", "bitwise_or", "bitwise_xor"})
    becomes("%0 x: i8[2], %1 y: i8[2]",
            "%2: i8[2] = " + op + " %0, %1; %3: i8[2] = " + op + " %1, %0; return %2, %3",
            "%2: i8[2] = " + op + " %0, %1; return %2, %2");
}

TEST_CASE("sub and its like do not commute", "[cse]") {
  for (const std::string op : {"sub", "div", "floor_divide", "remainder", "pow"})
    stays(kTwo,
          "%2: f32[2] = " + op + " %0, %1; %3: f32[2] = " + op + " %1, %0; return %2, %3");
  for (const std::string op : {"lt", "le", "gt", "ge"})
    stays(kTwo,
          "%2: bool[2] = " + op + " %0, %1; %3: bool[2] = " + op + " %1, %0; return %2, %3");
  stays("%0 x: i8[2], %1 y: i8[2]",
        "%2: i8[2] = shift_left %0, %1; %3: i8[2] = shift_left %1, %0; return %2, %3");
  stays("%0 c: bool[2], %1 y: bool[2]",
        "%2: bool[2] = where %0, %1, %0; %3: bool[2] = where %0, %0, %1; return %2, %3");
  stays("%0 x: f32[2,2], %1 y: f32[2,2]",
        "%2: f32[2,2] = matmul %0, %1; %3: f32[2,2] = matmul %1, %0; return %2, %3");
  stays(kTwo,
        "%2: f32[4] = concat %0, %1 {axis=0}; %3: f32[4] = concat %1, %0 {axis=0}; return %2, "
        "%3");
}

TEST_CASE("sums of three do not regroup: floats do not associate", "[cse]") {
  stays("%0 x: f32[2], %1 y: f32[2], %2 z: f32[2]",
        "%3: f32[2] = add %0, %1; %4: f32[2] = add %3, %2; %5: f32[2] = add %1, %2; %6: f32[2] "
        "= add %0, %5; return %4, %6");
}

TEST_CASE("constants are one only where their bits and types are", "[cse]") {
  becomes("",
          "%0: f32[2] = constant {value=nan}; %1: f32[2] = constant {value=nan}; return %0, %1",
          "%0: f32[2] = constant {value=nan}; return %0, %0");
  stays("",
        "%0: f32[2] = constant {value=0.0}; %1: f32[2] = constant {value=-0.0}; return %0, %1");
  stays("",
        "%0: f32[2] = constant {value=0.0}; %1: f32[3] = constant {value=0.0}; return %0, %1");
  stays("",
        "%0: f32[2] = constant {value=0.0}; %1: i32[2] = constant {value=0}; return %0, %1");
  stays("",
        "%0: f32[2] = constant {value=0.0}; %1: f64[2] = constant {value=0.0}; return %0, %1");
}

TEST_CASE("attributes and result types are part of what is computed", "[cse]") {
  const std::string x = "%0 x: f32[4,4]";
  stays(x, "%1: f32[4] = sum %0 {axes=[0]}; %2: f32[4] = sum %0 {axes=[1]}; return %1, %2");
  stays(x, "%1: f32[] = sum %0 {axes=[0,1]}; %2: f32[] = sum %0 {axes=[1,0]}; return %1, %2");
  stays(x,
        "%1: f32[4] = sum %0 {axes=[0]}; %2: f32[1,4] = sum %0 {axes=[0], keepdim=1}; return "
        "%1, %2");
  stays(x, "%1: f32[2,8] = reshape %0; %2: f32[8,2] = reshape %0; return %1, %2");
  stays(x, "%1: bf16[4,4] = cast %0; %2: f16[4,4] = cast %0; return %1, %2");
  stays(x,
        "%1: f32[2,4] = slice %0 {axis=0, start=0, stop=2, step=1}; %2: f32[2,4] = slice %0 "
        "{axis=0, start=0, stop=4, step=2}; return %1, %2");
  stays(x,
        "%1: f32[5,4] = pad %0 {low=[1,0], high=[0,0], value=0.0}; %2: f32[5,4] = pad %0 "
        "{low=[1,0], high=[0,0], value=-0.0}; return %1, %2");
  stays(x,
        "%1: f32[4,4] = cumsum %0 {axis=0}; %2: f32[4,4] = cumsum %0 {axis=1}; return %1, %2");
  becomes(x, "%1: f32[4] = sum %0 {axes=[1]}; %2: f32[4] = sum %0 {axes=[1]}; return %1, %2",
          "%1: f32[4] = sum %0 {axes=[1]}; return %1, %1");
}

TEST_CASE("two draws are never one", "[cse]") {
  stays("%0 key: u64[2]",
        "%1: u32[4] = philox %0 {draw=0}; %2: u32[4] = philox %0 {draw=1}; return %1, %2");
  stays("%0 key: u64[2], %1 other: u64[2]",
        "%2: u32[4] = philox %0 {draw=0}; %3: u32[4] = philox %1 {draw=0}; return %2, %3");
}

TEST_CASE("inputs alike in type stay two", "[cse]") {
  stays(kTwo, "%2: f32[2] = exp %0; %3: f32[2] = exp %1; return %2, %3");
  stays(kTwo, "return %1, %0");
}

TEST_CASE("ten thousand equal nodes become one, and as many different ones stay", "[cse]") {
  Graph same = graph_of("%0 x: f32[2]", "return %0"), different = same;
  for (int i = 0; i < 10000; i++) {
    Node node;
    node.op = Op::exp;
    node.type = same[0].type;
    node.inputs = {0};
    same.outputs = {same.append(node)};
    node.inputs = {different.size() - 1};
    different.outputs = {different.append(node)};
  }
  CHECK(cse(same).size() == 2);
  CHECK(cse(different).size() == 10001);
}
