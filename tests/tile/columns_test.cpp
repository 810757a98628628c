// Columns that are reduced on a CPU are tile programs too: they mean what their kernels do, whichever part
// of a strip a thread is handed, and read back as they print.
#include <limits>

#include "tests/catch.h"
#include "tests/tile/cpp_tiles.h"
#include "tests/tile/edited.h"
#include "tests/tile/random_points.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/verify.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// y = op of x's columns, and z = x - y where that is of the same dtype; of `outer` such planes.
Program reduced(const std::string& op, const std::string& dtype, int outer, int length,
                int columns, const std::string& result, const std::string& schedule) {
  const bool same = result == dtype && dtype != "bool";
  const std::string type = str(dtype, "[", outer * length * columns, "]"),
                    at = str("x[i0*", length * columns, " + j0*", columns, " + i1]");
  return parse_program(str("program f {\n  input x: ", type, "\n  output y: ", result, "[",
                           outer * columns, "]\n", same ? "  output z: " + type + "\n" : "",
                           "  kernel k rows(i0: ", outer, ", i1: ", columns,
                           ") {\n    r0: ", result, " = ", op, "(j0: ", length, ") load ", at,
                           "\n    store y[i0*", columns, " + i1] = r0\n",
                           same ? str("    store z", at.substr(1), " for (j0: ", length,
                                      ") = sub(load ", at, ", r0)\n")
                                : "",
                           "    schedule columns ", schedule, "\n  }\n  launch k\n  return y",
                           same ? ", z" : "", "\n}\n"));
}

void check_columns(const Program& program, const std::vector<Tensor>& inputs, bool compiles) {
  const Tiles tiles = lower_to_tiles(program);
  REQUIRE(has_tile(tiles));
  CHECK_NOTHROW(verify(tiles));
  CHECK(parse_tiles(print(tiles)) == tiles);
  const std::vector<Tensor> want = interpret(program, inputs);
  CHECK(all_same(interpret(tiles, inputs), want));
  if (compiles) CHECK(all_same(run(tiles, inputs), want));
}

void check_columns(const Program& program, bool compiles) {
  check_columns(program, seeded_inputs(program, 3, {}), compiles);
}

}  // namespace

TEST_CASE("columns go strip by strip and take eight rows at a time", "[tile][columns]") {
  const std::string text =
      print(lower_to_tiles(reduced("sum", "f32", 1, 2500, 200, "f32", "lanes=128")));
  CHECK_THAT(text, ContainsSubstring("tile k units 7 together 4") &&
                       ContainsSubstring("stack_f32: f32[1024]") &&
                       ContainsSubstring("for l: 128 = 0 .. -start + stop vector") &&
                       ContainsSubstring("for round < 16") &&
                       ContainsSubstring("if number < 4") &&
                       ContainsSubstring("for merged: 7 = 0 .. ") &&
                       ContainsSubstring("r0 = r0_of_row[l]"));
}

TEST_CASE("columns' tiles have the bits of their kernels", "[tile][columns]") {
  const std::pair<const char*, const char*> kinds[] = {
      {"sum", "f32"},  {"sum_exp", "f32"}, {"max", "f32"}, {"min", "f64"},
      {"prod", "f64"}, {"sum", "bf16"},    {"max", "f16"}, {"sum_exp", "f64"}};
  for (const auto& [op, dtype] : kinds) {
    for (int length : {1, 7, 16, 17, 100, 1001, 1024, 1025, 2100}) {
      for (int outer : {1, 3}) {
        INFO(op << " " << dtype << " " << length << " " << outer);
        check_columns(reduced(op, dtype, outer, length, 37, dtype, "lanes=16"),
                      outer == 3 && (length == 7 || length == 1001));
      }
    }
  }
}

TEST_CASE("columns of many chunks are reduced chunk by chunk", "[tile][columns]") {
  for (const char* op : {"sum", "sum_exp", "max"}) {
    INFO(op);
    check_columns(reduced(op, "f32", 1, 17 * 1024 + 5, 9, "f32", "lanes=16"), true);
  }
}

TEST_CASE("what is exact goes in any order down columns", "[tile][columns]") {
  const std::tuple<const char*, const char*, const char*> kinds[] = {
      {"sum", "i32", "i64"},     {"prod", "i32", "i64"},  {"sum", "bool", "i64"},
      {"max", "i8", "i8"},       {"any", "bool", "bool"}, {"argmax", "f32", "i64"},
      {"argmin", "bf16", "i64"}, {"argmax", "i32", "i64"}};
  for (const auto& [op, dtype, result] : kinds) {
    for (int length : {1, 9, 1001}) {
      INFO(op << " " << dtype << " " << length);
      check_columns(reduced(op, dtype, 2, length, 70, result, "lanes=64"), length > 1);
    }
  }
}

TEST_CASE("NaN and zeros of either sign stand where rows have them", "[tile][columns]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  for (const char* op : {"max", "min", "argmax", "argmin", "sum", "sum_exp", "prod"}) {
    for (int length : {3, 40, 1030}) {
      INFO(op << " " << length);
      const bool is_arg = std::string(op).starts_with("arg");
      std::vector<float> values;
      for (int n = 0; n < length * 10; n++) {
        const int column = n % 10, row = n / 10;
        values.push_back(column == 0   ? (row % 2 ? 0.0f : -0.0f)
                         : column == 1 ? -0.0f
                         : column == 2 ? (row == 2 ? nan : 1.0f)
                         : column == 3 ? -inf
                         : column == 4 ? inf
                         : column == 5 ? nan
                                       : static_cast<float>(row % 7 - 3));
      }
      check_columns(reduced(op, "f32", 1, length, 10, is_arg ? "i64" : "f32", "lanes=16"),
                    {from_vector(values)}, length == 40);
    }
  }
}

TEST_CASE("one tile of columns serves all sizes", "[tile][columns]") {
  for (const char* op : {"sum", "max", "sum_exp", "argmax"}) {
    const bool is_arg = std::string(op) == "argmax";
    const int most = std::string(op) == "sum_exp" ? 1024 : 6000;
    const Program program = parse_program(
        str("program f[n: 1..", most,
            ", m: 1..64] {\n  input x: f32[n,m]\n  output y: ", is_arg ? "i64" : "f32",
            "[m]\n  kernel k rows(i0: m) {\n    r0: ", is_arg ? "i64" : "f32", " = ", op,
            "(j0: n) load x[j0*m + i0]\n",
            "    store y[i0] = r0\n    schedule columns lanes=32\n  }\n  launch k\n  return "
            "y\n}\n"));
    const Tiles tiles = lower_to_tiles(program);
    CHECK_NOTHROW(verify(tiles));
    CHECK(parse_tiles(print(tiles)) == tiles);
    for (const auto& shape :
         std::vector<Sizes>{{1, 1}, {37, 33}, {1023, 9}, {1024, 64}, {1025, 5}, {5000, 8}}) {
      if (shape[0] > most) continue;
      INFO(op << " " << shape[0]);
      const std::vector<Tensor> inputs = {randn(shape)}, want = interpret(program, inputs);
      CHECK(all_same(interpret(tiles, inputs), want));
      if (shape[0] < 1024) CHECK(all_same(run(tiles, inputs), want));
    }
  }
}

TEST_CASE("registers that no element of a column is in have no exponentials",
          "[tile][columns]") {
  const auto of = [](int length) {
    return parse_program(str("program f on cuda {\n  input x: f32[", length,
                             ",16]\n  output y: f32[16]\n",
                             "  kernel k rows(i0: 16) {\n    r0: f32 = sum_exp(j0: ", length,
                             ") load x[j0*16 + i0]\n    store y[i0] = r0\n",
                             "    schedule layouts rows grid · lane 16 loop register 64 · warp "
                             "16 · lane 2 from 16\n",
                             "  }\n  launch k\n  return y\n}\n"));
  };
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const int length : {2, 7, 1001, 1280, 2048}) {
    const Program program = of(length);
    const Tiles tiles = lower_to_tiles(program);
    INFO(length);
    CHECK((print(tiles).find("else") == std::string::npos) == (length == 2048));
    Tensor x = randn({length, 16});
    for (int column = 0; column < 3; column++)
      x = concat(std::vector<Tensor>{x.slice(1, 1, 16), full({length, 1}, column == 0   ? inf
                                                                          : column == 1 ? -inf
                                                                                        : nan)},
                 1);
    const std::vector<Tensor> inputs = {x};
    CHECK(all_same(interpret(tiles, inputs), interpret(program, inputs)));
  }
}

TEST_CASE("several loops are one down columns", "[tile][columns]") {
  check_columns(
      parse_program("program f {\n  input x: f32[12000]\n  output y: f32[40]\n"
                    "  kernel k rows(i0: 40) {\n"
                    "    r0: f32 = sum(j0: 30, j1: 10) load x[j1*1200 + j0*40 + i0]\n"
                    "    r1: f32 = sum(j0: 30, j1: 10) mul(sub(load x[j1*1200 + j0*40 + i0], "
                    "r0), sub(load x[j1*1200 + j0*40 + i0], r0))\n"
                    "    store y[i0] = r1\n    schedule columns lanes=16\n  }\n  launch k\n"
                    "  return y\n}\n"),
      true);
}

TEST_CASE("columns that also scan reduce lane by lane", "[tile][columns]") {
  const Program program = parse_program(
      "program f {\n  input x: f32[60000]\n  input h: bf16[60000]\n  output y: f32[60000]\n"
      "  output z: f32[60000]\n  output p: i64[20]\n  kernel k rows(i0: 20) {\n"
      "    $0 = load x[i0 + j0*20]\n    r0: f32 = sum(j0: 3000) $0\n"
      "    r1: bf16 = sum(j0: 3000) load h[i0 + j0*20]\n"
      "    r2: i64 = argmax(j0: 3000) sub($0, r0)\n"
      "    scan y[i0 + j0*20] for (j0: 3000) = cumsum mul($0, r0)\n"
      "    r4: f32 = sum_exp(j0: 3000) $0\n"
      "    store z[i0 + j0*20] for (j0: 3000) = add(sub(add($0, cast<f32>(r1)), r4), r0)\n"
      "    store p[i0] = r2\n    schedule columns lanes=16\n  }\n  launch k\n"
      "  return y, z, p\n}\n");
  check_columns(program, true);
}

TEST_CASE("strips have no more lanes than L2 has room for", "[tile][columns]") {
  const auto strips = [](const char* lanes) {
    return reduced("sum", "f32", 1, 1 << 20, 1024, "f32", lanes);
  };
  CHECK_NOTHROW(verify(lower_to_tiles(strips("lanes=128"))));
  CHECK_THROWS_WITH(
      strips("lanes=1024"),
      ContainsSubstring("schedule columns lanes=1024: arrays of 4231168 bytes, L2 "
                        "has 1048576"));
}

TEST_CASE("strips that leave an array or a buffer are refused", "[tile][columns]") {
  const Tiles tiles = lower_to_tiles(reduced("argmax", "f32", 1, 100, 200, "i64", "lanes=128"));
  const std::string text = print(tiles);
  const auto refused = [&](const std::string& old, const std::string& by,
                           const std::string& why) { check_refused(text, old, by, why); };
  refused("best_f32: f32[128]", "best_f32: f32[127]", "leaves the array's 127");
  refused("x128 of -start + stop", "x128 of -start + stop + 1", "leaves the buffer's");
  refused("0 .. -start + stop vector", "0 .. -start + stop + 1 vector", "not always in 0..127");
}

TEST_CASE("random graphs' tiles of columns are sound, and mean what they say",
          "[tile][columns]") {
  int seen = 0;
  for (uint64_t seed = 2000; seed <= 2150; seed++) {
    INFO("seed " << seed);
    const Program program = random_points(seed, 8);
    const Tiles tiles = lower_to_tiles(program);
    bool has_columns = false;
    for (size_t k = 0; k < tiles.of_kernel.size(); k++)
      has_columns |=
          tiles.of_kernel[k] && program.kernels[k].schedule->strategy == Strategy::Columns;
    if (!has_columns) continue;
    seen++;
    CHECK_NOTHROW(verify(tiles));
    CHECK(parse_tiles(print(tiles)) == tiles);
    const std::vector<Tensor> inputs = seeded_inputs(program, seed, {});
    try {
      const std::vector<Tensor> want = interpret(program, inputs);
      CHECK(all_same(interpret(tiles, inputs), want));
    } catch (const Error&) {  // of an index out of range
      CHECK_THROWS_AS(interpret(tiles, inputs), Error);
    }
  }
  CHECK(seen > 5);
}
