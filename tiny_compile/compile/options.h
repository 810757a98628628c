// What a user may say of how a function is compiled.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/compile/pipeline.h"

namespace tiny_compile {

// An axis of a tensor among the arguments, which are numbered in order.
struct DynamicAxis {
  int tensor = 0, axis = 0;
};

struct CompileOptions {
  // "cpp", "cuda", "interpreter"; "eager": one kernel an op, where the inputs are; "": where
  // the inputs are
  std::string backend = {};
  // As in PyTorch. "default"; "reduce-overhead": the same, as calls on a GPU are replayed in any case;
  // "max-autotune": each kernel's best schedules by the cost model are built, checked and timed when the
  // function is first called, on a GPU also products by the library and by generated kernels, for
  // `tune_seconds` about; winners are remembered on disk (compile/tune.h).
  std::string mode = "default";
  double tune_seconds = 10;
  Pipeline pipeline = default_pipeline();
  // On a GPU matrix products are left to the vendor's library, outside the numeric contract,
  // unless deterministic; tf32: with f32 operands rounded to 10 bits.
  bool deterministic = false, tf32 = false;
  // Of what gradients in the function read of its forward part: how much is kept; the rest is
  // computed again, with the same bits. 1: all; 0: as few bytes as can be (passes/partition.h).
  // A quarter: GPT-2's gradient takes as long on an H200 as with all, in half the memory.
  double memory_budget = 0.25;
  // Numbers of arguments that a call uses up, all tensors in them: results are written over their
  // memory where that keeps every bit, so that a training step needs room for one set of weights.
  // Whoever uses a donated tensor after the call gets an error, a view of it keeps its values; a
  // call that fails says so where it had begun to write.
  std::vector<int> donate = {};
  // Axes whose sizes may be others at each call: {{0, 0}}, the first tensor's first. What is traced and
  // compiled is used again for all sizes that fit what the function asked about them; those that are
  // equal when it is traced are one size. As in PyTorch, 0 and 1 are numbers. Tensors that are not
  // row-major are copied; products are generated kernels.
  std::vector<DynamicAxis> dynamic = {};
  std::string name = "main";  // of the graph, in texts and errors
  size_t cache_limit = 64;    // kinds of input kept; the least recently used goes
#ifdef NDEBUG
  bool verify = false;  // after every stage
#else
  bool verify = true;
#endif
};

}  // namespace tiny_compile
