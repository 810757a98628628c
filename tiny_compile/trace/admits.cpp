// May these inputs use what was traced? Their shapes say what the sizes are:
//
//   given f32[n,8], guard n != 1; x: f32[37,8]   =>   n = 37, which is not 1: yes
#include "tiny_compile/trace/admits.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tiny_compile/graph/sizes.h"

namespace tiny_compile {

bool admits(const Traced& traced, std::span<const Tensor> inputs) {
  std::vector<SizedInput> shapes;
  std::vector<Expr> declared;
  if (inputs.size() != traced.given.size()) return false;
  for (size_t k = 0; k < inputs.size(); k++) {
    const Type& type = traced.given[k];
    if (inputs[k].dtype() != type.dtype || inputs[k].rank() != type.rank()) return false;
    for (const Expr& size : type.shape) collect_symbols(size, declared);
    shapes.push_back({str("x", k), type.shape, inputs[k].shape()});
  }
  try {
    SymbolValues sizes;
    const Substitution solved = solve_sizes(declared, shapes);
    for (const auto& [symbol, value] : solved) sizes.push_back({symbol, value.constant()});
    const bool fit = std::all_of(shapes.begin(), shapes.end(), [&](const SizedInput& input) {
      return substitute(input.shape, solved) ==
             Shape(input.numbers.begin(), input.numbers.end());
    });
    return fit && std::all_of(traced.guards.begin(), traced.guards.end(),
                              [&](const SizeGuard& guard) { return guard.admits(sizes); });
  } catch (const Error&) {  // no such sizes, or a guard's n*n leaves 64 bits
    return false;
  }
}

}  // namespace tiny_compile
