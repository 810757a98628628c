// A vendor's library as one of the ways to run a product: what its schedules are, and who may not.
#include <algorithm>

#include "tests/catch.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/schedule/cost.h"
#include "tiny_compile/schedule/enumerate.h"
#include "tiny_compile/schedule/search.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kProduct =
    "graph f(%0 x: bf16[64,256], %1 w: bf16[256,128]) {\n"
    "  %2: bf16[64,128] = matmul %0, %1\n  return %2\n}\n";

Program product(Matmul matmul, const std::string& schedule = "") {
  const Pipeline pipeline = until(with_library(default_pipeline(), matmul), "schedule");
  const Program program =
      run_pipeline(pipeline, parse_graph(kProduct), true, Target::Cuda).program;
  if (schedule.empty()) return program;
  std::string text = print(program);
  const size_t line = text.find("    schedule ");
  return parse_program(
      text.replace(line, text.find('\n', line) - line, "    schedule " + schedule));
}

KernelEntry emitted(const Program& program) {
  return emit(lower_to_tiles(plan_memory(program))).kernels[0];
}

}  // namespace

TEST_CASE("a product that may be the library's is, by its schedule, which reads back",
          "[search][library]") {
  const Program left = product(Matmul::Library);
  REQUIRE(left.kernels.size() == 1);
  CHECK(left.kernels[0].schedule->strategy == Strategy::Library);
  CHECK_THAT(print(left), ContainsSubstring("    schedule library\n"));
  CHECK(emitted(left).library);
  const Program third = product(Matmul::Library, "library algorithm=3");
  CHECK(parse_program(print(third)) == third);
  CHECK(emitted(third).library->algorithm == 3);
  CHECK(emitted(product(Matmul::Library, "library split_k=4")).library->split_k == 4);
  CHECK_THAT(emit(lower_to_tiles(plan_memory(third))).text,
             ContainsSubstring("// the library: bf16 128x64x256 (m x n x k), algorithm 3"));
  CHECK(!emitted(product(Matmul::Library, "tiles")).library);
  Program unscheduled = left;
  unscheduled.kernels[0].schedule.reset();
  CHECK(emitted(unscheduled).library);
}

TEST_CASE("deterministic programs have no library's schedules", "[search][library]") {
  const Program exact = product(Matmul::Generated);
  CHECK(exact.kernels[0].schedule->strategy == Strategy::Tiles);
  for (const Schedule& schedule : enumerate(exact, exact.kernels[0]))
    CHECK(schedule.strategy != Strategy::Library);
  CHECK_THROWS_WITH(product(Matmul::Generated, "library"),
                    ContainsSubstring("this program's are generated"));
  CHECK_THROWS_WITH(product(Matmul::Library, "library algorithm=16"),
                    ContainsSubstring("algorithm=16: 0 to 15"));
  CHECK_THROWS_WITH(product(Matmul::Library, "library split_k=3"),
                    ContainsSubstring("split_k=3"));
  CHECK_THROWS_WITH(product(Matmul::Library, "library algorithm=1 split_k=2"),
                    ContainsSubstring("split_k=2: of algorithm=0 alone"));
  CHECK_THROWS_WITH(product(Matmul::Library, "tiles algorithm=1"),
                    ContainsSubstring("algorithm=1 is for library"));
}

TEST_CASE("candidates of a product: the library, generated tiles, its algorithms and split-k",
          "[search][library]") {
  const Program program = product(Matmul::Library);
  const std::vector<Schedule> all = candidates(program, program.kernels[0], 16);
  CHECK(all[0] == *program.kernels[0].schedule);
  const auto count = [&](auto is) { return std::count_if(all.begin(), all.end(), is); };
  CHECK(count([](const Schedule& s) { return s.strategy == Strategy::Tiles; }) == 4);
  CHECK(count([](const Schedule& s) { return s.algorithm > 0; }) == 7);
  CHECK(count([](const Schedule& s) { return s.split_k > 0; }) == 4);
  CHECK(all.size() == 16);
  CHECK(estimate(program, program.kernels[0]).total() <
        estimate(product(Matmul::Generated), product(Matmul::Generated).kernels[0]).total());
}

TEST_CASE("what a library's result may be off by follows from what is rounded", "[library]") {
  LibraryMatmul product;
  product.k = 4096;
  CHECK(tolerance_of(product) < 2e-5);  // f32
  product.tf32 = true;
  CHECK(tolerance_of(product) > 1e-3);
  product.tf32 = false;
  product.a.dtype = product.d.dtype = DType::bf16;
  CHECK(tolerance_of(product) > 0x1p-8);
  CHECK(tolerance_of(product) < 0x1p-6);
  product.a.dtype = product.d.dtype = DType::f64;
  CHECK(tolerance_of(product) < 1e-13);
}
