// fuzz N [seed] [loops]: N random graphs; the generated C++ after a random prefix of the
// pipeline must give the interpreter's bits. Many graphs share a translation unit. With `loops`
// the Program's own interpreter runs instead, after lower, fuse, schedule and plan_memory: no
// compiler, far faster.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tests/fuzz/random_graph.h"
#include "tests/fuzz/shrink.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/executable.h"

namespace {

using namespace tiny_compile;

constexpr int kUnit = 24;  // programs compiled together

Program program_after(const Graph& graph, const std::string& stage) {
  Pipeline pipeline = until(default_pipeline(), stage);
  pipeline.push_back({"emit", Emit([](const Program&) { return CppSource{}; })});
  return run_pipeline(pipeline, graph, true).program;
}

std::string stage_of(uint64_t seed) {
  static const char* kStages[] = {"simplify",    "fold",       "cse",      "dce",
                                  "lower",       "fuse",       "schedule", "plan_memory",
                                  "plan_memory", "plan_memory"};
  return kStages[seed * 2654435761u / 16 % 10];
}

bool same(const std::vector<Tensor>& want, const std::vector<Tensor>& got) {
  for (size_t k = 0; k < want.size(); k++) {
    if (!same_bits(want[k], got[k])) return false;
  }
  return want.size() == got.size();
}

// One graph on its own: for shrinking.
bool differs(const Graph& graph, const std::string& stage, uint64_t seed, bool loops) {
  try {
    const std::vector<Tensor> inputs = random_inputs(graph, seed);
    const std::vector<Tensor> want = interpret(graph, inputs);
    const Program program = program_after(graph, stage);
    if (loops) return !same(want, interpret(program, inputs));
    const CppSource source = emit_cpp(program);
    return !same(
        want,
        Executable(program, source, build_cpp(source.text, default_toolchain())).run(inputs));
  } catch (const Error&) {
    return false;
  }
}

void report(const Graph& graph, const std::string& stage, uint64_t seed, bool loops) {
  const Graph small =
      shrink(graph, [&](const Graph& g) { return differs(g, stage, seed, loops); });
  std::printf("MISMATCH: seed %llu, stage %s\n%s", static_cast<unsigned long long>(seed),
              stage.c_str(), print(small).c_str());
  std::printf("%s\n", print(program_after(small, stage)).c_str());
}

int run_unit(uint64_t first, int count) {
  std::vector<Program> programs;
  std::vector<Graph> graphs;
  std::vector<uint64_t> seeds;
  int bad = 0;
  for (int k = 0; k < count; k++) {
    const uint64_t seed = first + static_cast<uint64_t>(k);
    try {
      const Graph graph = random_graph(seed);
      programs.push_back(program_after(graph, stage_of(seed)));
      graphs.push_back(graph);
      seeds.push_back(seed);
    } catch (const Error& error) {
      std::printf("ERROR: seed %llu, stage %s: %s\n", static_cast<unsigned long long>(seed),
                  stage_of(seed).c_str(), error.what());
      bad++;
    }
  }
  if (programs.empty()) return bad;
  const std::vector<CppSource> sources = emit_cpp_together(programs);
  const BuiltLibrary built = build_cpp(sources[0].text, default_toolchain());
  for (size_t k = 0; k < programs.size(); k++) {
    const std::vector<Tensor> inputs = random_inputs(graphs[k], seeds[k]);
    const std::vector<Tensor> want = interpret(graphs[k], inputs);
    const std::vector<Tensor> got = Executable(programs[k], sources[k], built).run(inputs);
    if (same(want, got)) continue;
    report(graphs[k], stage_of(seeds[k]), seeds[k], false);
    bad++;
  }
  return bad;
}

// The Program's interpreter at every stage from lower on.
int run_loops(uint64_t seed) {
  const Graph graph = random_graph(seed);
  const std::vector<Tensor> inputs = random_inputs(graph, seed);
  const std::vector<Tensor> want = interpret(graph, inputs);
  for (const char* stage : {"lower", "fuse", "plan_memory"}) {
    if (same(want, interpret(program_after(graph, stage), inputs))) continue;
    report(graph, stage, seed, true);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 300;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const bool loops = argc > 3 && std::string(argv[3]) == "loops";
  const int unit = loops ? 1 : kUnit;
  int bad = 0;
  for (int done = 0; done < count; done += unit) {
    try {
      bad += loops
                 ? run_loops(seed + static_cast<uint64_t>(done))
                 : run_unit(seed + static_cast<uint64_t>(done), std::min(kUnit, count - done));
    } catch (const std::exception& error) {
      std::printf("ERROR near seed %llu: %s\n", static_cast<unsigned long long>(seed) + done,
                  error.what());
      bad++;
    }
    if (isatty(2))
      std::fprintf(stderr, "\r%d / %d graphs, %d bad", std::min(count, done + unit), count,
                   bad);
  }
  std::printf("%d graphs, %d bad\n", count, bad);
  return bad ? 1 : 0;
}
