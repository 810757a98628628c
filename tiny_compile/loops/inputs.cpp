// How do a call's inputs lie in a program's buffers?
//
//   x: f32[8,8] strides=[1,8], given row-major   =>   64 elements, column by column
#include "tiny_compile/loops/inputs.h"

#include <cstring>

#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/loops/memory.h"
#include "tiny_compile/loops/verify.h"

namespace tiny_compile {

namespace {

Sizes numbers_of(const std::vector<Expr>& sizes) {
  Sizes numbers;
  for (const Expr& size : sizes) numbers.push_back(size.constant());
  return numbers;
}

}  // namespace

void check_input(const Buffer& buffer, const Tensor& input) {
  if (input.dtype() == buffer.type.dtype && input.shape() == numbers_of(buffer.type.shape))
    return;
  fail("input ", buffer.name, " is ", buffer.type.str(), ", but was given ", input.dtype(), "[",
       join(input.shape(), ","), "]");
}

// The input as the buffer lays it out: from its lowest element on.
Tensor laid_out(const Buffer& buffer, const Tensor& input) {
  check_input(buffer, input);
  const Sizes shape = input.shape();
  if (buffer.strides.empty()) return contiguous_copy(input);
  Tensor flat = empty_tensor(buffer.type.dtype, {buffer.size.constant()});
  const Sizes strides = numbers_of(buffer.strides);
  const int64_t width = size_of(flat.dtype());
  if (input.strides() == strides) {  // also what lies between its elements
    std::memcpy(flat.bytes(), input.bytes() - buffer.offset.constant() * width,
                static_cast<size_t>(flat.numel() * width));
    return flat;
  }
  const Tensor source = contiguous_copy(input);
  Sizes index(shape.size());
  for (int64_t i = 0; i < source.numel(); i++) {
    int64_t rest = i, at = buffer.offset.constant();
    for (size_t k = shape.size(); k-- > 0;) {
      at += rest % shape[k] * strides[k];
      rest /= shape[k];
    }
    std::memcpy(flat.bytes() + at * width, source.bytes() + i * width, width);
  }
  return flat;
}

// The sizes of this call are those of its inputs.
Substitution sizes_of_call(const Program& program, std::span<const Tensor> inputs) {
  std::vector<SizedInput> shapes;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.role != Role::Input || shapes.size() == inputs.size()) continue;
    shapes.push_back({buffer.name, buffer.type.shape, inputs[shapes.size()].shape()});
  }
  return solve_sizes(sizes(program), shapes);
}

Program with_numbers(const Program& program, std::span<const Tensor> inputs) {
  if (sizes(program).empty()) return program;
  const Substitution numbers = sizes_of_call(program, inputs);
  Program result = substitute(program, numbers);
  verify_for(numbers, result);
  return result;
}

Program with_buffers_for(const Program& program, const Substitution& numbers) {
  Program all = substitute(program, numbers);
  verify_for(numbers, all);
  Program result = program;
  result.buffers = std::move(all.buffers);
  return place_temporaries(std::move(result));
}

}  // namespace tiny_compile
