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

// A buffer's bytes while a program is interpreted.
struct Memory {
  std::byte* data = nullptr;
  int64_t size = 0;  // elements
  DType dtype = DType::f32;
  std::vector<bool> read, written;  // elements touched, where counted
};

// Runs a kernel in another way, and says whether it did.
using RunKernel =
    std::function<bool(const Program&, const Kernel&, std::vector<Memory>& memory)>;

// The outputs, for inputs in the order of the input buffers. Temporaries start as NaN patterns,
// so that a value nobody wrote shows; planned ones share the arena's bytes. Throws tc::Error as
// graph interpretation does, for an access outside its buffer, and what `before` throws. `other`
// runs those kernels that it takes.
std::vector<Tensor> interpret(const Program& program, std::span<const Tensor> inputs,
                              const BeforePoints& before = {}, const RunKernel& other = {});

// Bytes of distinct elements that each kernel read and wrote, counted while interpreting.
std::vector<int64_t> bytes_touched(const Program& program, std::span<const Tensor> inputs);

}  // namespace tiny_compile
