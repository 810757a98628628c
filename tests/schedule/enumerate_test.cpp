// Which schedules there are to choose from.
#include "tiny_compile/schedule/enumerate.h"

#include <algorithm>
#include <set>

#include "tests/catch.h"
#include "tests/schedule/as_scheduled.h"
#include "tiny_compile/loops/legal_schedule.h"

using namespace tiny_compile;

namespace {

Program scheduled(const std::string& op, const std::string& type, const std::string& result,
                  Target target, const std::string& sizes = "") {
  return as_scheduled(str("graph f", sizes, "(%0 x: ", type, ") {\n  %1: ", result, " = ", op,
                          "\n  return %1\n}\n"),
                      target);
}

bool has(const std::vector<Schedule>& list, const Schedule& schedule) {
  return std::find(list.begin(), list.end(), schedule) != list.end();
}

}  // namespace

TEST_CASE("schedules that are listed are legal, and each is another", "[enumerate]") {
  for (const Target target : {Target::Cpp, Target::Cuda}) {
    for (const Program& program :
         {scheduled("exp %0", "f32[64,100]", "f32[64,100]", target),
          scheduled("sum %0 {axes=[1]}", "f32[64,3000]", "f32[64]", target),
          scheduled("sum %0 {axes=[0]}", "f32[300,4096]", "f32[4096]", target),
          scheduled("max %0 {axes=[1]}", "f32[16,21,64]", "f32[16,64]", target)}) {
      const std::vector<Schedule> all = enumerate(program, program.kernels[0]);
      INFO(print(program));
      CHECK(all.size() > 3);
      CHECK(all == enumerate(program, program.kernels[0]));
      std::set<std::string> texts;
      for (const Schedule& schedule : all) {
        Kernel kernel = program.kernels[0];
        kernel.schedule = schedule;
        REQUIRE(why_illegal(program, kernel) == "");
        texts.insert(str(schedule));
      }
      CHECK(texts.size() == all.size());
    }
  }
}

TEST_CASE("what the policy lays out is among the legal layouts", "[enumerate]") {
  for (const Program& program :
       {scheduled("sum %0 {axes=[0]}", "f32[300,4096]", "f32[4096]", Target::Cuda),
        scheduled("max %0 {axes=[1]}", "f32[64,128,512]", "f32[64,512]", Target::Cuda)}) {
    const Schedule& chosen = *program.kernels[0].schedule;
    INFO(str(chosen));
    REQUIRE(chosen.strategy == Strategy::Layouts);
    CHECK(has(enumerate(program, program.kernels[0]), chosen));
  }
}

TEST_CASE("a product of a GPU has tiles of several sizes to choose from", "[enumerate]") {
  const Program program = as_scheduled(
      "graph f(%0 x: f32[512,64], %1 y: f32[64,300]) {\n  %2: f32[512,300] = matmul %0, %1\n"
      "  return %2\n}\n");
  CHECK(str(*program.kernels[0].schedule) == "tiles each=2 slice=32");
  const std::vector<Schedule> list = enumerate(program, program.kernels[0]);
  CHECK(has(list, *program.kernels[0].schedule));
  const auto tiles = std::count_if(list.begin(), list.end(), [](const Schedule& s) {
    return s.strategy == Strategy::Tiles;
  });
  CHECK(tiles == 9);
}

TEST_CASE("a list of schedules has an end", "[enumerate]") {
  const Program program =
      scheduled("sum %0 {axes=[0]}", "f32[2048,65536]", "f32[65536]", Target::Cuda);
  const std::vector<Schedule> all = enumerate(program, program.kernels[0]),
                              some = enumerate(program, program.kernels[0], 10);
  CHECK(all.size() < 1 << 14);
  REQUIRE(some.size() == 10);
  CHECK(std::equal(some.begin(), some.end(), all.begin()));
}

TEST_CASE("symbolic sizes have no list of schedules", "[enumerate]") {
  const Program program = scheduled("exp %0", "f32[n]", "f32[n]", Target::Cpp, "[n: 1..64]");
  CHECK(enumerate(program, program.kernels[0]).empty());
}
