// The rows of the GPU table: what each computes, on which inputs, and what it must move.
//
// PyTorch's side of every row is the function of the same name in gpu_peers.py. Inputs are made
// from a counter, so that both sides hold the same bits without exchanging them (gpu_inputs.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/gpu_inputs.h"
#include "tiny_compile/codegen/source.h"
#include "tiny_compile/tiny_compile.h"

namespace bench {

// A row's function compiled with some options and bound to inputs.
struct Ready {
  std::function<void()> call;  // compiles when it is called first
  std::function<std::vector<tiny_compile::Tensor>()> results;
  std::function<tiny_compile::Graph()> graph;  // as traced
};

struct GpuRow {
  std::string name, what;
  std::string family, python;  // of speed fuzzing's draws (speed_grammar.h), else ""
  double bytes = 0;     // the least a call must move: its floor; 0 where arithmetic decides
  bool tiny = false;    // shorter on the device than its call on the host
  bool exact = true;    // by contract the interpreter's bits: no vendor matmul in it
  double limit = 0.01;  // else how far from them a small instance may be: |off| / |right|
  std::vector<Input> inputs;
  std::function<Ready(const tiny_compile::CompileOptions&,
                      const std::vector<tiny_compile::Tensor>&)>
      prepare;
};

using RowMaker = std::function<GpuRow(const std::string& name, bool small)>;

std::vector<std::string> gpu_row_names();  // of the table in README: pointwise ... clip_adamw
// The same functions where tensors are not round: softmax/127 (row length, 64 Mi elements in
// all), softmax/misaligned (starts one element into its storage), softmax/transposed,
// softmax/strided (every second element).
std::vector<std::string> gpu_ragged_names();

// `small`: a few thousand elements, for the interpreter. Any row may be followed by the memory budget
// that it is compiled with, gpt2_fwdbwd/budget=0.5. Throws tc::Error for another name.
GpuRow make_gpu_row(const std::string& name, bool small = false);

// One for each element that an op of the graph produces (a reduction: reads), 2*m*n*k for a
// matmul: what the roofline calls arithmetic.
double count_operations(const tiny_compile::Graph& graph);

// What a graph becomes on a GPU with default options, and the kernels a call puts on it: the
// vendor's library is taken to start one for each of its calls, and to make the sums it can.
tiny_compile::Source cuda_source(const tiny_compile::Graph& graph);
int64_t count_launches(const tiny_compile::Source& source);

// gpu_gpt2.cpp; nothing for another name.
std::vector<std::string> gpt2_row_names();
std::optional<GpuRow> make_gpt2_row(const std::string& name, bool small);

}  // namespace bench
