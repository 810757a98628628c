// Random graphs run every way there is, compared bit for bit with the graph's interpreter.
#pragma once

#include <cstdint>
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

// Seeds first, first + 1, ...: the graph after each graph stage and the Program after each
// Program stage are interpreted.
std::vector<FuzzFailure> fuzz_loops(uint64_t first, int count,
                                    const Pipeline& pipeline = default_pipeline());

// Each graph after the last stage and after one that its seed chooses, as C++: all in one
// translation unit, each buffer between guard words, each kernel's units in two calls.
std::vector<FuzzFailure> fuzz_cpp(uint64_t first, int count,
                                  const Pipeline& pipeline = default_pipeline());

// The same on a GPU: cuda must have the interpreter's bits. Buffers are the runtime's own.
std::vector<FuzzFailure> fuzz_cuda(uint64_t first, int count,
                                   const Pipeline& pipeline = default_pipeline());

// The same text on the CPU, thread by thread in two orders, without a GPU; two seconds a graph.
std::vector<FuzzFailure> fuzz_threads(uint64_t first, int count,
                                      const Pipeline& pipeline = default_pipeline());

// The outputs of a compiled program. Throws tc::Error where a kernel wrote outside its buffers
// or to an input, or raised an error.
std::vector<Tensor> run_guarded(const Program& program, const Source& source,
                                const SharedLibrary& library,
                                const std::vector<Tensor>& inputs);

// From here on this process compiles without the user's cache.
void use_no_cache();

}  // namespace tiny_compile
