// Products of a GPU are tile programs: they mean what their kernels do, whatever their tiles.
#include "tiny_compile/tile/products.h"

#include "tests/tile/lowered.h"

using namespace tiny_compile;
using namespace tiny_compile::lowered;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string product(const std::string& type, int64_t rows, int64_t depth, int64_t columns) {
  const std::string result = str(type, "[", rows, ",", columns, "]");
  return str("graph g(%0 a: ", type, "[", rows, ",", depth, "], %1 b: ", type, "[", depth, ",",
             columns, "]) {\n  %2: ", result, " = matmul %0, %1\n  %3: ", result,
             " = exp %2\n  return %2, %3\n}\n");
}

// The program again, under this schedule.
Tiles scheduled(const Tiles& tiles, int each, int slice) {
  Program program = tiles.program;
  for (Kernel& kernel : program.kernels)
    kernel.schedule = Schedule{.strategy = Strategy::Tiles, .each = each, .slice = slice};
  return lower_to_tiles(program);
}

}  // namespace

TEST_CASE("a product's block has a square of the result", "[tile][products]") {
  const std::string text = print(scheduled(tiles_of(product("f32", 64, 37, 128)), 4, 16));
  INFO(text);
  CHECK_THAT(text, ContainsSubstring("tile matmul_exp_3 grid 2 block 8 warps") &&
                       ContainsSubstring("for slice < 2 {") &&
                       ContainsSubstring("for k < 5 unrolled {") &&
                       ContainsSubstring("= fma(") && !ContainsSubstring("if "));
  // Beyond the matrix the last place is read again, and no result is stored.
  CHECK_THAT(
      print(scheduled(tiles_of(product("f32", 65, 37, 128)), 4, 16)),
      ContainsSubstring("i0: 65 = min(first_row + ") && ContainsSubstring("if first_row + "));
}

TEST_CASE("products have the interpreter's bits", "[tile][products]") {
  for (const char* type : {"f32", "bf16", "f16", "f64"}) {
    INFO(type);
    check_tiles(tiles_of(product(type, 33, 37, 70)));
    check_tiles(tiles_of(product(type, 2, 3, 5)));
  }
  check_tiles(
      tiles_of("graph g(%0 a: f32[3,20,50], %1 b: f32[3,50,17]) {\n"
               "  %2: f32[3,20,17] = matmul %0, %1\n  return %2\n}\n"));
  check_tiles(
      tiles_of("graph g(%0 a: f32[40,20], %1 b: f32[50,40]) {\n"
               "  %2: f32[20,40] = permute %0 {axes=[1,0]}\n"
               "  %3: f32[40,50] = permute %1 {axes=[1,0]}\n"
               "  %4: f32[20,50] = matmul %2, %3\n  return %4\n}\n"));
}

TEST_CASE("no tile of a product changes a bit", "[tile][products]") {
  const Tiles tiles = tiles_of(product("f32", 45, 19, 33));
  for (const auto& [each, slice] : std::vector<std::pair<int, int>>{
           {1, 16}, {1, 64}, {2, 8}, {2, 32}, {4, 4}, {4, 16}, {8, 2}, {8, 8}}) {
    INFO("each=" << each << " slice=" << slice);
    check_tiles(scheduled(tiles, each, slice));
  }
}

TEST_CASE("a product without one of its barriers is a race", "[tile][products]") {
  const std::string text = print(scheduled(tiles_of(product("f32", 16, 64, 16)), 1, 16));
  CHECK(error_of(text).empty());
  const size_t first = text.find("barrier\n"), second = text.find("barrier\n", first + 1);
  CHECK_THAT(error_of(without(text, "barrier\n", first)), ContainsSubstring("tile"));
  CHECK_THAT(error_of(without(text, "barrier\n", second)), ContainsSubstring("tile"));
}
