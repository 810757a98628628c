// Which indices take each number once, and which only look like it.
#include "tiny_compile/loops/coverage.h"

#include "tests/catch.h"

using namespace tiny_compile;

namespace {

const Axis i{"i0", 49}, k{"i1", 8}, j{"j0", 1024};

}  // namespace

TEST_CASE("a number cut into chunks is one axis to a view of it", "[loops]") {
  const Expr number = i.symbol() * 1024 + j.symbol();  // of 64 * 784
  const Expr place = floor_div(number, 784) * 6272 + mod(number, 784) + k.symbol() * 784;
  CHECK(covers(place, {i, k, j}, 64 * 6272));
  CHECK(covers(place, {j, k, i}, 64 * 6272));
  const Expr apart = floor_div(number, 784) * 6272 + mod(number, 784) + k.symbol() * 785;
  CHECK_FALSE(covers(apart, {i, k, j}, 64 * 6272));
  const Expr overlapping = i.symbol() * 1023 + j.symbol();
  CHECK_FALSE(
      covers(floor_div(overlapping, 784) * 784 + mod(overlapping, 784), {i, j}, 49 * 1024));
  const Expr lossy = floor_div(number, 784) * 784 + mod(number, 700);
  CHECK_FALSE(covers(lossy, {i, j}, 49 * 1024));
}

TEST_CASE("an axis of symbolic extent may be cut in chunks too", "[loops]") {
  const Axis rows{"i0", Expr::symbol({"n", SymbolKind::Size}, 1, 4096)};
  const Axis chunk{"j0", 12};
  const Expr number = rows.symbol() * 12 + chunk.symbol();
  CHECK(covers(floor_div(number, 6) * 6 + mod(number, 6), {rows, chunk}, rows.extent * 12));
  CHECK(covers(floor_div(number, 6) + mod(number, 6) * (rows.extent * 2), {rows, chunk},
               rows.extent * 12));
}
