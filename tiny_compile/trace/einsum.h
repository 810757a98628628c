// Sums of products, written as labels of axes: PyTorch's einsum.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/trace/functions.h"

namespace tiny_compile {

// einsum("bij,bjk->bik", {a, b}): any number of operands. A label twice in an operand is its diagonal;
// labels that the result lacks are summed; "..." stands for leading axes that broadcast; without "->"
// the result has what is labelled once, in alphabetical order. Operands are contracted from the left, two
// at a time, each by a matmul where labels are summed. Throws tc::Error for labels that do not fit.
Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands,
              Here here = Here::current());

}  // namespace tiny_compile
