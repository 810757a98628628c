// Which stores and buffers has fusion left over? A result that its readers now compute on the way is
// stored for nobody; and a store that goes may be the last to need another result:
//
//   rows(i: 8) { store a[i] = exp(load x[i]); store b[i] = neg(load a[i]); ... }   nobody reads b
// =>
//   rows(i: 8) { ... }                                                             nor a
#include "tiny_compile/loops/dead.h"

namespace tiny_compile {

Kernel without_dead_stores(const Program& program, Kernel kernel,
                           const std::vector<bool>& loaded) {
  for (bool changed = true; changed;) {
    std::vector<bool> kept = buffers_read(program, kernel);
    for (const Step& step : kernel.steps) {
      if (step.kind == StepKind::Scan || step.kind == StepKind::Scatter)
        kept[step.buffer] = true;
    }
    std::vector<int> numbers;
    std::vector<Step> steps;
    for (const Step& step : kernel.steps) {
      const bool dead = step.kind == StepKind::Store && !loaded[step.buffer] &&
                        !kept[step.buffer] &&
                        program.buffers[step.buffer].role == Role::Temporary;
      numbers.push_back(static_cast<int>(steps.size()));
      if (!dead) steps.push_back(step);
    }
    changed = steps.size() < kernel.steps.size();
    if (!changed) break;
    kernel.steps = std::move(steps);
    for (Scalar& scalar : kernel.scalars) {
      if (scalar.kind == ScalarKind::Register) scalar.step = numbers[scalar.step];
    }
    kernel = normalize(std::move(kernel));
  }
  return kernel;
}

Program drop_unused_buffers(Program program) {
  std::vector<bool> used(program.buffers.size());
  for (size_t b = 0; b < used.size(); b++) used[b] = program.buffers[b].role != Role::Temporary;
  for (const Kernel& kernel : program.kernels) {
    for (const Scalar& scalar : kernel.scalars) {
      if (scalar.kind == ScalarKind::Load) used[scalar.buffer] = true;
    }
    for (const Step& step : kernel.steps) {
      if (!makes_register(step)) used[step.buffer] = true;
    }
  }
  std::vector<int> numbers(used.size(), -1);
  std::vector<Buffer> kept;
  for (size_t b = 0; b < used.size(); b++) {
    if (!used[b]) continue;
    numbers[b] = static_cast<int>(kept.size());
    kept.push_back(program.buffers[b]);
  }
  program.buffers = std::move(kept);
  for (int& output : program.outputs) output = numbers[output];
  for (Kernel& kernel : program.kernels) {
    for (Scalar& scalar : kernel.scalars) {
      if (scalar.buffer >= 0) scalar.buffer = numbers[scalar.buffer];
    }
    for (Step& step : kernel.steps) {
      if (step.buffer >= 0) step.buffer = numbers[step.buffer];
    }
  }
  return program;
}

}  // namespace tiny_compile
