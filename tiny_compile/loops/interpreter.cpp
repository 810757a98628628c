// What does a Program compute? Its buffers are filled with NaN patterns, and its kernels run in
// the order of the launches.
#include "tiny_compile/loops/interpreter.h"

#include <algorithm>
#include <cstring>

#include "tiny_compile/graph/lanes.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/inputs.h"
#include "tiny_compile/loops/run_kernel.h"

namespace tiny_compile {
namespace {

// The buffers of a program: inputs as they lie, all else 0xff.
struct Buffers {
  Tensor arena;
  std::vector<Tensor> values;
  std::vector<Memory> memory;
};

Buffers allocated(const Program& program, std::span<const Tensor> inputs) {
  Buffers all{filled_tensor(Literal{DType::u8, 0xff}, {program.arena_bytes}), {}, {}};
  size_t next = 0;
  for (const Buffer& buffer : program.buffers) {
    Sizes shape;
    for (const Expr& size : buffer.type.shape) shape.push_back(size.constant());
    if (buffer.role == Role::Input && next == inputs.size())
      fail("program ", program.name, " has more inputs than the ", inputs.size(), " given");
    Tensor value = buffer.role == Role::Input ? laid_out(buffer, inputs[next++])
                                              : empty_tensor(buffer.type.dtype, shape);
    if (buffer.role != Role::Input)
      std::memset(value.bytes(), 0xff,
                  static_cast<size_t>(value.numel()) * size_of(value.dtype()));
    all.memory.push_back({buffer.place >= 0 ? all.arena.bytes() + buffer.place : value.bytes(),
                          buffer.size.constant(),
                          buffer.type.dtype,
                          {},
                          {}});
    all.values.push_back(std::move(value));
  }
  for (int b = 0; b < static_cast<int>(all.values.size()); b++) {
    const int at = storage_of(program, b);
    Tensor& value = all.values[b];
    if (at != b) value = with_layout(all.values[at], value.shape(), value.strides(), 0);
    all.memory[b].data = all.memory[at].data;
  }
  return all;
}

int64_t touched_bytes(const std::vector<Memory>& memory) {
  int64_t bytes = 0;
  for (const Memory& m : memory)
    bytes += (std::count(m.read.begin(), m.read.end(), true) +
              std::count(m.written.begin(), m.written.end(), true)) *
             size_of(m.dtype);
  return bytes;
}

std::vector<Tensor> outputs_of(const Program& program, std::span<const Tensor> inputs,
                               const std::vector<Tensor>& values) {
  std::vector<Tensor> outputs;
  size_t input = 0;
  std::vector<size_t> slot(program.buffers.size());
  for (size_t b = 0; b < slot.size(); b++)
    slot[b] = program.buffers[b].role == Role::Input ? input++ : 0;
  for (int b : program.outputs)
    outputs.push_back(program.buffers[b].role == Role::Input ? inputs[slot[b]] : values[b]);
  return outputs;
}

std::vector<Tensor> run(const Program& given, std::span<const Tensor> inputs,
                        const BeforePoints& before, const RunKernel& other,
                        std::vector<int64_t>* touched) {
  const Program program = with_numbers(given, inputs);
  Buffers all = allocated(program, inputs);
  take_errors();
  for (const std::vector<int>& launch : program.launches) {
    for (int id : launch) {
      for (Memory& m : all.memory) {
        m.read.assign(touched ? static_cast<size_t>(m.size) : 0, false);
        m.written = m.read;
      }
      if (!other || !other(program, program.kernels[id], all.memory))
        run_kernel(program.kernels[id], all.memory, before);
      if (touched) touched->push_back(touched_bytes(all.memory));
    }
  }
  if (const unsigned errors = take_errors()) throw_errors(errors, program.name);
  return outputs_of(program, inputs, all.values);
}

}  // namespace

std::vector<Tensor> interpret(const Program& program, std::span<const Tensor> inputs,
                              const BeforePoints& before, const RunKernel& other) {
  return run(program, inputs, before, other, nullptr);
}

std::vector<int64_t> bytes_touched(const Program& program, std::span<const Tensor> inputs) {
  std::vector<int64_t> touched;
  run(program, inputs, {}, {}, &touched);
  return touched;
}

}  // namespace tiny_compile
