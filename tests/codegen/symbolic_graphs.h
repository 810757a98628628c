// Graphs of symbolic sizes that both back ends compile once, and the sizes to run them for.
#pragma once

#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tiny_compile/tiny_compile.h"
#include "tiny_compile/trace/tracer.h"

#include "tests/loops/symbolic_cases.h"
#include "tests/loops/symbolic_stages.h"

namespace tiny_compile::tests {

// The call that values make of the graph, if there is one: max has none of no elements, and a window
// of 3 none of 2.
inline bool is_sound(const Graph& graph, const SizeValues& values) {
  try {
    const Graph small = substitute(graph, bind_sizes(symbols(graph), values));
    verify(small);
    interpret(small, seeded_inputs(small, 7, {}));
    return true;
  } catch (const Error&) {
    return false;
  }
}

using Inputs = std::span<const Tensor>;

struct Named {
  const char* name;
  std::vector<Type> inputs;
  std::function<std::vector<Tensor>(Inputs)> function;
  int64_t most = 1030;  // of n: an interpreter has to follow
};

inline Expr size_from(const char* name, int64_t least) {
  return Expr::symbol({name, SymbolKind::Size}, least, 1 << 20);
}
inline const Expr n = size_from("n", 1), z = size_from("z", 0), m = size_from("m", 1);
inline const auto f32 = [](Shape shape) { return Type{DType::f32, std::move(shape)}; };

inline Tensor relu_of_pad(const Tensor& x) { return relu(pad(x, {1, 1, 2, 0}, 3)); }

inline const std::vector<Named> kNamed = {
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

inline Graph graph_of(const Named& one) {
  return trace_symbolic(one.function, one.inputs, "f", {}).graph;
}

// Sizes that chunks, vectors and blocks end near, and some between.
inline std::vector<int64_t> sizes_to_try(int64_t least, int64_t most) {
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
inline SizeValues values_of(const Graph& graph, int64_t number, int64_t most) {
  SizeValues values;
  for (const Expr& size : symbols(graph))
    values.push_back(
        {size.name(), size.name() == "m" ? std::max<int64_t>(1, (most - number) / 8) : number});
  return values;
}

inline std::vector<Graph> graphs_of_cases(int64_t least) {
  std::vector<Graph> graphs;
  for (const SymbolicCase& one : kSymbolicCases) graphs.push_back(graph_of(one, least));
  return graphs;
}

}  // namespace tiny_compile::tests
