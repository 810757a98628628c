// C++ of symbolic sizes: compiled once, run for many.
#include <omp.h>

#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/passes/gradient.h"
#include "tiny_compile/runtime/executable.h"
#include "tiny_compile/tiny_compile.h"
#include "tiny_compile/trace/tracer.h"

#include "tests/fuzz/harness.h"
#include "tests/loops/symbolic_cases.h"
#include "tests/loops/symbolic_stages.h"

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
    sources_ = emit_cpp_together(programs_);
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

// The call that values make of the graph, if there is one: max has none of no elements, and a window
// of 3 none of 2.
bool is_sound(const Graph& graph, const SizeValues& values) {
  try {
    const Graph small = substitute(graph, bind_sizes(symbols(graph), values));
    verify(small);
    interpret(small, seeded_inputs(small, 7, {}));
    return true;
  } catch (const Error&) {
    return false;
  }
}

Tensor zeros_of(const Sizes& shape) { return filled_tensor(Literal::of(DType::f32, 0), shape); }

using Inputs = std::span<const Tensor>;

struct Named {
  const char* name;
  std::vector<Type> inputs;
  std::function<std::vector<Tensor>(Inputs)> function;
  int64_t most = 1030;  // of n: an interpreter has to follow
};

Expr size_from(const char* name, int64_t least) {
  return Expr::symbol({name, SymbolKind::Size}, least, 1 << 20);
}
const Expr n = size_from("n", 1), z = size_from("z", 0), m = size_from("m", 1);
const auto f32 = [](Shape shape) { return Type{DType::f32, std::move(shape)}; };

Tensor relu_of_pad(const Tensor& x) { return relu(pad(x, {1, 1, 2, 0}, 3)); }

const std::vector<Named> kNamed = {
    {"softmax of rows", {f32({z, 8})}, [](Inputs x) { return std::vector{softmax(x[0], 1)}; }},
    {"softmax of n long",
     {f32({3, n})},
     [](Inputs x) { return std::vector{softmax(x[0], 1)}; }},
    {"softmax of columns",
     {f32({n, 20})},
     [](Inputs x) { return std::vector{softmax(x[0], 0)}; }},
    {"log_softmax", {f32({2, n})}, [](Inputs x) { return std::vector{log_softmax(x[0], 1)}; }},
    {"sum of columns", {f32({z, 24})}, [](Inputs x) { return std::vector{x[0].sum(0)}; }},
    {"sum of n columns", {f32({11, z})}, [](Inputs x) { return std::vector{x[0].sum(0)}; }},
    {"sum of m columns of n", {f32({n, m})}, [](Inputs x) { return std::vector{x[0].sum(0)}; }},
    {"sum of all", {f32({z, 37})}, [](Inputs x) { return std::vector{x[0].sum()}; }},
    {"transpose", {f32({z, 36})}, [](Inputs x) { return std::vector{contiguous(x[0].t())}; }},
    {"transpose of n by m",
     {f32({n, m}), f32({m, n})},
     [](Inputs x) { return std::vector{x[0].t() + x[1]}; }},
    {"matmul of n rows",
     {f32({z, 33}), f32({33, 20})},
     [](Inputs x) { return std::vector{relu(matmul(x[0], x[1]))}; }},
    {"matmul of n columns",
     {f32({9, 33}), f32({33, z})},
     [](Inputs x) { return std::vector{matmul(x[0], x[1])}; }},
    {"matmul along n",
     {f32({z, 17}), f32({z, 40})},
     [](Inputs x) { return std::vector{matmul(x[0].t(), x[1])}; }},
    {"matmul of all sizes",
     {f32({n, m}), f32({m, n})},
     [](Inputs x) { return std::vector{matmul(x[0], x[1])}; },
     160},
    {"batches of matmuls",
     {f32({z, 5, 6}), f32({z, 6, 7})},
     [](Inputs x) { return std::vector{matmul(x[0], x[1])}; }},
    {"layer_norm",
     {f32({z, 24})},
     [](Inputs x) { return std::vector{layer_norm(x[0], {24})}; }},
    {"layer_norm of n long",
     {f32({3, n})},
     [](Inputs x) { return std::vector{layer_norm(x[0], {x[0].size(1)})}; }},
    {"var", {f32({5, n})}, [](Inputs x) { return std::vector{var(x[0], 1)}; }, 1000},
    {"argmax",
     {f32({n, 20})},
     [](Inputs x) {
       return std::vector{x[0].argmax(0), x[0].argmin(1)};
     }},
    {"cumsum", {f32({z, 3})}, [](Inputs x) { return std::vector{cumsum(x[0], 0)}; }},
    {"sort", {f32({3, z})}, [](Inputs x) { return std::vector{sort(x[0], 1).first}; }},
    {"pads and concats",
     {f32({z, 6}), f32({4, 6})},
     [](Inputs x) {
       return std::vector{relu_of_pad(concat({x[0], x[1], x[0]}))};
     }},
    {"a convolution of n images",
     {f32({z, 2, 6, 6}), f32({3, 2, 3, 3})},
     [](Inputs x) { return std::vector{conv2d(x[0], x[1], {}, 1, 1)}; },
     100},
    {"a convolution of n pixels",
     {f32({1, 2, 6, n + 2}), f32({3, 2, 3, 3})},
     [](Inputs x) { return std::vector{conv2d(x[0], x[1])}; },
     150},
    {"an embedding",
     {Type{DType::i64, {z}}, f32({8, 5})},
     [](Inputs x) { return std::vector{embedding(remainder(x[0], 8), x[1])}; }},
    {"attention",
     {f32({1, n, 4}), f32({1, m, 4}), f32({1, m, 4})},
     [](Inputs x) { return std::vector{scaled_dot_product_attention(x[0], x[1], x[2])}; },
     100},
    {"halves",
     {Type{DType::bf16, {n, 12}}},
     [](Inputs x) {
       return std::vector{softmax(x[0] * 2, 0), x[0].sum(1)};
     }},
    {"integers",
     {Type{DType::i32, {z, 9}}},
     [](Inputs x) {
       return std::vector{x[0].sum(0), x[0].prod({1}), floor_divide(x[0], 3)};
     }},
};

Graph graph_of(const Named& one) {
  return trace_symbolic(one.function, one.inputs, "f", {}).graph;
}

// Sizes that chunks, vectors and blocks end near, and some between.
std::vector<int64_t> sizes_to_try(int64_t least, int64_t most) {
  std::set<int64_t> tried;
  for (const int64_t size :
       {0, 1, 2, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1001, 1023, 1024, 1025})
    if (size >= least && size <= most) tried.insert(size);
  std::mt19937 random(1);
  const auto wanted = std::min<size_t>(100, static_cast<size_t>(most - least + 1));
  while (tried.size() < wanted)
    tried.insert(std::uniform_int_distribution<int64_t>(least, most)(random));
  return {tried.begin(), tried.end()};
}

// The size of that number, and of another one by which it goes down.
SizeValues values_of(const Graph& graph, int64_t number, int64_t most) {
  SizeValues values;
  for (const Expr& size : symbols(graph))
    values.push_back(
        {size.name(), size.name() == "m" ? std::max<int64_t>(1, (most - number) / 8) : number});
  return values;
}

std::vector<Graph> graphs_of_cases(int64_t least) {
  std::vector<Graph> graphs;
  for (const SymbolicCase& one : kSymbolicCases) graphs.push_back(graph_of(one, least));
  return graphs;
}

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

TEST_CASE("a text for a GPU is one of numbers", "[symbolic][sizes]") {
  const Graph graph = graph_of(kSymbolicCases[0]);
  CHECK_THROWS_WITH(
      run_pipeline(default_pipeline(), graph, true, Target::Cuda),
      ContainsSubstring("emit for cuda needs numbers for sizes, and n is symbolic"));
}
