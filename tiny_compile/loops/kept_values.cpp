// Which values of an element are cheapest to have again? A pass ends where its loads are and what
// is costly to compute; where several of those serve one value alone, that one is kept for them.
//
//   $2 = add(load x[j0], load y[j0]);  r0 = sum $2;  r1 = sum exp($2);  store div(exp($2), r1)
//   =>  the first pass keeps $2, the second exp($2)
#include "tiny_compile/loops/kept_values.h"

#include <algorithm>

#include "tiny_compile/loops/sweeps.h"
#include "tiny_compile/loops/typing.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLongRow = 512;  // elements

using Predicate = std::function<bool(int)>;

bool is_worth_keeping(const Scalar& scalar) {
  return scalar.kind == ScalarKind::Load || is_costly(scalar);
}

std::vector<int> roots_of(const Step& step) {
  std::vector<int> roots;
  for (int root : step.roots()) {
    if (root >= 0) roots.push_back(root);
  }
  return roots;
}

std::vector<int> operands_of(const Scalar& scalar) {
  std::vector<int> all = scalar.operands;
  if (scalar.mask >= 0) all.push_back(scalar.mask);
  return all;
}

// Those of `ends` that are met on the way from `roots` down, none beyond what is kept or `but`.
std::vector<int> met_from(const Kernel& kernel, std::vector<int> roots, const Predicate& is_end,
                          const Predicate& is_kept, int but) {
  std::vector<bool> seen(kernel.scalars.size());
  std::vector<int> met;
  while (!roots.empty()) {
    const int id = roots.back();
    roots.pop_back();
    if (id == but || seen[id] || is_kept(id)) continue;
    seen[id] = true;
    if (is_end(id))
      met.push_back(id);
    else
      for (int operand : operands_of(kernel.scalars[id])) roots.push_back(operand);
  }
  return met;
}

// A half that was computed: to have it again takes a rounding too. In a short row, which shares a warp
// with others, it would be put into a word with another, where memory has them so already.
bool is_rounded(const Kernel& kernel, const Scalar& scalar) {
  const auto is_long = [&](const Step& step) {
    return inner_count(kernel, step).bounds().high >= kLongRow;
  };
  return std::any_of(kernel.steps.begin(), kernel.steps.end(), is_long) &&
         scalar.kind == ScalarKind::Apply && is_half(scalar.dtype) && scalar.op != Op::cast &&
         !stays_in_dtype(scalar.op);
}

// One value for several that serve it alone, or for one that takes as much.
std::vector<int> with_fewer(const Kernel& kernel, const std::vector<bool>& mine,
                            const std::vector<int>& roots, const Predicate& is_kept,
                            std::vector<int> keep) {
  const auto is_in_keep = [&](int id) { return std::count(keep.begin(), keep.end(), id) > 0; };
  for (int id = 0; id < static_cast<int>(mine.size()) && !keep.empty(); id++) {
    if (!mine[id] || is_in_keep(id)) continue;
    const std::vector<int> others = met_from(kernel, roots, is_in_keep, is_kept, id);
    const auto is_it = [&](int other) { return other == id || is_in_keep(other); };
    const std::vector<int> met = met_from(kernel, roots, is_it, is_kept, -1);
    const bool is_met = std::count(met.begin(), met.end(), id) > 0;
    const size_t now = others.size() + 1;
    const bool is_better =
        now < keep.size() || (now == keep.size() && is_rounded(kernel, kernel.scalars[id]));
    if (!is_met || !is_better) continue;
    keep = others;
    keep.push_back(id);
  }
  return keep;
}

// What a value takes that is widened again from what it was.
int64_t held_bytes(const Kernel& kernel, int id) {
  const Scalar* scalar = &kernel.scalars[id];
  while (scalar->op == Op::cast && scalar->kind == ScalarKind::Apply &&
         size_of(kernel.scalars[scalar->operands[0]].dtype) < size_of(scalar->dtype))
    scalar = &kernel.scalars[scalar->operands[0]];
  return size_of(scalar->dtype);
}

// A quotient for what it is made of, where no later pass reads that otherwise: no more bytes are held, and it
// is divided once.
std::vector<int> with_quotients(const Kernel& kernel, const std::vector<bool>& mine,
                                const std::vector<int>& roots, const Predicate& is_before,
                                std::vector<int> keep) {
  const Predicate nothing = [](int) { return false; };
  const Predicate is_held = [&](int id) {
    return is_before(id) || std::count(keep.begin(), keep.end(), id) > 0;
  };
  for (int id = 0; id < static_cast<int>(mine.size()); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (!mine[id] || is_held(id) || scalar.kind != ScalarKind::Apply || scalar.op != Op::div ||
        (is_half(scalar.dtype) && !is_rounded(kernel, scalar)))
      continue;
    const Predicate is_it = [&](int other) { return other == id; };
    if (met_from(kernel, roots, is_it, is_held, -1).empty()) continue;
    std::vector<int> spared = met_from(kernel, {id}, is_held, nothing, -1);
    for (const int other : met_from(kernel, roots, is_held, nothing, id))
      std::erase(spared, other);
    int64_t bytes = 0;
    for (const int other : spared) bytes += held_bytes(kernel, other);
    if (bytes < held_bytes(kernel, id)) continue;
    std::erase_if(keep, [&](int k) { return std::count(spared.begin(), spared.end(), k) > 0; });
    keep.push_back(id);
  }
  return keep;
}

}  // namespace

std::vector<uint64_t> axes_of_scalars(const Kernel& kernel) {
  std::vector<uint64_t> all;
  for (const Scalar& scalar : kernel.scalars) {
    uint64_t axes = 0;
    for (size_t a = 0; a < kernel.axes.size(); a++) {
      if (depends_on(scalar.index, kernel.axes[a].name)) axes |= uint64_t{1} << a;
    }
    for (int operand : operands_of(scalar)) axes |= all[operand];
    all.push_back(axes);
  }
  return all;
}

std::vector<int> evaluated(const Kernel& kernel, const std::vector<int>& steps,
                           const Predicate& is_kept) {
  std::vector<int> roots;
  for (int s : steps) {
    for (int root : roots_of(kernel.steps[s])) roots.push_back(root);
  }
  return evaluated_for(kernel, roots, is_kept);
}

std::vector<int> evaluated_for(const Kernel& kernel, const std::vector<int>& roots,
                               const Predicate& is_kept) {
  std::vector<bool> wanted(kernel.scalars.size());
  for (int root : roots) wanted[root] = true;
  std::vector<int> ids;
  for (int id = static_cast<int>(wanted.size()); id-- > 0;) {
    if (!wanted[id]) continue;
    ids.push_back(id);
    if (is_kept(id)) continue;
    for (int operand : operands_of(kernel.scalars[id])) wanted[operand] = true;
  }
  std::reverse(ids.begin(), ids.end());
  return ids;
}

std::vector<std::vector<int>> kept_values(
    const Kernel& kernel, const std::vector<std::vector<int>>& passes,
    const std::function<bool(const std::vector<int>&)>& may_keep) {
  const std::vector<uint64_t> axes = axes_of_scalars(kernel);
  std::vector<std::vector<int>> kept;
  for (size_t p = 0; p < passes.size(); p++) {
    kept.emplace_back();
    const std::vector<int>& inner = kernel.steps[passes[p][0]].inner;
    if (inner.empty() || !may_keep(inner)) continue;
    std::vector<bool> before(kernel.scalars.size()), mine(before.size());
    std::vector<int> roots;
    for (size_t q = 0; q < passes.size(); q++) {
      if (q == p || kernel.steps[passes[q][0]].inner != inner) continue;
      for (int id : kept[std::min(q, p)]) before[id] = true;
      if (q < p) continue;
      for (int s : passes[q])
        for (int root : roots_of(kernel.steps[s])) roots.push_back(root);
    }
    const Predicate is_kept = [&](int id) -> bool { return before[id]; };
    for (int id : evaluated(kernel, passes[p], is_kept)) {
      const auto moves = [&](int axis) { return axes[id] >> axis & 1; };
      mine[id] = !before[id] && std::any_of(inner.begin(), inner.end(), moves);
    }
    const auto is_end = [&](int id) -> bool {
      return mine[id] && is_worth_keeping(kernel.scalars[id]);
    };
    std::vector<int> keep =
        with_fewer(kernel, mine, roots, is_kept, met_from(kernel, roots, is_end, is_kept, -1));
    kept[p] = with_quotients(kernel, mine, roots, is_kept, std::move(keep));
  }
  return kept;
}

Held most_held(const Kernel& kernel) {
  const std::vector<std::vector<int>> passes = gathered_sweeps_of(kernel),
                                      kept = kept_values(kernel, passes,
                                                         [](const auto&) { return true; });
  Held most;
  for (size_t p = 0; p < passes.size(); p++) {
    std::vector<bool> is_held(kernel.scalars.size()), is_read(is_held.size());
    for (size_t q = 0; q <= p; q++)
      for (int id : kept[q]) is_held[id] = true;
    for (size_t q = p + 1; q < passes.size(); q++)
      for (int id : evaluated(kernel, passes[q], [&](int id) -> bool { return is_held[id]; }))
        is_read[id] = is_held[id];
    Held held;
    for (size_t id = 0; id < is_read.size(); id++) {
      if (!is_read[id]) continue;
      held.values++;
      held.bytes += held_bytes(kernel, static_cast<int>(id));
    }
    most = {std::max(most.values, held.values), std::max(most.bytes, held.bytes)};
  }
  return most;
}

}  // namespace tiny_compile
