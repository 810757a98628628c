// Operands that lie across the loops are read by way of squares: the tile says how, means what its
// kernel does, and is refused where a loop that is transposed transposes nothing.
#include "tests/catch.h"
#include "tests/tile/cpp_tiles.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/verify.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// z = x.t() + y of some dtype, in batches.
Program added(const std::string& dtype, int batches, int rows, int columns,
              const std::string& schedule = "", const std::string& machine = "") {
  const int all = batches * rows * columns;
  const std::string type = str(dtype, "[", all, "]");
  return parse_program(str("program f", machine, " {\n  input x: ", type, "\n  input y: ", type,
                           "\n  output z: ", type, "\n  kernel k rows(i0: ", batches,
                           ", i1: ", rows, ", i2: ", columns, ") {\n    store z[i0*",
                           rows * columns, " + i1*", columns, " + i2] = add(load x[i0*",
                           rows * columns, " + i2*", rows, " + i1], load y[i0*", rows * columns,
                           " + i1*", columns, " + i2])\n    schedule pointwise", schedule,
                           "\n  }\n  launch k\n  return z\n}\n"));
}

std::vector<Tensor> run_transposed(const Tiles& tiles, const std::vector<Tensor>& inputs) {
  const Source source = emit(tiles);
  CHECK_THAT(source.text, ContainsSubstring("tc_turn("));
  return run(tiles, source, inputs);
}

}  // namespace

TEST_CASE("what lies across is transposed in squares and read from there",
          "[tile][points][cpp_transposed]") {
  const Tiles tiles = lower_to_tiles(added("f32", 2, 300, 150));
  CHECK_THAT(print(tiles),
             ContainsSubstring("tile k units 12 {\n  l2 transposed0: f32[16384]\n") &&
                 ContainsSubstring("for i1: 300 = first_row .. stop_row transposed {\n"
                                   "      row: 128 = -first_row + i1\n"
                                   "      for i2: 150 = first_column .. stop_column vector {\n"
                                   "        column: 128 = -first_column + i2\n"
                                   "        $0 = load x[i0*45000 + i1 + i2*300]\n") &&
                 ContainsSubstring("        $0 = transposed0["));
}

TEST_CASE("squares have the bits of their kernels", "[tile][points][cpp_transposed]") {
  for (const char* dtype : {"f32", "f64", "bf16", "f16", "i8", "bool"}) {
    for (const char* schedule : {"", " stream=1"}) {
      for (const auto& [rows, columns] : {std::pair{150, 300}, {128, 16}, {16, 129}}) {
        INFO(dtype << schedule << " " << rows << " " << columns);
        const bool is_bool = std::string(dtype) == "bool";
        std::string text = print(added(is_bool ? "i8" : dtype, 2, rows, columns, schedule));
        for (size_t at = 0; is_bool && (at = text.find("i8[")) != std::string::npos;)
          text.replace(at, 2, "bool");
        for (size_t at = 0; is_bool && (at = text.find("add(")) != std::string::npos;)
          text.replace(at, 3, "bitwise_xor");
        const Program program = parse_program(text);
        const Tiles tiles = lower_to_tiles(program);
        CHECK_NOTHROW(verify(tiles));
        CHECK(parse_tiles(print(tiles)) == tiles);
        const std::vector<Tensor> inputs = seeded_inputs(program, 5, {}),
                                  want = interpret(program, inputs);
        CHECK(same_bits(interpret(tiles, inputs)[0], want[0]));
        CHECK(same_bits(run_transposed(tiles, inputs)[0], want[0]));
      }
    }
  }
}

TEST_CASE("squares are transposed by vectors as wide as the machine's",
          "[tile][points][cpp_transposed]") {
  for (const int bytes : {16, 32, 64}) {
    for (const char* dtype : {"f32", "bf16", "i8"}) {
      INFO(dtype << " " << bytes);
      const Tiles tiles = lower_to_tiles(
          added(dtype, 1, 135, 300, "", str(" for mine cores=1 vector=", bytes)));
      const std::vector<Tensor> inputs = seeded_inputs(tiles.program, 5, {});
      CHECK_THAT(emit(tiles).text, ContainsSubstring(str("vector_size(", bytes, ")")));
      // Shuffles of 64 bytes that the machine has no instruction for take a compiler a minute.
      if (bytes > this_cpu().vector && std::string(dtype) == "i8") continue;
      CHECK(same_bits(run_transposed(tiles, inputs)[0], interpret(tiles.program, inputs)[0]));
    }
  }
}

TEST_CASE("squares that L2 does not hold are not made", "[tile][points][cpp_transposed]") {
  const auto text_on = [](const std::string& machine, const char* schedule) {
    const Tiles tiles = lower_to_tiles(added("f32", 1, 300, 150, schedule, " for " + machine));
    CHECK_NOTHROW(verify(tiles));
    return print(tiles);
  };
  const std::string large = "mine cores=1 l2=65536", small = "mine cores=1 l2=65535";
  CHECK_THAT(text_on(large, ""), ContainsSubstring("transposed"));
  CHECK_THAT(text_on(large, " keep=0"), !ContainsSubstring("transposed"));
  CHECK_THAT(text_on(small, " keep=0"), !ContainsSubstring("transposed"));
  CHECK_THROWS_WITH(text_on(small, ""),
                    ContainsSubstring("schedule pointwise: squares of what lies across take "
                                      "65536 bytes, L2 has 65535; keep=0 reads it where it"));
  Program unscheduled = added("f32", 1, 300, 150, "", " for " + large);
  for (const std::string& machine : {large, small}) {
    unscheduled.machine = parse_machine(machine);
    unscheduled.kernels[0].schedule = {};
    CHECK(schedule(unscheduled).kernels[0].schedule->keep == (machine == large));
  }
}

TEST_CASE("a loop that is transposed transposes a square, or is refused",
          "[tile][points][cpp_transposed]") {
  const Tiles tiles = lower_to_tiles(added("f32", 2, 300, 150));
  const std::string text = print(tiles);
  const auto edited = [&](const std::string& old, const std::string& by) {
    const size_t at = text.find(old);
    REQUIRE(at != std::string::npos);
    return std::string(text).replace(at, old.size(), by);
  };
  const auto refused = [&](const std::string& old, const std::string& by,
                           const std::string& why = "transposes no square") {
    INFO(by);
    CHECK_THROWS_WITH(parse_tiles(edited(old, by)),
                      ContainsSubstring("line ") && ContainsSubstring(why));
  };
  refused("stop_column vector", "stop_column");
  refused("stop_row transposed", "stop_row vector transposed", "a loop in one of vectors");
  refused("min(first_column + 128, 150)", "150");
  refused("i1 + i2*300]\n        transposed0", "i1/2 + i2*300]\n        transposed0");
  refused("i1 + i2*300]\n        transposed0", "i1*2 + i2]\n        transposed0");
  refused("= $0\n", "= $0\n        transposed0[0] = $0\n");
  refused("transposed0[", "transposed0[0*");
  refused("first_column .. stop_column vector",
          "max(first_column, i1 - 200) .. stop_column vector");
  refused("transposed0: f32[16384]", "transposed0: f32[16383]",
          "leaves the array's 16383 elements");
  refused("l2 transposed0: f32[16384]", "l2 transposed0: f32[300000]",
          "bytes in L2, which has 1048576");

  // Part of a square is one too.
  const Tiles part = parse_tiles(
      edited("i1: 300 = first_row .. stop_row transposed", "i1: 300 = first_row .. stop_row"));
  const std::vector<Tensor> inputs = seeded_inputs(tiles.program, 5, {});
  CHECK(same_bits(interpret(part, inputs)[0], interpret(tiles, inputs)[0]));
  CHECK(emit(part).text.find("tc_turn(") == std::string::npos);
}
