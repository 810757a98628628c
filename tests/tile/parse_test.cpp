// A tile's text says everything about it, and what it says wrong is told with its place.
#include "tests/catch.h"
#include "tests/tile/edited.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tile/lower.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

Program squares() {
  return parse_program(R"(program f on cuda {
  input x: f32[16,1000]
  output y: f32[16,1000]
  kernel k rows(i0: 1000) {
    r0: f32 = sum(j0: 16) load x[i0 + j0*1000]
    $3 = sub(load x[i0 + j0*1000], r0)
    r1: f32 = sum(j0: 16) mul($3, $3)
    store y[i0 + j0*1000] for (j0: 16) = add($3, r1)
    schedule layouts rows grid · lane 32 loop warp 16
  }
  launch k
  return y
}
)");
}

std::string tile_of(const std::string& statements) {
  return "tile k grid 32 block 16 warps {\n  array t: f32[4]\n" + statements + "}\n";
}

std::string error_of(const std::string& text) {
  try {
    parse_tile(squares(), text);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a tile parses back equal, and an edited one to another", "[tile]") {
  const Program program = squares();
  const Tile tile = lower_to_tile(program, program.kernels[0]);
  const std::string text = print(program, tile);
  CHECK(parse_tile(program, text) == tile);
  for (const auto& [old, by] : std::vector<std::pair<std::string, std::string>>{
           {"grid 32", "grid 33"},
           {"16 warps", "16 warps resident 2"},
           {"array sum0: f32[1]", "array sum0: f32[2]"},
           {"array sum0: f32", "array sum0: f64"},
           {"shared given", "array given"},
           {"row: 1000", "row: 1001"},
           {"load x[i0 + j0*1000]", "load x[i0 + j0*999]"},
           {"< 8 unrolled", "< 8"},
           {"  barrier\n", ""},
           {"  divisor", "  barrier\n  divisor"}}) {
    if (text.find(old) == std::string::npos) continue;
    INFO(old << " => " << by);
    const std::string edited = replaced(text, old, by);
    const Tile other = parse_tile(program, edited);
    CHECK(!(other == tile));
    CHECK(parse_tile(program, print(program, other)) == other);
  }
}

TEST_CASE("a line gives a value's number another meaning from there on", "[tile]") {
  const Program program = squares();
  const Tile tile = parse_tile(program, tile_of("  $0 = load x[lane]\n"
                                                "  $0 = load x[lane + 32]\n"
                                                "  $9 = exp($0)\n"
                                                "  t[0] = $9\n"));
  CHECK(print(program, tile) == tile_of("  $6 = load x[lane]\n"
                                        "  $7 = load x[lane + 32]\n"
                                        "  $8 = exp($7)\n"
                                        "  t[0] = $8\n"));
}

TEST_CASE("what a tile's text says wrong is told with line and column", "[tile]") {
  CHECK(error_of(tile_of("  t[0] = f32 1.0\n")) == "");
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"  t[q] = f32 1\n", "line 3, column 5: no integer 'q' is named above"},
      {"  t[lame] = f32 1\n", "did you mean 'lane'?"},
      {"  s[0] = f32 1\n", "line 3, column 3: no array 's' is declared above"},
      {"  t[0] = $77\n", "line 3, column 10: this value has no line above"},
      {"  t[0] = f32 x\n", "line 3, column 14"},
      {"  t[0] = load z[0]\n", "no buffer 'z' is declared above"},
      {"  $9 = $0\n", "line 3, column 8: expected an op"},
      {"  $9 = t[0] of lane ^ 0\n", "lane ^ 0 is the lane itself"},
      {"  r0 = exp($0)\n", "a register is read from an array"},
      {"  k = lane\n", "(an integer below 8 is named k: 8 = ...)"},
      {"  load: 8 = lane\n", "'load' means something else"},
      {"  for q < 4 {\n  t[0] = f32 1\n", "expected a statement"},
      {"  for q < 0 {\n  }\n", "line 3, column 11: a loop's extent must be in 1.."},
      {"  for q < 4 {\n  }\n  t[q] = f32 1\n", "line 5, column 5: no integer 'q'"},
      {"  if lane {\n  }\n", "line 3, column 11: expected '<' after the index"},
      {"  store y[lane] x4 = $0\n", "expected the array whose neighbours are stored"},
      {"  t[0] = load x[lane] x99\n", "a vector's width must be in 1..16"},
      {"  barrier barrier\n", "line 3, column 11: expected the end of the line"}};
  for (const auto& [statements, why] : wrong)
    CHECK_THAT(error_of(tile_of(statements)), ContainsSubstring(why));
  CHECK_THAT(error_of("tile q grid 1 block 1 warps {\n}\n"),
             ContainsSubstring("line 1, column 6: no kernel 'q'"));
  CHECK_THAT(error_of("tile k grid 1 block 64 warps {\n}\n"),
             ContainsSubstring("a block's warps must be in 1..32"));
  CHECK_THAT(error_of(tile_of("") + "more"), ContainsSubstring("text after the tile's '}'"));
}

TEST_CASE("integers beyond an int are written as longer ones", "[tile]") {
  Tiles tiles = lower_to_tiles(squares());
  CHECK(emit(tiles).text.find("long long block") == std::string::npos);
  Body& body = tiles.of_kernel[0]->body;
  body.insert(body.begin(), let("far", int64_t{1} << 40, lane_of_warp() * (1 << 30)));
  CHECK(emit(tiles).text.find("const long long far = lane*1073741824") != std::string::npos);
}

TEST_CASE("passes without a loop over registers name their own integers", "[tile]") {
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  CHECK(!compile_cuda(emit(lower_to_tiles(squares())).text, "sm_90").empty());
}

TEST_CASE("kernels share a function where their tiles are equal", "[tile]") {
  const Program program = parse_program(R"(program f on cuda {
  input x: f32[16,1000]
  input z: f32[16,1000]
  output y: f32[1000]
  output w: f32[1000]
  kernel a rows(i0: 1000) {
    r0: f32 = sum(j0: 16) load x[i0 + j0*1000]
    store y[i0] = r0
    schedule layouts rows grid · lane 32 loop register 16
  }
  kernel b rows(i0: 1000) {
    r0: f32 = sum(j0: 16) load z[i0 + j0*1000]
    store w[i0] = r0
    schedule layouts rows grid · lane 32 loop register 16
  }
  launch a
  launch b
  return y, w
}
)");
  const std::string text = print(lower_to_tiles(program));
  const Source shared = emit(parse_tiles(text));
  CHECK(shared.kernels[1].function == shared.kernels[0].function);
  CHECK(shared.kernels[1].buffers != shared.kernels[0].buffers);
  const size_t second = text.find("tile b ");
  const std::string edited = replaced(text.substr(second), "add(", "sub(");
  const Source apart = emit(parse_tiles(text.substr(0, second) + edited));
  CHECK(apart.kernels[1].function != apart.kernels[0].function);
}

TEST_CASE("a program of sizes has tiles too", "[tile]") {
  std::string text = print(squares());
  text = replaced(text, "program f on", "program f[n: 1..9] on");
  text = replaced(text, "  output y", "  input z: f32[n]\n  output y");
  const Tiles tiles = lower_to_tiles(parse_program(text));
  CHECK(has_tile(tiles));
  CHECK(parse_tiles(print(tiles)) == tiles);
}
