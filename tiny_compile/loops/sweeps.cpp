// How often is a row read? Once a pass:
//
//   r0 = max(j: 50257) load x[..]; r1 = sum_exp(j: 50257) load x[..]   one pass
//   r0 = sum(j) ..; r1 = sum(j) mul(sub(.., r0), ..)                   two: r1 waits for r0
#include "tiny_compile/loops/sweeps.h"

#include <algorithm>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/legal_via.h"
#include "tiny_compile/loops/lives.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLong = 1024;        // a thread holds 32 values of a reduction: two fit
constexpr size_t kFew = 2, kMany = 4;  // reductions of a pass, of long and of short rows
constexpr size_t kFewStores = 2;       // beside them

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

// It comes behind the pass: it uses a result of it, reads what that writes, or writes what that reads.
bool comes_behind(const Kernel& kernel, const std::vector<int>& pass, const Step& step) {
  const std::vector<bool> used = reachable(kernel, step);
  const auto is_used = [&](int s) {
    for (size_t id = 0; id < used.size(); id++) {
      const Scalar& scalar = kernel.scalars[id];
      if (used[id] && scalar.kind == ScalarKind::Register && scalar.step == s) return true;
    }
    return false;
  };
  return std::any_of(pass.begin(), pass.end(), [&](int s) {
    const Step& other = kernel.steps[s];
    return is_used(s) || (!makes_register(other) && reads(kernel, step, other.buffer)) ||
           (!makes_register(step) && reads(kernel, other, step.buffer));
  });
}

// Whether it goes by way of shared memory, which has a pass of its own.
bool is_staged(const Kernel& kernel, int step) {
  if (!kernel.schedule) return false;
  const std::vector<Via>& all = kernel.schedule->via;
  return std::any_of(all.begin(), all.end(),
                     [&](const Via& via) { return stored_by(kernel, via) == step; });
}

// Whether a step may be done with the reductions of a pass. Stores of rows of one chunk come behind them: a
// thread holds all that it has of such a row, and beside stores nvcc has loads wait for each other (mse_loss with
// its gradient, f32[16384,449], .042 -> .061 ms on an H200; of rows of 16 chunks, hinge, .075 -> .044).
bool suits(const Kernel& kernel, const std::vector<int>& pass, int step) {
  const Step &first = kernel.steps[pass[0]], &one = kernel.steps[step];
  if (first.kind != StepKind::Reduce || first.inner != one.inner) return false;
  if (one.kind == StepKind::Reduce)
    return reductions_of(kernel, pass).size() < most_of_pass(kernel, one);
  return one.kind == StepKind::Store && one.rhs < 0 && !is_arg(first) &&
         inner_count(kernel, one).bounds().high > kLong &&
         stores_of(kernel, pass).size() < kFewStores && !is_staged(kernel, step);
}

// The number of the pass that a step joins; how many there are where it joins none.
size_t pass_to_join(const Kernel& kernel, const std::vector<std::vector<int>>& passes,
                    int step) {
  const Step& one = kernel.steps[step];
  if (one.kind != StepKind::Store && one.kind != StepKind::Reduce) return passes.size();
  for (size_t p = passes.size(); p-- > 0;) {
    if (comes_behind(kernel, passes[p], one)) break;
    if (suits(kernel, passes[p], step)) return p;
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
  return !is_float(accumulated) || !is_reduction(op) || needs_an_element(op);
}

std::vector<std::vector<int>> sweeps_of(const Kernel& kernel) {
  std::vector<std::vector<int>> passes;
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    if (passes.empty() || !joins(kernel, passes.back(), kernel.steps[s])) passes.push_back({});
    passes.back().push_back(static_cast<int>(s));
  }
  return passes;
}

std::vector<std::vector<int>> gathered_sweeps_of(const Kernel& kernel) {
  if (folds_rows(kernel)) return sweeps_of(kernel);
  std::vector<std::vector<int>> passes;
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    const Step& step = kernel.steps[s];
    size_t p = pass_to_join(kernel, passes, static_cast<int>(s));
    const bool follows = p == passes.size() && !passes.empty() &&
                         step.kind == StepKind::Store && joins(kernel, passes.back(), step);
    if (follows) p--;
    if (p == passes.size()) passes.push_back({});
    passes[p].push_back(static_cast<int>(s));
  }
  return passes;
}

std::vector<int> reductions_of(const Kernel& kernel, const std::vector<int>& pass) {
  std::vector<int> steps = pass;
  std::erase_if(steps, [&](int s) { return !makes_register(kernel.steps[s]); });
  return steps;
}

std::vector<int> stores_of(const Kernel& kernel, const std::vector<int>& pass) {
  std::vector<int> steps = pass;
  std::erase_if(steps, [&](int s) { return makes_register(kernel.steps[s]); });
  return steps;
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
