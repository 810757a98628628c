// Must the rows that a gradient has just written be read again, to be added up down their columns?
//
//   layer_norm's gradient, by rows:   writes dx, reads dy       =>   .. and folds dy down its columns
//   sum of dy down columns:           reads dy again            =>   a finish reads a 32nd of that
#include "tiny_compile/loops/fold_columns.h"

#include <algorithm>
#include <optional>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/dead.h"
#include "tiny_compile/loops/fold.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/grouped.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/merge.h"

namespace tiny_compile {
namespace {

// Whether `second` reads what is known only when all rows of `first` have been added.
bool reads_folds(const GroupGraph& groups, int first, int second) {
  const std::set<int>& reads = groups.reads(second);
  return std::any_of(reads.begin(), reads.end(), [&](int buffer) {
    return groups.writer(buffer) == first && groups.group(first).store_to(buffer) < 0;
  });
}

// The rows with the fold among their steps, in `rows`; or why they stay apart.
std::string with_fold(const Grouped& all, int first, int second, const Kernel& fold,
                      Group& rows) {
  const GroupGraph& groups = all.groups;
  if (is_scheduled(rows.kernel)) return "it has a schedule";
  std::string reason = why_no_folds(rows.kernel, fold);
  if (reason.empty() && groups.waits_between(first, second))
    reason = "another kernel lies between them";
  if (reason.empty()) reason = all.too_large(first, second);
  if (reason.empty() && reads_folds(groups, first, second))
    reason = "it reads sums that are known after the last row";
  if (reason.empty())
    reason = groups.waits_for(second, first) ? merge_consumer(all.program, rows, Group(fold))
                                             : merge_sibling(all.program, rows, Group(fold));
  return reason.empty() ? why_not_cut(rows.finish()) : reason;
}

bool fold_into(Grouped& all, int first, int second, const Kernel& fold) {
  if (first == second || !all.groups.group(first).has(StepKind::Reduce)) return false;
  Group rows(collapse_axes(all.groups.group(first).finish()));
  if (const std::string reason = with_fold(all, first, second, fold, rows); !reason.empty())
    return all.refuse(first, second, reason), false;
  all.groups.replace(first, rows.finish());
  all.groups.absorb(first, second);
  return true;
}

// A group that folds as two: the rows, and what adds up their sums.
void cut(Grouped& all, int id) {
  Kernel kernel = all.groups.group(id).finish();
  kernel.name = all.groups.name(id);
  CutFolds parts = cut_folds(all.program, kernel);
  all.readers.resize(all.program.buffers.size(), -1);
  all.groups.grow(all.program.buffers.size());
  all.groups.replace(id, std::move(parts.rows));
  for (int buffer : loaded_buffers(parts.finish)) all.groups.set_writer(buffer, id);
  all.groups.add(parts.finish);
}

// Groups that share an array with it: what it reads is written or read there.
std::set<int> neighbours(const GroupGraph& groups, int id) {
  const std::vector<int> above = groups.producers(id);
  std::set<int> result(above.begin(), above.end());
  for (int buffer : groups.reads(id))
    result.insert(groups.readers(buffer).begin(), groups.readers(buffer).end());
  return result;
}

std::optional<Kernel> fold_of(const Program& program, const Kernel& kernel) {
  if (is_scheduled(kernel)) return std::nullopt;
  return as_fold(program, collapse_axes(kernel));
}

// Whether a block of some kernel's rows has room for it.
bool has_room(const std::vector<Kernel>& rows, const Kernel& fold) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const Kernel& kernel) { return why_no_folds(kernel, fold).empty(); });
}

// Of a kernel of sums each sum with its store: r = sum(j) value, then store y[..] = r, and again.
std::vector<Kernel> one_by_one(const Kernel& sums) {
  std::vector<Kernel> kernels;
  for (size_t pair = 0; pair * 2 < sums.steps.size(); pair++) {
    size_t at = 0;
    Kernel one =
        normalize(without_steps_where(sums, [&](const Step&) { return at++ / 2 != pair; }));
    one.name = str(sums.name, "_", pair);
    kernels.push_back(std::move(one));
  }
  return kernels;
}

// The program with the sums of a kernel apart that no rows have room for together, but for one at a time.
Program with_sums_apart(const Program& program) {
  std::vector<Kernel> rows;
  for (const Kernel& kernel : program.kernels) {
    if (!is_scheduled(kernel) && Group(kernel).has(StepKind::Reduce))
      rows.push_back(collapse_axes(kernel));
  }
  Program result = program;
  result.kernels.clear();
  result.launches.clear();
  for (const Kernel& kernel : program.kernels) {
    const std::optional<Kernel> fold = fold_of(program, kernel);
    std::vector<Kernel> parts = {kernel};
    if (fold && kernel.steps.size() > 2 && !has_room(rows, *fold)) {
      std::vector<Kernel> sums = one_by_one(kernel);
      const std::optional<Kernel> first = fold_of(program, sums[0]);
      if (first && has_room(rows, *first)) parts = std::move(sums);
    }
    for (Kernel& part : parts) {
      result.launches.push_back({static_cast<int>(result.kernels.size())});
      result.kernels.push_back(std::move(part));
    }
  }
  return result;
}

}  // namespace

Program fold_columns(const Program& program) {
  if (program.target != Target::Cuda || is_past_fusion(program)) return program;
  const Program given = with_sums_apart(program);
  const bool is_apart = given.kernels.size() > program.kernels.size();
  Grouped all(given);
  all.add_all();
  std::vector<bool> loaded;
  for (size_t b = 0; b < all.groups.buffers(); b++)
    loaded.push_back(!all.groups.readers(static_cast<int>(b)).empty());
  const std::set<int> groups = all.groups.alive();
  std::set<int> folding;
  for (int id : groups) {
    const Group& sums = all.groups.group(id);
    if (!sums.has(StepKind::Reduce) || is_scheduled(sums.kernel)) continue;
    const std::optional<Kernel> fold = as_fold(
        all.program, collapse_axes(without_dead_stores(all.program, sums.finish(), loaded)));
    if (!fold) continue;
    const std::set<int> others = neighbours(all.groups, id);
    const auto taken = std::find_if(others.begin(), others.end(), [&](int other) {
      return fold_into(all, other, id, *fold);
    });
    if (taken != others.end()) folding.insert(*taken);
  }
  for (int id : folding) cut(all, id);
  return is_apart ? join_what_shares_reads(all.finish()) : all.finish();
}

}  // namespace tiny_compile
