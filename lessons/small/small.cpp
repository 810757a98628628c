// make small STEP=03: what the compiler, as far as that step, makes of the program; from step 03 on
// also how long that takes, beside what the real compiler makes of it. With the word "report": what
// `make small WITH=` compares.
#include <cstdio>

#include "lessons/small/program.h"
#include LAST_STEP  // lessons/small/09_fusion.h: all up to there
#if STEP >= 3
#include <chrono>
#include <filesystem>
#include <fstream>

#include "lessons/small/real.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/tensor/cuda_stream.h"
#endif
#if STEP >= 5
#include "lessons/small/random.h"
#endif

namespace {

using namespace small;

#if STEP >= 3
namespace tc = tiny_compile;

struct Rung {
  std::string what;
  int64_t launches, bytes;
  std::function<std::vector<Array>()> results;
  std::function<void()> run;  // what is timed
  double least_ms = 1e30;
};

Rung rung_of(const char* what, const Plan& plan, const std::vector<Array>& inputs, bool cuda) {
  Rung rung{what, std::ssize(plan.launches), 0, {}, {}};
  for (const Launch& launch : plan.launches)
    for (const int64_t array : launch.arrays) rung.bytes += 4 * count(plan.arrays[array]);
  const Executable compiled(plan, cuda);
  rung.results = [compiled, &inputs] { return compiled(inputs); };
  rung.run = [compiled, &inputs, cuda] {
    if (!cuda) return void(compiled(inputs));
    const tc::CudaScope scope(0);
    compiled.launch();  // the inputs are there
    driver::synchronize(nullptr);
  };
  return rung;
}

Rung real_compiler(const Graph& graph, const std::vector<Array>& inputs, bool cuda) {
  const tc::Staged staged =
      tc::run_pipeline(tc::default_pipeline(), tc::parse_graph(real_text(graph)), false,
                       cuda ? tc::Target::Cuda : tc::Target::Cpp);
  const auto launches = static_cast<int64_t>(staged.program.launches.size());
  Rung rung{"    the real compiler", launches, tc::bytes_moved(staged.program), {}, {}};
  std::vector<tc::Tensor> tensors;
  for (const tc::Tensor& tensor : real_tensors(graph, inputs))
    tensors.push_back(tc::copy_to(tensor, cuda ? tc::cuda : tc::cpu));
  const auto built = tc::build(staged.program, staged.source);
  rung.results = [built, tensors] {
    std::vector<tc::Tensor> results;
    for (const tc::Tensor& result : built.run(tensors))
      results.push_back(tc::copy_to(result, tc::cpu));
    return numbers_of(results);
  };
  rung.run = [built, tensors, cuda, results = rung.results] {
    if (!cuda) return void(results());
    const std::vector<tc::Tensor> there = built.run(tensors);
    tc::synchronize(tc::cuda);
  };
  return rung;
}

// The least of many turns, one rung after the other in each.
[[maybe_unused]] void time_in_turns(std::vector<Rung>& ladder) {
  for (int turn = 0; turn < 30; turn++) {
    for (Rung& rung : ladder) {
      const auto start = std::chrono::steady_clock::now();
      rung.run();
      const std::chrono::duration<double, std::milli> taken =
          std::chrono::steady_clock::now() - start;
      rung.least_ms = std::min(rung.least_ms, taken.count());
    }
  }
}

// The compiler's last word on a graph.
[[maybe_unused]] Plan best_plan(const Graph& graph, bool cuda) {
#if STEP >= 16
  return with_arena(in_tiles(fuse(cse_dce(rewrite(graph))), cuda));
#elif STEP >= 13
  const Program fused = fuse(cse_dce(rewrite(graph)));
  return with_arena(cuda ? in_layouts(fused) : in_cpp(fused));
#elif STEP >= 10
  const Program fused = fuse(cse_dce(rewrite(graph)));
  return cuda ? row_by_row(fused, true) : in_cpp(fused);
#elif STEP >= 9
  return row_by_row(fuse(cse_dce(rewrite(graph))), cuda);
#elif STEP >= 8
  return row_by_row(unfused(cse_dce(rewrite(graph))), cuda);
#elif STEP >= 5
  return loop_per_op(cse_dce(rewrite(graph)), cuda);
#elif STEP >= 4
  return loop_per_op(rewrite(graph), cuda);
#else
  return loop_per_op(graph, cuda);
#endif
}

std::vector<Rung> ladder_of(const Graph& graph, const std::vector<Array>& inputs, bool cuda) {
  std::vector<Rung> ladder;
  const auto climb_to = [&](const char* what, const Plan& plan) {
    ladder.push_back(rung_of(what, plan, inputs, cuda));
  };
  climb_to("03  a loop for each operation", loop_per_op(graph, cuda));
#if STEP >= 4
  const Graph better = rewrite(graph);
  climb_to("04  rewritten", loop_per_op(better, cuda));
#endif
#if STEP >= 5
  const Graph clean = cse_dce(better);
  climb_to("05  each value once", loop_per_op(clean, cuda));
#endif
#if STEP >= 7
  if (graph.outputs.size() > 1)
    climb_to("07  backward keeps little", loop_per_op(recompute(clean), cuda));
#endif
#if STEP >= 8
  climb_to("08  views are indices", row_by_row(unfused(clean), cuda));
#endif
#if STEP >= 9
  const Program fused = fuse(clean);
  climb_to("09  fused", row_by_row(fused, cuda));
#endif
#if STEP >= 10
  if (!cuda) climb_to("10  scopes, vectors, threads", in_cpp(fused));
#endif
#if STEP >= 11
  if (cuda) climb_to("11  layouts of rows", in_cuda(fused));
#endif
#if STEP >= 12
  if (cuda) climb_to("12  layouts of sums", in_layouts(fused));
#endif
#if STEP >= 13
  climb_to("13  arrays share memory", with_arena(cuda ? in_layouts(fused) : in_cpp(fused)));
#endif
#if STEP >= 16
  climb_to("16  products in tiles", best_plan(graph, cuda));
#endif
  ladder.push_back(real_compiler(graph, inputs, cuda));
  return ladder;
}

std::vector<Array> inputs_of(const Graph& graph) {
  tc::manual_seed(1);
  std::vector<Array> inputs;
  for (const Node& node : graph.nodes)
    if (node.op == Op::Input)
      inputs.push_back((tc::randn(node.shape) * 0.3).to_vector<float>());
  return inputs;
}

// Lines of the steps up to this one: "09  fused" => those of 00 to 09.
std::string lines_until(const std::string& rung) {
  int64_t lines = 0;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator("lessons/small", none)) {
    const std::string name = file.path().filename();
    if (!std::isdigit(static_cast<unsigned char>(name[0])) ||
        name.substr(0, 2) > rung.substr(0, 2))
      continue;
    std::ifstream text(file.path());
    lines += std::count(std::istreambuf_iterator<char>(text), {}, '\n');
  }
  return lines == 0 || rung.starts_with(' ') ? "" : str(lines);
}

void climb(const char* title, const Graph& graph, bool cuda) {
  const std::vector<Array> inputs = inputs_of(graph);
  std::vector<Rung> ladder = ladder_of(graph, inputs, cuda);
  const std::vector<Array> meant = interpret(graph, inputs);
  for (size_t k = 0; k < ladder.size(); k++) {
    const bool vendor = cuda && k + 1 == ladder.size();  // its products are a library's
    if (!vendor && ladder[k].results() != meant)
      throw Error(ladder[k].what + ": not the interpreter's numbers");
  }
  time_in_turns(ladder);
  std::printf("%s, %s: loss %.6f, from the interpreter and from each of\n\n", title,
              cuda ? tc::cuda_device(0).name.c_str() : "CPU", meant[0][0]);
  std::printf("%-32s%8s%10s%10s%10s\n", "step", "lines", "launches", "MB", "ms");
  for (const Rung& rung : ladder)
    std::printf("%-32s%8s%10lld%10.2f%10.3f\n", rung.what.c_str(),
                lines_until(rung.what).c_str(), static_cast<long long>(rung.launches),
                static_cast<double>(rung.bytes) * 1e-6, rung.least_ms);
  std::printf("\n");
}
#endif

#if STEP >= 5
// For `make small WITH=`: the program's IR and text, what they cost, and whether the bits are right.
void report(const Graph& graph) {
  const Graph clean = cse_dce(rewrite(graph));
  const Plan plan = best_plan(graph, false);
  std::printf("%s\n%s\n", print(clean).c_str(), text_of(plan).c_str());
#if STEP >= 9
  for (const std::string& refusal : fuse(clean).refusals) std::printf("%s\n", refusal.c_str());
#endif
  const std::vector<Array> inputs = inputs_of(graph);
  std::vector<Rung> one = {rung_of("", plan, inputs, false)};
  time_in_turns(one);
  std::fprintf(stderr, "%lld launches, %.2f MB, %.3f ms\n",
               static_cast<long long>(one[0].launches),
               static_cast<double>(one[0].bytes) * 1e-6, one[0].least_ms);
  const auto is_wrong = [](const Graph& tried) {
    const std::vector<Array> numbers = numbers_for(tried, 7);
    const std::vector<Array> wanted = numbers_of(
        tc::interpret(tc::parse_graph(real_text(tried)), real_tensors(tried, numbers)));
    const std::vector<Array> got = Executable(best_plan(tried, false), false)(numbers);
    return !std::equal(wanted.begin(), wanted.end(), got.begin(), got.end(), same);
  };
  for (unsigned seed = 0; seed < 20; seed++) {
    const Graph tried = Random(seed, 5).graph(25);
    if (!is_wrong(tried)) continue;
    const Graph least = shrunk(tried, is_wrong);
    std::fprintf(stderr,
                 "other bits than the interpreter's; the smallest graph that shows it:\n%s",
                 print(least).c_str());
    return;
  }
  std::fprintf(stderr, "the interpreter's bits on 20 random graphs\n");
}
#endif

}  // namespace

int main([[maybe_unused]] int arguments, char**) try {
  const Graph graph = trace(program, program_inputs({}));
#if STEP == 1
  for (const Node& node : graph.nodes)
    std::printf("%-9s line %u\n", info(node.op).name, node.where.line);
#elif STEP == 2
  verify(graph);
  std::fputs(print(graph).c_str(), stdout);
#else
  std::vector<std::pair<const char*, Graph> > graphs = {{"the program", graph}};
#if STEP >= 6
  const Graph both = with_gradients(graph, {0, 2, 3, 4, 5, 6, 7, 8});
  graphs.push_back({"with gradients", both});
#endif
#if STEP >= 5
  if (arguments > 1) return report(graphs.back().second), 0;
#endif
  for (const bool cuda : {false, true})
    for (const auto& [title, each] : graphs)
      if (!cuda || tc::why_no_gpu().empty()) climb(title, each, cuda);
  if (!tc::why_no_gpu().empty()) std::printf("no GPU: %s\n", tc::why_no_gpu().c_str());
#endif
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
