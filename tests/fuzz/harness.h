// Random graphs run every way there is, compared bit for bit with the graph's interpreter.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/random_graph.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/cpp_toolchain.h"

namespace tiny_compile {

// A mismatch: the graph shrunk to what still fails, and what the stage made of it, as text.
struct FuzzFailure {
  uint64_t seed = 0;
  std::string stage, text;
};

using GraphMaker = std::function<Graph(uint64_t seed)>;
inline Graph any_graph(uint64_t seed) { return random_graph(seed); }

// Seeds first, first + 1, ...: the graph after each graph stage and the Program after each
// Program stage are interpreted.
std::vector<FuzzFailure> fuzz_loops(uint64_t first, int count,
                                    const Pipeline& pipeline = default_pipeline(),
                                    const GraphMaker& make = any_graph);

// Each graph after the last stage and after one that its seed chooses, as C++: all in one
// translation unit, each buffer between guard words, each kernel's units in two calls.
std::vector<FuzzFailure> fuzz_cpp(uint64_t first, int count,
                                  const Pipeline& pipeline = default_pipeline(),
                                  const GraphMaker& make = any_graph);

// The same on a GPU: cuda must have the interpreter's bits. Buffers are the runtime's own.
std::vector<FuzzFailure> fuzz_cuda(uint64_t first, int count,
                                   const Pipeline& pipeline = default_pipeline(),
                                   const GraphMaker& make = any_graph);

// The same text on the CPU, thread by thread in two orders, without a GPU; two seconds a graph.
std::vector<FuzzFailure> fuzz_threads(uint64_t first, int count,
                                      const Pipeline& pipeline = default_pipeline(),
                                      const GraphMaker& make = any_graph);

// The outputs of a compiled program. Throws tc::Error where a kernel wrote outside its buffers
// or to an input, or raised an error.
std::vector<Tensor> run_guarded(const Program& program, const Source& source,
                                const SharedLibrary& library,
                                const std::vector<Tensor>& inputs);

size_t bytes_of(const Buffer& buffer);

// Runs all kernels over buffers that lie at these addresses, each in two calls, the later units
// first; returns the error bits that they raised. own(n, zeroed): n bytes for one
// kernel, at a multiple of 64, of which the first `zeroed` are zeros.
unsigned run_launches(const Program& program, const Source& source,
                      const SharedLibrary& library, const std::vector<void*>& addresses,
                      const std::function<std::byte*(size_t bytes, size_t zeroed)>& own);

// The outputs among those buffers, copied.
std::vector<Tensor> outputs_at(const Program& program, const std::vector<void*>& addresses);

// From here on this process compiles without the user's cache.
void use_no_cache();

}  // namespace tiny_compile
