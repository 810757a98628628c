// What the tests of generated CUDA share that runs thread by thread on the CPU, and on a GPU where
// there is one: what a compiler makes of the text only the GPU shows.
#pragma once

#include "tests/codegen/cuda_on_cpu.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/runtime/nvrtc.h"

#include "tests/catch.h"

namespace tiny_compile::threads {

using Out = std::vector<Tensor>;
using In = std::span<const Tensor>;
using Function = std::function<Out(In)>;

// A batch of rows whose elements lie across them.
inline Tensor transposed(int64_t rows, int64_t columns, DType type = float32) {
  return randn({columns, rows}).to(type).t();
}
inline Out softmax_along(In i) { return {softmax(i[0], 1)}; }

// For a GPU that has none, and 64 kB of shared memory for a block.
inline Pipeline without_clusters() {
  Machine small = default_machine(Target::Cuda);
  small.name = "small";
  small.cluster = 1;
  small.block_shared = 64 << 10;
  const auto stage = [small](const Program& program) { return for_machine(program, small); };
  return insert_after(default_pipeline(), "fuse", {"small_gpu", ProgramPass(stage)});
}

// By a thread each row.
inline Pipeline without_layouts(Pipeline pipeline = default_pipeline()) {
  const auto stage = [](const Program& program) {
    Program result = program;
    for (Kernel& kernel : result.kernels) {
      if (kernel.schedule->strategy == Strategy::Layouts) kernel.schedule = Schedule{};
    }
    return result;
  };
  return insert_after(std::move(pipeline), "schedule", {"families", ProgramPass(stage)});
}

// The same bits on a GPU, where there is one.
inline void check_on_gpu(const Staged& all, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& wanted) {
  if (!why_no_gpu().empty()) return;
  std::vector<Tensor> there;
  for (const Tensor& input : inputs) there.push_back(copy_to(input, cuda));
  INFO("on a GPU, by NVRTC");
  const std::vector<Tensor> got = build(all.program, all.source).run(there);
  for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(copy_to(got[k], cpu), wanted[k]));
}

// The interpreter's bits, whichever thread goes first.
inline Staged check_bits(const Function& function, const std::vector<Tensor>& inputs,
                         const Pipeline& pipeline = default_pipeline()) {
  const Graph graph = trace(function, inputs, "f").graph;
  Staged all = run_pipeline(pipeline, graph, true, Target::Cuda);
  REQUIRE(all.source.text.find("__cluster_dims__") == std::string::npos);
  const std::vector<Tensor> wanted = interpret(graph, inputs);
  for (bool last_thread_first : {false, true}) {
    const std::vector<Tensor> got = run(all.program, all.source, inputs, last_thread_first);
    const size_t kernels = all.source.text.find("extern \"C\"");
    INFO(print(all.program) +
         all.source.text.substr(std::min(kernels, all.source.text.size())));
    for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
  }
  check_on_gpu(all, inputs, wanted);
  return all;
}

// `strategies` are those that the kernels have, in order: "columns rows". The text.
inline std::string check(const Function& function, const std::vector<Tensor>& inputs,
                         const std::string& strategies,
                         const Pipeline& pipeline = default_pipeline()) {
  const Staged all = check_bits(function, inputs, pipeline);
  std::vector<std::string> chosen;
  for (const Kernel& kernel : all.program.kernels) {
    const Strategy strategy = schedule_of(kernel).strategy;
    chosen.push_back(strategy == Strategy::Layouts   ? "layouts"
                     : strategy == Strategy::Columns ? "columns"
                     : strategy == Strategy::Rows    ? "rows"
                                                     : "pointwise");
  }
  CHECK(join(chosen, " ") == strategies);
  return all.source.text;
}

}  // namespace tiny_compile::threads
