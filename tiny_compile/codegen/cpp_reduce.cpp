// How is a row reduced so that the bits depend on its length alone? Elements form chunks of
// 1024, a short one filled with the identity; a chunk's upper half is added to its lower, 512,
// 256, ... 1; chunk results are reduced by the same rule. A chunk lives in 4 KB of L1 and every
// halving is one vector loop. Cheap values skip the first trip: eight strided loads make a
// chunk's first 128 sums.
//
//   r0 = sum(j0: 4096) load x[..]
// =>
//   for (c..) { for (l..) t[l] = ..; part[c] = tc_tree_sum_float<1024>(t, t); }
//   r0 = tc_tree_sum_float<4>(part, part);
#include "tiny_compile/codegen/cpp_reduce.h"

#include <set>

#include "tiny_compile/codegen/cpp_store.h"
#include "tiny_compile/graph/scan.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostOnStack = 1 << 16;  // elements of a stack array
constexpr int64_t kLongRun = 8;            // elements worth a loop of their own

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

constexpr const char* kLargestFloat =
    "\nstatic const float tc_largest_float = 0x1.fffffep+127f;\n";
constexpr const char* kLargestDouble =
    "\nstatic const double tc_largest_double = 0x1.fffffffffffffp+1023;\n";

// What a reduction's loops need to know of a row.
struct Row {
  int64_t count = 1;     // elements of the row
  std::vector<int> ids;  // scalars of the step
  LoopScope scope;
};

Row row_of(const KernelText& text, const Step& step) {
  return {inner_count(text.kernel, step).constant(), text.needed({&step}),
          element_scope(text.kernel, step.inner)};
}

// The scalars of one element; values that a later step needs again are kept.
void write_value(KernelText& text, const Step& step, const Row& row, std::vector<bool> defined,
                 const std::string& target) {
  text.define(row.ids, row.scope, defined);
  const DType from = text.kernel.scalars[step.value].dtype;
  const DType to = accumulator(step.op, from);
  const bool same = compute_type(from) == to;
  text.keep(row.ids);
  if (target.empty()) return;
  text.out.line(str(target, " = ", same ? "" : str("(", c_type(to), ")"),
                    text.scalars.name(step.value), ";"));
}

// Order-free sums of integers, any, all: one accumulator.
void write_plain(KernelText& text, const Step& step, const Row& row, const std::string& reg,
                 DType type, const std::vector<bool>& defined) {
  text.out.line(str(reg, " = ", literal_text(text.calls, identity(step.op, type)), ";"));
  text.out.open(str("for (long long e = 0; e < ", row.count, "; e++)"));
  text.unpack_inner(step, "e");
  write_value(text, step, row, defined, str("const ", c_type(type), " value"));
  text.out.line(str(reg, " = ", combine(text.calls, step.op, type, reg, "value"), ";"));
  text.out.close();
}

// First NaN, else first of equals.
void write_arg(KernelText& text, const Step& step, const Row& row, const std::string& reg,
               DType type, const std::vector<bool>& defined) {
  const char* beats = step.op == Op::argmax ? ">" : "<";
  text.out.line(str(reg, " = 0;"));
  text.out.line(str(c_type(type), " best_", reg, " = ",
                    literal_text(text.calls, Literal::of(type, 0)), ";"));
  text.out.open(str("for (long long e = 0; e < ", row.count, "; e++)"));
  text.unpack_inner(step, "e");
  write_value(text, step, row, defined, str("const ", c_type(type), " value"));
  text.out.open(str("if (e == 0 || (best_", reg, " == best_", reg,
                    " && (value != value || value ", beats, " best_", reg, ")))"));
  text.out.line(str("best_", reg, " = value;"));
  text.out.line(str(reg, " = e;"));
  text.out.close();
  text.out.close();
}

// The loads of a row that the next row will repeat one row further on: where the first of them
// lies when row axis `row` is one more and the inner axis is at `base`.
std::vector<std::string> next_row(const KernelText& text, const Step& step, const Row& row) {
  const Kernel& kernel = text.kernel;
  std::vector<std::string> places;
  if (kernel.rows == 0 || step.inner.size() != 1) return places;
  const Axis &across = kernel.axes[kernel.rows - 1], &along = kernel.axes[step.inner[0]];
  for (int id : row.ids) {
    const Scalar& load = kernel.scalars[id];
    if (!is_plain(load)) continue;
    if (coefficient(load.index, along.symbol()) != 1 || !depends_on(load.index, across.name))
      continue;
    const Expr there =
        substitute(load.index, {{across.name, across.symbol() + 1},
                                {along.name, Expr::symbol(tile_symbol("base"), 0, row.count)}});
    places.push_back(str(pointer_name(text.program.buffers[load.buffer]), " + ", there));
  }
  return places;
}

// The last step that reads the row from memory, while what follows works in the caches.
bool should_prefetch(const KernelText& text, const Step& step, const Row& row) {
  const std::vector<Step>& steps = text.kernel.steps;
  const Step* last = nullptr;
  int passes = 0;
  for (const Step& other : steps) {
    passes += other.inner == step.inner;
    if (other.kind == StepKind::Reduce && other.inner == step.inner) last = &other;
  }
  return last == &step && passes > 1 && row.count >= kChunk;
}

// for (l = 0; l < count; l++) { body }, with the next row's lines asked for on the way.
template <typename Body>
void write_lanes(KernelText& text, int64_t count, const std::vector<std::string>& next,
                 Body body) {
  if (next.empty()) return write_in_vectors(text, "l", count, body);
  text.out.open(str("for (long long from = 0; from < ", count, "; from += ", count / 8, ")"));
  text.out.open("for (int l = 0; l < 128; l += 16)");
  const int64_t stride = kChunk / count;
  for (const std::string& place : next)
    text.out.line(str("__builtin_prefetch(", place, " + ", stride > 1 ? str(stride, " * ") : "",
                      "from + l);  // the next row"));
  text.out.close();
  text.out.line("#pragma GCC ivdep");
  text.out.open(str("for (long long l = from; l < from + ", count / 8, "; l++)"));
  body();
  text.out.close();
  text.out.close();
}

// Several loops of which the last one is long: the others stand still while it runs.
bool has_runs(const Kernel& kernel, const Step& step) {
  return step.inner.size() > 1 && kernel.axes[step.inner.back()].extent.constant() >= kLongRun;
}

// target[l] = value for one chunk from element `base` on, run after run of the innermost loop, so
// that neighbouring elements are neighbours in memory: without divisions, in vectors.
void write_runs(KernelText& text, const Step& step, const Row& row, const std::string& base,
                int64_t count, const std::string& target, std::vector<bool> defined) {
  const Axis& axis = text.kernel.axes[step.inner.back()];
  const int64_t length = axis.extent.constant();
  const bool whole = kChunk % length == 0 && count % length == 0;
  text.out.open(str("for (long long from = 0, run; from < ", count, "; from += run)"));
  text.declare("e", base + " + from");
  text.unpack(step.inner, Expr::symbol(tile_symbol("e"), 0, row.count - 1), "first");
  text.out.line(whole ? str("run = ", length, ";")
                      : str("run = ", length, " - first < ", count, " - from ? ", length,
                            " - first : ", count, " - from;"));
  LoopScope outer = row.scope;
  outer.axes &= ~(uint64_t{1} << step.inner.back());
  text.define(row.ids, outer, defined);
  text.out.line("#pragma GCC ivdep");
  text.out.open(str("for (long long l = 0; l < ", whole ? str(length) : "run", "; l++)"));
  text.declare(axis.name, "first + l");
  write_value(text, step, row, defined, target.empty() ? "" : "t[from + l]");
  text.out.close();
  text.out.close();
}

// target[l] = value for one chunk that starts at element `base`; "" where keeping is enough.
void write_chunk(KernelText& text, const Step& step, const Row& row, const std::string& base,
                 int64_t count, const std::vector<std::string>& next, const std::string& target,
                 const std::vector<bool>& defined) {
  if (has_runs(text.kernel, step))
    return write_runs(text, step, row, base, count, target, defined);
  write_lanes(text, count, next, [&] {
    text.declare("e", base + " + l");
    text.unpack_inner(step, "e");
    write_value(text, step, row, defined, target);
  });
}

// t[0..127] of a full chunk straight from its eight strided parts: the first three halvings.
void write_eighths(KernelText& text, const Step& step, const Row& row, DType type,
                   const std::vector<std::string>& next, const std::vector<bool>& defined) {
  text.out.open(
      str("auto element = [&](long long e) __attribute__((always_inline)) -> ", c_type(type)));
  text.unpack_inner(step, "e");
  write_value(text, step, row, defined, str("const ", c_type(type), " value"));
  text.out.line("return value;");
  text.out.close(";");
  const std::string name = "tc_both_" + helper_suffix(step.op, type);
  auto at = [](int part) { return str("element(base + l + ", 128 * part, ")"); };
  auto pair = [&](const std::string& a, const std::string& b) {
    return str(name, "(", a, ", ", b, ")");
  };
  auto quarter = [&](int part) {
    return pair(pair(at(part), at(part + 4)), pair(at(part + 2), at(part + 6)));
  };
  write_lanes(text, kChunk / 8, next,
              [&] { text.out.line(str("t[l] = ", pair(quarter(0), quarter(1)), ";")); });
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

// Chunk after chunk of a row, then the chunks' results.
class TreeWriter {
 public:
  TreeWriter(KernelText& text, const Step& step, const Row& row, DType type,
             const std::vector<bool>& defined)
      : text_(text), step_(step), row_(row), type_(type), defined_(defined) {
    name_ = c_type(type);
    suffix_ = helper_suffix(step.op, type);
    full_ = row.count / kChunk;
    rest_ = row.count % kChunk;
    chunks_ = full_ + (rest_ > 0);
    sum_exp_ = step.op == Op::sum_exp;
    eighths_ = full_ > 0 && !sum_exp_ && schedule_of(text.kernel).unroll == 8 &&
               !has_runs(text.kernel, step) && is_cheap(text, row);
    kept_ = !sum_exp_ && text.keeps(step.value) && rest_ == 0 &&
            value_type(text.kernel.scalars[step.value].dtype) == name_;
    if (should_prefetch(text, step, row)) next_ = next_row(text, step, row);
  }

  void write(const std::string& reg) {
    const int64_t parts =
        chunks_ <= kChunk ? power_of_two_from(chunks_) : ceil_divide(chunks_, kChunk) * kChunk;
    const bool on_stack = parts <= kMostOnStack;
    const int64_t room = full_ == 0 ? power_of_two_from(rest_)
                                    : ((eighths_ || kept_) && rest_ == 0 ? kChunk / 8 : kChunk);
    text_.out.line(str("alignas(64) ", name_, " t[", room, "];"));
    if (chunks_ > 1) declare("part", parts, on_stack);
    if (sum_exp_) declare("most", chunks_ > 1 ? parts : 1, on_stack);
    if (full_ > 1) text_.out.open(str("for (long long c = 0; c < ", full_, "; c++)"));
    if (full_ > 0) {
      text_.declare("base", full_ > 1 ? "1024 * c" : "0");
      write_full(chunks_ > 1 ? str("part[", full_ > 1 ? "c" : "0", "]") : reg);
    }
    if (full_ > 1) text_.out.close();
    if (rest_ > 0) write_rest(chunks_ > 1 ? str("part[", full_, "]") : reg);
    if (chunks_ > 1) finish(reg, parts);
    if (step_.op == Op::max || step_.op == Op::min)
      text_.out.line(str(reg, " += ", literal_text(text_.calls, Literal::of(type_, 0)), ";"));
    if (is_half(step_.dtype))
      text_.out.line(str(reg, " = ", rounded(text_.calls, step_.dtype, reg), ";"));
    if (on_stack) return;
    text_.out.line(sum_exp_ ? "__builtin_free(part), __builtin_free(most);"
                            : "__builtin_free(part);");
  }

 private:
  void declare(const char* array, int64_t count, bool on_stack) {
    text_.out.line(on_stack ? str(name_, " ", array, "[", count, "];")
                            : str(name_, "* ", array, " = (", name_, "*)__builtin_malloc(",
                                  count, " * sizeof(", name_, "));"));
  }

  // reg = the tree over the chunks' results.
  void finish(const std::string& reg, int64_t parts) {
    if (sum_exp_) text_.out.line(str("tc_to_one_most_", name_, "(part, most, ", chunks_, ");"));
    if (chunks_ > kChunk)
      return text_.out.line(str(reg, " = tc_fold_", suffix_, "(part, ", chunks_, ");"));
    pad("part", chunks_, parts);
    text_.out.line(str(reg, " = tc_tree_", suffix_, "<", parts, ">(part, part);"));
  }

  // array[count..size) = the identity.
  void pad(const char* array, int64_t count, int64_t size) {
    if (count < size)
      text_.out.line(str("for (int l = ", count, "; l < ", size, "; l++) ", array,
                         "[l] = ", literal_text(text_.calls, identity(step_.op, type_)), ";"));
  }

  void write_full(const std::string& target) {
    if (eighths_) {
      write_eighths(text_, step_, row_, type_, next_, defined_);
      return reduce(target, "t", kChunk / 8, kChunk / 8, "0");
    }
    write_chunk(text_, step_, row_, "base", kChunk, next_, kept_ ? "" : "t[l]", defined_);
    reduce(target, kept_ ? str("keep_", step_.value, " + base") : "t", kChunk, kChunk,
           full_ > 1 ? "c" : "0");
  }

  void write_rest(const std::string& target) {
    write_chunk(text_, step_, row_, str(kChunk * full_), rest_, {}, "t[l]", defined_);
    reduce(target, "t", rest_, power_of_two_from(rest_), str(full_));
  }

  // target = the tree over t's `count` values, filled up to `size`.
  void reduce(const std::string& target, const std::string& from, int64_t count, int64_t size,
              const std::string& chunk) {
    if (sum_exp_)
      return text_.out.line(str(target, " = tc_chunk_sum_exp_", name_, "<", size, ">(t, ",
                                count, ", most + ", chunk, ");"));
    pad("t", count, size);
    text_.out.line(str(target, " = tc_tree_", suffix_, "<", size, ">(", from, ", t);"));
  }

  KernelText& text_;
  const Step& step_;
  const Row& row_;
  const DType type_;
  const std::vector<bool>& defined_;
  std::string name_, suffix_;
  int64_t full_, rest_, chunks_;
  bool sum_exp_, eighths_, kept_;
  std::vector<std::string> next_;
};

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
  for (const Kernel& kernel : program.kernels) {
    if (schedule_of(kernel).strategy != Strategy::Rows) continue;
    for (const Step& step : kernel.steps) {
      if (step.kind != StepKind::Reduce || has_running_results(step.op)) continue;
      const DType from = kernel.scalars[step.value].dtype, type = accumulator(step.op, from);
      if (!is_float(type) || step.op == Op::argmax || step.op == Op::argmin) continue;
      add(kTree, step.op, type);
      if (inner_count(kernel, step).constant() > kChunk * kChunk) add(kFold, step.op, type);
      if (step.op == Op::sum_exp)
        add(type == DType::f64 ? kLargestDouble : kLargestFloat, step.op, type);
      if (step.op != Op::sum_exp) continue;
      add(kSumExp, step.op, type);
      for (const char* name : {"tc_exp", "tc_maximum", "tc_minimum"}) calls(name);
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
    TreeWriter(text, step, row, type, defined).write(reg);
  }
  text.out.close();
  text.mark_kept(row.ids);
}

}  // namespace tiny_compile
