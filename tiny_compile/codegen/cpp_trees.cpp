// Which functions do reductions call? The contract's tree over a chunk, over chunks' results, and of
// exponentials, each for the operators and types that a program has.
//
//   sum of f32 in rows of 4096   =>   tc_both_sum_float, tc_tree_sum_float<size>
//   of n elements                =>   tc_some_sum_float(t, n) too
#include "tiny_compile/codegen/cpp_trees.h"

#include <functional>
#include <set>

#include "tiny_compile/codegen/scalar.h"
#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/ends_of_rows.h"
#include "tiny_compile/loops/passes_of.h"

namespace tiny_compile {
namespace {

// What two values of a reduction become. The sign of a zero maximum does not matter on the way:
// it is +0 in the end.
std::string both(Calls& calls, Op op, DType dtype) {
  const char* unless_nan = "return a != a ? a : beyond;";
  if (op == Op::max)
    return str("const ", c_type(dtype), " beyond = a > b ? a : b; ", unless_nan);
  if (op == Op::min)
    return str("const ", c_type(dtype), " beyond = a < b ? a : b; ", unless_nan);
  return str("return ", combine(calls, op, dtype, "a", "b"), ";");
}

// A helper's text for one reduction: NAME is sum_float, TYPE float.
std::string fill(Calls& calls, std::string text, Op op, DType dtype) {
  auto replace_all = [&](const std::string& key, const std::function<std::string()>& value) {
    for (size_t at = 0; (at = text.find(key, at)) != std::string::npos;)
      text.replace(at, key.size(), value());
  };
  replace_all("NAME", [&] { return helper_suffix(op, dtype); });
  replace_all("TYPE", [&] { return c_type(dtype); });
  replace_all("IDENTITY", [&] { return literal_text(calls, identity(op, dtype)); });
  replace_all("COMBINED", [&] { return both(calls, op == Op::sum_exp ? Op::sum : op, dtype); });
  return text;
}

// tc_tree_sum_float<1024>(from, t): the tree over a power of two of values; t has room
// for half of them and may be `from`, which is used up then. Three halvings at a time
// while vectors last.
constexpr const char* kTree = R"(
TC_FN TYPE tc_both_NAME(TYPE a, TYPE b) { COMBINED }

template <int size>
static inline TYPE tc_tree_NAME(const TYPE* from, TYPE* t) {
  if constexpr (size == 1) {
    return from[0];
  } else if constexpr (size >= 128) {
    constexpr int n = size / 8;
    auto pair = [=](int l) { return tc_both_NAME(from[l], from[l + 4 * n]); };
#pragma GCC ivdep
    for (int l = 0; l < n; l++)
      t[l] = tc_both_NAME(tc_both_NAME(pair(l), pair(l + 2 * n)),
                          tc_both_NAME(pair(l + n), pair(l + 3 * n)));
    return tc_tree_NAME<n>(t, t);
  } else {
#pragma GCC ivdep
    for (int l = 0; l < size / 2; l++) t[l] = tc_both_NAME(from[l], from[l + size / 2]);
    return tc_tree_NAME<size / 2>(t, t);
  }
}
)";

// Results of more than 1024 chunks by the same rule. There is room for the next multiple of
// 1024; all are used up.
constexpr const char* kFold = R"(
static inline TYPE tc_fold_NAME(TYPE* parts, long long n) {
  for (; n > 1; n = (n + 1023) / 1024) {
    for (long long l = n; l % 1024; l++) parts[l] = IDENTITY;
    for (long long first = 0; first < n; first += 1024)
      parts[first / 1024] = tc_tree_NAME<1024>(parts + first, parts + first);
  }
  return parts[0];
}
)";

// The tree over n values, up to 1024, which n alone says while it runs; all are used up. There is
// room for the next power of two. tc_chunks: over chunks' results, of which there may be more.
constexpr const char* kSome = R"(
static inline TYPE tc_some_NAME(TYPE* t, long long n) {
  long long size = 1;
  while (size < n) size *= 2;
  for (long long l = n; l < size; l++) t[l] = IDENTITY;
  if (size == 1024) return tc_tree_NAME<1024>(t, t);
  for (long long half = size / 2; half > 0; half /= 2) {
#pragma GCC ivdep
    for (long long l = 0; l < half; l++) t[l] = tc_both_NAME(t[l], t[l + half]);
  }
  return t[0];
}
)";

constexpr const char* kChunks = R"(
static inline TYPE tc_chunks_NAME(TYPE* parts, long long n) {
  return n > 1024 ? tc_fold_NAME(parts, n) : tc_some_NAME(parts, n);
}
)";

// The largest of n >= 1 values, clamped to finite; the order does not matter.
constexpr const char* kSumExp = R"(
static inline TYPE tc_clamped_max_TYPE(const TYPE* t, long long n) {
  TYPE most[16];
  for (int k = 0; k < 16; k++) most[k] = t[0];
  long long l = 0;
  for (; l + 16 <= n; l += 16)
    for (int k = 0; k < 16; k++) most[k] = tc_maximum(most[k], t[l + k]);
  for (; l < n; l++) most[0] = tc_maximum(most[0], t[l]);
  for (int k = 1; k < 16; k++) most[0] = tc_maximum(most[0], most[k]);
  return tc_minimum(tc_maximum(most[0], -tc_largest_TYPE), tc_largest_TYPE);
}

// Sum of exp(t - m) over one chunk of n, m its clamped maximum (returned through most).
template <int size>
static inline TYPE tc_chunk_sum_exp_TYPE(TYPE* t, long long n, TYPE* most) {
  const TYPE m = *most = tc_clamped_max_TYPE(t, n);
#pragma GCC ivdep
  for (long long l = 0; l < n; l++) t[l] = tc_exp(t[l] - m);
  for (long long l = n; l < size; l++) t[l] = IDENTITY;
  return tc_tree_sum_TYPE<size>(t, t);
}

// Chunk sums, each against its own maximum, brought to the largest of these.
static inline void tc_to_one_most_TYPE(TYPE* parts, const TYPE* most, long long n) {
  TYPE m = most[0];
  for (long long c = 1; c < n; c++) m = tc_maximum(m, most[c]);
  for (long long c = 0; c < n; c++) parts[c] = parts[c] * tc_exp(most[c] - m);
}
)";

// The same of as many as n says while it runs.
constexpr const char* kSomeExp = R"(
static inline TYPE tc_some_sum_exp_TYPE(TYPE* t, long long n, TYPE* most) {
  const TYPE m = *most = tc_clamped_max_TYPE(t, n);
#pragma GCC ivdep
  for (long long l = 0; l < n; l++) t[l] = tc_exp(t[l] - m);
  return tc_some_sum_TYPE(t, n);
}
)";

constexpr const char* kLargestFloat =
    "\nstatic const float tc_largest_float = 0x1.fffffep+127f;\n";
constexpr const char* kLargestDouble =
    "\nstatic const double tc_largest_double = 0x1.fffffffffffffp+1023;\n";

}  // namespace

std::string helper_suffix(Op op, DType accumulator) {
  const Op tree = op == Op::sum_exp ? Op::sum : op;
  return str(info(tree).name, "_", c_type(accumulator));
}

std::string reduction_helpers(const Program& program, Calls& calls) {
  std::set<std::string> written;
  std::string text;
  auto add = [&](const char* what, Op op, DType type) {
    const std::string filled = fill(calls, what, op, type);
    if (written.insert(filled).second) text += filled;
  };
  for (const Kernel& given : program.kernels) {
    if (schedule_of(given).strategy != Strategy::Rows) continue;
    const Kernel kernel = with_ends_of_rows(given);
    for (const Step& step : kernel.steps) {
      if (step.kind != StepKind::Reduce || has_running_results(step.op)) continue;
      const DType from = kernel.scalars[step.value].dtype, type = accumulator(step.op, from);
      if (!is_float(type) || step.op == Op::argmax || step.op == Op::argmin) continue;
      add(kTree, step.op, type);
      const Expr count = inner_count(kernel, step);
      const bool sized = !count.is_constant(), several = count.bounds().high > kChunk;
      if (count.bounds().high > kChunk * kChunk || (sized && several))
        add(kFold, step.op, type);
      if (sized) add(kSome, step.op, type);
      if (sized && several) add(kChunks, step.op, type);
      if (step.op == Op::sum_exp)
        add(type == DType::f64 ? kLargestDouble : kLargestFloat, step.op, type);
      if (step.op != Op::sum_exp) continue;
      add(kSumExp, step.op, type);
      if (sized) add(kSomeExp, step.op, type);
      for (const char* name : {"tc_exp", "tc_maximum", "tc_minimum"}) calls(name);
    }
  }
  return text;
}

}  // namespace tiny_compile
