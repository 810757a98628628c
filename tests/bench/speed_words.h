// A function that speed fuzzing drew: a list of calls with PyTorch's names, from which both
// sides are made, tiny_compile's trace and the text of a Python function.
//
//   bias_gelu, inputs x0 bf16[512,3072], x1 bf16[3072]:
//     v0 = add x0 x1      def f(x0, x1):              Tensor v0 = x0 + x1;
//     v1 = gelu v0            v0 = x0 + x1            Tensor v1 = tc::gelu(v0);
//     outputs v1              v1 = F.gelu(v0)         return {v1};
//                             return v1
#pragma once

#include <string>
#include <vector>

#include "tests/bench/gpu_inputs.h"
#include "tiny_compile/tiny_compile.h"

namespace bench {

// Input k is -1 - k; 0 and above is the number of a call's result, those of a call with
// several one after another.
using Value = int;

struct Call {
  std::string word;  // of the table in speed_words.cpp
  std::vector<Value> operands;
  tiny_compile::Sizes integers;                          // axes, sizes
  std::vector<double> numbers;                           // an epsilon, a factor
  tiny_compile::DType dtype = tiny_compile::DType::f32;  // of a cast
  int results = 1;
};

struct Draw {
  uint64_t seed = 0;
  std::string family, what;
  std::vector<Input> inputs;
  std::vector<int64_t> read;  // bytes of each input that a call must read
  std::vector<Call> calls;
  std::vector<Value> outputs;
  // Inputs for which the only output's gradient is returned behind it; none: no gradient. It is
  // a loss, or `cotangent` is the number of the last input, which is the output's gradient.
  std::vector<int> leaves;
  int cotangent = -1;
};

// The draw's function on these inputs, run or traced: outputs, then gradients of the leaves.
std::vector<tiny_compile::Tensor> evaluate(const Draw& draw,
                                           const std::vector<tiny_compile::Tensor>& x);

// `def f(..)`, the function, and `def call(f, ..)`, f or f and its gradients, for eager mode
// and for torch.compile(f). What the text needs around it is in speed_peers.py.
std::string python(const Draw& draw);

std::vector<std::string> all_words();  // that a call may have

}  // namespace bench
