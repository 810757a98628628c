// Scans of a GPU are tile programs: they mean what their kernels do, and a barrier too few is seen.
#include <tuple>

#include "tests/tile/lowered.h"
#include "tiny_compile/schedule/enumerate.h"
#include "tiny_compile/schedule/policy.h"

using namespace tiny_compile;
using namespace tiny_compile::lowered;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string scan(const std::string& op, const std::string& type, const std::string& shape,
                 int axis) {
  return str("graph g(%0 x: ", type, "[", shape,
             "]) {\n  %1: ", op == "cummax" || op == "cummin" ? "i64" : type, "[", shape,
             "] = ", op, " %0 {axis=", axis, "}\n  return %1\n}\n");
}

}  // namespace

TEST_CASE("a scan's threads have a group of 16 elements each", "[tile][scan]") {
  const std::string text = print(tiles_of(scan("cumsum", "f32", "3,9000", 1)));
  INFO(text);
  CHECK_THAT(text, ContainsSubstring("tile cumsum_1 grid 3 block 8 warps") &&
                       ContainsSubstring("for t < 3 {") &&
                       ContainsSubstring("= load x[e + i0*9000] x4") &&
                       ContainsSubstring("= shared1[k + thread*20]") &&
                       ContainsSubstring("store y1[e + i0*9000] x4 = shared1["));
}

TEST_CASE("scans of every operator have the interpreter's bits", "[tile][scan]") {
  for (const char* op : {"cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"}) {
    for (const auto& [shape, axis] : std::vector<std::pair<std::string, int>>{{"3,5000", 1},
                                                                              {"5,1001", 1},
                                                                              {"70,7", 1},
                                                                              {"1,16", 1},
                                                                              {"300,35", 0},
                                                                              {"17,64", 0}}) {
      INFO(op << " of " << shape);
      check_tiles(tiles_of(scan(op, "f32", shape, axis)));
    }
  }
  for (const char* type : {"bf16", "f16", "f64", "i8", "i32"}) {
    INFO(type);
    check_tiles(tiles_of(scan("cumsum", type, "5,1000", 1)));
    check_tiles(tiles_of(scan("cummax", type, "300,35", 0)));
  }
}

TEST_CASE("what is stored beside a scan, and where it lies otherwise", "[tile][scan]") {
  check_tiles(
      tiles_of("graph g(%0 x: f32[9,1040], %1 b: f32[1040]) {\n  %2: f32[9,1040] = expand %1\n"
               "  %3: f32[9,1040] = mul %0, %2\n  %4: f32[9,1040] = cumsum %3 {axis=1}\n"
               "  return %3, %4\n}\n"));
  check_tiles(
      tiles_of("graph g(%0 x: f32[40,300]) {\n  %1: f32[40,300] = flip %0 {axes=[1]}\n"
               "  %2: f32[40,300] = cumsum %1 {axis=1}\n  return %2\n}\n"));
  check_tiles(
      tiles_of("graph g(%0 x: f32[300,40]) {\n  %1: f32[40,300] = permute %0 {axes=[1,0]}\n"
               "  %2: f32[40,300] = cumsum %1 {axis=1}\n  return %2\n}\n"));
}

TEST_CASE("a long row is scanned by many blocks, which have totals and starts",
          "[tile][scan]") {
  for (const char* op : {"cumsum", "cummin", "logcumsumexp"})
    check_tiles(tiles_of(scan(op, "f32", "2,33001", 1)));
}

TEST_CASE("columns of whole groups that fill no whole warps", "[tile][scan]") {
  for (int64_t length : {80, 112, 144, 160, 240}) {
    INFO(length);
    check_tiles(tiles_of(scan("cumsum", "f32", str(length, ",35"), 0)));
  }
}

TEST_CASE("a store beside a scan may lie over what it reads", "[tile][scan]") {
  const Program program = plan_memory(parse_program(R"(program f on cuda {
  input a: f32[3,9001] donated
  input c: f32[3,9001]
  output b: f32[3,9001]
  output y: f32[3,9001]
  kernel k rows(i0: 3) {
    scan y[i0*9001 + j0] for (j0: 9001) = cumsum load c[i0*9001 + j0]
    store b[i0*9001 + j0] for (j0: 9001) = exp(load a[i0*9001 + j0])
  }
  launch k
  return b, y
})"));
  CHECK(program.buffers[2].over == 0);
  check_tiles(lower_to_tiles(program));
}

namespace {

void check_barriers(const Tiles& tiles, size_t count) {
  const std::string text = print(tiles);
  INFO(text);
  CHECK(error_of(text).empty());
  size_t barriers = 0;
  for (size_t at = text.find("barrier\n"); at != std::string::npos;
       at = text.find("barrier\n", at + 1)) {
    INFO("barrier " << barriers++);
    CHECK(!error_of(without(text, "barrier\n", at)).empty());
  }
  CHECK(barriers == count);
}

}  // namespace

TEST_CASE("a scan without one of its barriers is a race", "[tile][scan]") {
  check_barriers(tiles_of(scan("cumsum", "f32", "3,9000", 1)), 4);
  check_barriers(tiles_of(scan("logcumsumexp", "f32", "3,9000", 1)), 5);
  check_barriers(tiles_of(scan("logcumsumexp", "f32", "600,35", 0)), 2);
  check_barriers(tiles_of(scan("cummin", "f32", "5,1001", 1)), 4);
  check_barriers(tiles_of("graph g(%0 x: f32[1100,300]) {\n"
                          "  %1: f32[300,1100] = permute %0 {axes=[1,0]}\n"
                          "  %2: f32[300,1100] = cumsum %1 {axis=1}\n  return %2\n}\n"),
                 4);
}

// --- schedules ------------------------------------------------------------------------------------------

TEST_CASE("no schedule of a scan changes a bit", "[tile][scan]") {
  for (const auto& [op, shape, axis] : std::vector<std::tuple<std::string, std::string, int>>{
           {"cumsum", "5,1001", 1}, {"cummax", "37,300", 0}, {"logcumsumexp", "20,100", 1}}) {
    const Tiles tiles = tiles_of(scan(op, "f32", shape, axis));
    const std::vector<Schedule> all =
        enumerate(tiles.program, tiles.program.kernels[0], size_t{1000});
    CHECK(all.size() > 10);
    for (const Schedule& schedule : all) {
      INFO(op << " of " << shape << ": " << str(schedule));
      Program program = tiles.program;
      program.kernels[0].schedule = schedule;
      CHECK(parse_program(print(program)) == program);
      check_tiles(lower_to_tiles(program));
    }
  }
}

TEST_CASE("a scan fits the shared memory that a machine has", "[tile][scan]") {
  Program program = tiles_of(scan("cummax", "f64", "5,5000", 1)).program;
  CHECK(program.kernels[0].schedule->groups == 256);
  program.machine.block_shared = 48 << 10;
  program.kernels[0].schedule.reset();
  program = schedule(program);
  CHECK(program.kernels[0].schedule->groups == 16);
  check_tiles(lower_to_tiles(program));
}

TEST_CASE("a scan's line is obeyed, or refused with a reason", "[tile][scan]") {
  const auto scheduled = [](const std::string& line) {
    return R"(program f on cuda {
  input x: f32[70,1000]
  output y: f32[70,1000]
  kernel k rows(i0: 70) {
    scan y[i0*1000 + j0] for (j0: 1000) = cumsum load x[i0*1000 + j0]
    schedule )" +
           line + "\n  }\n  launch k\n  return y\n}\n";
  };
  const auto head_of = [&](const std::string& line) {
    const std::string text = print(lower_to_tiles(parse_program(scheduled(line))));
    const size_t at = text.find("tile k ");
    return text.substr(at, text.find('\n', at) - at);
  };
  CHECK(head_of("rows groups=256 beside=2") == "tile k grid 35 block 4 warps {");
  CHECK(head_of("rows beside=3 resident=4") == "tile k grid 24 block 2 warps resident 4 {");
  CHECK(head_of("rows") == "tile k grid 18 block 2 warps {");
  CHECK(head_of("columns beside=32") == "tile k grid 3 block 16 warps {");
  for (const auto& [line, reason] : std::vector<std::pair<std::string, std::string>>{
           {"rows groups=32", "groups=32: 16 or 256 groups of 16 at a time"},
           {"columns groups=256", "groups=256: 16 of columns"},
           {"rows beside=0", "beside=0: 1 to 64 rows side by side, of 16 threads each"},
           {"rows groups=256 beside=17", "beside=17: 1 to 16 rows"},
           {"rows beside=64 resident=3", "a multiprocessor holds at most 64 warps"},
           {"rows each=2", "each=2: for rows that are sorted"}}) {
    INFO(line);
    CHECK_THROWS_WITH(parse_program(scheduled(line)), ContainsSubstring(reason));
  }
}
