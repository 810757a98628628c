// A call's inputs: as a program's interpreter wants them, and the sizes that follow from them.
#pragma once

#include <span>

#include "tiny_compile/loops/program.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// The input as the buffer lays it out, from its lowest element on. Throws tc::Error where its dtype
// or shape is another.
Tensor laid_out(const Buffer& buffer, const Tensor& input);

// Throws where the input's dtype or shape is not the buffer's.
void check_input(const Buffer& buffer, const Tensor& input);

// The numbers of this call's sizes. Throws as solve_sizes does.
Substitution sizes_of_call(const Program& program, std::span<const Tensor> inputs);

// The program with such numbers in its buffers, which have places, while its kernels stay as they
// were: those that a text with symbolic sizes has. Throws where what they would do is not sound.
Program with_buffers_for(const Program& program, const Substitution& numbers);

// The program of this call, whose sizes are those of its inputs. Throws as solve_sizes does.
Program with_numbers(const Program& program, std::span<const Tensor> inputs);

}  // namespace tiny_compile
