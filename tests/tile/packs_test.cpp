// Kernels of points on a GPU are tile programs: they mean what their kernels do, read back as they
// print, and what a hand changes in them is obeyed, or refused with its place.
#include "tiny_compile/tile/packs.h"

#include "tests/catch.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/verify.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

Tiles tiles_of(const std::string& graph) {
  return run_pipeline(until(default_pipeline(), "tile"), parse_graph(graph), true, Target::Cuda)
      .tiles;
}

std::string unary(const std::string& op, const std::string& shape) {
  return str("graph g(%0 x: f32[", shape, "]) {\n  %1: f32[", shape, "] = ", op,
             " %0\n  return %1\n}\n");
}

std::string biased(const std::string& type, int64_t rows, int64_t columns) {
  const std::string shape = str(type, "[", rows, ",", columns, "]");
  return str("graph g(%0 x: ", shape, ", %1 b: ", type, "[", columns, "]) {\n  %2: ", shape,
             " = expand %1\n  %3: ", shape, " = add %0, %2\n  return %3\n}\n");
}

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  const size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), by);
}

void check_bits(const Tiles& tiles) {
  const std::vector<Tensor> inputs = seeded_inputs(tiles.program, 7, {});
  const std::vector<Tensor> want = interpret(tiles.program, inputs),
                            got = interpret(tiles, inputs);
  REQUIRE(want.size() == got.size());
  for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(want[k], got[k]));
  CHECK(parse_tiles(print(tiles)) == tiles);
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
