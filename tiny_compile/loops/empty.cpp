// Question: what does a kernel do when a size becomes 0?
//
//   rows(i0: 3) { r0 = sum(j0: 0) load x[j0] ; store y[i0] = r0 }
// =>
//   rows(i0: 3) { store y[i0] = f32 0.0 }
//
// `lower` asks the same of sizes that are numbers from the start, so that what runs has no loop
// of 0 turns.
#include "tiny_compile/loops/empty.h"

#include <algorithm>
#include <set>

#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/dead.h"
#include "tiny_compile/loops/lives.h"

namespace tiny_compile {
namespace {

bool has_no_turn(const Kernel& kernel, const Step& step) {
  return inner_count(kernel, step).is_constant(0);
}

Scalar constant_of(const Step& step) {
  Scalar scalar;
  scalar.dtype = step.dtype;
  scalar.value = of_nothing(step.op, step.dtype);
  return scalar;
}

}  // namespace

Literal of_nothing(Op op, DType dtype) {
  if (needs_an_element(op)) fail("an axis is empty, which has no ", info(op).name);
  const Literal nothing = identity(op, dtype);
  return nothing.is(-0.0) ? Literal::of(dtype, 0) : nothing;
}

Kernel without_empty_loops(const Kernel& kernel) {
  Kernel result = kernel;
  const bool no_rows = row_count(kernel).is_constant(0);
  if (no_rows) result.steps.clear(), result.scalars.clear();
  const auto none = [&](const Step& step) { return has_no_turn(kernel, step); };
  if (no_rows || std::none_of(kernel.steps.begin(), kernel.steps.end(), none)) return result;
  for (Scalar& scalar : result.scalars) {
    if (scalar.kind != ScalarKind::Register) continue;
    const Step& step = kernel.steps[scalar.step];
    if (none(step)) scalar = constant_of(step);
  }
  result = without_steps_where(std::move(result), none);
  result.schedule.reset();
  result.sized.clear();
  return result.steps.empty() ? result : without_repeats(result);
}

Program without_empty_kernels(Program program) {
  std::vector<int> numbers;
  std::vector<Kernel> kernels;
  for (Kernel& kernel : program.kernels) {
    numbers.push_back(kernel.steps.empty() ? -1 : static_cast<int>(kernels.size()));
    if (!kernel.steps.empty()) kernels.push_back(std::move(kernel));
  }
  program.kernels = std::move(kernels);
  for (std::vector<int>& launch : program.launches) {
    for (int& kernel : launch) kernel = numbers[kernel];
    std::erase(launch, -1);
  }
  std::erase_if(program.launches,
                [](const std::vector<int>& launch) { return launch.empty(); });
  std::set<int> written;
  for (const Kernel& kernel : program.kernels) {
    for (const int buffer : stored_buffers(kernel)) written.insert(buffer);
  }
  for (size_t b = 0; b < program.buffers.size(); b++) {  // what nobody writes is over nothing
    if (written.count(static_cast<int>(b)) == 0) program.buffers[b].over = -1;
  }
  return program;
}

}  // namespace tiny_compile
