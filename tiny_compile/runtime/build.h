// Source -> something that runs: by the C++ compiler or NVRTC, behind the disk cache.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tiny_compile/codegen/source.h"
#include "tiny_compile/loops/program.h"
#include "tiny_compile/runtime/cuda_errors.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// What code runs there.
inline Target target_of(Device device) { return device == cpu ? Target::Cpp : Target::Cuda; }

// For what machine: the GPU as its driver describes it, the CPU as the system does.
Machine machine_on(Device device);

// The program for that device; of a GPU that the program names by its machine, for that one.
Program on_device(Program program, Device device);

// A Program that can be called. Inputs in the order of its input buffers, with the strides it
// was made for, on its device; outputs are new tensors, or inputs that the function returns
// as they are. Throws tc::Error where a kernel met an index out of range or an integer
// division by zero (on a GPU: when a result is read), or where memory runs out. Safe to call
// from many threads.
struct Built {
  std::function<std::vector<Tensor>(std::span<const Tensor>)> run;
  bool from_cache = false;
  double compile_seconds = 0;
};

// For the CPU, or for the GPU of that index, as the Program's target says. Throws tc::Error
// where a compiler, a driver or a device is missing, saying which, or the GPU is less than the
// machine that the Program is for. `uses`: on a GPU, the ops that an
// index out of range is told to be of.
Built build(const Program& program, const Source& source, int device = 0,
            const std::vector<IndexUse>& uses = {});

}  // namespace tiny_compile
