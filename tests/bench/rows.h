// The rows of the CPU table: inputs, the function that is compiled, and everyone who competes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/tiny_compile.h"

namespace bench {

struct Contestant {
  std::string name;                      // "tiny_compile", "hand", "eigen", "copy", "openblas"
  std::function<void(int threads)> run;  // one call
  tiny_compile::Tensor out;              // what it wrote, to be checked; may be undefined
};

struct Row {
  std::string name, what;
  double bytes = 0, flops = 0;          // the least a call must move; of the matmuls
  bool threaded = true;                 // false: too small for a second thread
  std::vector<Contestant> contestants;  // tiny_compile, hand, others
  std::function<tiny_compile::Specialization()> trace;         // for the cold compile
  std::function<std::vector<tiny_compile::Tensor>()> compute;  // compiled
  std::function<std::vector<tiny_compile::Tensor>()> expect;   // by the interpreter
};

// pointwise bias_gelu softmax layernorm mse adamw transpose_add colsum mlp tiny_chain
std::vector<std::string> row_names();
Row make_row(const std::string& name);  // throws tc::Error for another name

}  // namespace bench
