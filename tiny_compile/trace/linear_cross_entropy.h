// The loss of a language model's last layer, whose logits are never whole in memory.
#pragma once

#include "tiny_compile/trace/nn.h"

namespace tiny_compile {

// cross_entropy(linear(x, weight), target), the mean over the rows whose target is not
// ignore_index: x [N, D], weight [C, D], target [N] of class numbers. `chunk` rows at a time: in
// memory are [chunk, C] logits and their gradient, instead of [N, C] twice. The gradient of a
// gradient keeps each chunk's. N is a number.
Tensor linear_cross_entropy(const Operand& x, const Operand& weight, const Operand& target,
                            int64_t ignore_index = -100, int64_t chunk = 1024);

}  // namespace tiny_compile
