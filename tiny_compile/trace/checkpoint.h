// A function whose inside is not kept for its derivative.
#pragma once

#include <vector>

#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {

// function(x), which the derivative computes again from x (and from what the function captured):
// the same bits, random draws too. Where nothing is going to be differentiated, the ops alone.
std::vector<Tensor> checkpointed(const TensorFunction& function, const std::vector<Tensor>& x);

}  // namespace tiny_compile
