// C++ of symbolic sizes: compiled once, run for many.
#include <omp.h>

#include <string>
#include <thread>
#include <vector>

#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/passes/gradient.h"
#include "tiny_compile/runtime/executable.h"
#include "tiny_compile/tiny_compile.h"
#include "tiny_compile/trace/tracer.h"

#include "tests/codegen/symbolic_graphs.h"
#include "tests/fuzz/harness.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

// Graphs whose programs are one text, compiled once.
class OneText {
 public:
  explicit OneText(std::vector<Graph> graphs) : graphs_(std::move(graphs)) {
    for (const Graph& graph : graphs_)
      programs_.push_back(
          run_pipeline(until(default_pipeline(), "plan_memory"), graph, true).program);
    sources_ = emit_cpp_together(lower_all_to_tiles(programs_));
    built_ = build_cpp(sources_[0].text, default_toolchain(), sources_[0].units);
    for (size_t k = 0; k < graphs_.size(); k++) {
      REQUIRE(sizes(programs_[k]).size() == symbols(graphs_[k]).size());
      executables_.push_back(std::make_unique<Executable>(programs_[k], sources_[k], built_));
    }
  }

  // Those of the interpreter on the graph of numbers.
  void check(size_t which, const SizeValues& values) const {
    const Graph& graph = graphs_[which];
    const Graph small = substitute(graph, bind_sizes(symbols(graph), values));
    const std::vector<Tensor> inputs = seeded_inputs(small, 7, {});
    const std::vector<Tensor> wanted = interpret(small, inputs);
    INFO(print(programs_[which]) << values[0].first << " = " << values[0].second);
    check_bits(wanted, executables_[which]->run(inputs));
    check_bits(wanted, run_guarded(programs_[which], sources_[which], *built_.library, inputs));
  }
  size_t count() const { return graphs_.size(); }
  const Graph& graph(size_t which) const { return graphs_[which]; }
  std::vector<Tensor> run(size_t which, const std::vector<Tensor>& inputs) const {
    return executables_[which]->run(inputs);
  }

 private:
  std::vector<Graph> graphs_;
  std::vector<Program> programs_;
  std::vector<Source> sources_;
  BuiltLibrary built_;
  std::vector<std::unique_ptr<Executable>> executables_;
};

Tensor zeros_of(const Sizes& shape) { return filled_tensor(Literal::of(DType::f32, 0), shape); }

}  // namespace

TEST_CASE("each op is compiled on n and run for many", "[symbolic][sizes]") {
  const OneText compiled(graphs_of_cases(1));
  for (size_t k = 0; k < compiled.count(); k++) {
    for (const int64_t size : {1, 2, 7, 37, 1001, 1024, 1025, 2049, 4096})
      compiled.check(k, {{"n", size}});
  }
}

TEST_CASE("each op is compiled on an n that may be 0", "[symbolic][sizes]") {
  const OneText compiled(graphs_of_cases(0));
  int empty = 0;
  for (size_t k = 0; k < compiled.count(); k++) {
    for (const int64_t size : {0, 1, 37, 1025}) {
      if (!is_sound(compiled.graph(k), {{"n", size}})) continue;
      compiled.check(k, {{"n", size}});
      empty += size == 0;
    }
  }
  CHECK(empty > 40);
}

TEST_CASE("each op's derivative is compiled on n", "[symbolic][sizes][derivatives]") {
  std::vector<Graph> graphs;
  for (const Graph& graph : graphs_of_cases(1)) {
    std::vector<int> floats;
    const std::vector<int> inputs = graph.inputs();
    for (size_t k = 0; k < inputs.size(); k++)
      if (is_float(graph[inputs[k]].type.dtype)) floats.push_back(static_cast<int>(k));
    graphs.push_back(vjp(graph, floats));
  }
  const OneText compiled(graphs);
  for (size_t k = 0; k < compiled.count(); k++) {
    for (const int64_t size : {1, 7, 1001, 1025}) compiled.check(k, {{"n", size}});
  }
}

TEST_CASE("one text has the interpreter's bits for 100 sizes", "[symbolic][sizes]") {
  std::vector<Graph> graphs;
  for (const Named& one : kNamed) graphs.push_back(graph_of(one));
  const OneText compiled(graphs);
  for (size_t k = 0; k < kNamed.size(); k++) {
    CAPTURE(kNamed[k].name);
    const int64_t least = symbols(graphs[k])[0].bounds().low;
    for (const int64_t size : sizes_to_try(least, kNamed[k].most))
      compiled.check(k, values_of(graphs[k], size, kNamed[k].most));
  }
}

TEST_CASE("what does not fit is told before anything runs", "[symbolic][sizes]") {
  const OneText text({parse_graph(
      "graph f[n: 2..64, m: 1..64](%0 x: f32[n*2 + 1], %1 y: f32[m,n]) {\n"
      "  %2: f32[n*2 + 1] = exp %0\n  %3: f32[m] = max %1 {axes=[1]}\n  return %2, %3\n}\n")});
  const auto call = [&](const Sizes& x, const Sizes& y) {
    return text.run(0, {zeros_of(x), zeros_of(y)});
  };
  CHECK(call({75}, {5, 37})[1].shape() == Sizes{5});
  CHECK_THROWS_WITH(call({76}, {5, 37}), ContainsSubstring("input x is f32[75]"));
  CHECK_THROWS_WITH(call({75}, {5, 36}), ContainsSubstring("input y is f32[5,37]"));
  CHECK_THROWS_WITH(call({3}, {5, 1}), ContainsSubstring("n is 1, which is not in 2..64"));
  CHECK_THROWS_WITH(text.run(0, {zeros_of({75})}), ContainsSubstring("does not follow from"));
  CHECK_THROWS_WITH(text.run(0, {zeros_of({75}), zeros_of({5, 37}), zeros_of({1})}),
                    ContainsSubstring("has 2 inputs, but was given 3"));
  CHECK(call({75}, {5, 37})[0].shape() == Sizes{75});
}

TEST_CASE("a size of 0 that an op cannot have is told for the call", "[symbolic][sizes]") {
  const OneText text(
      {parse_graph("graph f[n: 0..64](%0 x: f32[3,n]) {\n"
                   "  %1: f32[3] = max %0 {axes=[1]}\n  return %1\n}\n")});
  CHECK_THROWS_WITH(text.run(0, {zeros_of({3, 0})}), ContainsSubstring("has no max"));
  CHECK(text.run(0, {zeros_of({3, 1})})[0].shape() == Sizes{3});
}

TEST_CASE("kernels whose strides are sums of sizes keep their places", "[symbolic][sizes]") {
  const OneText text(
      {parse_graph("graph f[n: 0..64](%0 x: f32[n,n]) {\n"
                   "  %1: f32[n,n + 2] = pad %0 {low=[0,0], high=[0,2], value=0.0}\n"
                   "  %2: f32[n,n + 2] = div %1, %1\n  %3: u8[n,n + 2] = cast %1\n"
                   "  %4: u8[n,n + 2] = cast %2\n  %5: u8[n,n + 2] = shift_left %4, %3\n"
                   "  return %5\n}\n")});
  for (const int64_t n : {0, 1, 2, 7, 33}) text.check(0, {{"n", n}});
}

TEST_CASE("where there is no point, no index is out of range", "[symbolic][sizes]") {
  const OneText text(
      {parse_graph("graph f[n: 0..64](%0 x: f32[n], %1 at: i64[1]) {\n"
                   "  %2: i64[n] = expand %1\n  %3: f32[n] = gather %0, %2 {axis=0}\n"
                   "  return %3\n}\n")});
  const Tensor seven = filled_tensor(Literal::of_integer(DType::i64, 7), {1});
  CHECK(text.run(0, {zeros_of({0}), seven})[0].shape() == Sizes{0});
  CHECK(text.run(0, {zeros_of({8}), seven})[0].shape() == Sizes{8});
  CHECK_THROWS_WITH(text.run(0, {zeros_of({7}), seven}), ContainsSubstring("out of range"));
}

TEST_CASE("a tensor that lies otherwise is copied first", "[symbolic][sizes]") {
  const OneText text(
      {parse_graph("graph f[n: 0..64](%0 x: f32[n,3]) {\n"
                   "  %1: f32[3] = sum %0 {axes=[0]}\n  return %1\n}\n")});
  const Tensor x = arange(15).to(DType::f32).reshape({3, 5}).t();
  check_bits(text.run(0, {contiguous_copy(x)}), text.run(0, {x}));
}

// More shapes than a program keeps plans of, from several threads, and kernels that are shared among
// others.
TEST_CASE("threads call one text with many sizes at once", "[symbolic][sizes]") {
  const OneText text(
      {parse_graph("graph f[n: 0..100000](%0 x: f32[n,3]) {\n"
                   "  %1: f32[n,3] = exp %0\n  %2: f32[n] = sum %1 {axes=[1]}\n"
                   "  %3: f32[3] = sum %0 {axes=[0]}\n"
                   "  return %1, %2, %3\n}\n")});
  const auto check_some = [&](int64_t first, int64_t step) {
    for (int64_t size = first; size < 300; size += step) {
      const std::vector<Tensor> inputs = {zeros_of({size, 3})};
      const std::vector<Tensor> got = text.run(0, inputs);
      if (got[1].shape() != Sizes{size} || got[1].numel() != size) return false;
      for (int64_t i = 0; i < size; i++)
        if (got[1].element({i}).as_double() != 3) return false;
    }
    return true;
  };
  std::vector<char> good(4);
  std::vector<std::thread> threads;
  for (int64_t k = 0; k < 4; k++)
    threads.emplace_back([&, k] { good[k] = check_some(k, 3) && check_some(k, 3); });
  for (std::thread& thread : threads) thread.join();
  for (const char one : good) CHECK(one);
  const int before = omp_get_max_threads();
  for (const int count : {1, 4}) {
    omp_set_num_threads(count);
    for (const int64_t size : {0, 1, 7, 30000, 65536, 99999}) text.check(0, {{"n", size}});
  }
  omp_set_num_threads(before);
}

TEST_CASE("short rows of a size go to one thread together", "[symbolic][sizes]") {
  const Graph graph = parse_graph(
      "graph f[n: 1..1000000](%0 x: f32[512,n]) {\n  %1: f32[512] = sum %0 {axes=[1]}\n"
      "  return %1\n}\n");
  const Staged staged = run_pipeline(default_pipeline(), graph, true);
  const auto grain = [&](int64_t size) {
    return plan_call(staged.program, staged.source, {{{"n", SymbolKind::Size}, size}})
        .kernels[0]
        .entry.grain.constant();
  };
  CHECK(grain(1) > 512);
  CHECK(grain(63) == 128);
  CHECK(grain(1000000) == 1);
}

TEST_CASE("sizes of any name are none of the text's words", "[symbolic][sizes]") {
  std::vector<Graph> graphs;
  for (const std::string name :
       {"i1", "j7", "e", "row", "begin", "end", "unit", "t", "l", "x", "buffers", "sizes",
        "int", "for", "count", "full", "size_n", "tile_rows", "tc_exp"}) {
    const std::string s = "f32[" + name + ",3]";
    graphs.push_back(parse_graph(str("graph f[", name, ": 0..4096](%0 x: ", s,
                                     ", %1 y: f32[3,7]) {\n  %2: ", s,
                                     " = exp %0\n  %3: f32[3] = sum %2 {axes=[0]}\n  %4: f32[",
                                     name, ",7] = matmul %0, %1\n  return %2, %3, %4\n}\n")));
  }
  const OneText text(graphs);
  for (size_t k = 0; k < graphs.size(); k++)
    text.check(k, {{symbols(graphs[k])[0].name(), 1026}});
}
