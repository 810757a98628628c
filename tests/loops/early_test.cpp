// Kernels that start while others run: which do, and how their text waits.
#include "tiny_compile/loops/early.h"

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

using Tensors = std::vector<Tensor>;

Staged on_cuda(const std::function<Tensors(std::span<const Tensor>)>& function,
               const Tensors& inputs) {
  return run_pipeline(default_pipeline(), trace(function, inputs, "f").graph, true,
                      Target::Cuda);
}

std::vector<bool> early_in(const Program& program) {
  std::vector<bool> early;
  for (const Kernel& kernel : program.kernels) early.push_back(is_early(schedule_of(kernel)));
  return early;
}

// The lines of a kernel's function, from its first on.
std::string body_of(const Source& source, size_t kernel) {
  const size_t head = source.text.find("void __launch_bounds__"),
               name = source.text.find(" " + source.kernels[kernel].function + "(", head);
  return source.text.substr(source.text.find('\n', name) + 1);
}

const Tensor kLong = empty_tensor(DType::f32, {1 << 22});

}  // namespace

TEST_CASE("the finish of a sum starts early, and its text waits", "[early]") {
  const Staged sum = on_cuda([](auto x) { return Tensors{x[0].sum()}; }, {kLong});
  REQUIRE(sum.program.launches.size() == 2);
  CHECK(early_in(sum.program) == std::vector<bool>{false, true});
  CHECK_THAT(print(sum.program), ContainsSubstring(" early=1\n"));
  CHECK(parse_program(print(sum.program)) == sum.program);
  CHECK_FALSE(sum.source.kernels[0].early);
  CHECK(sum.source.kernels[1].early);
  CHECK(body_of(sum.source, 0).starts_with("  tc_let_next();\n"));
  CHECK(body_of(sum.source, 1)
            .starts_with("  if (!tc_has_waited()) return;\n  tc_let_next();\n"));
}

TEST_CASE("a line that says early is left as it is", "[early]") {
  const std::string planned =
      print(on_cuda([](auto x) { return Tensors{x[0].sum()}; }, {kLong}).program);
  const size_t at = planned.find(" early=1\n");
  REQUIRE(at != std::string::npos);
  const std::string off = std::string(planned).replace(at, 9, " early=0\n"),
                    unsaid = std::string(planned).replace(at, 9, "\n");
  const size_t first = unsaid.find('\n', unsaid.find("    schedule "));
  const std::string on = std::string(unsaid).insert(first, " early=1");  // of many blocks
  const auto planned_again = [](const std::string& text) {
    return print(plan_memory(parse_program(text)));
  };
  for (const std::string& text : {planned, off}) CHECK(planned_again(text) == text);
  CHECK(planned_again(unsaid) == planned);
  CHECK(early_in(parse_program(planned_again(on))) == std::vector<bool>{true, true});
  const Staged without = run_pipeline(default_pipeline(), parse_program(off), true);
  CHECK_FALSE(without.source.kernels[1].early);
  CHECK(without.source.text.find("tc_has_waited") == std::string::npos);
}

TEST_CASE("what stands alone neither waits nor lets others start", "[early]") {
  const Staged one = on_cuda([](auto x) { return Tensors{exp(x[0])}; }, {kLong});
  CHECK(one.source.text.find("tc_let_next") == std::string::npos);
  CHECK(one.source.text.find("tc_has_waited") == std::string::npos);
}

TEST_CASE("many blocks do not start early, not in one launch either", "[early]") {
  const auto twice = [](std::span<const Tensor> x) {  // rows of 480, 120 blocks each
    Tensors results;
    for (const Tensor& t : x) results.push_back((t / (kLong.sum() + 1.0)).sum(1));
    return results;
  };
  const Tensors inputs(40, empty_tensor(DType::f32, {480, 100}));
  const Program program = on_cuda(twice, inputs).program;
  const std::vector<int>& last = program.launches.back();
  REQUIRE(last.size() == 40);
  for (int k : last) CHECK_FALSE(is_early(schedule_of(program.kernels[k])));
}

TEST_CASE("equal kernels stay in one launch", "[early][group_launches]") {
  const auto sums = [](std::span<const Tensor> x) {
    Tensors results;
    for (const Tensor& t : x) results.push_back(exp(t.sum(1)));
    return results;
  };
  const Program program =
      on_cuda(sums, Tensors(3, empty_tensor(DType::f32, {40, 100}))).program;
  CHECK(program.launches.size() == 1);
  CHECK(early_in(program) == std::vector<bool>{false, false, false});
}

TEST_CASE("what a schedule for some sizes starts early, others let start", "[early]") {
  const Graph graph = parse_graph(R"(graph f[n: 1..4096](%0 x: f32[n,64], %1 y: f32[64]) {
  %2: f32[64] = sum %0 {axes=[0]}
  %3: f32[64] = cumsum %1 {axis=0}
  return %2, %3
}
)");
  const auto start_sized = [](const Program& program) {
    Program changed = program;
    for (Kernel& kernel : changed.kernels) {
      for (SizedSchedule& one : kernel.sized) one.schedule.early = Early::Yes;
    }
    return changed;
  };
  const auto text_of = [&](const Pipeline& pipeline) {
    return run_pipeline(pipeline, graph, true, Target::Cuda).source.text;
  };
  CHECK(text_of(default_pipeline()).find("tc_let_next") == std::string::npos);
  const std::string early = text_of(
      insert_after(default_pipeline(), "schedule", {"change", ProgramPass(start_sized)}));
  CHECK_THAT(early, ContainsSubstring("  tc_let_next();\n"));
  CHECK_THAT(early, ContainsSubstring("  if (!tc_has_waited()) return;\n"));
}

TEST_CASE("early is refused where nothing reads it", "[early]") {
  const Program program = on_cuda([](auto x) { return Tensors{x[0].sum()}; }, {kLong}).program;
  for (const Strategy strategy : {Strategy::Rows, Strategy::Columns, Strategy::Tiles}) {
    Program changed = program;
    changed.kernels[1].schedule = Schedule{.strategy = strategy, .early = Early::Yes};
    CHECK_THAT(why_illegal(changed, changed.kernels[1]), ContainsSubstring("early"));
  }
  Program on_cpu =
      run_pipeline(default_pipeline(),
                   trace([](auto x) { return Tensors{x[0].sum()}; }, Tensors{kLong}, "f").graph,
                   true, Target::Cpp)
          .program;
  on_cpu.kernels[0].schedule->early = Early::Yes;
  CHECK_THAT(why_illegal(on_cpu, on_cpu.kernels[0]), ContainsSubstring("early"));
}
