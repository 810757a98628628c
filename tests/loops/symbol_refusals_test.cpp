// What cannot be symbolic says so: the line, a caret under the place, and why.
#include <string>
#include <vector>

#include "tiny_compile/graph/graph.h"
#include "tiny_compile/loops/program.h"

#include "tests/catch.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// A line of a text and what is said of it; the caret stands under the first of `at` in it, or
// `skipped` behind.
struct Refused {
  std::string line, at, words;
};

std::string message_of(const std::string& text) {
  try {
    text.starts_with("program") ? (void)parse_program(text) : (void)parse_graph(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void check_refused(const std::string& text, const Refused& refused, size_t skipped = 0) {
  CAPTURE(text);
  const size_t found = text.find(refused.line);
  REQUIRE(found != std::string::npos);
  const size_t start = text.rfind('\n', found) + 1, end = text.find('\n', found);
  const auto number = std::count(text.begin(), text.begin() + static_cast<long>(found), '\n');
  const size_t column = found - start + refused.line.find(refused.at) + skipped;
  REQUIRE(refused.line.find(refused.at) != std::string::npos);
  const std::string message = message_of(text);
  CHECK_THAT(message, ContainsSubstring(refused.words));
  CHECK_THAT(message, Catch::Matchers::StartsWith(
                          str("line ", number + 1, ", column ", column + 1, ": ")));
  CHECK_THAT(message, Catch::Matchers::EndsWith(str("\n  ", text.substr(start, end - start),
                                                    "\n  ", std::string(column, ' '), "^")));
}

// The second node of a graph, after one that is right.
std::string graph_with(const std::string& line) {
  return "graph f[n: 1..9, m: 1..9](%0 x: f32[n,3], %1 y: f32[m,3], %2 z: f32[n]) {\n"
         "  %3: u64[2] = constant {value=3}\n  " +
         line + "\n  return %3\n}\n";
}

// A kernel's lines, in a program of buffers of n.
std::string program_with(const std::string& lines, const std::string& sizes = "n: 1..9") {
  return "program f[" + sizes +
         "] {\n  input x: f32[n]\n  input i: i64[n]\n  output y: f32[n]\n"
         "  output p: i64[n]\n  kernel a rows(i0: n) {\n    " +
         lines + "\n  }\n  launch a\n  return y\n}\n";
}

}  // namespace

TEST_CASE("an attribute that is no size is a number", "[sizes]") {
  for (const Refused& one : std::vector<Refused>{
           {"%4: f32[n] = sum %0 {axes=[n]}", "%4", "sum: axes must be an integer, not n"},
           {"%4: f32[n,3] = cumsum %0 {axis=n}", "%4",
            "cumsum: axis must be an integer, not n"},
           {"%4: f32[n,3] = slice %0 {axis=0, start=0, stop=n, step=n}", "%4",
            "slice: step must be an integer, not n"},
           {"%4: f32[n,3,1] = window %0 {axis=0, step=n, size=1}", "%4",
            "window: step must be an integer, not n"},
           {"%4: f32[n,1] = sum %0 {axes=[1], keepdim=n}", "%4",
            "sum: keepdim must be an integer, not n"},
           {"%4: u32[n,3] = philox %3 {draw=n}", "%4",
            "philox: draw must be an integer, not n"},
           {"%4: f32[n] = constant {value=n}", "n}", "'n' is no f32"}})
    check_refused(graph_with(one.line), one);
  check_refused("graph f[n: 1..9](%0 x: f32[n] {align=n}) {\n  return %0\n}\n",
                {"graph f[n: 1..9](%0 x", "%0", "input: align must be an integer, not n"});
}

TEST_CASE("a graph refuses sizes that never fit", "[sizes]") {
  for (const Refused& one : std::vector<Refused>{
           {"%4: f32[k] = exp %2", "k]", "unknown size 'k'; declare it in the header: graph f"},
           {"%4: f32[n,3] = add %0, %1", "%4", "add: shapes differ; expand or reshape"},
           {"%4: f32[4,3] = expand %0", "%4", "expand: size n of axis 0 cannot become 4"},
           {"%4: f32[12] = slice %2 {axis=0, start=0, stop=12, step=1}", "%4",
            "slice: 0..12 is not within 0..n in order"},
           {"%4: f32[n - 11,12] = window %2 {axis=0, step=1, size=12}", "%4",
            "window: a window of 12 does not fit 1..n; pad first"},
           {"%4: f32[n,n] = matmul %0, %1", "%4", "matmul: inner sizes 3 and m differ"},
           {"%4: f32[n + m] = concat %0, %1 {axis=1}", "%4", "sizes n and m differ on axis 0"},
           {"%4: f32[n/(m - m)] = exp %2", "(m", "a divisor must be positive, not 0"},
           {"%4: f32[n - 20] = iota", "%4", "iota: size n - 20 is negative in [n - 20]"}})
    check_refused(graph_with(one.line), one);
  check_refused(graph_with("%4: (f32[n]) = call %2 {\n    graph g[k: 1..9](%0 a: f32[k]) {"),
                {"graph g[k: 1..9](%0 a: f32[k]) {",
                 "[k:", "a graph inside another uses the sizes that the outermost declares"});
  check_refused("graph f[n: 1..9](%0 x: f32[n] {strides=[n - 20]}) {\n  return %0\n}\n",
                {"graph f[n: 1..9](%0 x", "%0", "input: stride n - 20 is negative"});
}

TEST_CASE("what says how a program runs is a number", "[sizes]") {
  const std::string store = "store y[i0] = load x[i0]\n    ";
  for (const Refused& one : std::vector<Refused>{
           {"schedule pointwise grain=n", "=n", "expected a number, not n"},
           {"schedule rows unroll=n", "=n", "expected a number, not n"},
           {"store y[i0] = cast<f32>(philox<n>(load i[i0], load i[i0])[i0])", "<n>",
            "expected a number, not n"},
           {"sort p[i0] = argsort load x[i0] in n", " n", "expected a number, not n"},
           {"store y[i0] = f32 n", " n", "'n' is no f32"}})
    check_refused(program_with(store + one.line), one, 1);
  check_refused(program_with(store + "schedule columns lanes=16", "n: 1..7"),
                {"schedule columns", "schedule", "schedule columns is for 8 rows or more"});
  check_refused(program_with(store + "fold y[0] = sum(i0) load x[i0]", "n: 1..9"),
                {"fold y", "fold", "folds n rows: a power of two up to 1024"});
  const std::string planned = program_with(store);
  for (const Refused& one : std::vector<Refused>{{"arena n", " n", "expected a number, not n"},
                                                 {"x: f32[n] align=n", "=n", "not n"},
                                                 {"temp t: f32[n] at n", "at n", "not n"}}) {
    const bool arena = one.line.starts_with("arena");
    std::string text = planned;
    const std::string before = arena ? "return" : "output y";
    text.insert(text.find(before), (arena                ? ""
                                    : one.line[0] == 'x' ? "input w"
                                                         : "") +
                                       one.line + "\n  ");
    check_refused(text, one, one.at.size() - 1);
  }
}

TEST_CASE("a program's sizes have names of their own", "[sizes]") {
  check_refused("program f[m: 1..2, i0: 1..9] {\n  return\n}\n",
                {"program f[m", "[m", "a size is called i0, like a loop"}, 1);
  check_refused(program_with("store y[i0] for (n: 9) = load x[i0]"),
                {"store y[i0] for (n", "n", "n is a size; name the loop otherwise"});
  check_refused(program_with("store y[i0] = load x[k]"),
                {"store y[i0] = load x[k]", "k]", "'k' is no axis of this loop"});
  check_refused("program f[n: 1..9] {\n  input x: f32[m]\n  return\n}\n",
                {"input x: f32[m]", "m]", "unknown size 'm'; declare it in the header"});
}

TEST_CASE("a program refuses indices that some size makes wrong", "[sizes]") {
  for (const Refused& one : std::vector<Refused>{
           {"store y[i0] = load x[i0 - 1]", "store",
            "x[i0 - 1] leaves the buffer's n elements"},
           {"store y[i0] = load x[i0/(n - 9)]", "(n", "a divisor must be positive, not n - 9"},
           {"store y[i0] = load x[i0 + n - 20]", "store", "leaves the buffer's n elements"},
           {"store y[0] = load x[i0]", "store", "stores n values of i0 in one place"}})
    check_refused(program_with(one.line), one);
  const Program divides = parse_program(program_with("store y[i0] = load x[i0/(n - 1)]"));
  const auto with = [&](int64_t n) {
    return substitute(divides, {{{"n", SymbolKind::Size}, n}});
  };
  CHECK_THROWS_WITH(with(1), ContainsSubstring("divided by 0; divisors must be positive"));
  CHECK_NOTHROW(verify(with(4)));
  check_refused(program_with("store p[i0] = index[i0*n]", "n: 1..1099511627776"),
                {"store p", "store", "[i0*n] leaves 64 bits"});
  check_refused("program f[n: 1..9] {\n  input x: f32[n - 20]\n  return\n}\n",
                {"input x: f32[n - 20]", "n - 20", "a size must be in 0..281474976710656"});
}
