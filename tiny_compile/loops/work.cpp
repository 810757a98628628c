// How much work is a value, and how often is it done? A formula that is taken into its readers is
// computed where each of them asks for it, and loops that were outside of others may end up inside:
//
//   for i { h = long chain of x[i] ; for t { y[i, t] = h*z[t] } }     the chain once for each i
//   for i, t { r[i] += (long chain of x[i])*z[t] }                    the chain for each i and t
#include "tiny_compile/loops/work.h"

#include <algorithm>

#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/simplify_under_mask.h"

namespace tiny_compile {
namespace {

constexpr int kMostReductions = 32;  // of a kernel: what its steps share must stay in the cache

// Work of the store's value that its last loop repeats nothing of.
int work_outside(const Kernel& kernel, const Step& store, std::vector<bool> wanted) {
  const Axis& last = kernel.axes[store.inner.back()];
  std::vector<bool> inside;
  for (size_t id = 0; id < wanted.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    const auto is_inside = [&](int other) -> bool { return other >= 0 && inside[other]; };
    inside.push_back(depends_on(scalar.index, last.name) || is_inside(scalar.mask) ||
                     std::any_of(scalar.operands.begin(), scalar.operands.end(), is_inside));
    wanted[id] = wanted[id] && !inside[id];
  }
  return cost(kernel, wanted);
}

size_t count_of(const Group& group, const Step& step) {
  const std::vector<bool> wanted = reachable(group.kernel, step);
  return static_cast<size_t>(std::count(wanted.begin(), wanted.end(), true));
}

}  // namespace

std::vector<bool> made_of_indices(const Kernel& kernel) {
  std::vector<bool> made;
  for (const Scalar& scalar : kernel.scalars) {
    const bool is_made = std::all_of(scalar.operands.begin(), scalar.operands.end(),
                                     [&](int operand) -> bool { return made[operand]; });
    made.push_back(scalar.kind == ScalarKind::Index || scalar.kind == ScalarKind::Constant ||
                   (scalar.kind == ScalarKind::Apply && is_made));
  }
  return made;
}

int cost(const Kernel& kernel, const std::vector<bool>& wanted, const std::vector<bool>& free) {
  int total = 0;
  for (size_t id = 0; id < wanted.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (!wanted[id] || scalar.kind == ScalarKind::Constant) continue;
    if (!free.empty() && free[id]) continue;
    if (scalar.kind == ScalarKind::Philox) total += 20;
    if (scalar.kind == ScalarKind::Apply) total += is_costly(scalar.op) ? 8 : 1;
  }
  return total;
}

int64_t times_asked(const Group& consumer, int buffer) {
  if (consumer.sequential()) return points(consumer);
  int64_t times = 0;
  for (const Scalar& scalar : consumer.kernel.scalars) {
    if (scalar.kind == ScalarKind::Load && scalar.buffer == buffer)
      times += points_under(consumer.kernel, scalar.mask, all_axes(consumer));
  }
  return times;
}

bool repeats_outer_work(const Group& producer, const Step& store,
                        const std::vector<bool>& wanted, int64_t asked, int cheap) {
  if (store.inner.empty()) return false;
  const Kernel& kernel = producer.kernel;
  int64_t times = inner_count(kernel, store).bounds().high;
  for (int axis : producer.rows) times *= kernel.axes[axis].extent.bounds().high;
  const int64_t last = kernel.axes[store.inner.back()].extent.bounds().high;
  return last > 1 && asked > times / last && work_outside(kernel, store, wanted) > cheap;
}

bool chooses(const Kernel& kernel, const Step& store) {
  const std::vector<bool> wanted = reachable(kernel, store),
                          of_indices = made_of_indices(kernel);
  int loads = 0, values = 0;
  for (size_t id = 0; id < wanted.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (!wanted[id]) continue;
    loads += scalar.kind == ScalarKind::Load && scalar.mask >= 0;
    values += scalar.kind == ScalarKind::Apply && scalar.op == Op::where &&
              of_indices[scalar.operands[0]];
  }
  return std::max(loads, values) > kMostChoices;
}

bool is_costly(const Kernel& kernel, const Step& store) {
  return cost(kernel, reachable(kernel, store)) > kCheapOps;
}

size_t written_out(const Group& writes, const Group& reads,
                   const std::function<bool(int buffer)>& stays) {
  if (!writes.sequential() && !reads.sequential()) return 0;  // one loop of stores
  const auto goes = [&](const Step& step) {
    return step.kind == StepKind::Store && !stays(step.buffer);
  };
  size_t total = 0;
  for (const Step& step : writes.kernel.steps) total += goes(step) ? 0 : count_of(writes, step);
  for (const Step& step : reads.kernel.steps) {
    if (goes(step)) continue;
    total += count_of(reads, step);
    const std::vector<bool> wanted = reachable(reads.kernel, step);
    for (size_t id = 0; id < wanted.size(); id++) {
      const Scalar& load = reads.kernel.scalars[id];
      if (!wanted[id] || load.kind != ScalarKind::Load) continue;
      const int store = writes.store_to(load.buffer);
      if (store >= 0) total += count_of(writes, writes.kernel.steps[store]);
    }
  }
  return total;
}

bool reads_costly_values(const Group& producer, const Group& consumer) {
  const auto& scalars = consumer.kernel.scalars;
  return std::any_of(scalars.begin(), scalars.end(), [&](const Scalar& load) {
    const int store = load.kind == ScalarKind::Load ? producer.store_to(load.buffer) : -1;
    return store >= 0 && is_costly(producer.kernel, producer.kernel.steps[store]);
  });
}

std::string why_too_long(const Group& first, const Group& second) {
  const int reductions = first.count(StepKind::Reduce) + second.count(StepKind::Reduce);
  if (second.has(StepKind::Reduce) && reductions > kMostReductions)
    return "together they have too many reductions";
  if (second.kernel.scalars.size() > kMostCopied) return "it is too long to be copied";
  return "";
}

}  // namespace tiny_compile
