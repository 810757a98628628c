// How does a loop become fast text? Threads share out its outermost loop, the compiler vectorizes
// the innermost, and what is costly and needed again when the row is swept once
// more is kept, in an array of the row.
//
//   #pragma omp parallel for
//   for (i0..) {
//     float kept_v3[n128];
//     const auto f4a = [&](long long k) { .. const float v3 = tc_exp(v2); kept_v3[k] = v3; .. };
//     const float v4 = halves<0>(n128, ..f4a..);
//     for (k..) { const float v3 = kept_v3[k]; const float v5 = v3 / v4; b1[..] = v5; }
//
// Left out: sums of columns that read in the order of memory; products of matrices are step 16.
#pragma once

#include "lessons/small/09_fusion.h"

namespace small {

// Costly values that several runs through k need, and the first of these; loads, too, if wanted.
inline std::map<int64_t, int64_t> worth_keeping(Formulas f, bool loads) {
  std::vector<std::pair<int64_t, Ids>> runs;  // a reduction or the stores, and what they are of
  for (const int64_t id : reductions_of(f.kernel))
    if (f.kernel.values[id].op != Op::Matmul)
      runs.push_back({id, f.kernel.values[id].operands});
  runs.push_back({kStores, stored_inside(f.kernel)});
  std::map<int64_t, int64_t> first, kept;
  for (const auto& [run, results] : runs) {
    f.kept = first;
    const std::vector<bool> inside = made_inside(f, results, run);
    for (int64_t id = 0; id < std::ssize(inside); id++)
      if (const Op op = f.kernel.values[id].op;
          inside[id] && (is_costly(op) || (loads && op == Op::Input)))
        if (!first.emplace(id, run).second) kept[id] = first[id];
  }
  return kept;
}

inline void add_cpp(Plan& plan, Formulas f) {
  const int64_t k = f.kernel.sizes.back();
  if (k > 1) f.kept = worth_keeping(f, false);
  if (std::ssize(f.kept) * k > 8 * kMostKept) f.kept.clear();  // a thread's stack
  add_kernel(plan, {"", f.arrays}, cpp_loops(f, true), false);
}
inline Plan in_cpp(const Program& program) { return plan_of(program, add_cpp); }

}  // namespace small
