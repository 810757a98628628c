// How is a row reduced beside what no tile says, a scan, a dot or a scatter of the same rows? Chunk
// after chunk, then the chunks' results by the same rule (tile/row_reductions.h has the fast way):
//
//   r0 = sum(j0: 4096) load x[..]
// =>
//   for (c..) { for (l..) t[l] = ..; part[c] = tc_chunks_sum_float(t, length); }
//   r0 = tc_chunks_sum_float(part, 4);
#include "tiny_compile/codegen/cpp_reduce.h"

#include "tiny_compile/codegen/cpp_trees.h"
#include "tiny_compile/loops/empty.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostOnStack = 1 << 16;  // elements of a stack array

// What a reduction's loops need to know of a row.
struct Row {
  Expr count = 1;        // elements of the row
  std::vector<int> ids;  // scalars of the step
  LoopScope scope;
};

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

void declare(KernelText& text, const std::string& type, const char* array, int64_t most) {
  text.out.line(most <= kMostOnStack
                    ? str(type, " ", array, "[", most, "];")
                    : str(type, "* ", array, " = (", type,
                          "*)__builtin_malloc((chunks + 1024) / 1024 * 1024 * sizeof(", type,
                          "));"));
}

// Chunk after chunk of a row, then the chunks' results.
void write_tree(KernelText& text, const Step& step, const Row& row, const std::string& reg,
                DType type, const std::vector<bool>& defined) {
  Text& out = text.out;
  const bool exponentials = step.op == Op::sum_exp;
  const std::string name = c_type(type);
  const Op op = exponentials ? Op::sum : step.op;
  const Expr chunks = ceil_div(row.count, kChunk),
             n = Expr::symbol(tile_symbol("length"), 1, kChunk),
             all = Expr::symbol(tile_symbol("chunks"), 1, INT64_MAX);
  const int64_t most = ceil_divide(std::min(chunks.bounds().high, kUnbounded), kChunk) * kChunk;
  text.declare("count", row.count);
  text.declare("chunks", chunks);
  out.line(str("alignas(64) ", name, " t[1024];"));
  declare(text, name, "part", most);
  if (exponentials) declare(text, name, "most", most);
  out.open("for (long long c = 0; c < chunks; c++)");
  text.declare("length", "count - 1024 * c < 1024 ? count - 1024 * c : 1024");
  out.line("#pragma GCC ivdep");
  out.open("for (long long l = 0; l < length; l++)");
  text.declare("e", "1024 * c + l");
  text.unpack_inner(step, "e");
  write_value(text, step, row, defined, "t[l]");
  out.close();
  if (exponentials)
    out.line(str(text.calls("tc_exponentials_" + name), "(t, length, most + c);"));
  out.line(str("part[c] = ", tree_call(text.calls, op, type, "t", n), ";"));
  out.close();
  if (exponentials)
    out.line(
        str("if (chunks > 0) ", text.calls("tc_to_one_most_" + name), "(part, most, chunks);"));
  out.line(
      str("if (chunks > 0) ", reg, " = ", tree_call(text.calls, op, type, "part", all), ";"));
  if (row.count.bounds().low < 1 && op != Op::max && op != Op::min)
    out.line(str("else ", reg, " = ", literal_text(text.calls, of_nothing(op, type)), ";"));
  if (is_half(step.dtype)) out.line(str(reg, " = ", rounded(text.calls, step.dtype, reg), ";"));
  if (most <= kMostOnStack) return;
  out.line(exponentials ? "__builtin_free(part), __builtin_free(most);"
                        : "__builtin_free(part);");
}

}  // namespace

void write_reduction(KernelText& text, const Step& step, int number,
                     const std::vector<bool>& defined) {
  const Row row = {inner_count(text.kernel, step), text.needed({&step}),
                   element_scope(text.kernel, step.inner)};
  const std::string reg = str("r", number);
  const DType from = text.kernel.scalars[step.value].dtype, type = accumulator(step.op, from);
  text.out.line(str(is_arg(step) ? "long long" : c_type(type), " ", reg, ";"));
  text.out.open("");
  if (is_arg(step))
    write_arg(text, step, row, reg, type, defined);
  else if (!is_float(type))
    write_plain(text, step, row, reg, type, defined);
  else
    write_tree(text, step, row, reg, type, defined);
  text.out.close();
  text.mark_kept(row.ids);
}

}  // namespace tiny_compile
