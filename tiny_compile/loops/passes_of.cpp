// How often is a row read? Once a pass:
//
//   r0 = max(j: 50257) load x[..]; r1 = sum_exp(j: 50257) load x[..]   one pass
//   r0 = sum(j) ..; r1 = sum(j) mul(sub(.., r0), ..)                   two: r1 waits for r0
#include "tiny_compile/loops/passes_of.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLong = 1024;        // a thread holds 32 values of a reduction: two fit
constexpr size_t kFew = 2, kMany = 4;  // reductions of a pass, of long and of short rows

bool waits(const Kernel& kernel, const Step& step, int first) {
  const std::vector<bool> used = reachable(kernel, step);
  for (size_t id = 0; id < used.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (used[id] && scalar.kind == ScalarKind::Register && scalar.step >= first) return true;
  }
  return false;
}

bool joins(const Kernel& kernel, const std::vector<int>& pass, const Step& step) {
  const Step& first = kernel.steps[pass[0]];
  if (step.kind != first.kind || step.inner != first.inner) return false;
  if (step.kind == StepKind::Fold) return false;
  if (step.kind == StepKind::Store) return true;
  const size_t most = inner_count(kernel, step).constant() >= kLong ? kFew : kMany;
  if (is_arg(step) || is_arg(first) || pass.size() == most) return false;
  return !waits(kernel, step, pass[0]);
}

}  // namespace

DType accumulator(Op op, DType operand) {
  if (op == Op::argmax || op == Op::argmin) return compute_type(operand);
  return compute_type(reduction_result(op, operand));
}

std::vector<std::vector<int>> passes_of(const Kernel& kernel) {
  std::vector<std::vector<int>> passes;
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    if (passes.empty() || !joins(kernel, passes.back(), kernel.steps[s])) passes.push_back({});
    passes.back().push_back(static_cast<int>(s));
  }
  return passes;
}

std::vector<bool> stored_alone(const Kernel& kernel,
                               const std::vector<std::vector<int>>& passes) {
  std::vector<bool> stored(kernel.scalars.size()), elsewhere = stored;
  for (const Step& step : kernel.steps) {
    const bool is_last = &step - kernel.steps.data() >= passes.back()[0];
    const bool alone = step.kind == StepKind::Store && step.inner.empty() && !is_last;
    const std::vector<bool> used = reachable(kernel, step);
    for (size_t id = 0; id < used.size(); id++) {
      if (used[id]) (alone ? stored : elsewhere)[id] = true;
    }
  }
  for (size_t id = 0; id < stored.size(); id++) stored[id] = stored[id] && !elsewhere[id];
  return stored;
}

std::vector<Tree> trees_of(const Kernel& kernel, const std::vector<int>& pass) {
  std::vector<Tree> trees;
  for (int s : pass) {
    const Step& step = kernel.steps[s];
    Tree tree{&step, std::to_string(s), accumulator(step.op, kernel.scalars[step.value].dtype)};
    for (int other : pass) {
      const Step& o = kernel.steps[other];
      if (tree.is_sum_exp() && o.op == Op::max && o.value == step.value) tree.maximum = other;
    }
    trees.push_back(tree);
  }
  return trees;
}

}  // namespace tiny_compile
