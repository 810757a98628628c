// make small STEP=03: what the compiler, as far as that step, makes of the program; from step 03 on
// also how long that takes, beside what the real compiler makes of it.
#include <cstdio>

#include "lessons/small/program.h"
#if STEP >= 2
#include "lessons/small/02_graph.h"
#endif
#if STEP >= 3
#include <chrono>

#if STEP >= 16
#include "lessons/small/16_matmul.h"
#elif STEP >= 12
#include "lessons/small/12_split.h"
#elif STEP >= 11
#include "lessons/small/11_cuda.h"
#elif STEP >= 10
#include "lessons/small/10_cpp.h"
#elif STEP >= 9
#include "lessons/small/09_fusion.h"
#elif STEP >= 8
#include "lessons/small/08_text.h"
#elif STEP >= 6
#include "lessons/small/06_autodiff.h"
#elif STEP >= 5
#include "lessons/small/05_cse_dce.h"
#elif STEP >= 4
#include "lessons/small/04_rewrites.h"
#else
#include "lessons/small/03_interpreter.h"
#endif
#include "lessons/small/real.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/build.h"
#endif

namespace {

using namespace small;

#if STEP >= 3
namespace tc = tiny_compile;

struct Rung {
  std::string what;
  int64_t launches, bytes;
  std::function<std::vector<Array>()> call;
  double least_ms = 1e30;
};

Rung rung_of(const char* what, const Plan& plan, const std::vector<Array>& inputs) {
  Rung rung{what, std::ssize(plan.code.launches), 0, {}};
  for (const Launch& launch : plan.code.launches)
    for (const int64_t array : launch.arrays) rung.bytes += 4 * count(plan.arrays[array]);
  rung.call = [compiled = Executable(plan, false), &inputs] { return compiled(inputs); };
  return rung;
}

Rung real_compiler(const Graph& graph, const std::vector<Array>& inputs) {
  const tc::Staged staged =
      tc::run_pipeline(tc::default_pipeline(), tc::parse_graph(real_text(graph)), false);
  const auto launches = static_cast<int64_t>(staged.program.launches.size());
  Rung rung{"    the real compiler", launches, tc::bytes_moved(staged.program), {}};
  rung.call = [built = tc::build(staged.program, staged.source),
               tensors = real_tensors(graph, inputs)] {
    return numbers_of(built.run(tensors));
  };
  return rung;
}

void climb(const char* title, const Graph& graph) {
  tc::manual_seed(1);
  std::vector<Array> inputs;
  for (const Node& node : graph.nodes)
    if (node.op == Op::Input)
      inputs.push_back((tc::randn(node.shape) * 0.3).to_vector<float>());
  std::vector<Rung> ladder;
  const auto climb_to = [&](const char* what, const Plan& plan) {
    ladder.push_back(rung_of(what, plan, inputs));
  };
  climb_to("03  a loop for each operation", loop_per_op(graph, false));
#if STEP >= 4
  const Graph better = rewrite(graph);
  climb_to("04  rewritten", loop_per_op(better, false));
#endif
#if STEP >= 5
  const Graph clean = cse_dce(better);
  climb_to("05  each value once", loop_per_op(clean, false));
#endif
#if STEP >= 8
  climb_to("08  views are indices", row_by_row(unfused(clean), false));
#endif
#if STEP >= 9
  climb_to("09  fused", row_by_row(fuse(clean).program, false));
#endif
#if STEP >= 10
  climb_to("10  scopes, vectors, threads", in_cpp(fuse(clean).program));
#endif
#if STEP >= 16
  climb_to("16  products in tiles", in_tiles(fuse(clean).program, false));
#endif
  ladder.push_back(real_compiler(graph, inputs));
  const std::vector<Array> meant = interpret(graph, inputs);
  for (const Rung& rung : ladder)
    if (rung.call() != meant) throw Error(rung.what + ": not the interpreter's numbers");
  for (int turn = 0; turn < 20; turn++) {
    for (Rung& rung : ladder) {
      const auto start = std::chrono::steady_clock::now();
      rung.call();
      const std::chrono::duration<double, std::milli> taken =
          std::chrono::steady_clock::now() - start;
      rung.least_ms = std::min(rung.least_ms, taken.count());
    }
  }
  std::printf("%s: loss %.6f, from the interpreter and from each of\n\n", title, meant[0][0]);
  std::printf("%-32s%10s%10s%10s\n", "step", "launches", "MB", "ms");
  for (const Rung& rung : ladder)
    std::printf("%-32s%10lld%10.2f%10.3f\n", rung.what.c_str(),
                static_cast<long long>(rung.launches), static_cast<double>(rung.bytes) * 1e-6,
                rung.least_ms);
  std::printf("\n");
}
#endif

}  // namespace

int main() {
  const Graph graph = trace(program, program_inputs({}));
#if STEP == 1
  for (const Node& node : graph.nodes)
    std::printf("%-9s line %u\n", info(node.op).name, node.where.line);
#elif STEP == 2
  verify(graph);
  std::fputs(print(graph).c_str(), stdout);
#else
  climb("the program", graph);
#endif
#if STEP >= 6
  climb("with gradients", with_gradients(graph, {0, 2, 3, 4, 5, 6, 7, 8}));
#endif
}
