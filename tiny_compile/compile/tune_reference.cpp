// Against what is a candidate checked? The interpreter says what a kernel means, a hundred
// nanoseconds an element and operation; beyond that the C++ back end, which the tests hold to the
// interpreter's bits, is the other opinion:
//
//   sum of f32[64,300]       19200 elements, one operation     the interpreter
//   sum of f32[16384,4096]   67 million                        the C++ back end
//
// So a fault that all candidates share is found too.
#include "tiny_compile/compile/tune_reference.h"

#include <algorithm>

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tile/lower.h"

namespace tiny_compile {
namespace {

constexpr double kMostInterpreted = 4e6;  // scalars and steps, of all points

double work_of(const Kernel& kernel) {
  double points = 0;
  for (const Step& step : kernel.steps)
    points += static_cast<double>(inner_count(kernel, step).bounds().high);
  const double rows = static_cast<double>(row_count(kernel).bounds().high);
  return rows * points * static_cast<double>(1 + kernel.scalars.size());
}

std::vector<Tensor> on(Device device, std::span<const Tensor> tensors) {
  std::vector<Tensor> there;
  for (const Tensor& tensor : tensors) there.push_back(copy_to(tensor, device));
  return there;
}

bool is_known_to_cpp(const Kernel& kernel) {
  return std::none_of(kernel.steps.begin(), kernel.steps.end(),
                      [](const Step& step) { return step.kind == StepKind::Fold; });
}

Built built_in_cpp(Program alone) {
  alone.matmul = Matmul::Generated;
  alone.kernels[0].schedule.reset();
  alone = schedule(for_machine(std::move(alone), default_machine(Target::Cpp)));
  const Program planned = plan_memory(alone);
  return build(planned, emit(lower_to_tiles(planned)));
}

}  // namespace

Reference reference_for(const Program& alone, std::span<const Tensor> inputs,
                        const Built& own) {
  const Device device = inputs.empty() ? cpu : inputs[0].device();
  const Kernel& kernel = alone.kernels[0];
  if (work_of(kernel) <= kMostInterpreted)
    return {on(device, interpret(alone, on(cpu, inputs))), "the interpreter's"};
  if (is_known_to_cpp(kernel))
    return {on(device, built_in_cpp(alone).run(on(cpu, inputs))), "the C++ back end's"};
  return {own.run(inputs), "its own schedule's"};
}

}  // namespace tiny_compile
