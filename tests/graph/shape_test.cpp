#include "tests/catch.h"
#include "tiny_compile/graph/graph.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// call("matmul", {"f32[2,3]", "f32[3,5]"}, "", "f32[2,5]") returns
//   graph f[n: 2..16, m: 2..16](%0 a0: f32[2,3], %1 a1: f32[3,5]) {
//     %2: f32[2,5] = matmul %0, %1
std::string call(const std::string& op, const std::vector<std::string>& operands,
                 const std::string& attributes, const std::string& result) {
  std::vector<std::string> parameters, ids;
  for (size_t i = 0; i < operands.size(); i++) {
    ids.push_back(str("%", i));
    parameters.push_back(str("%", i, " a", i, ": ", operands[i]));
  }
  const std::string braced = attributes.empty() ? "" : " {" + attributes + "}";
  return str("graph f[n: 2..16, m: 2..16](", join(parameters, ", "), ") {\n  %",
             operands.size(), ": ", result, " = ", op, " ", join(ids, ", "), braced,
             "\n  return\n}\n");
}

struct Accepted {
  std::string op;
  std::vector<std::string> operands;
  std::string attributes, result;
};

// Accepted with the result it should have, and refused with any other dtype.
void check_accepted(const std::vector<Accepted>& cases) {
  for (const auto& [op, operands, attributes, result] : cases) {
    const std::string text = call(op, operands, attributes, result);
    CAPTURE(text);
    Graph graph;
    CHECK_NOTHROW(graph = parse_graph(text));
    if (graph.nodes.empty()) continue;
    std::vector<Type> types;
    for (size_t i = 0; i < operands.size(); i++) types.push_back(graph.nodes[i].type);
    CHECK(infer(graph.nodes.back(), types) == graph.nodes.back().type);
  }
}

struct Refused {
  std::string op;
  std::vector<std::string> operands;
  std::string attributes, result, reason;
};

void check_refused(const std::vector<Refused>& cases) {
  for (const auto& [op, operands, attributes, result, reason] : cases) {
    const std::string text = call(op, operands, attributes, result);
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_graph(text), ContainsSubstring(reason));
  }
}

}  // namespace

TEST_CASE("pointwise operands share a shape and a dtype") {
  check_accepted({{"add", {"f32[2,3]", "f32[2,3]"}, "", "f32[2,3]"},
                  {"add", {"i8[]", "i8[]"}, "", "i8[]"},
                  {"neg", {"f32[n,m*2]"}, "", "f32[n,m*2]"},
                  {"bitwise_and", {"bool[4]", "bool[4]"}, "", "bool[4]"}});
  check_refused({{"add", {"f32[2,3]", "f32[3]"}, "", "f32[2,3]", "add: shapes differ; expand"},
                 {"add", {"f32[n]", "f32[m]"}, "", "f32[n]", "shapes differ"},
                 {"add", {"f32[2]", "f64[2]"}, "", "f32[2]", "dtypes f32 and f64 differ; cast"},
                 {"add", {"bool[2]", "bool[2]"}, "", "bool[2]", "takes numbers, not bool"},
                 {"exp", {"i32[2]"}, "", "i32[2]", "exp: takes floats; cast first (i32[2])"},
                 {"popcount", {"bool[2]"}, "", "bool[2]", "takes integers"},
                 {"bitwise_or", {"f32[2]", "f32[2]"}, "", "f32[2]", "integers or bool"},
                 {"add", {"f32[2]"}, "", "f32[2]", "takes 2 operands, here is 1"}});
}

TEST_CASE("comparisons give bool, cast its own dtype") {
  check_accepted({{"lt", {"i64[3]", "i64[3]"}, "", "bool[3]"},
                  {"eq", {"bool[3]", "bool[3]"}, "", "bool[3]"},
                  {"cast", {"f32[3]"}, "", "bool[3]"},
                  {"cast", {"bool[3]"}, "", "bf16[3]"}});
  check_refused(
      {{"lt", {"i64[3]", "i64[3]"}, "", "i64[3]", "the result is bool[3], not i64[3]"},
       {"cast", {"f32[3]"}, "", "f64[4]", "the result is f64[3], not f64[4]"}});
}

TEST_CASE("where takes a bool and two of one dtype") {
  check_accepted({{"where", {"bool[3]", "f32[3]", "f32[3]"}, "", "f32[3]"},
                  {"where", {"bool[3]", "bool[3]", "bool[3]"}, "", "bool[3]"}});
  check_refused(
      {{"where", {"i32[3]", "f32[3]", "f32[3]"}, "", "f32[3]", "condition must be bool"},
       {"where", {"bool[3]", "f32[3]", "i32[3]"}, "", "f32[3]", "f32 and i32 differ"},
       {"where", {"bool[1]", "f32[3]", "f32[3]"}, "", "f32[3]", "shapes differ"}});
}

TEST_CASE("sources check their own types") {
  check_accepted({{"iota", {}, "", "i64[n]"},
                  {"philox", {"u64[2]"}, "draw=3", "u32[2,n]"},
                  {"constant", {}, "value=1", "u8[7]"}});
  check_refused({{"iota", {}, "", "i64[2,2]", "rank 1"},
                 {"iota", {}, "", "f32[2]", "the result is i64[2], not f32[2]"},
                 {"philox", {"u32[2]"}, "draw=0", "u32[2]", "the key must be u64[2]"},
                 {"philox", {"u64[3]"}, "draw=0", "u32[2]", "the key must be u64[2]"},
                 {"philox", {"u64[2]"}, "draw=-1", "u32[2]", "counts from 0"},
                 {"philox", {"u64[2]"}, "draw=0", "u64[2]", "the result is u32[2]"},
                 {"input x", {}, "strides=[1]", "f32[2,3]", "1 strides for f32[2,3]"},
                 {"input x", {}, "strides=[-1]", "f32[2]", "stride -1 is negative"}});
}

TEST_CASE("reshape keeps the number of elements") {
  check_accepted({{"reshape", {"f32[2,3]"}, "", "f32[6]"},
                  {"reshape", {"f32[1]"}, "", "f32[]"},
                  {"reshape", {"f32[0,3]"}, "", "f32[7,0]"},
                  {"reshape", {"f32[n,4]"}, "", "f32[2,n*2]"},
                  {"reshape", {"f32[n]"}, "", "f32[n/2,2]"}});  // not decidable: accepted
  check_refused({{"reshape", {"f32[2,3]"}, "", "f32[5]", "[5] has 5 elements, the operand 6"},
                 {"reshape", {"f32[n]"}, "", "f32[17]", "has 17 elements"},
                 {"reshape", {"f32[2,3]"}, "", "i32[6]", "the result is f32[6], not i32[6]"}});
}

TEST_CASE("expand repeats size 1 and adds leading axes") {
  check_accepted({{"expand", {"f32[1,3]"}, "", "f32[5,2,3]"},
                  {"expand", {"f32[]"}, "", "f32[n]"},
                  {"expand", {"f32[1]"}, "", "f32[0]"}});
  check_refused({{"expand", {"f32[2,3]"}, "", "f32[2,6]", "size 3 of axis 1 cannot become 6"},
                 {"expand", {"f32[n]"}, "", "f32[m]", "size n of axis 0 cannot become m"},
                 {"expand", {"f32[2,3]"}, "", "f32[3]", "fewer axes than the operand"}});
}

TEST_CASE("permute and flip list axes") {
  check_accepted({{"permute", {"f32[2,n,4]"}, "axes=[2,0,1]", "f32[4,2,n]"},
                  {"permute", {"f32[]"}, "axes=[]", "f32[]"},
                  {"flip", {"f32[2,3]"}, "axes=[1]", "f32[2,3]"},
                  {"flip", {"f32[2,3]"}, "axes=[]", "f32[2,3]"}});
  check_refused(
      {{"permute", {"f32[2,3]"}, "axes=[0]", "f32[2]", "must list every axis"},
       {"permute", {"f32[2,3]"}, "axes=[1,1]", "f32[3,3]", "axis 1 is listed twice"},
       {"permute", {"f32[2,3]"}, "axes=[0,2]", "f32[2,3]", "not one of the axes 0..1"},
       {"flip", {"f32[2,3]"}, "axes=[-1]", "f32[2,3]", "axis -1 is not one of"},
       {"flip", {"f32[]"}, "axes=[0]", "f32[]", "a 0-d operand has no axis 0"},
       {"flip", {"f32[2]"}, "axes=[n]", "f32[2]", "axes must be an integer"}});
}

TEST_CASE("slice takes every step-th of start..stop") {
  check_accepted({{"slice", {"f32[2,10]"}, "axis=1, start=1, stop=8, step=3", "f32[2,3]"},
                  {"slice", {"f32[10]"}, "axis=0, start=4, stop=4, step=1", "f32[0]"},
                  {"slice", {"f32[n]"}, "axis=0, start=1, stop=n, step=1", "f32[n-1]"},
                  {"slice", {"f32[n]"}, "axis=0, start=0, stop=4, step=1", "f32[4]"}});
  const std::vector<std::string> row = {"f32[10]"};
  check_refused(
      {{"slice", row, "axis=0, start=1, stop=11, step=1", "f32[10]", "is not within 0..10"},
       {"slice", row, "axis=0, start=-1, stop=3, step=1", "f32[4]", "-1..3 is not within"},
       {"slice", row, "axis=0, start=5, stop=3, step=1", "f32[0]", "5..3 is not within"},
       {"slice", row, "axis=0, start=0, stop=3, step=0", "f32[0]", "is not positive"},
       {"slice", row, "axis=0, start=0, stop=3, step=n", "f32[0]", "step must be an integer"},
       {"slice", row, "axis=1, start=0, stop=3, step=1", "f32[3]", "axis 1 is not one of"},
       {"slice", {"f32[n]"}, "axis=0, start=0, stop=17, step=1", "f32[17]", "not within 0..n"},
       {"slice", row, "axis=0, start=0, stop=3", "f32[3]", "needs attribute step"}});
}

TEST_CASE("window unfolds an axis into a last one") {
  check_accepted({{"window", {"f32[2,10]"}, "axis=1, step=2, size=3", "f32[2,4,3]"},
                  {"window", {"f32[10,2]"}, "axis=0, step=1, size=10", "f32[1,2,10]"},
                  {"window", {"f32[n]"}, "axis=0, step=1, size=3", "f32[n-2,3]"}});
  check_refused(
      {{"window", {"f32[10]"}, "axis=0, step=1, size=11", "f32[1,11]", "window of 11 does not"},
       {"window", {"f32[10]"}, "axis=0, step=1, size=0", "f32[10,0]", "window of 0 does not"},
       {"window", {"f32[10]"}, "axis=0, step=0, size=2", "f32[9,2]", "is not positive"},
       {"window", {"f32[]"}, "axis=0, step=1, size=1", "f32[1]", "has no axis 0"}});
}

TEST_CASE("reductions drop or keep their axes") {
  check_accepted({{"sum", {"f32[2,n,4]"}, "axes=[0,2]", "f32[n]"},
                  {"sum", {"f32[2,3]"}, "axes=[1], keepdim=1", "f32[2,1]"},
                  {"sum", {"f32[2,3]"}, "axes=[]", "f32[2,3]"},
                  {"sum", {"bool[2,3]"}, "axes=[0,1]", "i64[]"},
                  {"prod", {"i32[2,0]"}, "axes=[1]", "i64[2]"},
                  {"prod", {"u64[2]"}, "axes=[0]", "u64[]"},
                  {"max", {"i8[2,0]"}, "axes=[0]", "i8[0]"},
                  {"argmax", {"f16[2,3]"}, "axes=[1,0]", "i64[]"},
                  {"any", {"bool[0]"}, "axes=[0]", "bool[]"},
                  {"sum_exp", {"bf16[2,3]"}, "axes=[1]", "bf16[2]"}});
}

TEST_CASE("reductions refuse wrong dtypes, axes and empty extents") {
  check_refused(
      {{"sum", {"f32[2,3]"}, "axes=[2]", "f32[]", "axis 2 is not one of"},
       {"sum", {"f32[2,3]"}, "axes=[0,0]", "f32[3]", "axis 0 is listed twice"},
       {"sum", {"i32[2]"}, "axes=[0]", "i32[]", "the result is i64[], not i32[]"},
       {"sum", {"f32[2]"}, "axes=[0], keepdim=0", "f32[]", "keepdim is 1 or left out"},
       {"max", {"bool[2]"}, "axes=[0]", "bool[]", "takes numbers, not bool"},
       {"max", {"f32[2,0]"}, "axes=[1]", "f32[2]", "axis 1 is empty, which has no max"},
       {"argmin", {"f32[0]"}, "axes=[0]", "i64[]", "which has no argmin"},
       {"any", {"i32[2]"}, "axes=[0]", "bool[]", "takes bool"},
       {"sum_exp", {"i32[2]"}, "axes=[0]", "i32[]", "takes floats"}});
}

TEST_CASE("matmul contracts the inner axes, batch by batch") {
  check_accepted({{"matmul", {"f32[2,3]", "f32[3,5]"}, "", "f32[2,5]"},
                  {"matmul", {"bf16[7,n,3]", "bf16[7,3,m]"}, "", "bf16[7,n,m]"},
                  {"matmul", {"i32[2,0]", "i32[0,2]"}, "", "i32[2,2]"}});
  check_refused(
      {{"matmul",
        {"f32[2,3]", "f32[4,5]"},
        "",
        "f32[2,5]",
        "matmul: inner sizes 3 and 4 differ (f32[2,3] with f32[4,5])"},
       {"matmul", {"f32[7,2,3]", "f32[8,3,5]"}, "", "f32[7,2,5]", "batch sizes 7 and 8 differ"},
       {"matmul", {"f32[3]", "f32[3,5]"}, "", "f32[5]", "of one rank, 2 or more"},
       {"matmul", {"f32[2,3]", "f16[3,5]"}, "", "f32[2,5]", "f32 and f16 differ"},
       {"matmul", {"bool[2,3]", "bool[3,5]"}, "", "bool[2,5]", "takes numbers, not bool"}});
}

TEST_CASE("gather indexes one axis, the others may be shorter") {
  check_accepted({{"gather", {"f32[5,4]", "i64[9,3]"}, "axis=0", "f32[9,3]"},
                  {"gather", {"bool[5]", "i32[2]"}, "axis=0", "bool[2]"},
                  {"gather", {"f32[n,4]", "i64[m,9]"}, "axis=1", "f32[m,9]"}});
  check_refused(
      {{"gather", {"f32[5,4]", "i64[9,5]"}, "axis=0", "f32[9,5]", "index's size 5 exceeds"},
       {"gather", {"f32[5,4]", "i64[9]"}, "axis=0", "f32[9]", "differ in rank"},
       {"gather", {"f32[5]", "f32[9]"}, "axis=0", "f32[9]", "the index must be i64 or i32"},
       {"gather", {"f32[]", "i64[]"}, "axis=0", "f32[]", "has no axis 0"}});
}

TEST_CASE("scatter_add returns its data's type") {
  check_accepted({{"scatter_add", {"f32[5,4]", "i64[9,3]", "f32[9,3]"}, "axis=0", "f32[5,4]"}});
  check_refused(
      {{"scatter_add", {"f32[5]", "i64[9]", "f32[8]"}, "axis=0", "f32[5]", "shapes differ"},
       {"scatter_add", {"f32[5]", "i64[9]", "f64[9]"}, "axis=0", "f32[5]", "f32 and f64"},
       {"scatter_add", {"bool[5]", "i64[9]", "bool[9]"}, "axis=0", "bool[5]", "not bool"},
       {"scatter_add", {"f32[5,2]", "i64[9,3]", "f32[9,3]"}, "axis=0", "f32[5,2]", "exceeds"}});
}

TEST_CASE("concat adds up one axis") {
  check_accepted({{"concat", {"f32[2,3]", "f32[4,3]", "f32[0,3]"}, "axis=0", "f32[6,3]"},
                  {"concat", {"f32[n]", "f32[m]"}, "axis=0", "f32[n+m]"},
                  {"concat", {"bool[2]"}, "axis=0", "bool[2]"}});
  check_refused(
      {{"concat", {}, "axis=0", "f32[]", "takes 1 operand or more"},
       {"concat", {"f32[2,3]", "f32[2,4]"}, "axis=0", "f32[4,3]", "3 and 4 differ on axis 1"},
       {"concat", {"f32[2]", "f32[2,1]"}, "axis=0", "f32[4]", "ranks differ"},
       {"concat", {"f32[2]", "i32[2]"}, "axis=0", "f32[4]", "f32 and i32 differ"}});
}

TEST_CASE("pad adds, negative entries crop") {
  check_accepted({{"pad", {"f32[2,3]"}, "low=[1,0], high=[0,-3], value=0", "f32[3,0]"},
                  {"pad", {"bool[n]"}, "low=[n], high=[1], value=false", "bool[2*n+1]"}});
  check_refused(
      {{"pad", {"f32[2,3]"}, "low=[1], high=[0,0], value=0", "f32[3,3]", "one entry an axis"},
       {"pad",
        {"f32[2]"},
        "low=[-1], high=[-2], value=0",
        "f32[0]",
        "crops more than there is"},
       {"pad", {"f32[2]"}, "low=[1], high=[1], value=0", "f64[4]", "f64 and f32 differ"},
       {"pad", {"f32[2]"}, "low=[1], high=[1]", "f32[4]", "{value=0.5}"}});
}

TEST_CASE("running extremes are places, the other scans keep the type") {
  check_accepted({{"cummax", {"u8[2,3]"}, "axis=1", "i64[2,3]"},
                  {"cummin", {"f16[n]"}, "axis=0", "i64[n]"},
                  {"cumprod", {"i8[2,3]"}, "axis=1", "i8[2,3]"},
                  {"logcumsumexp", {"bf16[2,3]"}, "axis=1", "bf16[2,3]"}});
  check_refused({{"logcumsumexp", {"i32[2]"}, "axis=0", "i32[2]", "takes floats, not i32"},
                 {"cummax", {"bool[2]"}, "axis=0", "i64[2]", "takes numbers, not bool"}});
}

TEST_CASE("sorts give places, of any dtype") {
  check_accepted({{"argsort", {"bool[2,3]"}, "axis=1", "i64[2,3]"},
                  {"argsort_descending", {"f16[n]"}, "axis=0", "i64[n]"}});
  check_refused({{"argsort", {"f32[2]"}, "axis=1", "i64[2]", "axis 1 is not one of"}});
}

TEST_CASE("scatter sets elements of any dtype, the other scatters numbers") {
  check_accepted({{"scatter", {"bool[5]", "i64[9]", "bool[9]"}, "axis=0", "bool[5]"},
                  {"scatter_max", {"f32[5]", "i32[9]", "f32[9]"}, "axis=0", "f32[5]"}});
  check_refused(
      {{"scatter_prod", {"bool[5]", "i64[9]", "bool[9]"}, "axis=0", "bool[5]", "not bool"},
       {"scatter", {"f32[5]", "i64[9]", "f64[9]"}, "axis=0", "f32[5]", "f32 and f64"}});
}

TEST_CASE("cumsum keeps the type") {
  check_accepted({{"cumsum", {"i8[2,3]"}, "axis=1", "i8[2,3]"}});
  check_refused({{"cumsum", {"bool[2]"}, "axis=0", "bool[2]", "takes numbers, not bool"},
                 {"cumsum", {"f32[2]"}, "axis=1", "f32[2]", "axis 1 is not one of"}});
}

TEST_CASE("absurd sizes and ranks are errors") {
  const std::string huge = "f32[281474976710656]";  // 2^48, the most there is
  check_accepted({{"neg", {huge}, "", huge}});
  std::string ones = "1";
  for (int i = 1; i < 64; i++) ones += ",1";
  check_accepted({{"neg", {"f32[" + ones + "]"}, "", "f32[" + ones + "]"}});
  check_refused(
      {{"concat", {huge, huge}, "axis=0", "f32[562949953421312]", "more than 2^48 elements"},
       {"neg", {"f32[4294967296,65537]"}, "", "f32[1]", "more than 2^48 elements"},
       {"neg", {"f32[0,562949953421312]"}, "", "f32[1]", "more than 2^48 elements"},
       {"neg", {"f32[n*281474976710656]"}, "", "f32[1]", "more than 2^48 elements"},
       {"neg", {"f32[" + ones + ",1]"}, "", "f32[1]", "65 axes; a tensor has 64 at most"},
       {"input x", {}, "strides=[281474976710656]", "f32[3]", "span more than 2^48"},
       {"pad", {"f32[2]"}, "low=[562949953421312], high=[0], value=0", "f32[2]", "beyond 2^48"},
       {"expand", {"f32[1]"}, "", "f32[562949953421312]", "more than 2^48 elements"}});
}
