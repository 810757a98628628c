// How a kernel's text is started, and with what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Who starts a kernel's text: the GPU; or the kernel of a group (cuda_group.h), which calls it as a
// function for each block, and where points are counted says how many there are.
enum class Starts : uint8_t { Kernel, Block, Counted };

// "block_of_k_mul_3": the function that is called so for the kernel of that name.
std::string block_function(const std::string& kernel);

// What the kernel reads and writes, in the order in which its text comes to it: kernels that do
// the same to other buffers have the same parameters, however their buffers are numbered.
std::vector<int> buffers_by_use(const Kernel& kernel);

}  // namespace tiny_compile
