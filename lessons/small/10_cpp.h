// How does a loop become fast text? Its outermost loop is shared out among threads, of the innermost
// the compiler makes vectors, and what is costly and needed again when the row is run through once
// more is kept, in an array of the row.
//
//   #pragma omp parallel for
//   for (i0..) {
//     float kept_v3[128];
//     const auto f4a = [&](long long k) { .. const float v3 = tc_exp(v2); kept_v3[k] = v3; .. };
//     const float v4 = halves<0>(n128, ..f4a..);
//     for (k..) { const float v3 = kept_v3[k]; const float v5 = v3 / v4; b1[..] = v5; }
//
// Left out: sums of columns that read in the order of memory; products of matrices are step 16.
#pragma once

#include "lessons/small/09_fusion.h"

namespace small {

// Costly values that several results need, and the first of these; loads, too, if wanted.
inline std::map<int64_t, int64_t> worth_keeping(const Formulas& f, bool loads) {
  std::vector<Ids> results;  // that k is run through for
  for (const Value& value : f.kernel.values)
    if (reduces(value.op) && value.op != Op::Matmul) results.push_back(value.operands);
  if (const Ids stored = stored_inside(f.kernel); !stored.empty()) results.push_back(stored);
  std::map<int64_t, int64_t> first, kept;
  for (const Ids& each : results) {
    const std::vector<bool> inside = made_inside(f, each);
    for (int64_t id = 0; id < std::ssize(inside); id++)
      if (const Op op = f.kernel.values[id].op;
          inside[id] && (is_costly(op) || (loads && op == Op::Input)))
        if (!first.emplace(id, each[0]).second) kept[id] = first[id];
  }
  return kept;
}

inline void add_cpp(Plan& plan, Formulas f) {
  if (f.kernel.sizes.back() > 1) f.kept = worth_keeping(f, false);
  add_kernel(plan, {"", f.arrays}, cpp_loops(f, true), false);
}
inline Plan in_cpp(const Program& program) {
  Plan plan = plan_of(program);
  for (const Kernel& kernel : program.kernels) add_cpp(plan, {program.graph, kernel});
  return plan;
}

}  // namespace small
