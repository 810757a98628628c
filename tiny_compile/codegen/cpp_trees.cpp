// Which functions do reductions call? The contract's tree over a chunk, over chunks' results, and of
// exponentials, each for the operators and types that a program has.
//
//   sum of f32 in rows of 4096   =>   tc_both_sum_float, tc_tree_sum_float<size>
//   of n elements                =>   tc_some_sum_float(t, n) too
#include "tiny_compile/codegen/cpp_trees.h"

#include <functional>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/codegen/scalar.h"

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

// "sum_float"
std::string suffix_of(Op op, DType type) { return str(info(op).name, "_", c_type(type)); }

// A helper's text for one reduction: NAME is sum_float, TYPE float.
std::string fill(Calls& calls, std::string text, Op op, DType dtype) {
  auto replace_all = [&](const std::string& key, const std::function<std::string()>& value) {
    for (size_t at = 0; (at = text.find(key, at)) != std::string::npos;)
      text.replace(at, key.size(), value());
  };
  replace_all("NAME", [&] { return suffix_of(op, dtype); });
  replace_all("TYPE", [&] { return c_type(dtype); });
  replace_all("IDENTITY", [&] { return literal_text(calls, identity(op, dtype)); });
  replace_all("LARGEST", [&] {
    return dtype == DType::f64 ? "0x1.fffffffffffffp+1023" : "0x1.fffffep+127f";
  });
  replace_all("COMBINED", [&] { return both(calls, op, dtype); });
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

// Of n >= 1 values exp(t - m), m their maximum, clamped to finite; the order does not matter.
constexpr const char* kSumExp = R"(
static inline void tc_exponentials_TYPE(TYPE* t, long long n, TYPE* most) {
  TYPE m = t[0];
  for (long long l = 1; l < n; l++) m = tc_maximum(m, t[l]);
  m = *most = tc_minimum(tc_maximum(m, -LARGEST), LARGEST);
#pragma GCC ivdep
  for (long long l = 0; l < n; l++) t[l] = tc_exp(t[l] - m);
}

// Chunk sums, each against its own maximum, brought to the largest of these.
static inline void tc_to_one_most_TYPE(TYPE* parts, const TYPE* most, long long n) {
  TYPE m = most[0];
  for (long long c = 1; c < n; c++) m = tc_maximum(m, most[c]);
  for (long long c = 0; c < n; c++) parts[c] = parts[c] * tc_exp(most[c] - m);
}
)";

}  // namespace

std::string tree_call(Calls& calls, Op op, DType type, const std::string& array,
                      const Expr& count) {
  const std::string suffix = suffix_of(op, type), zero = type == DType::f64 ? "0.0" : "0.0f";
  std::string call;
  if (count.is_constant() && count.constant() <= kChunk && is_power_of_two(count.constant()))
    call = str(calls("tc_tree_" + suffix), "<", count, ">(", array, ", ", array, ")");
  else
    call = str(calls((count.bounds().high > kChunk ? "tc_chunks_" : "tc_some_") + suffix), "(",
               array, ", ", c_text(count), ")");
  return op == Op::max || op == Op::min ? str(call, " + ", zero) : call;
}

std::string reduction_helpers(Calls& calls) {
  std::string text;
  for (Op op : tree_reductions()) {
    for (DType type : {DType::f32, DType::f64}) {
      const std::string suffix = suffix_of(op, type);
      const bool chunks = calls.has("tc_chunks_" + suffix),
                 some = chunks || calls.has("tc_some_" + suffix);
      if (!some && !calls.has("tc_tree_" + suffix)) continue;
      text += fill(calls, kTree, op, type);
      if (some) text += fill(calls, kSome, op, type);
      if (chunks) text += fill(calls, str(kFold, kChunks), op, type);
    }
  }
  for (DType type : {DType::f32, DType::f64}) {
    if (!calls.has(str("tc_exponentials_", c_type(type)))) continue;
    text += fill(calls, kSumExp, Op::sum, type);
    for (const char* name : {"tc_exp", "tc_maximum", "tc_minimum"}) calls(name);
  }
  return text;
}

}  // namespace tiny_compile
