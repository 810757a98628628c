// CUDA of symbolic sizes: written once, run for many, thread by thread on the CPU.
#include <memory>
#include <string>
#include <vector>

#include "tiny_compile/codegen/cuda.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/inputs.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tile/interpreter.h"

#include "tests/codegen/cuda_threads.h"
#include "tests/codegen/symbolic_graphs.h"
#include "tests/fuzz/harness.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;

namespace {

std::vector<lessons::Threads::KernelName> all_names(const std::vector<Source>& sources) {
  Source all;
  for (const Source& source : sources)
    all.kernels.insert(all.kernels.end(), source.kernels.begin(), source.kernels.end());
  return threads::names_of(all);
}

// Graphs whose programs are one text.
class OneCudaText {
 public:
  explicit OneCudaText(std::vector<Graph> graphs) : graphs_(std::move(graphs)) {
    for (const Graph& graph : graphs_) {
      staged_.push_back(
          run_pipeline(until(default_pipeline(), "tile"), graph, true, Target::Cuda));
      tiles_.push_back(staged_.back().tiles);
    }
    sources_ = emit_cuda_together(tiles_);
    for (size_t k = 0; k < graphs_.size(); k++)
      REQUIRE(sizes(staged_[k].program).size() == symbols(graphs_[k]).size());
    threads_ =
        std::make_unique<lessons::Threads>(threads::for_cpu(sources_[0]), all_names(sources_));
  }

  void check(size_t which, const SizeValues& values) {
    const Graph& graph = graphs_[which];
    const Substitution numbers = bind_sizes(symbols(graph), values);
    const Graph small = substitute(graph, numbers);
    const std::vector<Tensor> inputs = seeded_inputs(small, 7, {});
    const Program& program = staged_[which].program;
    INFO(print(tiles_[which]) << values[0].first << " = " << values[0].second);
    const Program sized = with_buffers_for(program, numbers);
    check_bits(interpret(small, inputs),
               threads::run_on(*threads_, sized,
                               threads::with_numbers(sources_[which], numbers), inputs));
  }
  size_t count() const { return graphs_.size(); }
  const Graph& graph(size_t which) const { return graphs_[which]; }
  const Staged& staged(size_t which) const { return staged_[which]; }
  const std::string& text() const { return sources_[0].text; }

 private:
  std::vector<Graph> graphs_;
  std::vector<Staged> staged_;
  std::vector<Tiles> tiles_;
  std::vector<Source> sources_;
  std::unique_ptr<lessons::Threads> threads_;
};

std::vector<Graph> named_graphs() {
  std::vector<Graph> graphs;
  for (const Named& one : kNamed) graphs.push_back(graph_of(one));
  return graphs;
}

// What the contract names, for 100 sizes each; the others for some.
bool is_of_contract(const std::string& name) {
  return name.starts_with("softmax") || name.starts_with("sum of") ||
         name.starts_with("transpose") || name.starts_with("matmul");
}

}  // namespace

TEST_CASE("each op is CUDA on n and runs for many", "[symbolic][sizes][cuda_symbolic]") {
  OneCudaText compiled(graphs_of_cases(1));
  for (size_t k = 0; k < compiled.count(); k++) {
    for (const int64_t size : {1, 7, 37, 1025}) compiled.check(k, {{"n", size}});
  }
}

TEST_CASE("each op is CUDA on an n that may be 0", "[symbolic][sizes][cuda_symbolic]") {
  OneCudaText compiled(graphs_of_cases(0));
  int empty = 0;
  for (size_t k = 0; k < compiled.count(); k++) {
    for (const int64_t size : {0, 3}) {
      if (!is_sound(compiled.graph(k), {{"n", size}})) continue;
      compiled.check(k, {{"n", size}});
      empty += size == 0;
    }
  }
  CHECK(empty > 40);
}

TEST_CASE("one CUDA text has the interpreter's bits for 100 sizes",
          "[symbolic][sizes][cuda_symbolic]") {
  OneCudaText compiled(named_graphs());
  for (size_t k = 0; k < kNamed.size(); k++) {
    CAPTURE(kNamed[k].name);
    const int64_t least = symbols(compiled.graph(k))[0].bounds().low;
    const bool often = is_of_contract(kNamed[k].name);
    int tried = 0;
    for (const int64_t size : sizes_to_try(least, kNamed[k].most)) {
      if (!often && tried++ % 10 != 0) continue;
      compiled.check(k, values_of(compiled.graph(k), size, kNamed[k].most));
    }
  }
}

// The tiles alone, without a compiler.
TEST_CASE("tiles of sizes have the interpreter's bits", "[symbolic][sizes][cuda_symbolic]") {
  std::vector<Graph> graphs = graphs_of_cases(1);
  std::vector<int64_t> most(graphs.size(), 1100);
  for (const Named& one : kNamed) graphs.push_back(graph_of(one)), most.push_back(one.most);
  int tiled = 0;
  for (size_t k = 0; k < graphs.size(); k++) {
    const Graph& graph = graphs[k];
    const Tiles tiles =
        run_pipeline(until(default_pipeline(), "tile"), graph, true, Target::Cuda).tiles;
    INFO(print(tiles));
    CHECK(parse_tiles(print(tiles)) == tiles);
    tiled += has_tile(tiles);
    for (const int64_t size : {1, 5, 33, 150}) {
      if (size > most[k]) continue;
      const SizeValues values = values_of(graph, size, std::min<int64_t>(most[k], 200));
      const Graph small = substitute(graph, bind_sizes(symbols(graph), values));
      const std::vector<Tensor> inputs = seeded_inputs(small, 7, {});
      INFO(size);
      check_bits(interpret(small, inputs), interpret(tiles, inputs));
    }
  }
  CHECK(tiled > 45);
}

TEST_CASE("points of any sizes are tiles", "[symbolic][sizes][cuda_symbolic]") {
  for (const auto& [ranges, shape] : {std::pair{"[n: 0..4096]", "[n,3]"},
                                      {"[n: 1..1099511627776]", "[n,3]"},
                                      {"[n: 2..16777216, m: 2..16777216]", "[n,m]"},
                                      {"[n: 0..100]", "[n]"},
                                      {"[n: 0..64, m: 0..64]", "[n,5,m]"}}) {
    const std::string type = str("f32", shape);
    const Graph graph = parse_graph(str("graph f", ranges, "(%0 x: ", type, ") {\n  %1: ", type,
                                        " = exp %0\n  return %1\n}\n"));
    const Tiles tiles =
        run_pipeline(until(default_pipeline(), "tile"), graph, true, Target::Cuda).tiles;
    INFO(print(tiles));
    REQUIRE(tiles.of_kernel.size() == 1);
    CHECK(tiles.of_kernel[0]);
    CHECK(parse_tiles(print(tiles)) == tiles);
    if (why_no_nvrtc().empty()) CHECK(compile_cuda(emit_cuda(tiles).text, "sm_90").size() > 4);
  }
}

TEST_CASE("products of sizes are generated, whoever makes others", "[symbolic][sizes]") {
  const Pipeline pipeline = with_library(default_pipeline(), Matmul::Library);
  for (const Named& one : kNamed) {
    CAPTURE(one.name);
    const Source source = run_pipeline(pipeline, graph_of(one), true, Target::Cuda).source;
    for (const KernelEntry& entry : source.kernels) CHECK_FALSE(entry.library);
  }
}

TEST_CASE("NVRTC takes CUDA of symbolic sizes", "[symbolic][sizes][nvrtc]") {
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  std::vector<Graph> graphs = graphs_of_cases(1);
  for (const Named& one : kNamed) graphs.push_back(graph_of(one));
  std::vector<Tiles> tiles;
  for (const Graph& graph : graphs)
    tiles.push_back(
        run_pipeline(until(default_pipeline(), "tile"), graph, true, Target::Cuda).tiles);
  CHECK(!compile_cuda(emit_cuda_together(tiles)[0].text, "sm_90").empty());
}

TEST_CASE("a GPU runs one text for 100 sizes", "[symbolic][sizes][gpu]") {
  if (!why_no_gpu().empty()) SKIP(why_no_gpu());
  for (const Named& one : kNamed) {
    CAPTURE(one.name);
    const Graph graph = graph_of(one);
    const Staged all =
        run_pipeline(default_pipeline(), graph, true, machine_on(tiny_compile::cuda));
    const Built built = build(all.program, all.source);
    for (const int64_t size : sizes_to_try(symbols(graph)[0].bounds().low, one.most)) {
      const SizeValues values = values_of(graph, size, one.most);
      const Graph small = substitute(graph, bind_sizes(symbols(graph), values));
      const std::vector<Tensor> inputs = seeded_inputs(small, 7, {});
      std::vector<Tensor> there, got;
      for (const Tensor& input : inputs) there.push_back(copy_to(input, tiny_compile::cuda));
      for (const Tensor& output : built.run(there)) got.push_back(copy_to(output, cpu));
      INFO(values[0].first << " = " << values[0].second);
      check_bits(interpret(small, inputs), got);
    }
  }
}
