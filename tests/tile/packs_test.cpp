// Kernels of points on a GPU are tile programs: they mean what their kernels do, read back as they
// print, and what a hand changes in them is obeyed, or refused with its place.
#include "tiny_compile/tile/packs.h"

#include <algorithm>

#include "tests/schedule/as_scheduled.h"
#include "tests/tile/edited.h"
#include "tests/tile/lowered.h"
#include "tiny_compile/schedule/enumerate.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tile/verify.h"

using namespace tiny_compile;
using namespace tiny_compile::lowered;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string unary(const std::string& op, const std::string& shape) {
  return str("graph g(%0 x: f32[", shape, "]) {\n  %1: f32[", shape, "] = ", op,
             " %0\n  return %1\n}\n");
}

std::string biased(const std::string& type, int64_t rows, int64_t columns) {
  const std::string shape = str(type, "[", rows, ",", columns, "]");
  return str("graph g(%0 x: ", shape, ", %1 b: ", type, "[", columns, "]) {\n  %2: ", shape,
             " = expand %1\n  %3: ", shape, " = add %0, %2\n  return %3\n}\n");
}

}  // namespace

TEST_CASE("a pack of points is read, computed and stored", "[tile][packs]") {
  const Tiles tiles = tiles_of(biased("f32", 513, 1024));
  const std::string text = print(tiles);
  INFO(text);
  CHECK_THAT(text, ContainsSubstring(" grid 513 block 8 warps {") &&
                       ContainsSubstring("pack: 131328 = block*256 + thread") &&
                       ContainsSubstring("e: 1024 = (pack%256)*4") &&
                       ContainsSubstring("= load b[e] x4"));
  check_bits(tiles);
}

TEST_CASE("points in packs have the interpreter's bits", "[tile][packs]") {
  for (const char* count : {"5000", "5003", "70"}) check_bits(tiles_of(unary("neg", count)));
  for (const char* type : {"f32", "bf16", "u8"}) {
    for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{
             {71, 1023}, {4101, 2}, {1501, 3}, {70, 70}, {9, 1024}})
      check_bits(tiles_of(biased(type, rows, columns)));
  }
}

TEST_CASE("a pack that a mask parts is read where all of it is there", "[tile][packs]") {
  const auto tiles = [](int row, const std::string& condition) {
    return lower_to_tiles(schedule(parse_program(
        str("program g on cuda {\n  input x: bf16[1000,", row, "]\n  output y: bf16[1000,72]\n",
            "  kernel k rows(i0: 1000, i1: 72) {\n    $0 = index[i1]\n    $1 = ", condition,
            "\n    store y[i0*72 + i1] = load x[i0*", row,
            " + i1] if $1 else 2.0\n  }\n  launch k\n  return y\n}\n"))));
  };
  const std::string whole = "pack0[0] = load x[e";
  for (const char* condition : {"lt($0, i64 65)", "lt($0, index[i0])", "ge($0, i64 3)",
                                "bitwise_and(ge($0, index[i0]), lt($0, i64 70))"}) {
    const Tiles parted = tiles(72, condition);
    INFO(print(parted));
    CHECK_THAT(print(parted), ContainsSubstring(whole));
    check_bits(parted);
  }
  const Tiles alone =
      tiles(64, "lt($0, i64 61)");  // the last row's last pack would leave the array
  CHECK_THAT(print(alone), !ContainsSubstring(whole));
  check_bits(alone);
}

TEST_CASE("a changed pack is refused with its place", "[tile][packs]") {
  const std::string text = print(tiles_of(unary("neg", "5003")));
  const auto refused = [&](const std::string& old, const std::string& by,
                           const std::string& why) {
    CHECK_THROWS_WITH(parse_tiles(replaced(text, old, by)),
                      ContainsSubstring("line ") && ContainsSubstring(why));
  };
  INFO(text);
  refused("load x[first] x4 of left", "load x[first] x4", "leaves the buffer's 5003 elements");
  refused("load x[first] x4 of left", "load x[first + 1] x4 of left", "is astride");
  refused("load x[first] x4 of left", "load x[first] x4 of left + 1",
          "leaves the buffer's 5003 elements");
  refused("if v < left", "if $0", "not computed on all paths");
  refused("if block*256 + thread < 1251", "if block*256 + thread < 1252",
          "is to be below 1251");
}

TEST_CASE("an edited pack is run as it stands", "[tile][packs]") {
  const std::string text = print(tiles_of(unary("neg", "5003")));
  const Tiles tiles = parse_tiles(replaced(text, "for v < 4 unrolled", "for v < 3 unrolled"));
  CHECK_THAT(emit(tiles).text, ContainsSubstring("v < 3; v++"));
}

TEST_CASE("a condition of data is a bool", "[tile][packs]") {
  const std::string text = print(tiles_of(unary("neg", "5003")));
  CHECK_THROWS_WITH(
      parse_tiles(replaced(text, "        out1[v] = $1\n",
                           "        if $0 {\n          out1[v] = $1\n        }\n")),
      ContainsSubstring("no condition is $0"));
}

TEST_CASE("kernels that differ in their number of points share one tile", "[tile][packs]") {
  const std::string both =
      "graph g(%0 x: f32[700], %1 y: f32[9001]) {\n  %2: f32[700] = exp %0\n"
      "  %3: f32[9001] = exp %1\n  return %2, %3\n}\n";
  const Tiles tiles = tiles_of(both);
  check_bits(tiles);
  const Source source = emit(tiles);
  REQUIRE(source.kernels.size() == 2);
  CHECK(source.kernels[0].function == source.kernels[1].function);
  CHECK(source.kernels[0].grid.constant() * source.kernels[1].grid.constant() == 9);
  CHECK_THAT(source.text, ContainsSubstring("const int points"));
  // One that was edited has a function of its own.
  const std::string text = print(tiles);
  const Source edited = emit(parse_tiles(replaced(text, "grid 9 ", "grid 10 ")));
  CHECK(edited.kernels[0].function != edited.kernels[1].function);
}

TEST_CASE("points are dealt out as an edited line of their schedule says", "[tile][packs]") {
  const Program program = as_scheduled(biased("f32", 70, 96));
  const std::string chosen = "pointwise rows grid · warp 8 · lane 32 · vector 4";
  const auto tiles_as = [&](const std::string& line) {
    return lower_to_tiles(parse_program(replaced(print(program), chosen, line)));
  };
  const auto has = [&](const std::string& layout, const std::string& words) {
    const Tiles tiles = tiles_as("pointwise rows " + layout);
    INFO(print(tiles));
    CHECK_THAT(print(tiles), ContainsSubstring(words));
    check_bits(tiles);
  };
  has("grid · warp 8 · lane 32 · vector 2", "= load b[e] x2");
  has("grid · warp 4 · lane 32 · vector 4", " block 4 warps ");
  has("grid · warp 2 · lane 32 · vector 4 resident=9", " block 2 warps resident 9 ");
  has("serial 4 · grid · warp 8 · lane 32 · vector 4", "for turn < 3 unrolled");
  has("serial 2 · grid · lane 32", " grid 105 block 1 warps ");
  CHECK(print(tiles_as("pointwise")) !=
        print(tiles_as("pointwise rows grid · warp 8 · lane 32")));  // in their lines alone
  CHECK(tiles_as("pointwise").of_kernel[0]->grid == 27);
  const std::vector<Schedule> all = enumerate(program, program.kernels[0]);
  CHECK(std::count(all.begin(), all.end(), *program.kernels[0].schedule) == 1);
  for (const Schedule& schedule : all) check_bits(tiles_as(str(schedule)));
}

TEST_CASE("what points cannot be dealt out as is refused", "[tile][packs]") {
  const auto refused = [](const Program& program, const std::string& layout,
                          const std::string& why) {
    const std::string old = str(*program.kernels[0].schedule);
    CHECK_THROWS_WITH(parse_program(replaced(print(program), old, "pointwise " + layout)),
                      ContainsSubstring(why));
  };
  const Program line = as_scheduled(unary("neg", "5003"));
  refused(line, "rows grid · lane 16", "lane 32 · [vector 2, 4 or 8]");
  refused(line, "rows grid · warp 3 · lane 32", "[warp 2 .. 32]");
  refused(line, "rows serial 3 · grid · lane 32", "[serial 2, 4, 8 or 16] · grid");
  refused(line, "rows grid · lane 32 · warp 2", "[warp 2 .. 32] · lane 32");
  refused(line, "rows grid · warp 32 · lane 32 resident=3", "h200 has 2048 threads");
  refused(line, "rows grid · lane 32 · vector 8", "suits packs of 4, not of 8");
  refused(line, "rows grid · lane 32 loop register 4", "has a layout of rows alone");
  const Program few = as_scheduled(biased("f32", 2, 3));
  refused(few, "rows serial 4 · grid · lane 32", "too few points for 4 slabs of whole rows");
  refused(as_scheduled(biased("f32", 7, 2)), "rows grid · lane 32 · vector 4",
          "packs of 4 are whole rows of 2, and the last one ends beyond the last point");
  refused(few, "rows grid · lane 32 · vector 8", "suits packs of 4, not of 8");
}

TEST_CASE("what each point of a row chooses by itself is not asked for ahead",
          "[tile][packs]") {
  const auto chosen = [](int64_t rows) {
    return str("graph g(%0 x: f32[", rows, ",64], %1 i: i64[64]) {\n  %2: i64[", rows,
               ",64] = expand %1\n  %3: f32[", rows,
               ",64] = gather %0, %2 {axis=1}\n  return %3\n}\n");
  };
  CHECK_NOTHROW(tiles_of(chosen(1 << 18)));  // four slabs, were it a row's choice
  const Program program = as_scheduled(chosen(100));
  for (const Schedule& schedule : enumerate(program, program.kernels[0])) {
    Program other = program;
    other.kernels[0].schedule = schedule;
    check_bits(lower_to_tiles(other));
  }
}
