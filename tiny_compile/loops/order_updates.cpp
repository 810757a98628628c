// How does a target find its updates among a million? They are sorted by place, and by number where
// places are equal, so that a target's updates lie side by side and ascend:
//
//   scatter y[at0; at0 = load k[j0] < 100000] for (j0: 1048576) = scatter_add load d[j0]
// =>
//   sort p[j0] for (j0: 1048576) = argsort cast(where(.. 0 <= load k[j0] < 100000, load k[j0], 100000))
//   scatter y[at0; at0 = load k[j0] < 100000] for (j0: 1048576) = scatter_add load d[j0] by load p[j0]
//
// What is out of range stands last. The order is a hint: it says where updates are found, not in which
// order they are added, so who does not need it (the interpreter) leaves it alone.
#include "tiny_compile/loops/order_updates.h"

#include <algorithm>

#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/scatter_rules.h"
#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/loops/split.h"
#include "tiny_compile/loops/split_sort.h"

namespace tiny_compile {
namespace {

// Of one target, on the average: more are a long chain, which chunks side by side cut (split_scatter.h).
constexpr int64_t kLongChain = 512;

bool same_for_rows(const Kernel& kernel, int scalar) {
  Step only;
  only.value = scalar;
  const std::vector<bool> needed = reachable(kernel, only);
  for (size_t id = 0; id < needed.size(); id++) {
    for (int row = 0; needed[id] && row < kernel.rows; row++) {
      if (depends_on(kernel.scalars[id].index, {kernel.axes[row].name})) return false;
    }
  }
  return !has_registers(kernel, needed);
}

// rows() { sort buffer[j] for (j: updates) = argsort the place of each, the limit for what has none }
Kernel sort_of(const Kernel& kernel, const Step& scatter, int buffer) {
  Kernel sort;
  sort.name = kernel.name + "_order";
  sort.where = kernel.where;
  sort.axes = {kernel.axes[scatter.inner[0]]};
  ScalarTable table(sort);
  Step only;
  only.value = scatter.rhs;
  const int place = clone_with_mapping(kernel, reachable(kernel, only), {}, table)[scatter.rhs],
            limit = table.index(scatter.limit);
  const int known = table.apply(Op::bitwise_and, DType::boolean,
                                {table.apply(Op::ge, DType::boolean, {place, table.index(0)}),
                                 table.apply(Op::lt, DType::boolean, {place, limit})});
  Step step;
  step.kind = StepKind::Sort;
  step.op = Op::argsort;
  step.inner = {0};
  step.buffer = buffer;
  step.index = sort.axes[0].symbol();
  step.limit = 0;
  step.dtype = DType::i64;
  step.value = table.apply(Op::cast, DType::i32,
                           {table.apply(Op::where, DType::i64, {known, place, limit})});
  sort.steps = {step};
  return normalize(std::move(sort));
}

}  // namespace

bool can_order_updates(const Program& program, const Kernel& kernel) {
  if (program.target != Target::Cuda || kernel.steps.size() != 2) return false;
  const Step &base = kernel.steps[0], &scatter = kernel.steps[1];
  if (base.kind != StepKind::Store || scatter.kind != StepKind::Scatter ||
      base.buffer != scatter.buffer || base.inner.size() > 1 || scatter.inner.size() != 1 ||
      scatter.mask >= 0 || scatter.order >= 0)
    return false;
  const Expr updates = inner_count(kernel, scatter), rows = row_count(kernel);
  return updates.is_constant() && rows.is_constant() && scatter.limit.is_constant() &&
         updates.constant() > kMostListed && updates.constant() <= kMostOrdered &&
         scatter.limit.constant() > 1 && scatter.limit.constant() < int64_t{1} << 31 &&
         inner_count(kernel, base) == scatter.limit && rows.constant() > 0 &&
         same_for_rows(kernel, scatter.rhs) && !buffers_read(program, kernel)[base.buffer];
}

bool has_short_chains(const Kernel& kernel) {
  const Step& scatter = kernel.steps[1];
  return scatters_in_chunks(scatter.op, scatter.dtype) &&
         inner_count(kernel, scatter).constant() <= kLongChain * scatter.limit.constant();
}

std::vector<Kernel> order_updates(Program& program, const Kernel& kernel) {
  const Step& scatter = kernel.steps[1];
  const Expr updates = inner_count(kernel, scatter);
  const int buffer = add_temporary(program, "p", kernel.name, {DType::i64, {updates}}, updates);
  const Kernel sort = sort_of(kernel, scatter, buffer);
  std::vector<Kernel> kernels =
      can_split_sort(program, sort) ? split_sort(program, sort) : std::vector{sort};
  Kernel by_order = kernel;
  const Expr update = kernel.axes[scatter.inner[0]].symbol();
  by_order.steps[1].order = ScalarTable(by_order).load(program, buffer, update);
  kernels.push_back(normalize(std::move(by_order)));
  return kernels;
}

std::string why_wrong_order(const Program& program, const Kernel& kernel, int number) {
  const Step& step = kernel.steps[number];
  if (step.order < 0) return "";
  if (step.order >= static_cast<int>(kernel.scalars.size())) return "has no order";
  const Scalar& order = kernel.scalars[step.order];
  const bool whole = is_plain(order) && step.inner.size() == 1 &&
                     order.index == kernel.axes[step.inner[0]].symbol() &&
                     same_for_rows(kernel, step.rhs);
  const Kernel* sort = whole ? sorter_of(program, order.buffer) : nullptr;
  if (!sort) return "goes by an order that no sort has made";
  if (order.dtype != DType::i64) return "goes by the words of a sort, not by its places";
  const Expr& run = sort->steps[0].limit;
  const bool is_whole = run.is_constant(0) || (sort->axes[0].extent - run).bounds().high <= 0;
  return is_whole && essence_of_sort(*sort) == essence_of_sort(sort_of(kernel, step, -1))
             ? ""
             : "goes by an order that is not seen to be the sort of its own places";
}

}  // namespace tiny_compile
