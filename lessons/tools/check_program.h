// check.h for Programs: whether loops still mean the graph that they were made from.
#pragma once

#include "lessons/tools/check.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/loops/interpreter.h"

namespace tiny_compile::lessons {

// Whether a program is sound and returns the bits of its graph.
inline std::string other_bits(const Graph& graph, const Program& program, int rounds = 4) {
  try {
    verify(program);
  } catch (const Error& error) {
    return str("your result is no sound program: ", error.what(), "\n", print(program));
  }
  for (int round = 0; round < rounds; round++) {
    const std::vector<Tensor> inputs = random_inputs(graph, static_cast<uint64_t>(round) + 1);
    const std::vector<Tensor> want = interpret(graph, inputs), got = interpret(program, inputs);
    if (want.size() != got.size()) return "the program must keep its outputs";
    for (size_t k = 0; k < want.size(); k++) {
      const std::optional<int64_t> at = first_difference(want[k], got[k]);
      if (at)
        return str("output ", k, " has other bits: element ",
                   element_difference(want[k], got[k], *at), "\n", print(graph),
                   print(program));
    }
  }
  return "";
}

// That over random graphs, for the program that `make` makes of each.
inline std::string other_bits_made(const std::function<Program(const Graph&)>& make,
                                   int graphs = 200) {
  for (int seed = 1; seed <= graphs; seed++) {
    const Graph graph = flat_random_graph(static_cast<uint64_t>(seed));
    const std::string trouble = other_bits(graph, make(graph), 1);
    if (!trouble.empty()) return str("random graph ", seed, ": ", trouble);
  }
  return "";
}

}  // namespace tiny_compile::lessons
