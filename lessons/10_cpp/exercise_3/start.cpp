#include "exercise.h"

namespace exercise {
namespace {

KernelEntry write_kernel(const Program& program, const Kernel& kernel, std::string& text) {
  KernelEntry entry;
  entry.function = "k_" + kernel.name;
  entry.block = kGroup;
  const std::vector<bool> read = buffers_read(program, kernel),
                          written = buffers_written(program, kernel);
  // TODO: arguments, the work item's point, its axes, its scalars, its stores.
  text += str("__kernel void ", entry.function, "(__global float* nothing) {}\n");
  return entry;
}

}  // namespace

Source emit_opencl(const Program& program) {
  Source source;
  for (const Kernel& kernel : program.kernels)
    source.kernels.push_back(write_kernel(program, kernel, source.text));
  return source;
}

}  // namespace exercise
