// Random graphs of a symbolic size, through every stage that takes one.
#pragma once

#include <optional>

#include "tests/fuzz/harness.h"

namespace tiny_compile {

// The same graph for any n: of each axis of its inputs that is `size`, and of what follows from
// it; n is `least`..4096, or to `size`. None where the graph is of that size alone (a slice 0..size of another
// axis, a reshape that is not seen to fit).
std::optional<Graph> with_symbol(const Graph& graph, int64_t size, int64_t least);

// A graph of numbers with each of its sizes in turn symbolic, from 0 or 1 on as the seed says. The
// graph and the Program of every stage must be valid, be parsed back equal, and have the bits of
// the graph of numbers, for its own and for other numbers that fit it.
struct SymbolicCounts {
  int graphs = 0, calls = 0;  // that had a symbol; of numbers that were tried for it
};
std::vector<FuzzFailure> symbolic_failures(const Graph& numbers, uint64_t seed,
                                           SymbolicCounts& counts);

// Of the random graphs of seeds first, first + 1, ...
std::vector<FuzzFailure> fuzz_symbolic(uint64_t first, int count, SymbolicCounts& counts);

// The generated C++ of the same graphs, compiled together, instead of what each stage made: it is
// to keep to its buffers too.
std::vector<FuzzFailure> fuzz_symbolic_cpp(uint64_t first, int count, SymbolicCounts& counts);

// The generated CUDA of the same graphs, likewise: on the first GPU, or thread by thread on the CPU.
std::vector<FuzzFailure> fuzz_symbolic_cuda(uint64_t first, int count, SymbolicCounts& counts);
std::vector<FuzzFailure> fuzz_symbolic_threads(uint64_t first, int count,
                                               SymbolicCounts& counts);

}  // namespace tiny_compile
