// The derivative of each op, in reverse mode: from the cotangent of its result to those of its
// operands. Rules are written in ops, so that they are differentiated in their turn.
#pragma once

#include <span>
#include <vector>

#include "tiny_compile/graph/graph.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

struct PullBack {
  const Node& node;
  std::span<const Tensor> x;  // its operands
  const Tensor& y;            // its result
  const Tensor& g;            // the result's cotangent, of the same type
};

// A cotangent of each operand's type; undefined for what has none (integers, an op that is flat
// wherever it has a derivative). Conventions at ties, zeros and NaN are PyTorch's. Throws
// tc::Error at the op's line where nobody knows the derivative that `wanted` asks for.
std::vector<Tensor> pull_back(const PullBack& at, const std::vector<bool>& wanted);

// Its parts, each in a module of its own.
std::vector<Tensor> pull_back_pointwise(const PullBack& at);
std::vector<Tensor> pull_back_view(const PullBack& at);
std::vector<Tensor> pull_back_reduction(const PullBack& at);
std::vector<Tensor> pull_back_scan(const PullBack& at);
std::vector<Tensor> pull_back_indexed(const PullBack& at);  // matmul as well

// x with `low` and `high` zeros more on an axis; negative numbers take elements away.
Tensor padded(const Tensor& x, int64_t axis, const Size& low, const Size& high);

}  // namespace tiny_compile
