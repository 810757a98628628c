// A call's inputs for a program's interpreter.
#pragma once

#include <span>

#include "tiny_compile/loops/program.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// The input as the buffer lays it out, from its lowest element on. Throws tc::Error where its dtype
// or shape is another.
Tensor laid_out(const Buffer& buffer, const Tensor& input);

// The program of this call, whose sizes are those of its inputs. Throws as solve_sizes does.
Program with_numbers(const Program& program, std::span<const Tensor> inputs);

}  // namespace tiny_compile
