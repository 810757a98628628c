// How is a row reduced so that the bits depend on its length alone? Elements form chunks of
// 1024, a short one filled with the identity; a chunk's upper half is added to its lower, 512,
// 256, ... 1; chunk results are reduced by the same rule. A chunk lives in 4 KB of L1 and every
// halving is one vector loop. Cheap values skip the first trip: eight strided loads make a
// chunk's first 128 sums.
//
//   r0 = sum(j0: 4096) load x[..]   =>   for (c..) { for (l..) t[l] = ..; part[c] =
//   tc_tree_sum(t, 1024); }
#include "tiny_compile/codegen/cpp_reduce.h"

#include <algorithm>
#include <set>

namespace tiny_compile {
namespace {

constexpr int64_t kChunk = 1024;
constexpr int64_t kMostOnStack = 1 << 16;  // elements of a stack array

int64_t power_of_two_from(int64_t count) {
  int64_t power = 1;
  while (power < count) power *= 2;
  return power;
}

// combine() with a, b, T and the identity filled into a template of text.
std::string fill(std::string text, Op op, DType dtype) {
  auto replace_all = [&](const std::string& key, const std::string& value) {
    for (size_t at = 0; (at = text.find(key, at)) != std::string::npos; at += value.size())
      text.replace(at, key.size(), value);
  };
  for (size_t at; (at = text.find("OP(")) != std::string::npos;) {
    const size_t comma = text.find("; ", at), end = text.find(";)", at);
    const std::string a = text.substr(at + 3, comma - at - 3),
                      b = text.substr(comma + 2, end - comma - 2);
    text.replace(at, end + 2 - at, "(" + combine(op, dtype, a, b) + ")");
  }
  replace_all("NAME", helper_suffix(op, dtype));
  replace_all("TYPE", c_type(dtype));
  replace_all("IDENTITY", literal_text(identity(op, dtype)));
  return text;
}

// tc_tree_sum_float(t, n): n <= 1024 values, room for the next power of two; t is used up.
constexpr const char* kTree = R"(
static inline TYPE tc_tree_NAME(TYPE* t, long long n) {
  long long size = 1;
  while (size < n) size *= 2;
  for (long long l = n; l < size; l++) t[l] = IDENTITY;
  for (; size > 16; size /= 2) {
    const long long half = size / 2;
#pragma GCC ivdep
    for (long long l = 0; l < half; l++) t[l] = OP(t[l]; t[l + half];);
  }
  for (; size > 1; size /= 2)
    for (long long l = 0; l < size / 2; l++) t[l] = OP(t[l]; t[l + size / 2];);
  return t[0];
}

// Results of chunks, any number of them, by the same rule.
static inline TYPE tc_fold_NAME(TYPE* parts, long long n) {
  while (n > 1024) {
    const long long chunks = (n + 1023) / 1024;
    for (long long c = 0; c < chunks; c++)
      parts[c] = tc_tree_NAME(parts + 1024 * c, n - 1024 * c < 1024 ? n - 1024 * c : 1024);
    n = chunks;
  }
  return tc_tree_NAME(parts, n);
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

// Sum of exp(t - m) over one chunk, m its clamped maximum (returned through most).
static inline TYPE tc_chunk_sum_exp_TYPE(TYPE* t, long long n, TYPE* most) {
  const TYPE m = *most = tc_clamped_max_TYPE(t, n);
#pragma GCC ivdep
  for (long long l = 0; l < n; l++) t[l] = tc_exp(t[l] - m);
  return tc_tree_sum_TYPE(t, n);
}

// Chunk sums, each against its own maximum, brought to the largest of these.
static inline TYPE tc_fold_sum_exp_TYPE(TYPE* parts, const TYPE* most, long long n) {
  if (n == 1) return parts[0];
  TYPE m = most[0];
  for (long long c = 1; c < n; c++) m = tc_maximum(m, most[c]);
  for (long long c = 0; c < n; c++) parts[c] = parts[c] * tc_exp(most[c] - m);
  return tc_fold_sum_TYPE(parts, n);
}
)";

constexpr const char* kLargestFloat =
    "\nstatic const float tc_largest_float = 0x1.fffffep+127f;\n";
constexpr const char* kLargestDouble =
    "\nstatic const double tc_largest_double = 0x1.fffffffffffffp+1023;\n";

// Where a reduce step's loop is at: chunk by chunk, `l` within it. Values of inner axes follow.
struct Row {
  int64_t count = 1;     // elements of the row
  std::vector<int> ids;  // scalars of the step
  Scope scope;
};

Row row_of(const KernelText& text, const Step& step) {
  Row row;
  row.count = inner_count(text.kernel, step).constant();
  row.ids = text.needed({&step});
  row.scope.registers = true;
  for (int axis = 0; axis < text.kernel.rows; axis++) row.scope.axes |= uint64_t{1} << axis;
  for (int axis : step.inner) row.scope.axes |= uint64_t{1} << axis;
  return row;
}

// const long long j0 = e / 12; const long long j1 = e % 12;
void unpack_inner(KernelText& text, const Step& step, const std::string& element,
                  int64_t count) {
  Expr rest = Expr::symbol(element, 0, count - 1);
  for (size_t k = step.inner.size(); k-- > 0;) {
    const Axis& axis = text.kernel.axes[step.inner[k]];
    text.out.line(
        str("const long long ", axis.name, " = ", k == 0 ? rest : mod(rest, axis.extent), ";"));
    rest = floor_div(rest, axis.extent);
  }
}

// The scalars of one element; values that a later step needs again are kept.
void write_value(KernelText& text, const Step& step, const Row& row, std::vector<bool> defined,
                 const std::string& target) {
  text.define(row.ids, row.scope, defined);
  const DType from = text.kernel.scalars[step.value].dtype;
  const DType to = accumulator(step.op, from);
  const bool same = compute_type(from) == to;
  text.keep(row.ids);
  text.out.line(str(target, " = ", same ? "" : str("(", c_type(to), ")"),
                    text.scalars.name(step.value), ";"));
}

std::string finished(const Step& step, const std::string& value) {
  return is_half(step.dtype) ? from_storage(step.dtype, to_storage(step.dtype, value)) : value;
}

// Order-free sums of integers, any, all: one accumulator.
void write_plain(KernelText& text, const Step& step, const Row& row, const std::string& reg,
                 DType type, const std::vector<bool>& defined) {
  text.out.line(str(reg, " = ", literal_text(identity(step.op, type)), ";"));
  text.out.open(str("for (long long e = 0; e < ", row.count, "; e++)"));
  unpack_inner(text, step, "e", row.count);
  write_value(text, step, row, defined, str("const ", c_type(type), " value"));
  text.out.line(str(reg, " = ", combine(step.op, type, reg, "value"), ";"));
  text.out.close();
}

// First NaN, else first of equals.
void write_arg(KernelText& text, const Step& step, const Row& row, const std::string& reg,
               DType type, const std::vector<bool>& defined) {
  const char* beats = step.op == Op::argmax ? ">" : "<";
  text.out.line(str(reg, " = 0;"));
  text.out.line(
      str(c_type(type), " best_", reg, " = ", literal_text(Literal::of(type, 0)), ";"));
  text.out.open(str("for (long long e = 0; e < ", row.count, "; e++)"));
  unpack_inner(text, step, "e", row.count);
  write_value(text, step, row, defined, str("const ", c_type(type), " value"));
  text.out.open(str("if (e == 0 || (best_", reg, " == best_", reg,
                    " && (value != value || value ", beats, " best_", reg, ")))"));
  text.out.line(str("best_", reg, " = value;"));
  text.out.line(str(reg, " = e;"));
  text.out.close();
  text.out.close();
}

// t[l] = value for one chunk that starts at element `base`.
void write_chunk(KernelText& text, const Step& step, const Row& row, const std::string& base,
                 const std::string& count, const std::vector<bool>& defined) {
  text.out.line("#pragma GCC ivdep");
  text.out.open(str("for (long long l = 0; l < ", count, "; l++)"));
  text.out.line(str("const long long e = ", base, " + l;"));
  unpack_inner(text, step, "e", row.count);
  write_value(text, step, row, defined, "t[l]");
  text.out.close();
}

// t[0..127] of a full chunk straight from its eight strided parts: the first three halvings.
void write_eighths(KernelText& text, const Step& step, const Row& row, DType type,
                   const std::vector<bool>& defined) {
  text.out.open(
      str("auto element = [&](long long e) __attribute__((always_inline)) -> ", c_type(type)));
  unpack_inner(text, step, "e", row.count);
  write_value(text, step, row, defined, str("const ", c_type(type), " value"));
  text.out.line("return value;");
  text.out.close(";");
  text.out.line("#pragma GCC ivdep");
  text.out.open("for (long long l = 0; l < 128; l++)");
  auto at = [](int part) { return str("element(base + l + ", 128 * part, ")"); };
  auto pair = [&](const std::string& a, const std::string& b) {
    return "(" + combine(step.op, type, a, b) + ")";
  };
  auto quarter = [&](int part) {
    return pair(pair(at(part), at(part + 4)), pair(at(part + 2), at(part + 6)));
  };
  text.out.line(str("t[l] = ", pair(quarter(0), quarter(1)), ";"));
  text.out.close();
}

// Cheap enough to write out eight times.
bool is_cheap(const KernelText& text, const Row& row) {
  int ops = 0;
  for (int id : row.ids) {
    if (is_costly(text.kernel.scalars[id]) || text.planned.count(id)) return false;
    ops += text.kernel.scalars[id].kind == ScalarKind::Apply;
  }
  return ops <= 6;
}

void write_tree(KernelText& text, const Step& step, const Row& row, const std::string& reg,
                DType type, const std::vector<bool>& defined) {
  const bool sum_exp = step.op == Op::sum_exp;
  const std::string suffix = helper_suffix(step.op, type), name = c_type(type);
  const int64_t full = row.count / kChunk, rest = row.count % kChunk,
                chunks = full + (rest > 0);
  const int64_t parts = chunks == 1 ? 1 : (chunks + kChunk - 1) / kChunk * kChunk;
  const bool on_stack = parts <= kMostOnStack;
  const bool eighths =
      full > 0 && !sum_exp && text.kernel.schedule.unroll == 8 && is_cheap(text, row);
  text.out.line(
      str("alignas(64) ", name, " t[", full > 0 ? kChunk : power_of_two_from(rest), "];"));
  for (const char* array : {"part", "most"}) {
    if (array[0] == 'm' && !sum_exp) continue;
    text.out.line(on_stack ? str(name, " ", array, "[", parts, "];")
                           : str(name, "* ", array, " = (", name, "*)__builtin_malloc(", parts,
                                 " * sizeof(", name, "));"));
  }
  auto reduce_chunk = [&](const std::string& chunk, int64_t count) {
    text.out.line(sum_exp ? str("part[", chunk, "] = tc_chunk_sum_exp_", name, "(t, ", count,
                                ", most + ", chunk, ");")
                          : str("part[", chunk, "] = tc_tree_", suffix, "(t, ", count, ");"));
  };
  if (full > 0) {
    text.out.open(str("for (long long c = 0; c < ", full, "; c++)"));
    text.out.line("const long long base = 1024 * c;");
    if (eighths) write_eighths(text, step, row, type, defined);
    if (!eighths) write_chunk(text, step, row, "base", "1024", defined);
    reduce_chunk("c", eighths ? 128 : 1024);
    text.out.close();
  }
  if (rest > 0) {
    write_chunk(text, step, row, str(kChunk * full), str(rest), defined);
    reduce_chunk(str(full), rest);
  }
  std::string result = sum_exp ? str("tc_fold_sum_exp_", name, "(part, most, ", chunks, ")")
                               : str("tc_fold_", suffix, "(part, ", chunks, ")");
  if (step.op == Op::max || step.op == Op::min)
    result += str(" + ", literal_text(Literal::of(type, 0)));
  text.out.line(str(reg, " = ", finished(step, result), ";"));
  if (!on_stack)
    text.out.line(sum_exp ? "__builtin_free(part), __builtin_free(most);"
                          : "__builtin_free(part);");
}

}  // namespace

DType accumulator(Op op, DType operand) {
  if (op == Op::argmax || op == Op::argmin) return compute_type(operand);
  return compute_type(reduction_result(op, operand));
}

std::string helper_suffix(Op op, DType accumulator) {
  const Op tree = op == Op::sum_exp ? Op::sum : op;
  return str(info(tree).name, "_", c_type(accumulator));
}

std::string reduction_helpers(const Program& program) {
  std::set<std::string> written;
  std::string text;
  auto add = [&](const char* what, Op op, DType type) {
    const std::string filled = fill(what, op, type);
    if (written.insert(filled).second) text += filled;
  };
  for (const Kernel& kernel : program.kernels) {
    if (kernel.schedule.strategy != Strategy::Rows) continue;
    for (const Step& step : kernel.steps) {
      if (step.kind != StepKind::Reduce) continue;
      const DType from = kernel.scalars[step.value].dtype, type = accumulator(step.op, from);
      if (!is_float(type) || step.op == Op::argmax || step.op == Op::argmin) continue;
      add(kTree, step.op, type);
      if (step.op == Op::sum_exp)
        add(type == DType::f64 ? kLargestDouble : kLargestFloat, step.op, type);
      if (step.op == Op::sum_exp) add(kSumExp, step.op, type);
    }
  }
  return text;
}

void write_reduction(KernelText& text, const Step& step, int number,
                     const std::vector<bool>& defined) {
  const Row row = row_of(text, step);
  const std::string reg = str("r", number);
  const DType from = text.kernel.scalars[step.value].dtype, type = accumulator(step.op, from);
  const bool arg = step.op == Op::argmax || step.op == Op::argmin;
  text.out.line(str(arg ? "long long" : c_type(type), " ", reg, ";"));
  text.out.open("");
  if (arg) {
    write_arg(text, step, row, reg, type, defined);
  } else if (!is_float(type)) {
    write_plain(text, step, row, reg, type, defined);
  } else {
    write_tree(text, step, row, reg, type, defined);
  }
  text.out.close();
  text.mark_kept(row.ids);
}

}  // namespace tiny_compile
