// Symbolic sizes: which a graph has, and the same graph with numbers for them.
//
//   graph f[n: 1..4096](%0 x: f32[n,3]) { ... }     with n = 37: %0 x: f32[37,3]
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tiny_compile/base/expr.h"
#include "tiny_compile/graph/graph.h"

namespace tiny_compile {

Shape substitute(const Shape& shape, const Substitution& sizes);
Graph substitute(const Graph& graph, const Substitution& sizes);

// Names that loops and places have in a Program's text, or what a tile counts and holds: i0, j12, at0,
// row, sum3. A size is not called so.
bool is_loop_name(std::string_view name);

// The sizes that a user names, as numbers. Throws tc::Error for a name that is not in `declared`
// and for a value outside of its bounds.
using SizeValues = std::vector<std::pair<std::string, int64_t>>;
Substitution bind_sizes(const std::vector<Expr>& declared, const SizeValues& values);

// The sizes for which each shape is its list of numbers: of [n,3] and [37,3], n = 37. Throws
// tc::Error, naming `what`, where numbers do not fit or a size stands in no shape by itself.
struct SizedInput {
  std::string name;
  Shape shape;
  std::vector<int64_t> numbers;
};
Substitution solve_sizes(const std::vector<Expr>& declared,
                         const std::vector<SizedInput>& inputs);

// Verifies a graph or a Program in which sizes have become numbers. Throws naming them: "for n = 2:
// a window of 3 does not fit 1..2".
std::string values_text(const Substitution& sizes);  // n = 37, m = 2
template <typename Code>
void verify_for(const Substitution& sizes, const Code& code) {
  try {
    verify(code);
  } catch (const Error& error) {
    fail("for ", values_text(sizes), ": ", error.what());
  }
}

// The graph of numbers for inputs of these shapes. Throws where they do not fit.
Graph with_sizes_of(const Graph& graph, const std::vector<std::vector<int64_t>>& shapes);

// Throws unless `declared` is empty: `what` ("emit") needs numbers.
void require_numbers(const std::vector<Expr>& declared, const std::string& what);

}  // namespace tiny_compile
