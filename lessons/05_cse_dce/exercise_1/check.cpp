#include "lessons/tools/check.h"
#include "exercise.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

const std::string kTwo = "%0 x: f32[3,5], %1 y: f32[3,5]";

std::string becomes(const std::string& inputs, const std::string& before,
                    const std::string& after) {
  const Graph graph = graph_of(inputs, before), got = exercise::merge_equal_nodes(graph);
  const std::string trouble = other_graph(got, graph_of(inputs, after));
  return trouble.empty() ? other_bits(graph, got) : "from:\n" + print(graph) + trouble;
}

// op(x, y) and op(y, x), both returned.
std::string swapped(const std::string& op, const std::string& result) {
  return str("%2: ", result, " = ", op, " %0, %1; %3: ", result, " = ", op,
             " %1, %0; return %2, %3");
}

std::string merges(const std::string& op, const std::string& operand,
                   const std::string& result) {
  return becomes("%0 x: " + operand + ", %1 y: " + operand, swapped(op, result),
                 str("%2: ", result, " = ", op, " %0, %1; return %2, %2"));
}

std::string stays(const std::string& op, const std::string& operand,
                  const std::string& result) {
  const std::string body = swapped(op, result);
  return becomes("%0 x: " + operand + ", %1 y: " + operand, body, body);
}

}  // namespace

TEST_CASE("three uses of mul and add become one each") {
  EXPECT(
      becomes(kTwo,
              "%2: f32[3,5] = mul %0, %1; %3: f32[3,5] = mul %1, %0; %4: f32[3,5] = mul %0, %1;"
              "%5: f32[3,5] = add %2, %0; %6: f32[3,5] = add %0, %3; %7: f32[3,5] = add %4, %0;"
              "return %5, %6, %7",
              "%2: f32[3,5] = mul %0, %1; %3: f32[3,5] = add %2, %0; return %3, %3, %3"));
}

TEST_CASE("a - b and b - a stay two values") {
  for (const char* op : {"sub", "div", "pow", "remainder", "floor_divide"})
    EXPECT(stays(op, "f32[7]", "f32[7]"));
  for (const char* op : {"lt", "le", "gt", "ge"}) EXPECT(stays(op, "f32[7]", "bool[7]"));
  for (const char* op : {"shift_left", "shift_right"}) EXPECT(stays(op, "i32[7]", "i32[7]"));
}

TEST_CASE("a matmul is no product of numbers") {
  EXPECT(stays("matmul", "f32[3,3]", "f32[3,3]"));
}

TEST_CASE("the branches of where and the parts of concat keep their order") {
  EXPECT(
      becomes("%0 c: bool[5], %1 x: f32[5], %2 y: f32[5]",
              "%3: f32[5] = where %0, %1, %2; %4: f32[5] = where %0, %2, %1; return %3, %4",
              "%3: f32[5] = where %0, %1, %2; %4: f32[5] = where %0, %2, %1; return %3, %4"));
  EXPECT(becomes("%0 x: f32[5], %1 y: f32[5]",
                 "%2: f32[10] = concat %0, %1 {axis=0}; %3: f32[10] = concat %1, %0 {axis=0};"
                 "return %2, %3",
                 "%2: f32[10] = concat %0, %1 {axis=0}; %3: f32[10] = concat %1, %0 {axis=0};"
                 "return %2, %3"));
}

TEST_CASE("every op that commutes is seen") {
  for (const char* op : {"add", "mul", "minimum", "maximum"}) {
    EXPECT(merges(op, "f32[7]", "f32[7]"));
    EXPECT(merges(op, "i8[7]", "i8[7]"));
  }
  for (const char* op : {"eq", "ne"}) EXPECT(merges(op, "f32[7]", "bool[7]"));
  for (const char* op : {"bitwise_and", "bitwise_or", "bitwise_xor"})
    EXPECT(merges(op, "u32[7]", "u32[7]"));
}

TEST_CASE("the node that stays is as it was written") {
  EXPECT(becomes(kTwo, "%2: f32[3,5] = mul %1, %0; %3: f32[3,5] = mul %0, %1; return %2, %3",
                 "%2: f32[3,5] = mul %1, %0; return %2, %2"));
}

TEST_CASE("two inputs are never one") {
  EXPECT(becomes(kTwo, "%2: f32[3,5] = add %0, %1; return %2",
                 "%2: f32[3,5] = add %0, %1; return %2"));
}

TEST_CASE("two hundred random graphs keep their bits") {
  EXPECT(other_bits_somewhere(exercise::merge_equal_nodes));
}

TEST_CASE("a polynomial written in two orders shrinks") {
  const Graph graph = graph_of(
      kTwo,
      "%2: f32[3,5] = mul %0, %1; %3: f32[3,5] = add %2, %0; %4: f32[3,5] = mul %3, %1;"
      "%5: f32[3,5] = mul %1, %0; %6: f32[3,5] = add %0, %5; %7: f32[3,5] = mul %1, %6;"
      "%8: f32[3,5] = minimum %4, %0; %9: f32[3,5] = minimum %0, %7; %10: f32[3,5] = sub %8, "
      "%9;"
      "return %10");
  const Graph got = exercise::merge_equal_nodes(graph);
  EXPECT(other_bits(graph, got));
  score("nodes left of 11", got.size(), 7);
  CHECK(got.size() <= 7);
}
