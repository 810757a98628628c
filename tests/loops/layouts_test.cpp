// Which layouts are legal, and how they read.
#include "tests/catch.h"
#include "tiny_compile/loops/program.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// A sum of the columns of [1000,96] whose schedule is this line.
std::string columns(const std::string& schedule, const std::string& target = " on cuda") {
  return "program f" + target +
         " {\n  input x: f32[1000,96]\n  output y: f32[96]\n  kernel sum_1 rows(i0: 96) {\n"
         "    r0: f32 = sum(j0: 1000) load x[i0 + j0*96]\n    store y[i0] = r0\n    schedule " +
         schedule + "\n  }\n  launch sum_1\n  return y\n}\n";
}

void require_refused(const std::string& schedule, const std::string& message) {
  INFO(schedule);
  REQUIRE_THROWS_WITH(parse_program(columns(schedule)), ContainsSubstring(message));
}

}  // namespace

TEST_CASE("a schedule of layouts parses back equal", "[loops][layouts]") {
  const std::string line =
      "layouts rows grid · warp 2 from 4 · lane 8 · vector 4 loop register 8 · serial 8 · warp "
      "4 "
      "· lane 4 from 8 resident=3";
  const Program program = parse_program(columns(line));
  const Schedule& schedule = *program.kernels[0].schedule;
  CHECK(schedule.rows ==
        Layout{{Level::Grid}, {Level::Warp, 2, 4}, {Level::Lane, 8}, {Level::Vector, 4}});
  CHECK(str(schedule) == line);
  CHECK(parse_program(print(program)) == program);
}

TEST_CASE("layouts that no block could follow are refused with a reason", "[loops][layouts]") {
  require_refused("layouts rows grid · lane 32", "has 0 loops, not 1");
  require_refused("layouts rows grid · lane 32 loop register 8", "loop 1 covers 8 of 1000");
  require_refused("layouts rows lane 32 loop serial 1024", "rows covers 32 of 96");
  require_refused("layouts rows grid · lane 3 loop serial 1024", "lane 3: no power of two");
  require_refused("layouts rows grid loop register 400 · warp 3", "register 400: no power of");
  require_refused("layouts rows grid loop serial 512 · warp 3", "warp 3: no power of two");
  require_refused("layouts rows grid loop warp 3 from 2 · register 16 · lane 32", "nor all");
  require_refused("layouts rows grid · warp 2 from 4 loop warp 3 · register 16 · lane 32",
                  "loop 1: warp 3 of 8 warps: no power of two, nor all");
  require_refused("layouts rows grid loop warp 5 · register 8 · lane 32",
                  "loop 1: warp 5, 256 elements each: beyond 1024");
  CHECK_NOTHROW(
      parse_program(columns("layouts rows grid loop warp 3 · register 32 · lane 32")));
  std::string of_two = columns(
      "layouts rows grid loop warp 3 · register 32 · lane 32 loop warp 2 · "
      "register 2 · lane 32");
  of_two.insert(of_two.find("    store"), "    r1: f32 = sum(j1: 96) load x[i0 + j1*96]\n");
  of_two.replace(of_two.find("= r0"), 4, "= add(r0, r1)");
  CHECK_THROWS_WITH(parse_program(of_two),
                    ContainsSubstring("loop 2: warp 2 of 3 warps: all or one"));
  require_refused("layouts rows grid · lane 64 loop serial 1024", "a warp has 32 lanes");
  require_refused("layouts rows grid · lane 16 from 4 loop serial 1024", "a warp has 32 lanes");
  require_refused("layouts rows grid loop serial 16 · warp 64", "at most 32 warps");
  require_refused("layouts rows lane 32 · grid loop serial 1024", "the first part of rows");
  require_refused("layouts rows grid loop grid · lane 32", "the first part of rows");
  require_refused("layouts rows grid · serial 2 loop serial 1024",
                  "turns are of rows that fold");
  require_refused("layouts rows grid · vector 2 · lane 2 loop serial 1024", "the last part");
  require_refused("layouts rows grid · vector 16 loop serial 1024", "vector 16: at most 8");
  require_refused("layouts rows grid · lane 4 · lane 4 loop serial 1024", "names lanes");
  require_refused("layouts rows grid · cluster 2 loop serial 1024", "rows are not shared");
  require_refused("layouts rows grid loop cluster 2 · serial 256 · cluster 2",
                  "names clusters");
  require_refused("layouts rows grid loop cluster 16 · serial 64", "has clusters of 8");
  require_refused("layouts rows grid · lane 8 loop serial 128 · lane 8", "lanes that the rows");
  require_refused("layouts rows grid loop serial 32 · register 2 · serial 16", "more than one");
  require_refused("layouts rows grid · register 4 loop register 64 · serial 16",
                  "256 elements of a thread");
  require_refused("layouts rows grid · register 64 loop register 2 · serial 32 · warp 16",
                  "more than a kernel may declare");
  require_refused("layouts rows grid loop serial 1024 resident=99", "at most 64 warps");
  require_refused("layouts", "has 0 loops");
  require_refused("layouts rows grid · thread 4 loop serial 1024",
                  "expected one of grid, cluster, warp, lane, register, vector, serial");
}

TEST_CASE("no edited layout of rows of 1024 reads past them or divides by nothing",
          "[loops][layouts]") {
  const auto refuse = [](const std::string& layouts, const std::string& message) {
    INFO(layouts);
    REQUIRE_THROWS_WITH(
        parse_program("program f on cuda {\n  input x: f32[64,1024]\n  output y: f32[64,1024]\n"
                      "  kernel k rows(i0: 64) {\n    store y[i0*1024 + j0] for (j0: 1024) = "
                      "load x[i0*1024 + j0]\n    schedule layouts rows grid loop " +
                      layouts + "\n  }\n  launch k\n  return y\n}\n"),
        ContainsSubstring(message));
  };
  refuse("register 8 · lane 32 · vector 3", "vector 3: no power of two");
  refuse("warp 100 · lane 32", "block has at most 32 warps");
  refuse("register 16 · warp 100", "warp 100: no power of two");
  refuse("register 32 · warp 128", "block has at most 32 warps");
  refuse("register 32 · lane 0", "a part's extent must be in 1..");
  refuse("register 32 · lane 32 from 0", "a part's place must be in 1..");
}

TEST_CASE("turns of sums of exponentials are of whole chunks", "[loops][layouts]") {
  const auto refuse = [](const std::string& schedule, const std::string& message) {
    std::string text = columns(schedule);
    text.replace(text.find("= sum("), 6, "= sum_exp(");
    REQUIRE_THROWS_WITH(parse_program(text), ContainsSubstring(message));
  };
  refuse("layouts rows grid loop serial 2048 · register 32 · lane 32",
         "2048 chunks, sum_exp at most 1024");
  refuse("layouts rows grid loop lane 32 · register 64", "lanes have whole chunks");
  refuse("layouts rows grid loop cluster 2 from 2 · register 32 · cluster 2 · lane 16",
         "chunks of 2 blocks of a cluster");
  refuse("layouts rows grid loop serial 4 · register 8 · lane 32", "whole chunks of a warp");
  refuse("layouts rows grid loop serial 2 · register 8 · warp 4 · lane 32", "whole chunks");
}

TEST_CASE("what a block knows of all chunks has to fit it", "[loops][layouts]") {
  const auto text_of = [](const std::string& op) {
    std::string text = columns(
        "layouts rows grid · warp 8 · lane 2 loop serial 512 · register 64 · lane 16 from 2");
    return text.replace(text.find("= sum("), 6, "= " + op + "(");
  };
  CHECK_NOTHROW(parse_program(text_of("sum")));
  CHECK_THROWS_WITH(parse_program(text_of("sum_exp")),
                    ContainsSubstring("65536 bytes, more than a kernel may declare"));
}

TEST_CASE("what is the same in any order is down to one a row when warps exchange it",
          "[loops][layouts]") {
  const auto text_of = [](const std::string& op) {
    std::string text = columns("layouts rows grid · lane 32 loop warp 16 · register 64");
    return text.replace(text.find("= sum("), 6, "= " + op + "(");
  };
  CHECK_NOTHROW(parse_program(text_of("max")));
  CHECK_THROWS_WITH(parse_program(text_of("sum")), ContainsSubstring("layouts exchange"));
}

TEST_CASE("each exchange of a loop is counted", "[loops][layouts]") {
  const auto text_of = [](const std::string& warps) {
    return columns("layouts rows grid · lane 32 loop serial 4 · " + warps + " · register 64");
  };
  CHECK_NOTHROW(parse_program(text_of("warp 4")));
  CHECK_THROWS_WITH(parse_program(text_of("warp 2 · warp 2 from 2")),
                    ContainsSubstring("65536 bytes, more than a kernel may declare"));
}

TEST_CASE("vectors must divide the axis along which they lie", "[loops][layouts]") {
  CHECK_NOTHROW(parse_program(columns("layouts rows grid · vector 8 loop serial 1024")));
  std::string odd = columns("layouts rows grid · vector 8 loop serial 1024");
  for (size_t at; (at = odd.find("96")) != std::string::npos;) odd.replace(at, 2, "97");
  CHECK_THROWS_WITH(parse_program(odd), ContainsSubstring("rows: vectors of 8 in 97"));
}

TEST_CASE("layouts are for cuda, reductions and stores", "[loops][layouts]") {
  const std::string line = "layouts rows grid · lane 32 loop serial 1024";
  CHECK_NOTHROW(parse_program(columns(line)));
  CHECK_THROWS_WITH(parse_program(columns(line, "")), ContainsSubstring("on cuda"));
  CHECK_THROWS_WITH(
      parse_program(
          "program f on cuda {\n  input x: f32[64,8]\n  input y: f32[8,32]\n  output z: "
          "f32[64,32]\n  kernel k rows(i0: 64, i1: 32) {\n    r0: f32 = dot(j0: 8) load "
          "x[i0*8 + j0], load y[j0*32 + i1]\n    store z[i0*32 + i1] = r0\n    schedule " +
          std::string("layouts rows grid loop serial 8\n  }\n  launch k\n  return z\n}")),
      ContainsSubstring("for reductions and stores"));
}

namespace {

std::string transposed_with(const std::string& schedule) {
  return "program f on cuda {\n  input x: f32[100,64]\n  output y: f32[64,100]\n"
         "  kernel turn rows(i0: 64) {\n"
         "    store y[i0*100 + j0] for (j0: 100) = load x[j0*64 + i0]\n    schedule " +
         schedule + "\n  }\n  launch turn\n  return y\n}\n";
}

void check_transposed_refused(const std::string& schedule, const std::string& message) {
  INFO(schedule);
  REQUIRE_THROWS_WITH(parse_program(transposed_with(schedule)), ContainsSubstring(message));
}

}  // namespace

TEST_CASE("what goes by way of shared memory covers what a block does", "[layouts]") {
  const std::string own =
      "layouts rows grid · register 4 · warp 8 loop grid · lane 32 · vector 4 ";
  const std::string by_way =
      own + "via load 1 rows lane 8 · vector 4 loop register 4 · warp 8 · lane 4 from 8 ";
  const Program program = parse_program(transposed_with(by_way + "padding 1"));
  CHECK(parse_program(print(program)) == program);
  check_transposed_refused(own + "via load 2 rows lane 32 loop register 16 · warp 8",
                           "via load 2: there is no such access");
  check_transposed_refused(own + "via load 1 rows lane 16 loop register 16 · warp 8",
                           "rows cover 16, not the block's 32");
  check_transposed_refused(
      own +
          "via load 1 rows lane 32 loop register 16 · warp 8 · lane 1 from 2 "
          "via load 1 rows lane 32 loop register 16 · warp 8",
      "via load 1 a second time");
  check_transposed_refused(own + "via store 1 rows lane 32 loop register 4 · lane 32",
                           "names lanes twice");
  check_transposed_refused(own + "via load 1 rows lane 32 loop register 16 · warp 8 pieces 2",
                           "pieces 2 are parts of the loops' first registers");
  check_transposed_refused("layouts rows grid · warp 8 loop grid · lane 32 outer=2",
                           "schedule outer=2 of 1 row axes");
}
