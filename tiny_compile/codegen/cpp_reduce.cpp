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

#include <algorithm>
#include <optional>

#include "tiny_compile/codegen/cpp_store.h"
#include "tiny_compile/codegen/cpp_trees.h"
#include "tiny_compile/codegen/cpp_vectors.h"
#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/empty.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostOnStack = 1 << 16;  // elements of a stack array
constexpr int64_t kLongRun = 8;            // elements worth a loop of their own

// What a reduction's loops need to know of a row.
struct Row {
  Expr count = 1;        // elements of the row
  std::vector<int> ids;  // scalars of the step
  LoopScope scope;
};

Row row_of(const KernelText& text, const Step& step) {
  return {inner_count(text.kernel, step), text.needed({&step}),
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
  text.out.open(str("for (long long e = 0; e < ", c_text(row.count), "; e++)"));
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
  text.out.open(str("for (long long e = 0; e < ", c_text(row.count), "; e++)"));
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
    const Expr there = substitute(
        load.index,
        {{across.name, across.symbol() + 1},
         {along.name, Expr::symbol(tile_symbol("base"), 0, row.count.bounds().high)}});
    places.push_back(
        str(pointer_name(text.program.buffers[load.buffer]), " + ", c_text(there)));
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
  return last == &step && passes > 1 && row.count.bounds().low >= kChunk;
}

// for (l = 0; l < count; l++) { body }, with the next row's lines asked for on the way.
template <typename Body>
void write_lanes(KernelText& text, const Expr& count, const std::vector<std::string>& next,
                 Body body) {
  if (next.empty() && count.is_constant())
    return write_in_vectors(text, "l", count.constant(), body);
  if (!next.empty()) {
    const int64_t eighth = count.constant() / 8, stride = kChunk / count.constant();
    text.out.open(str("for (long long from = 0; from < ", count, "; from += ", eighth, ")"));
    text.out.open("for (int l = 0; l < 128; l += 16)");
    for (const std::string& place : next)
      text.out.line(str("__builtin_prefetch(", place, " + ",
                        stride > 1 ? str(stride, " * ") : "", "from + l);  // the next row"));
    text.out.close();
    text.out.line("#pragma GCC ivdep");
    text.out.open(str("for (long long l = from; l < from + ", eighth, "; l++)"));
  } else {
    text.out.line("#pragma GCC ivdep");
    text.out.open(str("for (long long l = 0; l < ", c_text(count), "; l++)"));
  }
  body();
  text.out.close();
  if (!next.empty()) text.out.close();
}

// Stretches of a row whose elements lie one behind the other in memory: those in which `number` stays
// in one multiple of `length`. Of several loops that is the last one, of one loop what its indices divide.
struct Runs {
  Expr number, length;
};

void collect_divisions(const Expr& expr, std::vector<Expr>& found) {
  if (expr.is_constant() || expr.kind() == ExprKind::Symbol) return;
  if (expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::Mod) found.push_back(expr);
  for (const Expr& operand : expr.operands()) collect_divisions(operand, found);
}

std::optional<Runs> runs_of(const KernelText& text, const Step& step, const Row& row) {
  if (step.inner.empty()) return std::nullopt;
  const Axis& last = text.kernel.axes[step.inner.back()];
  if (step.inner.size() > 1)
    return last.extent.bounds().high < kLongRun
               ? std::nullopt
               : std::optional(Runs{last.symbol(), last.extent});
  std::vector<Expr> divisions;
  for (int id : row.ids) collect_divisions(text.kernel.scalars[id].index, divisions);
  std::optional<Runs> runs;
  for (const Expr& division : divisions) {
    const Expr &number = division.operands()[0], &length = division.operands()[1];
    if (coefficient(number, last.symbol()) != 1 || !length.is_constant() ||
        depends_on(number - last.symbol(), last.name) || length.constant() < kLongRun)
      continue;
    if (!runs || length.constant() < runs->length.constant()) runs = Runs{number, length};
  }
  return runs;
}

// What the last loop's index is in a run, by names that the text has: its number's quotient, one of a
// run, and its remainder.
Substitution in_run(const Axis& last, const Runs& runs) {
  const Interval bounds = floor_div(runs.number, runs.length).bounds();
  const Expr quotient = Expr::symbol(tile_symbol("quotient"), bounds.low, bounds.high),
             place = Expr::index(tile_symbol("place"), runs.length);
  return {{last.name, quotient * runs.length + place - (runs.number - last.symbol())}};
}

// target[l] = value for one chunk from element `base` on, run after run, so that neighbouring elements
// are neighbours in memory: without divisions, in vectors.
void write_runs(KernelText& text, const Step& step, const Row& row, const Runs& runs,
                const std::string& base, const Expr& elements, const std::string& target,
                std::vector<bool> defined) {
  const Axis& axis = text.kernel.axes[step.inner.back()];
  const std::string length = c_operand(runs.length), count = c_operand(elements);
  const bool whole = runs.length.is_constant() && kChunk % runs.length.constant() == 0 &&
                     mod(runs.number - axis.symbol(), runs.length).is_constant(0) &&
                     mod(elements, runs.length).is_constant(0);
  const bool divides = runs.number != axis.symbol() || runs.length != axis.extent;
  const std::string start = divides ? "start" : "first";
  text.out.open(str("for (long long from = 0, run; from < ", count, "; from += run)"));
  text.declare("e", base + " + from");
  text.unpack(step.inner, Expr::symbol(tile_symbol("e"), 0, row.count.bounds().high - 1),
              "first");
  if (divides) {
    const Expr first = Expr::index(tile_symbol("first"), axis.extent),
               number = substitute(runs.number, {{axis.name, first}});
    text.declare("quotient", floor_div(number, runs.length));
    text.declare(start, mod(number, runs.length));
  }
  text.out.line(whole ? str("run = ", length, ";")
                      : str("run = ", length, " - ", start, " < ", count, " - from ? ", length,
                            " - ", start, " : ", count, " - from;"));
  LoopScope outer = row.scope;
  outer.axes &= ~(uint64_t{1} << step.inner.back());
  text.define(row.ids, outer, defined);
  text.out.line("#pragma GCC ivdep");
  text.out.open(str("for (long long l = 0; l < ", whole ? length : "run", "; l++)"));
  text.declare(axis.name, "first + l");
  if (divides) {
    text.declare("place", start + " + l");
    text.scalars.known = in_run(axis, runs);
  }
  write_value(text, step, row, defined, target.empty() ? "" : "t[from + l]");
  text.scalars.known.clear();
  text.out.close();
  text.out.close();
}

// target[l] = value for one chunk that starts at element `base`; "" where keeping is enough.
void write_chunk(KernelText& text, const Step& step, const Row& row, const std::string& base,
                 const Expr& count, const std::vector<std::string>& next,
                 const std::string& target, const std::vector<bool>& defined) {
  if (const std::optional<Runs> runs = runs_of(text, step, row))
    return write_runs(text, step, row, *runs, base, count, target, defined);
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
  const std::string eighths =
      of_eighths([](int part) { return str("element(base + l + ", 128 * part, ")"); },
                 [&](const std::string& a, const std::string& b) {
                   return str(name, "(", a, ", ", b, ")");
                 });
  write_lanes(text, kChunk / 8, next, [&] { text.out.line(str("t[l] = ", eighths, ";")); });
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
    const int64_t most = row.count.bounds().high;
    full_ = most / kChunk;
    rest_ = most % kChunk;
    chunks_ = full_ + (rest_ > 0);
    sum_exp_ = step.op == Op::sum_exp;
    eighths_ = full_ > 0 && !sum_exp_ && schedule_of(text.kernel).unroll == 8 &&
               !runs_of(text, step, row) && is_cheap(text, row);
    kept_ = !sum_exp_ && text.keeps(step.value) && rest_ == 0 && row.count.is_constant() &&
            value_type(text.kernel.scalars[step.value].dtype) == name_;
    if (should_prefetch(text, step, row)) next_ = next_row(text, step, row);
  }

  void write(const std::string& reg) {
    const int64_t parts =
        chunks_ <= kChunk ? power_of_two_from(chunks_) : ceil_divide(chunks_, kChunk) * kChunk;
    const bool on_stack = parts <= kMostOnStack;
    if (row_.count.is_constant())
      write_known(reg, parts, on_stack);
    else
      write_sized(reg, parts, on_stack);
    if (step_.op == Op::max || step_.op == Op::min)
      text_.out.line(str(reg, " += ", literal_text(text_.calls, Literal::of(type_, 0)), ";"));
    if (is_half(step_.dtype))
      text_.out.line(str(reg, " = ", rounded(text_.calls, step_.dtype, reg), ";"));
    if (on_stack) return;
    text_.out.line(sum_exp_ ? "__builtin_free(part), __builtin_free(most);"
                            : "__builtin_free(part);");
  }

 private:
  void write_known(const std::string& reg, int64_t parts, bool on_stack) {
    const int64_t room = full_ == 0 ? power_of_two_from(rest_)
                                    : ((eighths_ || kept_) && rest_ == 0 ? kChunk / 8 : kChunk);
    text_.out.line(str("alignas(64) ", name_, " t[", room, "];"));
    if (chunks_ > 1) declare("part", str(parts), on_stack);
    if (sum_exp_) declare("most", str(chunks_ > 1 ? parts : 1), on_stack);
    if (full_ > 1) text_.out.open(str("for (long long c = 0; c < ", full_, "; c++)"));
    if (full_ > 0) {
      text_.declare("base", full_ > 1 ? "1024 * c" : "0");
      write_full(chunks_ > 1 ? str("part[", full_ > 1 ? "c" : "0", "]") : reg);
    }
    if (full_ > 1) text_.out.close();
    if (rest_ > 0) write_rest(chunks_ > 1 ? str("part[", full_, "]") : reg);
    if (chunks_ > 1) finish(reg, parts);
  }

  // A row whose length is a size: its chunks are counted where it runs. `parts`: room for as many as
  // there may be.
  void write_sized(const std::string& reg, int64_t parts, bool on_stack) {
    Text& out = text_.out;
    const bool several = chunks_ > 1;
    text_.declare("count", row_.count);
    if (several) {
      text_.declare("full", "count / 1024");
      text_.declare("rest", "count % 1024");
      text_.declare("chunks", "full + (rest > 0)");
    }
    out.line(str("alignas(64) ", name_, " t[",
                 several ? kChunk : power_of_two_from(rest_ + kChunk * full_), "];"));
    const std::string room = on_stack ? str(parts) : "(chunks + 1024) / 1024 * 1024";
    if (several) declare("part", room, on_stack);
    if (sum_exp_) declare("most", several ? room : "1", on_stack);
    if (several) {
      out.open("for (long long c = 0; c < full; c++)");
      text_.declare("base", "1024 * c");
      write_full("part[c]");
      out.close();
      out.open("if (rest > 0)");
      write_sized_chunk("part[full]", "1024 * full", "rest", "full");
      out.close();
      if (sum_exp_)
        out.line(str("if (chunks > 0) tc_to_one_most_", name_, "(part, most, chunks);"));
      out.line(str(reg, " = tc_chunks_", suffix_, "(part, chunks);"));
    } else {
      const bool mostly_whole = row_.count.bounds().high == kChunk && ends_early();
      if (mostly_whole) {
        out.open("if (count == 1024)");
        text_.declare("base", "0");
        write_full(reg);
        out.close(" else {");
        out.indent();
      } else {
        out.open("if (count > 0)");
      }
      write_sized_chunk(reg, "0", "count", "0");
      out.close();
    }
    if (row_.count.bounds().low > 0 || has_none()) return;
    out.line(str("if (count == 0) ", reg, " = ",
                 literal_text(text_.calls, of_nothing(step_.op, type_)), ";"));
  }

  // Whether rows are of different lengths (loops/ends_of_rows.h).
  bool ends_early() const {
    const std::vector<Symbol> chosen = symbols(row_.count);
    return std::any_of(chosen.begin(), chosen.end(),
                       [](const Symbol& symbol) { return symbol.kind == SymbolKind::Axis; });
  }

  // No elements have no maximum: such a call is refused before it begins.
  bool has_none() const { return step_.op == Op::max || step_.op == Op::min; }

  // target = what a chunk of `count` elements from `base` on reduces to.
  void write_sized_chunk(const std::string& target, const std::string& base,
                         const std::string& count, const std::string& chunk) {
    write_chunk(text_, step_, row_, base, Expr::symbol(tile_symbol(count), 0, kChunk), {},
                "t[l]", defined_);
    text_.out.line(sum_exp_ ? str(target, " = tc_some_sum_exp_", name_, "(t, ", count,
                                  ", most + ", chunk, ");")
                            : str(target, " = tc_some_", suffix_, "(t, ", count, ");"));
  }

  void declare(const char* array, const std::string& count, bool on_stack) {
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
