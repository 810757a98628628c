// What are the parameters of a kernel's function?
//
//   store y[i0] = mul(load x[i0], load s[0])   =>   x, s, y
#include "tiny_compile/codegen/cuda_signature.h"

#include <algorithm>

namespace tiny_compile {

std::string block_function(const std::string& kernel) { return "block_of_" + kernel; }

std::vector<int> buffers_by_use(const Kernel& kernel) {
  std::vector<int> buffers;
  auto add = [&](int buffer) {
    if (std::find(buffers.begin(), buffers.end(), buffer) == buffers.end())
      buffers.push_back(buffer);
  };
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Load) add(scalar.buffer);
  }
  for (const Step& step : kernel.steps) {
    if (!makes_register(step)) add(step.buffer);
  }
  return buffers;
}

}  // namespace tiny_compile
