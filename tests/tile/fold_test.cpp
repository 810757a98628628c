// Rows that fold, as tiles: whoever has which row, the bits of the interpreter.

#include "tiny_compile/tile/lower.h"

#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/verify.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// Two of one width, which meet in one array; of f64, and of no loop.
const std::string kFolds = R"(program f on cuda {
  input x: f32[128,72]
  input w: f64[128,9]
  output y: f32[4,72]
  output v: f32[4,72]
  output z: f64[4,9]
  output a: f64[4]
  output s: f32[128,72]
  kernel k rows(i0: 2, i1: 2, i2: 32) {
    $0 = load x[i0*4608 + i1*72 + i2*144 + j0]
    r0: f32 = sum(j0: 72) $0
    $2 = div($0, r0)
    store s[i0*4608 + i1*72 + i2*144 + j0] for (j0: 72) = $2
    fold y[i0*144 + i1*72 + j0] for (j0: 72) = sum(i2) $2
    fold v[i0*144 + i1*72 + j0] for (j0: 72) = sum(i2) mul($0, $2)
    fold z[i0*18 + i1*9 + j1] for (j1: 9) = sum(i2) load w[i0*576 + i1*9 + i2*18 + j1]
    fold a[i0*2 + i1] = sum(i2) load w[i0*576 + i1*9 + i2*18 + 4]
)";

Program folds(const std::string& schedule) {
  const std::string line = schedule.empty() ? "" : "    schedule " + schedule + "\n";
  return parse_program(kFolds + line + "  }\n  launch k\n  return y, v, z, a, s\n}\n");
}

std::string refusal_of(const std::string& schedule) {
  try {
    folds(schedule);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("folds as tiles: warps, then turns, the interpreter's bits", "[tile][folds]") {
  manual_seed(3);
  const std::vector<Tensor> inputs = {randn({128, 72}), randn({128, 9}, float64)};
  const std::vector<Tensor> wanted = interpret(folds(""), inputs);
  for (const char* rows : {"warp 4 · serial 8", "warp 32", "serial 32", "warp 2 · serial 16",
                           "warp 16 · serial 2"}) {
    for (const char* loops :
         {"loop register 4 · lane 32 loop lane 16", "loop lane 32 · vector 4 loop register 16",
          "loop register 8 · lane 8 · vector 2 loop register 4 · lane 4",
          "loop lane 32 · vector 4 loop lane 16 keep=0 prefetch=1 resident=1"}) {
      const Program program = folds(str("layouts rows ", rows, " ", loops, " outer=2"));
      const Tiles tiles = lower_to_tiles(program);
      INFO(print(tiles));
      verify(tiles);
      CHECK(parse_tiles(print(tiles)) == tiles);
      const std::vector<Tensor> got = interpret(tiles, inputs);
      for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
    }
  }
}

TEST_CASE("rows that fold and that nobody has scheduled are laid out by the policy",
          "[tile][folds]") {
  const Tiles tiles = lower_to_tiles(folds(""));
  REQUIRE(tiles.of_kernel[0]);
  CHECK(tiles.of_kernel[0]->warps == 4);
  CHECK_THAT(print(tiles), ContainsSubstring("layouts rows warp 4 · serial 8 loop"));
  manual_seed(4);
  const std::vector<Tensor> inputs = {randn({128, 72}), randn({128, 9}, float64)};
  const std::vector<Tensor> wanted = interpret(folds(""), inputs),
                            got = interpret(tiles, inputs);
  for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
}

TEST_CASE("layouts of rows that fold are refused where a block has not all of them in order",
          "[tile][folds][refused]") {
  const std::string loops = " loop register 4 · lane 32 loop lane 16";
  const auto rows = [&](const std::string& layout, const std::string& rest = " outer=2") {
    return refusal_of("layouts rows " + layout + loops + rest);
  };
  CHECK(rows("warp 4 · serial 8") == "");
  CHECK_THAT(rows("warp 4 · serial 8", ""), ContainsSubstring("covers 32 of 128"));
  for (const char* layout :
       {"serial 8 · warp 4", "warp 4 · serial 4", "warp 4 · serial 16", "warp 4 · register 8",
        "grid · warp 4", "serial 4 · lane 8", "warp 4 from 2 · serial 8"}) {
    INFO(layout);
    CHECK(rows(layout) != "");
  }
  CHECK_THAT(refusal_of("layouts rows warp 4 · serial 8 loop serial 4 · lane 32 loop lane 16 "
                        "outer=2"),
             ContainsSubstring("have no turns"));
  CHECK_THAT(refusal_of("rows"), ContainsSubstring("rows that fold are laid out"));
  CHECK_THAT(refusal_of("columns"), ContainsSubstring("rows that fold are laid out"));
}

TEST_CASE("rows that fold ask for the next, where they take turns", "[tile][folds][refused]") {
  const std::string rest = " loop register 4 · lane 32 loop lane 16 outer=2 prefetch=";
  CHECK(refusal_of("layouts rows warp 4 · serial 8" + rest + "1") == "");
  CHECK_THAT(refusal_of("layouts rows warp 4 · serial 8" + rest + "2"),
             ContainsSubstring("prefetch=2: rows that fold ask for the next, prefetch=1"));
  CHECK(refusal_of("layouts rows warp 32" + rest + "1") == "");  // for what a later pass reads
}

TEST_CASE("rows that fold nothing take no turns", "[tile][folds][refused]") {
  CHECK_THROWS_WITH(
      parse_program(
          "program f on cuda {\n  input x: f32[32,8]\n  output y: f32[32]\n  kernel k "
          "rows(i0: 32) {\n    r0: f32 = sum(j0: 8) load x[i0*8 + j0]\n    store "
          "y[i0] = r0\n    schedule layouts rows warp 4 · serial 8 loop lane 8\n  }\n "
          " launch k\n  return y\n}\n"),
      ContainsSubstring("turns are of rows that fold"));
}
