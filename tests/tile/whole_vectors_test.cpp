// A loop's last elements are a whole vector where some of them may be done again.
#include "tiny_compile/tile/whole_vectors.h"
#include "tests/catch.h"

using namespace tiny_compile;

namespace {

// y = -x of so many elements, in vectors of 64 bytes; x may be read into an array first.
int64_t lanes(int64_t count, const std::string& dtype = "f32", bool by_array = false) {
  const std::string type = str(dtype, "[", count, "]");
  Program program = parse_program(str(
      "program f {\n  input x: ", type, "\n  output y: ", type, "\n  kernel k rows(i0: ", count,
      ") {\n    store y[i0] = neg(load x[i0])\n  }\n", "  launch k\n  return y\n}\n"));
  program.machine.vector = 64;
  Tile tile;
  tile.kernel = program.kernels[0];
  const Expr i = Expr::index("i0", count);
  Body body = {define(0), define(1), store(1, i, 1)};
  if (by_array) {
    const int array = add_array(tile, {"own", DType::f32, count});
    body = {define(0), set(array, i, 0), define_from(1, array, i), store(1, i, 1)};
  }
  Statement loop = for_range("i0", count, 0, count, body);
  loop.vector = true;
  return lanes_of_last(program, tile, loop).value_or(0);
}

}  // namespace

TEST_CASE("a last vector does elements again where many are left", "[tile][whole_vectors]") {
  CHECK(lanes(100, "f64") == 8);
  CHECK(lanes(108) == 16);
  CHECK(lanes(96) == 0);     // none is left
  CHECK(lanes(98) == 0);     // two are as fast one by one
  CHECK(lanes(12) == 0);     // there is no whole vector
  CHECK(lanes(16012) == 0);  // what is left takes no time
}

TEST_CASE("no element is done again that is read where it was put", "[tile][whole_vectors]") {
  CHECK(lanes(108, "f32", true) == 0);
}
