// What the cost model says, beside what was measured (tests/bench/NOTES.md).
#include "tiny_compile/schedule/cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/catch.h"
#include "tests/schedule/as_scheduled.h"
#include "tiny_compile/loops/point_packs.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

Program softmax(int64_t outer, int64_t count, int64_t rows) {
  const std::string whole = str(": f32[", outer, ",", count, ",", rows, "] = "),
                    one = str(": f32[", outer, ",1,", rows, "] = "),
                    flat = str(": f32[", outer, ",", rows, "] = ");
  const std::string text =
      str("graph f(%0 x: f32[", outer, ",", count, ",", rows, "]) {\n  %1", flat,
          "max %0 {axes=[1]}\n  %2", one, "reshape %1\n  %3", whole, "expand %2\n  %4", whole,
          "sub %0, %3\n  %5", whole, "exp %4\n  %6", flat, "sum %5 {axes=[1]}\n  %7", one,
          "reshape %6\n  %8", whole, "expand %7\n  %9", whole, "div %5, %8\n  return %9\n}\n");
  return as_scheduled(text);
}

Layout lanes_from(int64_t registers, int64_t warps, int64_t lanes, int64_t from) {
  Layout loop = {{Level::Register, registers}, {Level::Warp, warps}};
  if (lanes > 1) loop.push_back({Level::Lane, lanes, from});
  return loop;
}

// Whole lines of 32 lanes, or pieces of 64 bytes: four lanes of four elements.
double cost(const Program& program, bool pieces, int64_t warps) {
  Kernel kernel = program.kernels[0];
  Schedule s;
  s.strategy = Strategy::Layouts;
  s.rows = pieces ? Layout{{Level::Grid}, {Level::Lane, 4}, {Level::Vector, 4}}
                  : Layout{{Level::Grid}, {Level::Lane, 32}};
  s.loops = {pieces ? lanes_from(8, warps, 8, 4) : lanes_from(32, warps, 1, 1)};
  kernel.schedule = s;
  return estimate(program, kernel).total();
}

double cost_of_columns(const Program& program) {
  Kernel kernel = program.kernels[0];
  kernel.schedule = Schedule{};
  kernel.schedule->strategy = Strategy::Columns;
  return estimate(program, kernel).total();
}

}  // namespace

// The notes give the lengths of the columns and their times, not the other sizes: orders are compared.
TEST_CASE("the model orders softmax down columns as an H200 does", "[cost]") {
  const Program of512 = softmax(64, 512, 1024), of1000 = softmax(8, 1000, 4096),
                of196 = softmax(64, 196, 2048);
  REQUIRE(of512.kernels.size() == 1);
  CHECK(cost(of512, false, 16) < cost(of512, true, 8));     // .084 ms, .093
  CHECK(cost(of1000, true, 16) < cost(of1000, false, 32));  // .120, .131
  CHECK(cost(of196, false, 8) < cost(of196, true, 4));      // .086, .099
  for (const Program& program : {of512, of1000, of196})  // 1.3 to 1.7 times the layouts' time
    CHECK(cost_of_columns(program) > 1.2 * estimate(program, program.kernels[0]).total());
}

// Measured, pairs of columns take .86 of the time of what the model likes best (tests/bench/NOTES.md, "Next to the
// policy's layouts").
TEST_CASE("the policy's layouts are among the model's best", "[cost]") {
  for (const Program& program :
       {softmax(64, 512, 1024), softmax(8, 1000, 4096), softmax(64, 196, 2048)}) {
    const Kernel& kernel = program.kernels[0];
    const std::vector<Priced> all = ranked(program, kernel);
    INFO(explain_schedules(program)[0]);
    REQUIRE(kernel.schedule->strategy == Strategy::Layouts);
    CHECK(estimate(program, kernel).total() < 1.4 * all[0].microseconds);
    CHECK(all[0].microseconds <= all[1].microseconds);
  }
}

TEST_CASE("reductions that read once cost what an H200 took, within a sixth", "[cost]") {
  const auto microseconds = [](const std::string& op, const std::string& type, int axis,
                               const std::string& result) {
    const Program program =
        as_scheduled(str("graph f(%0 x: ", type, ") {\n  %1: ", result, " = ", op,
                         " %0 {axes=[", axis, "]}\n  return %1\n}\n"));
    double sum = 0;
    for (const Kernel& kernel : program.kernels) sum += estimate(program, kernel).total();
    return sum;
  };
  const auto is_near = [](double got, double measured) {
    return std::abs(got / measured - 1) < 1.0 / 6;
  };
  CHECK(is_near(microseconds("max", "bf16[2048,128,1280]", 1, "bf16[2048,1280]"), 167));
  CHECK(is_near(microseconds("sum", "f32[65536,1000]", 1, "f32[65536]"), 70));
  CHECK(is_near(microseconds("sum", "f32[16384,4096]", 0, "f32[4096]"), 65));
}

TEST_CASE("a copy of much memory is bound by its bytes, one of little by its launch",
          "[cost]") {
  const auto of = [](const std::string& type, Target target) {
    const Program program = as_scheduled(
        "graph f(%0 x: " + type + ") {\n  %1: " + type + " = neg %0\n  return %1\n}\n", target);
    return estimate(program, program.kernels[0]);
  };
  CHECK(bound_of(of("f32[67108864]", Target::Cuda)) == "bytes");
  CHECK(bound_of(of("f32[64]", Target::Cuda)) == "launch");
  CHECK(bound_of(of("f32[67108864]", Target::Cpp)) == "bytes");
  const Estimate large = of("f32[67108864]", Target::Cuda);  // 512 MiB at 4.25 TB/s: 126 us
  CHECK(large.bytes > 120);
  CHECK(large.bytes < 130);
}

TEST_CASE("the model prices the tiles of a product as an H100 does", "[cost]") {
  // n * n * n of f32: microseconds by 2 x 2 results a thread and 32 of k, 4 x 4 and 16, 8 x 8 and 8.
  for (const auto& [n, measured] : {std::pair{256, std::array{12.5, 21.3, 45.9}},
                                    {1024, std::array{149.1, 87.6, 148.8}},
                                    {2048, std::array{1093.6, 604.9, 499.4}}}) {
    const std::string type = str("f32[", n, ",", n, "]");
    const Program program =
        as_scheduled(str("graph f(%0 x: ", type, ", %1 y: ", type, ") {\n  %2: ", type,
                         " = matmul %0, %1\n  return %2\n}\n"));
    Kernel kernel = program.kernels[0];
    REQUIRE(kernel.schedule->strategy == Strategy::Tiles);
    const auto fastest = std::min_element(measured.begin(), measured.end());
    for (size_t k = 0; k < 3; k++) {
      kernel.schedule =
          Schedule{.strategy = Strategy::Tiles, .each = 2 << k, .slice = 64 / (2 << k)};
      const double priced = estimate(program, kernel).total();
      INFO(n << " by " << (2 << k) << ": " << priced);
      CHECK(std::abs(priced / measured[k] - 1) < 0.3);
      CHECK((kernel.schedule == program.kernels[0].schedule) ==
            (measured.begin() + k == fastest));
    }
  }
}

TEST_CASE("the model prefers whole accesses, and blocks that fill a multiprocessor", "[cost]") {
  const Program program = as_scheduled(
      "graph f(%0 x: f32[67108864]) {\n  %1: f32[67108864] = neg %0\n  return %1\n}\n");
  Kernel kernel = program.kernels[0];
  const auto price = [&](int64_t warps, int64_t vector) {
    kernel.schedule->rows = layout_of_points(1, warps, vector);
    return estimate(program, kernel).total();
  };
  CHECK(price(8, 4) < price(8, 1));
  CHECK(price(8, 1) < price(1, 1));  // 32 blocks of 32 threads are half of what it holds
}

TEST_CASE("the model sees neighbours behind quotients, and single elements far apart",
          "[cost]") {
  const auto price = [](int64_t width) {  // rows of two runs each
    const std::string one = str("f32[2,5000,", width, "]"),
                      two = str("f32[5000,2,", width, "]");
    const Program program = as_scheduled(
        str("graph f(%0 x: ", one, ") {\n  %1: ", two,
            " = permute %0 {axes=[1,0,2]}\n  %2: f32[5000,", 2 * width,
            "] = reshape %1\n  %3: f32[5000] = sum %2 {axes=[1]}\n  return %3\n}\n"));
    return estimate(program, program.kernels[0]).total();
  };
  CHECK(price(1001) < 1.2 * price(1000));
  CHECK(price(1001) > 0.9 * price(1000));
  // Halves of heads that are summed down columns: each of a warp's lanes is a row, 128 bytes apart.
  const Program heads = parse_program(
      "program f on cuda {\n  input x: bf16[6291456]\n  output y: bf16[768]\n"
      "  kernel k rows(i0: 768) {\n    r0: bf16 = sum(j0: 8, j1: 1024) "
      "load x[j0*786432 + j1*64 + (i0/64)*65536 + i0%64]\n    store y[i0] = r0\n"
      "    schedule layouts rows grid loop warp 8 · register 4 · lane 32 · vector 8\n  }\n"
      "  launch k\n  return y\n}\n");
  const Estimate e = estimate(heads, heads.kernels[0]);
  INFO(str(e));
  CHECK(e.bytes > 5 * 1e6 * 12.6e6 / 4.3e12);
}

TEST_CASE("an explanation names the price of the schedule and of the next", "[cost]") {
  const std::string line = explain_schedules(softmax(64, 512, 1024))[0];
  CHECK_THAT(line, ContainsSubstring("us by the model, bound by "));
  CHECK_THAT(line, ContainsSubstring(" legal ones; the cheapest other by the model: "));
  Program cheapest = softmax(64, 512, 1024);
  cheapest.kernels[0].schedule = ranked(cheapest, cheapest.kernels[0])[0].schedule;
  CHECK_THAT(explain_schedules(cheapest)[0], ContainsSubstring("\n  number 1 of "));
}

namespace {

Program scan_of_rows(const std::string& op, const std::string& shape, int axis) {
  return for_machine(as_scheduled(str("graph g(%0 x: f32[", shape, "]) {\n  %1: f32[", shape,
                                      "] = ", op, " %0 {axis=", axis, "}\n  return %1\n}\n")),
                     parse_machine("h100"));
}

}  // namespace

// H100, us: `build/speed --class=scan` of seeds 2, 22, 18, 8, 9, 17 (tests/bench/NOTES.md).
TEST_CASE("the model prices scans about as an H100 times them", "[cost]") {
  struct Timed {
    const char *op, *shape;
    int axis;
    double microseconds;
  };
  for (const Timed& timed : {Timed{"cumsum", "131072,640", 1, 254},
                             {"cumprod", "4096,11008", 1, 127},
                             {"cumsum", "65536,1000", 1, 192},
                             {"cumsum", "640,701", 0, 7.9},
                             {"cumsum", "750,768", 0, 8.1},
                             {"cumsum", "153,65536", 0, 33}}) {
    const Program program = scan_of_rows(timed.op, timed.shape, timed.axis);
    REQUIRE(program.kernels.size() == 1);
    INFO(timed.shape << ": " << str(estimate(program, program.kernels[0])));
    const double ratio = estimate(program, program.kernels[0]).total() / timed.microseconds;
    CHECK((ratio > 0.75 && ratio < 1.25));
  }
}

TEST_CASE("the policy's scan costs little more than the cheapest by the model", "[cost]") {
  for (const auto& [shape, axis] : std::vector<std::pair<std::string, int>>{
           {"771,28996", 1}, {"4096,192", 1}, {"28996,771", 0}, {"153,65536", 0}}) {
    Program program = scan_of_rows("cumsum", shape, axis);
    for (Kernel& kernel : program.kernels) {
      if (kernel.steps[0].kind != StepKind::Scan) continue;
      const Schedule chosen = *kernel.schedule;
      const std::vector<Priced> all = ranked(program, kernel);
      const auto own = std::find_if(all.begin(), all.end(), [&](const Priced& priced) {
        return priced.schedule == chosen;
      });
      INFO(shape << ": " << str(chosen) << " and " << str(all[0].schedule));
      REQUIRE(own != all.end());
      CHECK(own->microseconds <= 1.2 * all[0].microseconds);
    }
  }
}

TEST_CASE("a sort costs about what was measured", "[cost]") {
  for (const auto& [type, shape,
                    milliseconds] :  // H200, by the elements a thread that were best
       {std::tuple{"f32", "5000,2048", .1955},
        {"f32", "50000,100", .0619},
        {"f32", "1000,1001", .0271},
        {"bf16", "5000,2048", .0883},
        {"i64", "5000,512", .0796},
        {"f32", "1,512", .0078}}) {
    const std::string whole = str("[", shape, "]");
    const Program program =
        as_scheduled(str("graph f(%0 x: ", type, whole, ") {\n  %1: i64", whole,
                         " = argsort %0 {axis=1}\n  return %1\n}\n"));
    const Estimate e = estimate(program, program.kernels[0]);
    INFO(type << whole << ": " << str(e));
    CHECK(e.total() < 1.5e3 * milliseconds);
    CHECK(e.total() > 0.7e3 * milliseconds);
    CHECK(ranked(program, program.kernels[0])[0].schedule == *program.kernels[0].schedule);
  }
}

TEST_CASE("a scatter costs about what was measured", "[cost][scatter]") {
  struct Measured {
    const char *op, *type, *result, *updates, *index;
    int axis;
    double milliseconds;
  };
  for (const Measured& m :
       {Measured{"scatter_add", "f32", "50304,768", "8192,768", "8192,1", 0, .1073},
        {"scatter_add", "f32", "32000,256", "8192,256", "8192,1", 0, .0357},
        {"scatter_add", "bf16", "30522,128", "4096,128", "4096,1", 0, .0132},
        {"scatter_add", "f32", "1024,768", "3000,768", "3000,1", 0, .0108},
        {"scatter", "f16", "20000,300", "5000,300", "5000,1", 0, .0202},
        {"scatter_max", "f32", "1000,96", "6000,96", "6000,1", 0, .0118},
        {"scatter_add", "f32", "256,12544", "256,3136", "256,3136", 1, .036},
        {"scatter_max", "f32", "100,5000", "100,5000", "100,5000", 1, .0255}}) {
    const std::string result = str(m.type, "[", m.result, "]"),
                      updates = str(m.type, "[", m.updates, "]");
    const Program program = as_scheduled(
        str("graph f(%0 x: ", result, ", %1 k: i64[", m.index, "], %2 u: ", updates,
            ") {\n  %3: i64[", m.updates, "] = expand %1\n  %4: ", result, " = ", m.op,
            " %0, %3, %2 {axis=", m.axis, "}\n  return %4\n}\n"));
    REQUIRE(program.kernels.size() == 1);
    const Estimate e = estimate(program, program.kernels[0]);
    INFO(m.op << " " << result << ": " << str(e));
    CHECK(e.total() < 1.3e3 * m.milliseconds);
    CHECK(e.total() > 0.8e3 * m.milliseconds);
    const std::vector<Priced> all = ranked(program, program.kernels[0]);
    CHECK(all.size() > 8);
    CHECK(e.total() <= 1.1 * all[0].microseconds);
    CHECK(all.back().microseconds > 1.3 * all[0].microseconds);
  }
}

// One thread of an EPYC with AVX-512, `tc bench` of edited lines.
TEST_CASE("the model prices cuts of a CPU's product as they were measured", "[cost][dot]") {
  struct Measured {
    const char* schedule;
    double milliseconds;
  };
  const auto check = [](int64_t m, int64_t k, int64_t n, const std::vector<Measured>& cuts) {
    Machine machine = default_machine(Target::Cpp);
    machine.name = "one", machine.cores = 1, machine.vector = 64;
    Program program = for_machine(
        as_scheduled(str("graph f(%0 x: f32[", m, ",", k, "], %1 y: f32[", k, ",", n, "]) {\n",
                         "  %2: f32[", m, ",", n, "] = matmul %0, %1\n  return %2\n}\n"),
                     Target::Cpp),
        machine);
    const std::string text = print(program);
    const size_t line = text.find("schedule tiles"), end = text.find('\n', line);
    for (const Measured& cut : cuts) {
      const Program own = parse_program(
          std::string(text).replace(line, end - line, str("schedule tiles ", cut.schedule)));
      const Estimate e = estimate(own, own.kernels[0]);
      INFO(m << " x " << k << " x " << n << ", " << cut.schedule << ": " << str(e));
      CHECK(e.total() < 1.25e3 * cut.milliseconds);
      CHECK(e.total() > 0.8e3 * cut.milliseconds);
    }
  };
  check(
      384, 383, 385,
      {{"down=12 across=32 panels_down=20 panels_across=8 depth=383 kept=1 packs_rows=0", .492},
       {"down=2 across=32 panels_down=60 panels_across=8 depth=383 kept=1 packs_rows=0", .938},
       {"down=12 across=64 panels_down=20 panels_across=4 depth=383 kept=1 packs_rows=0", .810},
       {"down=12 across=32 panels_down=1 panels_across=1 depth=383 kept=0", 1.112},
       {"down=12 across=32 panels_down=20 panels_across=8 depth=64 kept=1", .547},
       {"down=16 across=32 panels_down=16 panels_across=8 depth=383 kept=1 packs_rows=0",
        .502}});
  check(
      1000, 300, 700,
      {{"down=12 across=32 panels_down=20 panels_across=8 depth=300 kept=1 packs_rows=0", 1.70},
       {"down=12 across=32 panels_down=2 panels_across=1 depth=300 kept=0", 3.19}});
  check(2048, 64, 256,
        {{"down=12 across=32 panels_down=20 panels_across=8 depth=64 kept=1 packs_rows=0",
          .288}});
}
