// What a Program means: kernels run point by point, without any compiler, so that lowering and
// fusion can be checked by the hundred thousand.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tiny_compile/loops/program.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

using BeforePoints = std::function<void(const Kernel&)>;

// The outputs, for inputs in the order of the input buffers. Temporaries start as NaN patterns,
// so that a value nobody wrote shows; planned ones share the arena's bytes. Throws tc::Error as
// graph interpretation does, for an access outside its buffer, and what `before` throws.
std::vector<Tensor> interpret(const Program& program, std::span<const Tensor> inputs,
                              const BeforePoints& before = {});

// Bytes of distinct elements that each kernel read and wrote, counted while interpreting.
std::vector<int64_t> bytes_touched(const Program& program, std::span<const Tensor> inputs);

}  // namespace tiny_compile
