// How often is a row read? Once a pass:
//
//   r0 = max(j: 50257) load x[..]; r1 = sum_exp(j: 50257) load x[..]   one pass
//   r0 = sum(j) ..; r1 = sum(j) mul(sub(.., r0), ..)                   two: r1 waits for r0
#include "tiny_compile/loops/passes_of.h"

#include "tiny_compile/loops/axes.h"

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

size_t most_of_pass(const Kernel& kernel, const Step& step) {
  return inner_count(kernel, step).bounds().high >= kLong ? kFew : kMany;
}

// It comes behind the pass: it uses a result of it, or reads what that writes.
bool comes_behind(const Kernel& kernel, const std::vector<int>& pass, const Step& step) {
  const std::vector<bool> used = reachable(kernel, step);
  for (int s : pass) {
    const Step& other = kernel.steps[s];
    for (size_t id = 0; id < used.size(); id++) {
      const Scalar& scalar = kernel.scalars[id];
      if (!used[id]) continue;
      if (scalar.kind == ScalarKind::Register && scalar.step == s) return true;
      if (scalar.kind == ScalarKind::Load && !makes_register(other) &&
          scalar.buffer == other.buffer)
        return true;
    }
  }
  return false;
}

// The number of the pass that a reduction joins; how many there are where it joins none.
size_t pass_to_join(const Kernel& kernel, const std::vector<std::vector<int>>& passes,
                    const Step& step) {
  for (size_t p = passes.size(); p-- > 0;) {
    const Step& first = kernel.steps[passes[p][0]];
    if (comes_behind(kernel, passes[p], step)) break;
    if (first.kind == StepKind::Reduce && first.inner == step.inner &&
        passes[p].size() < most_of_pass(kernel, step))
      return p;
  }
  return passes.size();
}

bool joins(const Kernel& kernel, const std::vector<int>& pass, const Step& step) {
  const Step& first = kernel.steps[pass[0]];
  if (step.kind != first.kind || step.inner != first.inner) return false;
  if (step.kind == StepKind::Fold) return false;
  if (step.kind == StepKind::Store) return true;
  if (is_arg(step) || is_arg(first) || pass.size() == most_of_pass(kernel, step)) return false;
  return !waits(kernel, step, pass[0]);
}

}  // namespace

DType accumulator(Op op, DType operand) {
  if (op == Op::argmax || op == Op::argmin) return compute_type(operand);
  return compute_type(reduction_result(op, operand));
}

bool is_exact(Op op, DType accumulated) {
  const bool rounds = op == Op::sum || op == Op::prod || op == Op::sum_exp;
  return !rounds || !is_float(accumulated);
}

std::vector<std::vector<int>> passes_of(const Kernel& kernel) {
  std::vector<std::vector<int>> passes;
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    if (passes.empty() || !joins(kernel, passes.back(), kernel.steps[s])) passes.push_back({});
    passes.back().push_back(static_cast<int>(s));
  }
  return passes;
}

std::vector<std::vector<int>> gathered_passes_of(const Kernel& kernel) {
  if (folds_rows(kernel)) return passes_of(kernel);
  std::vector<std::vector<int>> passes;
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    const Step& step = kernel.steps[s];
    const bool follows =
        !passes.empty() && step.kind == StepKind::Store && joins(kernel, passes.back(), step);
    const size_t p = follows                         ? passes.size() - 1
                     : step.kind == StepKind::Reduce ? pass_to_join(kernel, passes, step)
                                                     : passes.size();
    if (p == passes.size()) passes.push_back({});
    passes[p].push_back(static_cast<int>(s));
  }
  return passes;
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
