// What is the sum of one number? The number, by the contract; a maximum is it as well, but for a
// zero, which is +0. So rows of length 1 need no threads that meet, and points are faster:
//
//   rows(i0: 1000) { r0 = max() load x[i0];  r1 = sum() exp(sub(load x[i0], r0)); store .. }
// =>
//   rows(i0: 1000) { store y[i0] = .. exp(sub($0, add($0, 0.0))) .. }
#include "tiny_compile/loops/single_rows.h"

#include <algorithm>

#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/kernel_key.h"

namespace tiny_compile {
namespace {

bool is_single(const Kernel& kernel, const Step& step) {
  if (step.kind == StepKind::Store) return step.inner.empty();
  if (step.kind != StepKind::Reduce || !step.inner.empty()) return false;
  const bool logical = step.op == Op::any || step.op == Op::all;
  return step.op != Op::sum_exp &&
         (!logical || kernel.scalars[step.value].dtype == DType::boolean);
}

class Points {
 public:
  explicit Points(const Kernel& kernel)
      : kernel_(kernel), result_(without_steps(kernel)), table_(result_) {
    ids_.assign(kernel.scalars.size(), -1);
  }

  Kernel write() {
    for (Step step : kernel_.steps) {
      if (step.kind != StepKind::Store) continue;
      for (int* root : step.roots()) *root = point(*root);
      result_.steps.push_back(step);
    }
    return normalize(std::move(result_));
  }

 private:
  int point(int id) {
    if (id < 0) return id;
    if (ids_[id] >= 0) return ids_[id];
    const Scalar& scalar = kernel_.scalars[id];
    if (scalar.kind == ScalarKind::Register)
      return ids_[id] = reduced(kernel_.steps[scalar.step]);
    return ids_[id] = table_.add(renumbered(
               scalar, [&](int other) { return point(other); }, [](int step) { return step; }));
  }

  int reduced(const Step& step) {
    if (step.op == Op::argmax || step.op == Op::argmin)
      return table_.constant(Literal::of_integer(step.dtype, 0));
    int value = point(step.value);
    const DType type = result_.scalars[value].dtype;
    if (type != step.dtype) return table_.apply(Op::cast, step.dtype, {value});
    if (!is_float(type) || (step.op != Op::max && step.op != Op::min)) return value;
    return table_.apply(Op::add, type, {value, table_.constant(Literal::of(type, 0))});
  }

  const Kernel& kernel_;
  Kernel result_;
  ScalarTable table_;
  std::vector<int> ids_;  // what a scalar has become
};

}  // namespace

Kernel with_single_rows_as_points(const Program& program, Kernel kernel) {
  const auto reduces = [](const Step& step) { return step.kind == StepKind::Reduce; };
  const auto single = [&](const Step& step) { return is_single(kernel, step); };
  if (program.target != Target::Cuda || kernel.rows == 0 ||
      std::none_of(kernel.steps.begin(), kernel.steps.end(), reduces) ||
      !std::all_of(kernel.steps.begin(), kernel.steps.end(), single) || !sizes(program).empty())
    return kernel;
  const LoneKernel lone = lone_kernel(program, kernel);
  return is_cooperative(lone.program, lone.kernel()) ? Points(kernel).write() : kernel;
}

}  // namespace tiny_compile
