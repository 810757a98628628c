#include "lessons/tools/check.h"
#include "exercise.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

std::string becomes(const std::string& inputs, const std::string& before,
                    const std::string& after) {
  const Graph graph = graph_of(inputs, before), got = exercise::apply_three_rules(graph);
  if (const std::string trouble = other_bits(graph, got); !trouble.empty()) return trouble;
  const std::string trouble = other_graph(got, graph_of(inputs, after));
  return trouble.empty() ? "" : "from:\n" + print(graph) + trouble;
}

std::string stays(const std::string& inputs, const std::string& body) {
  return becomes(inputs, body, body);
}

std::string two_of(const std::string& dtype) {
  return "%0 x: " + dtype + "[7], %1 y: " + dtype + "[7]";
}

std::string negated(const std::string& op) {
  return "%2: bool[7] = " + op + " %0, %1; %3: bool[7] = bitwise_not %2; return %3";
}

std::string plain(const std::string& op) {
  return "%2: bool[7] = " + op + " %0, %1; return %2";
}

std::string abs_of_neg(const std::string& dtype) {
  const std::string type = dtype + "[7]";
  return "%1: " + type + " = neg %0; %2: " + type + " = abs %1; return %2";
}

}  // namespace

TEST_CASE("abs of neg is abs") {
  for (const std::string dtype : {"f32", "f64", "f16", "bf16", "i8", "i32", "i64"})
    EXPECT(becomes("%0 x: " + dtype + "[7]", abs_of_neg(dtype),
                   "%1: " + dtype + "[7] = abs %0; return %1"));
}

TEST_CASE("abs of neg of unsigned integers stays") {
  for (const std::string dtype : {"u8", "u32", "u64"})
    EXPECT(stays("%0 x: " + dtype + "[7]", abs_of_neg(dtype)));
}

TEST_CASE("neg of abs stays") {
  EXPECT(stays("%0 x: f32[7]", "%1: f32[7] = abs %0; %2: f32[7] = neg %1; return %2"));
}

TEST_CASE("where of not swaps its branches") {
  const std::string inputs = "%0 c: bool[7], %1 x: f32[7], %2 y: f32[7]";
  EXPECT(becomes(inputs,
                 "%3: bool[7] = bitwise_not %0; %4: f32[7] = where %3, %1, %2; return %4",
                 "%3: f32[7] = where %0, %2, %1; return %3"));
}

TEST_CASE("where of not not is where") {
  const std::string inputs = "%0 c: bool[7], %1 x: f32[7], %2 y: f32[7]";
  EXPECT(becomes(inputs,
                 "%3: bool[7] = bitwise_not %0; %4: f32[7] = where %3, %1, %2;"
                 "%5: f32[7] = where %3, %2, %4; return %5",
                 "%3: f32[7] = where %0, %2, %1; %4: f32[7] = where %0, %3, %2; return %4"));
}

TEST_CASE("not of an order of integers is the other order") {
  for (const std::string dtype : {"i32", "u8", "i64", "bool"}) {
    EXPECT(becomes(two_of(dtype), negated("lt"), plain("ge")));
    EXPECT(becomes(two_of(dtype), negated("le"), plain("gt")));
    EXPECT(becomes(two_of(dtype), negated("gt"), plain("le")));
    EXPECT(becomes(two_of(dtype), negated("ge"), plain("lt")));
  }
}

TEST_CASE("not of an order of floats stays") {
  for (const std::string dtype : {"f32", "f64", "f16", "bf16"}) {
    for (const std::string op : {"lt", "le", "gt", "ge"})
      EXPECT(stays(two_of(dtype), negated(op)));
  }
}

TEST_CASE("not of eq and ne goes for every dtype") {
  for (const std::string dtype : {"f32", "f16", "i32", "bool"}) {
    EXPECT(becomes(two_of(dtype), negated("eq"), plain("ne")));
    EXPECT(becomes(two_of(dtype), negated("ne"), plain("eq")));
  }
}

TEST_CASE("not of other things stays") {
  EXPECT(stays(two_of("bool"), negated("bitwise_and")));
  EXPECT(stays("%0 x: i32[7]", "%1: i32[7] = bitwise_not %0; return %1"));
}

TEST_CASE("a comparison that is read by others stays for them") {
  const std::string before =
      "%2: bool[7] = lt %0, %1; %3: bool[7] = bitwise_not %2; return %2, %3";
  EXPECT(becomes(two_of("i32"), before,
                 "%2: bool[7] = lt %0, %1; %3: bool[7] = ge %0, %1; return %2, %3"));
}

TEST_CASE("random graphs keep their bits") {
  EXPECT(other_bits_somewhere(exercise::apply_three_rules));
}
