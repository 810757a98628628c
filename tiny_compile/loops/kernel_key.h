// A kernel as a value that stands alone: what its text may depend on, and nothing else.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A Program of one kernel. Its buffers are those that the kernel uses, in the order in which its
// text comes to them; of each only name, role, dtype, size and alignment are kept.
struct LoneKernel {
  Program program;
  std::vector<int> buffers;  // which of the whole Program's buffers they are
  const Kernel& kernel() const { return program.kernels[0]; }
};

LoneKernel lone_kernel(const Program& program, const Kernel& kernel);

// The same without names, roles and origins: equal keys do the same to buffers of the same kinds,
// in the same way (the schedule counts), and their texts differ in names alone.
struct KernelKey {
  Program program;
  size_t hash = 0;
  bool operator==(const KernelKey& other) const {
    return hash == other.hash && program == other.program;
  }
};

KernelKey key_of(const LoneKernel& lone);

struct KernelKeyHash {
  size_t operator()(const KernelKey& key) const { return key.hash; }
};

// Whether a run may raise an error: an index that data chooses, an integer x / 0.
bool can_fail(const Kernel& kernel);

// The kernels in which data chooses places, with the lines they come from:
// "kernel gather_mul_2 (mlp.cpp:14) or kernel scatter_add_5 (mlp.cpp:20)". "" where there are none.
std::string kernels_with_chosen_places(const Program& program);

}  // namespace tiny_compile
