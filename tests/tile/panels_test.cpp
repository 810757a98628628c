// Products of a CPU are tile programs of packed panels: they mean what their kernels do, however they are cut.
#include <random>

#include "tests/catch.h"
#include "tests/tile/cpp_tiles.h"
#include "tests/tile/edited.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/verify.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

Program program_of(const std::string& graph) {
  return run_pipeline(until(default_pipeline(), "plan_memory"), parse_graph(graph), true)
      .program;
}

std::string product(const std::string& type, int64_t rows, int64_t depth, int64_t columns) {
  const std::string result = str(type, "[", rows, ",", columns, "]");
  return str("graph g(%0 a: ", type, "[", rows, ",", depth, "], %1 b: ", type, "[", depth, ",",
             columns, "]) {\n  %2: ", result, " = matmul %0, %1\n  return %2\n}\n");
}

// Operands that lie the other way, in batches.
std::string transposed(const std::string& type) {
  return str("graph g(%0 a: ", type, "[2,70,13], %1 b: ", type, "[2,37,70]) {\n  %2: ", type,
             "[2,13,70] = permute %0 {axes=[0,2,1]}\n  %3: ", type,
             "[2,70,37] = permute %1 {axes=[0,2,1]}\n  %4: ", type,
             "[2,13,37] = matmul %2, %3\n  return %4\n}\n");
}

Program with(Program program, const Schedule& schedule) {
  for (Kernel& kernel : program.kernels) kernel.schedule = schedule;
  return program;
}

Schedule cut(int down, int across, int panels_down, int panels_across, int64_t depth, int kept,
             bool packs_rows = true) {
  Schedule s{.strategy = Strategy::Tiles};
  s.down = down, s.across = across, s.depth = depth, s.kept = kept;
  s.panels_down = panels_down, s.panels_across = panels_across, s.packs_rows = packs_rows;
  return s;
}

std::string why_illegal_so(Program program, const Schedule& schedule) {
  program = with(std::move(program), schedule);
  return why_illegal(program, program.kernels[0]);
}

// By the tile's interpreter and by the compiler, as the kernel says.
void check_bits(const Program& program) {
  const Tiles tiles = lower_to_tiles(program);
  REQUIRE(tiles.of_kernel.at(0).has_value());
  REQUIRE_NOTHROW(verify(tiles));
  CHECK(parse_tiles(print(tiles)) == tiles);
  const std::vector<Tensor> inputs = seeded_inputs(program, 3, {}),
                            want = interpret(program, inputs);
  CHECK(all_same(interpret(tiles, inputs), want));
  CHECK(all_same(run(tiles, inputs), want));
}

}  // namespace

TEST_CASE("products have the interpreter's bits, whatever they are of", "[tile][panels]") {
  for (const char* type : {"f32", "f64", "bf16", "f16", "i64", "i32", "u8"}) {
    INFO(type);
    check_bits(program_of(product(type, 37, 29, 51)));
    check_bits(program_of(transposed(type)));
  }
}

TEST_CASE("no cut of a product changes a bit", "[tile][panels]") {
  for (const Program& program :
       {program_of(product("f32", 45, 70, 67)), program_of(transposed("bf16"))}) {
    for (const Schedule& s :
         {cut(1, 16, 1, 1, 1, 0), cut(3, 16, 2, 3, 9, 1), cut(12, 32, 4, 4, 512, 2),
          cut(5, 64, 3, 1, 64, 2), cut(16, 16, 16, 16, 33, 0)}) {
      INFO(str(s));
      CHECK(why_illegal_so(program, s) == "");
      check_bits(with(program, s));
    }
  }
  check_bits(with(program_of(product("f32", 45, 70, 67)), cut(7, 16, 2, 2, 30, 1, false)));
}

TEST_CASE("random cuts of random products have their bits", "[tile][panels]") {
  std::mt19937 random(41);
  const auto draw = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  int legal = 0;
  for (int time = 0; time < 12; time++) {
    const char* const types[] = {"f32", "bf16", "i32", "f64"};
    const int64_t depth = draw(1, 90);
    const Program program =
        program_of(product(types[draw(0, 3)], draw(5, 60), depth, draw(8, 90)));
    const auto small = [&](int64_t least, int64_t most) {
      return static_cast<int>(draw(least, most));
    };
    const Schedule s = cut(small(1, 16), 16 * small(1, 4), small(1, 4), small(1, 4),
                           draw(1, depth), small(0, 2), draw(0, 3) > 0);
    if (!why_illegal_so(program, s).empty()) continue;
    INFO(print(with(program, s)));
    check_bits(with(program, s));
    legal++;
  }
  CHECK(legal >= 6);
}

TEST_CASE("a product whose rows run through several axes packs runs of them",
          "[tile][panels]") {
  const std::string graph =
      "graph g(%0 a: f32[3,40,9,5], %1 b: f32[40,21]) {\n"
      "  %2: f32[3,9,5,40] = permute %0 {axes=[0,2,3,1]}\n"
      "  %3: f32[135,40] = reshape %2\n"
      "  %4: f32[135,21] = matmul %3, %1\n"
      "  %5: f32[3,9,5,21] = reshape %4\n"
      "  %6: f32[3,21,9,5] = permute %5 {axes=[0,3,1,2]}\n"
      "  %7: f32[3,21,9,5] = exp %6\n  return %7\n}\n";
  const Program program = program_of(graph);
  check_bits(program);
  check_bits(with(program, cut(4, 16, 3, 2, 11, 2)));
}

TEST_CASE("panels are multiplied by vectors as wide as the machine's", "[tile][panels]") {
  for (const int bytes : {16, 32, 64}) {
    std::string text = print(program_of(product("f32", 37, 29, 51)));
    const size_t head = text.find(" {");
    text.insert(head, str(" for mine cores=1 vector=", bytes));
    text.erase(text.find("    schedule"),
               text.find('\n', text.find("    schedule")) + 1 - text.find("    schedule"));
    const Program program = schedule(parse_program(text));
    CHECK_THAT(emit(lower_to_tiles(program)).text,
               ContainsSubstring(str("vector_size(", bytes, ")")));
    check_bits(program);
  }
}

TEST_CASE("the tile says what stays, what is packed and what registers hold",
          "[tile][panels]") {
  const Program program =
      with(program_of(product("f32", 48, 70, 64)), cut(12, 32, 2, 1, 70, 2));
  const std::string text = print(lower_to_tiles(program));
  INFO(text);
  CHECK_THAT(text, ContainsSubstring("units 4") && ContainsSubstring("kept tags: i64[3]") &&
                       ContainsSubstring("memory left: f32[3360]") &&
                       ContainsSubstring("tags[0] = ") &&
                       ContainsSubstring("for k < 70 multiplied {") &&
                       ContainsSubstring("for i < 12 unrolled {"));
}

TEST_CASE("cuts that registers or memory do not hold are refused", "[tile][panels]") {
  const Program program = program_of(product("f32", 48, 70, 64));
  const auto why = [&](const Schedule& s) { return why_illegal_so(program, s); };
  CHECK_THAT(why(cut(17, 16, 1, 1, 64, 0)), ContainsSubstring("down=17: 1 to 16"));
  CHECK_THAT(why(cut(4, 12, 1, 1, 64, 0)), ContainsSubstring("across=12: 1 to 8 vectors of"));
  CHECK_THAT(why(cut(4, 16, 0, 1, 64, 0)), ContainsSubstring("panels_down=0: 1 to 4096"));
  CHECK_THAT(why(cut(4, 16, 1, 1, 0, 0)), ContainsSubstring("depth=0: 1 to 65536"));
  CHECK_THAT(why(cut(4, 16, 1, 1, 64, 3)), ContainsSubstring("kept=3: 0, 1 or 2"));
  CHECK_THAT(why(cut(4, 16, 1, 1, 64, 2, false)), ContainsSubstring("rows that are packed"));
  CHECK_THAT(
      why_illegal_so(program_of(product("bf16", 48, 70, 64)), cut(4, 16, 1, 1, 64, 0, false)),
      ContainsSubstring("packs_rows=0: 4 rows or more that are floats as they lie"));
  CHECK_THAT(why(cut(16, 64, 4096, 4096, 1, 0)), ContainsSubstring("bytes of a thread"));
  Schedule of_rows{.strategy = Strategy::Rows};
  of_rows.across = 32;
  CHECK_THAT(why(of_rows), ContainsSubstring("across=32 is for tiles on the CPU"));
}

TEST_CASE("a loop that is multiplied multiplies panels, or is refused", "[tile][panels]") {
  const Program program =
      with(program_of(product("f32", 48, 70, 64)), cut(12, 32, 2, 1, 70, 0));
  const std::string text = print(lower_to_tiles(program));
  const std::string none = "multiplies no panels";
  INFO(text);
  check_refused(text, "multiplied", "vector multiplied", "a loop in one of vectors");
  check_refused(text, "fma(", "add(", "");
  check_refused(text, "right[column_panel*2240 + k*32", "right[column_panel*2240 + k*31", none);
  check_refused(text, "for l < 32 vector {\n                  $",
                "for l < 32 {\n                  $", none);
  check_refused(text, "for e < 384 vector {",
                "$90 = sums[0]\nfor e < 384 vector {\n$90 = sums[0]\n",
                "reads a value that a body around it has");
  check_refused(text, "  memory right", "  kept many: i64[2000000]\n  memory right",
                "integers are, at most 1048576");
  check_refused(text, "sums: f32[384]", "sums: f32[383]", "leaves the array's 383 elements");
}

TEST_CASE("what a thread keeps is packed anew for other units only", "[tile][panels]") {
  const Program program =
      with(program_of(product("f32", 96, 33, 64)), cut(12, 16, 1, 1, 33, 1));
  std::string text = print(lower_to_tiles(program));
  const std::vector<Tensor> inputs = seeded_inputs(program, 3, {});
  const auto bits_of = [&](const std::string& own) {
    return same_bits(interpret(parse_tiles(own), inputs)[0], interpret(program, inputs)[0]);
  };
  CHECK(bits_of(text));
  CHECK_FALSE(bits_of(replaced(text, "= index[columns + 1]", "= index[0*columns + 1]")));
}
