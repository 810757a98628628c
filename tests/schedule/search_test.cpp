// Which schedules are tried, and which of them has won.
#include "tiny_compile/schedule/search.h"

#include <algorithm>
#include <limits>
#include <set>

#include "tests/catch.h"
#include "tests/schedule/as_scheduled.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/schedule/cost.h"
#include "tiny_compile/schedule/neighbours.h"

using namespace tiny_compile;

namespace {

constexpr const char* kSumDown =
    "graph f(%0 x: f32[300,4096]) {\n  %1: f32[4096] = sum %0 {axes=[0]}\n  return %1\n}\n";

}  // namespace

TEST_CASE("a winner is 2 % faster, turn by turn", "[search]") {
  CHECK(winner({{1.0, .97, .81}, {1.1, 1.09, .88}, {1.02, .99, .82}}) == 2);
  CHECK(winner({{1.0, .99}, {1.0, .985}, {1.0, .99}}) == 0);
  CHECK(winner({{1.0, .97}, {1.0, .97}, {1.0, 1.5}}) == 1);  // one bad moment
  CHECK(winner({{1.0, 1.0}, {2.0, 2.0}, {9.0, 9.0}}) == 0);  // a slow machine is slow for all
  CHECK(winner({}) == 0);
}

TEST_CASE("what leaves the race does not win, and the first one never leaves", "[search]") {
  constexpr double kOut = std::numeric_limits<double>::infinity();
  const Turns turns = {{1.0, .5, 2.0}, {1.0, kOut, 2.0}};
  CHECK(gain_of(turns, 1) == 0);
  CHECK(winner(turns) == 0);
  CHECK(survivors({{1.0, .5, .52, .9}}) == std::vector<size_t>{0, 1, 2});
}

TEST_CASE("candidates: the policy's first, each strategy, then the model's best", "[search]") {
  const Program program = as_scheduled(kSumDown);
  const Kernel& kernel = program.kernels[0];
  const std::vector<Schedule> all = candidates(program, kernel, 8);
  REQUIRE(all.size() == 8);
  CHECK(all[0] == *kernel.schedule);
  std::vector<Strategy> strategies;
  for (size_t k = 0; k < all.size(); k++) {
    strategies.push_back(all[k].strategy);
    CHECK(std::count(all.begin(), all.end(), all[k]) == 1);
  }
  for (const Strategy wanted : {Strategy::Columns, Strategy::Rows, Strategy::Layouts})
    CHECK(std::count(strategies.begin(), strategies.end(), wanted) > 0);
  const Schedule best = ranked(program, kernel)[0].schedule;
  CHECK(std::count(all.begin(), all.end(), best) == 1);
  CHECK(candidates(program, kernel, 1) == std::vector<Schedule>{*kernel.schedule});
}

TEST_CASE("candidates for a GPU have more and fewer registers", "[search]") {
  const Program program = as_scheduled(kSumDown, Target::Cuda);
  const Kernel& kernel = program.kernels[0];
  std::set<int> blocks;
  for (Schedule other : candidates(program, kernel, 16)) {
    const int resident = other.resident;
    other.resident = kernel.schedule->resident;
    if (other == *kernel.schedule) blocks.insert(resident);
  }
  CHECK(blocks.size() >= 3);
  CHECK(blocks.count(0) == 1);
}

TEST_CASE("neighbours of a layout are legal, others, and near", "[search]") {
  for (const char* text :
       {kSumDown,
        "graph f(%0 x: f32[300,4096]) {\n  %1: f32[300] = sum_exp %0 {axes=[1]}\n  return "
        "%1\n}\n",
        "graph f(%0 x: bf16[8192,70]) {\n  %1: bf16[8192,1] = max %0 {axes=[1], keepdim=1}\n"
        "  %2: bf16[8192,70] = expand %1\n  %3: bf16[8192,70] = sub %0, %2\n  return "
        "%3\n}\n"}) {
    const Program program = as_scheduled(text, Target::Cuda);
    const Kernel& kernel = program.kernels[0];
    INFO(str(*kernel.schedule));
    REQUIRE(kernel.schedule->strategy == Strategy::Layouts);
    const std::vector<Schedule> all = neighbours(program, kernel);
    CHECK(all.size() >= 8);
    for (const Schedule& near : all) {
      Kernel tried = kernel;
      tried.schedule = near;
      INFO(str(near));
      CHECK(why_illegal(program, tried) == "");
      CHECK(near != *kernel.schedule);
      CHECK(std::count(all.begin(), all.end(), near) == 1);
    }
  }
}

TEST_CASE("a column's neighbours have more in a thread, by fewer warps", "[search]") {
  Program program = as_scheduled(kSumDown, Target::Cuda);
  Kernel& kernel = program.kernels[0];
  const auto set = [&](Schedule& schedule, int64_t registers, int64_t warps) {
    schedule.rows = {{Level::Grid}, {Level::Lane, 32}};
    schedule.loops = {{{Level::Register, registers},
                       {Level::Serial, 512 / registers / warps},
                       {Level::Warp, warps}}};
  };
  Schedule wanted = *kernel.schedule;
  set(*kernel.schedule, 16, 8);
  set(wanted, 32, 4);
  kernel.schedule->resident = 2, wanted.resident = 4;  // as many registers a thread
  const std::vector<Schedule> all = neighbours(program, kernel);
  CHECK(std::count(all.begin(), all.end(), wanted) == 1);
}

TEST_CASE("what no deal makes has no neighbours", "[search]") {
  const Program cpu = as_scheduled(kSumDown, Target::Cpp);
  CHECK(neighbours(cpu, cpu.kernels[0]).empty());
  Program program = as_scheduled(kSumDown, Target::Cuda);
  program.kernels[0].schedule->loops = {{{Level::Serial, 4}, {Level::Register, 128}}};
  CHECK(neighbours(program, program.kernels[0]).empty());
}

TEST_CASE("a product in tiles is not tried without them", "[search]") {
  const Program program = as_scheduled(
      "graph f(%0 x: f32[64,64], %1 w: f32[64,64]) {\n  %2: f32[64,64] = matmul %0, %1\n"
      "  return %2\n}\n",
      Target::Cpp);
  REQUIRE(program.kernels[0].schedule->strategy == Strategy::Tiles);
  for (const Schedule& schedule : candidates(program, program.kernels[0], 16))
    CHECK(schedule.strategy == Strategy::Tiles);
}

TEST_CASE("candidates for a GPU compile for one", "[search]") {
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  Program program = as_scheduled(kSumDown);
  for (const Schedule& schedule : candidates(program, program.kernels[0], 6)) {
    program.kernels[0].schedule = schedule;
    INFO(str(schedule));
    CHECK(!compile_cuda(emit(lower_to_tiles(plan_memory(program))).text, "sm_90").empty());
  }
}
