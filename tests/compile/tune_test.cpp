// The search on the CPU: the same bits, winners that last, and a memory that may be damaged.
#include "tiny_compile/compile/tune.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tests/schedule/as_scheduled.h"
#include "tiny_compile/compile/race.h"
#include "tiny_compile/compile/tune_memory.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/tile/tiles.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

Program scheduled(const std::string& graph) {
  return as_scheduled("graph f" + graph, Target::Cpp);
}

const char* const kSums = R"((%0 x: f32[64,300]) {
    %1: f32[64] = sum %0 {axes=[1]}
    %2: f32[300] = sum %0 {axes=[0]}
    %3: f32[64,300] = exp %0
    return %1, %2, %3
  })";

TuneOptions quick(const std::string& directory) {
  TuneOptions options;
  options.seconds =
      20;  // more than enough for three kernels of three candidates, on a busy machine
  options.most = 3;
  options.directory = directory;
  return options;
}

std::vector<Tensor> run(const Program& scheduled, std::span<const Tensor> inputs) {
  const Program program = plan_memory(scheduled);
  return build(program, emit(lower_to_tiles(program))).run(inputs);
}

// Adds a half, slowly or at once; a wrong one adds another number.
Racer adder(double milliseconds, float number = 0.5f) {
  Racer racer;
  racer.built.run = [=](std::span<const Tensor> inputs) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
    return std::vector<Tensor>{inputs[0] + number};
  };
  return racer;
}

}  // namespace

TEST_CASE("a race goes to the fastest whose bits are right", "[tune]") {
  const std::vector<Tensor> inputs = {from_vector<float>({1, 2, 3})},
                            wanted = {inputs[0] + 0.5f};
  const Race won = race({adder(8), adder(4), adder(0, 0.25f)}, inputs, wanted, 0.1);
  CHECK(won.winner == 1);
  CHECK(won.gain > 1.2);
  CHECK(won.disproved == std::vector<size_t>{2});
}

TEST_CASE("a library's results need only be close", "[tune]") {
  const std::vector<Tensor> inputs = {from_vector<float>({1, 2, 3})},
                            wanted = {inputs[0] + 0.5f};
  Racer close = adder(0, 0.501f), far = adder(0, 0.75f);
  close.tolerance = far.tolerance = 0.02;
  const Race result = race({adder(6), close, far}, inputs, wanted, 0.1);
  CHECK(result.winner == 1);
  CHECK(result.disproved == std::vector<size_t>{2});
  CHECK(race({far, adder(6)}, inputs, wanted, 0.1).winner == 1);
}

TEST_CASE("a candidate that fails is out, the first one's failure is the caller's", "[tune]") {
  Racer fails;
  fails.built.run = [](std::span<const Tensor>) -> std::vector<Tensor> { fail("no room"); };
  const std::vector<Tensor> inputs = {from_vector<float>({1})}, wanted = {inputs[0] + 0.5f};
  const Race raced = race({adder(0), fails}, inputs, wanted, 0.1);
  CHECK(raced.failed == std::vector<size_t>{1});
  CHECK(raced.disproved.empty());
  CHECK_THROWS_AS(race({fails, adder(0)}, inputs, wanted, 0.1), Error);
}

TEST_CASE("drawn inputs leave the user's random numbers alone", "[tune]") {
  manual_seed(7);
  const Tensor first = randn({4});
  manual_seed(7);
  const std::vector<Tensor> drawn = inputs_for(
      {{DType::f32, {Expr(100)}}, {DType::i64, {Expr(10)}}, {DType::boolean, {}}}, cpu);
  CHECK(same_bits(randn({4}), first));
  CHECK(drawn[0].shape() == Sizes{100});
  CHECK(drawn[1].dtype() == DType::i64);
  CHECK(same_bits(inputs_for({{DType::f32, {Expr(100)}}}, cpu)[0], drawn[0]));
}

TEST_CASE("a tuned program has legal schedules and the same bits", "[tune]") {
  const Scratch scratch;
  const Program program = scheduled(kSums);
  const Tuned tuned = tune(program, cpu, quick(scratch.path(".")));
  REQUIRE(tuned.kernels.size() == program.kernels.size());
  for (size_t k = 0; k < tuned.kernels.size(); k++) {
    CHECK(tuned.kernels[k].tried > 1);
    CHECK(tuned.kernels[k].disproved.empty());
    CHECK(tuned.kernels[k].whose == "the interpreter's");
    CHECK(why_illegal(tuned.program, tuned.program.kernels[k]) == "");
  }
  const std::vector<Tensor> inputs = inputs_for({{DType::f32, {Expr(64), Expr(300)}}}, cpu);
  const std::vector<Tensor> want = run(program, inputs), got = run(tuned.program, inputs);
  for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(want[k], got[k]));
}

TEST_CASE("winners are remembered, a damaged memory costs a search", "[tune]") {
  const Scratch scratch;
  const Program program = scheduled(kSums);
  const Tuned first = tune(program, cpu, quick(scratch.path(".")));
  const Tuned again = tune(program, cpu, quick(scratch.path(".")));
  CHECK(again.program == first.program);
  for (const TunedKernel& kernel : again.kernels) CHECK(kernel.note == "remembered");
  for (const auto& file : std::filesystem::directory_iterator(scratch.path(".")))
    std::ofstream(file.path(), std::ios::trunc) << "program alone { nonsense\n";
  const Tuned searched = tune(program, cpu, quick(scratch.path(".")));
  for (const TunedKernel& kernel : searched.kernels) CHECK(kernel.tried > 1);
  for (const TunedKernel& kernel : tune(program, cpu, quick(scratch.path("."))).kernels)
    CHECK(kernel.note == "remembered");
}

// Builds all candidates but the first, or only that, so that they give zeros.
TuneOptions spoiling(const std::string& directory, bool first) {
  TuneOptions options = quick(directory);
  options.builder = [first, number = 0](const Program& program, const Source& source,
                                        int device) mutable {
    Built built = build(program, source, device);
    if ((number++ == 0) != first) return built;
    const auto right = built.run;
    built.run = [right](std::span<const Tensor> inputs) {
      std::vector<Tensor> results = right(inputs);
      for (Tensor& result : results) result = zeros_like(result);
      return results;
    };
    return built;
  };
  return options;
}

TEST_CASE("a candidate of other bits is named, not taken and not remembered", "[tune]") {
  const Scratch scratch;
  const Program program = scheduled(
      "(%0 x: f32[64,300]) {\n  %1: f32[300] = sum %0 {axes=[0]}\n"
      "  return %1\n}\n");
  REQUIRE(program.kernels.size() == 1);
  const TunedKernel good = tune(program, cpu, spoiling(scratch.path("."), false)).kernels[0];
  CHECK(good.after == program.kernels[0].schedule);
  REQUIRE(good.disproved.size() == good.tried - 1);
  CHECK_THAT(other_bits({good}), ContainsSubstring("kernel " + good.name + " under schedule " +
                                                   str(good.disproved[0]) +
                                                   " has other bits "
                                                   "than the interpreter's"));
  const TunedKernel bad = tune(program, cpu, spoiling(scratch.path("."), true)).kernels[0];
  CHECK(bad.note != "remembered");
  CHECK(bad.disproved == std::vector<Schedule>{*program.kernels[0].schedule});
  CHECK(!(bad.after == program.kernels[0].schedule));
  CHECK(other_bits(tune(program, cpu, quick("")).kernels).empty());
}

TEST_CASE("what the interpreter would take long for is checked by the C++ back end", "[tune]") {
  const Program program = scheduled(
      "(%0 x: f32[2048,1024]) {\n  %1: f32[2048,1024] = exp %0\n"
      "  return %1\n}\n");
  const TunedKernel kernel = tune(program, cpu, quick("")).kernels[0];
  CHECK(kernel.whose == "the C++ back end's");
  CHECK(kernel.disproved.empty());
}

TEST_CASE("an entry of another kernel, or of none, is not taken", "[tune]") {
  const Scratch scratch;
  const Program program = scheduled(kSums);
  const Program alone = *kernel_alone(program, program.kernels[0]),
                other = *kernel_alone(program, program.kernels[1]);
  remember_schedule(scratch.path("."), "one", alone, *program.kernels[0].schedule);
  CHECK(remembered_schedule(scratch.path("."), "one", alone) == program.kernels[0].schedule);
  CHECK(!remembered_schedule(scratch.path("."), "one", other));
  CHECK(!remembered_schedule(scratch.path("."), "two", alone));
  store_text(scratch.path("."), "two", "no program");
  CHECK(!remembered_schedule(scratch.path("."), "two", alone));
  CHECK(!remembered_schedule("", "one", alone));
  CHECK(tune_key(alone, cpu) != tune_key(other, cpu));
}

TEST_CASE("equal kernels are one kernel alone, whatever their names", "[tune]") {
  const Program program = scheduled(R"((%0 x: f32[64,3000], %1 z: f32[64,3000]) {
    %2: f32[64] = sum %0 {axes=[1]}
    %3: f32[64] = sum %1 {axes=[1]}
    return %2, %3
  })");
  REQUIRE(program.kernels.size() >= 2);
  const Program a = *kernel_alone(program, program.kernels[0]),
                b = *kernel_alone(program, program.kernels[1]);
  CHECK(print(a) == print(b));
  CHECK(tune_key(a, cpu) == tune_key(b, cpu));
}

TEST_CASE("a kernel that is no use alone is left as it is, with the reason", "[tune]") {
  const Program program = scheduled(R"((%0 x: f32[8,4], %1 i: i64[5,4], %2 u: f32[5,4]) {
    %3: f32[8,4] = scatter_add %0, %1, %2 {axis=0}
    return %3
  })");
  const Tuned tuned = tune(program, cpu, quick(""));
  CHECK(tuned.program == program);
  for (const TunedKernel& kernel : tuned.kernels)
    CHECK((kernel.tried > 0 || !kernel.note.empty()));
}

TEST_CASE("the costliest kernel is tuned first, and time has an end", "[tune]") {
  const Program program = scheduled(R"((%0 x: f32[7], %1 z: f32[512,1024]) {
    %2: f32[] = sum %0 {axes=[0]}
    %3: f32[512,1024] = tanh %1
    return %2, %3
  })");
  TuneOptions options = quick("");
  options.seconds = 0.01;
  std::vector<std::string> said;
  options.say = [&](const std::string& line) { said.push_back(line); };
  const Tuned tuned = tune(program, cpu, options);
  REQUIRE(tuned.kernels.size() == 2);
  REQUIRE(said.size() == 3);
  CHECK_THAT(said[0], ContainsSubstring("tanh"));
  CHECK(said[2].empty());
  for (const TunedKernel& kernel : tuned.kernels) {
    const bool first = kernel.name.find("tanh") != std::string::npos;
    CHECK((kernel.tried > 0) == first);
    CHECK((kernel.note == "no time was left for it") == !first);
  }
}

TEST_CASE("compile with max-autotune gives the default's bits", "[tune]") {
  const Scratch scratch;
  const Setting cache("TC_CACHE_DIR", scratch.path("."));
  const auto sums = [](Tensor x) { return std::pair(x.sum(0), exp(x) / x.sum(-1, true)); };
  const auto f = compile(sums);
  const auto g = compile(sums, {.mode = "max-autotune", .tune_seconds = 0.3});
  const Tensor x = randn({40, 70});
  const auto [a, b] = f(x);
  const auto [c, d] = g(x);
  CHECK(same_bits(a, c));
  CHECK(same_bits(b, d));
  CHECK_THROWS_WITH(compile(sums, {.mode = "fast"})(x),
                    ContainsSubstring("default, reduce-overhead and max-autotune"));
}

TEST_CASE("on a GPU kernels are tuned and products raced, with results that are close",
          "[tune]") {
  NEEDS_GPU;
  const Scratch scratch;
  const Setting cache("TC_CACHE_DIR", scratch.path("."));
  const auto layer = [](Tensor x, Tensor w) { return softmax(matmul(x, w), -1); };
  const Tensor x = randn({256, 128}).to(cuda), w = randn({128, 512}).to(cuda);
  const auto plain = compile(layer, {.deterministic = true});
  const auto tuned = compile(layer, {.mode = "max-autotune", .tune_seconds = 2});
  const auto exact =
      compile(layer, {.mode = "max-autotune", .tune_seconds = 2, .deterministic = true});
  CHECK(distance(tuned(x, w).to(cpu), plain(x, w).to(cpu)) < 0.02);
  CHECK(same_bits(exact(x, w).to(cpu), plain(x, w).to(cpu)));
}
