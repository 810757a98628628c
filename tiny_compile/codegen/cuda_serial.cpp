// What if a row's steps must follow each other element by element? A running sum and a scatter
// have an order; one thread does the row, neighbouring threads neighbouring rows (where a scatter
// has one index for all rows: cuda_scatter.h):
//
//   scan y[i0*8 + j0] for (j0: 8) = load x[i0*8 + j0]
// =>
//   for (int e = 0; e < 8; e++) { within = within + ..; out_y[..] = before + within; }
//
// Reductions beside them are one thread's work too. tc_node adds in the tree of every other kernel,
// chunks of 1024 and then their results: the same bits.
#include "tiny_compile/codegen/cuda_serial.h"

#include "tiny_compile/codegen/cuda_helpers.h"
#include "tiny_compile/codegen/scan.h"
#include "tiny_compile/base/integer.h"
#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/passes_of.h"

namespace tiny_compile {
namespace {

constexpr int kBlock = 128;

class SerialWriter {
 public:
  SerialWriter(CudaText& text, const std::string& function)
      : text_(text), out_(text.out), kernel_(text.kernel), rows_(row_count(kernel_)) {
    entry_ = text.begin(function, ceil_div(rows_, kBlock), kBlock);
  }

  KernelEntry write() {
    const std::string wide = text_.integer == "int" ? "(int)" : "(long long)";
    text_.declare("row", str(wide, "blockIdx.x * ", kBlock, " + (int)threadIdx.x"));
    out_.line(str("if (row >= ", c_operand(rows_), ") return;"));
    text_.unpack_rows("row");
    for (size_t s = 0; s < kernel_.steps.size(); s++) {
      const Step& step = kernel_.steps[s];
      // A load may read what an earlier step of this row stored: each step loads anew.
      std::vector<bool> here(kernel_.scalars.size());
      if (makes_register(step)) out_.line(str(register_type(step), " r", s, ";"));
      out_.open("");
      text_.define(text_.needed({&step}), {row_mask(kernel_), true}, here);
      write_step(step, static_cast<int>(s), here);
      out_.close();
    }
    out_.close();
    return entry_;
  }

 private:
  std::string register_type(const Step& step) const { return value_type(step.dtype); }

  void write_step(const Step& step, int number, const std::vector<bool>& defined) {
    switch (step.kind) {
      case StepKind::Reduce:
        if (is_scan(step)) return write_scan_row(text_, step, number, "", defined);
        return write_reduce(step, number, defined);
      case StepKind::Dot: return write_dot(step, number, defined);
      case StepKind::Store: return loop(step, defined, [&] { text_.write_store(step); });
      case StepKind::Fold:
        fail("kernel ", kernel_.name,
             " folds rows of more than 1024 elements, or beside scans ",
             "and scatters: no CUDA kernel does that");
      case StepKind::Scan:
        return write_scan_row(text_, step, number, text_.place(step), defined);
      case StepKind::Sort: fail("kernel ", kernel_.name, " sorts beside other steps");
      case StepKind::Scatter: return write_scatter(step, defined);
    }
  }

  template <typename Body>
  void loop(const Step& step, std::vector<bool> defined, Body body) {
    LoopScope scope{row_mask(kernel_), true};
    for (int axis : step.inner) {
      text_.open_loop(axis);
      scope.axes |= uint64_t{1} << axis;
      text_.define(text_.needed({&step}), scope, defined);
    }
    body();
    for (size_t k = 0; k < step.inner.size(); k++) out_.close();
  }

  void write_dot(const Step& step, int number, const std::vector<bool>& defined) {
    const DType dtype = kernel_.scalars[step.value].dtype;
    const bool narrow = is_integer(dtype) && size_of(dtype) < 4;
    const DType type = narrow ? DType::i32 : compute_type(dtype);
    out_.line(
        str(c_type(type), " sum = ", literal_text(text_.calls, Literal::of(type, 0)), ";"));
    loop(step, defined, [&] {
      const std::string a = text_.scalars.name(step.value), b = text_.scalars.name(step.other);
      const std::string cast = narrow ? "(int)" : "";
      out_.line(is_float(dtype)
                    ? str("sum = ", text_.calls("tc_fma"), "(", a, ", ", b, ", sum);")
                    : str("sum = ", text_.calls("tc_add"), "(sum, ", text_.calls("tc_mul"), "(",
                          cast, a, ", ", cast, b, "));"));
    });
    const std::string result = rounded(text_.calls, dtype, is_float(dtype) ? "sum + 0" : "sum");
    out_.line(str("r", number, " = ", narrow ? str("(", c_type(dtype), ")") : "", result, ";"));
  }

  void write_scatter(const Step& step, const std::vector<bool>& defined) {
    const Expr count = inner_count(kernel_, step);
    if (count.bounds().high > kChunk && scatters_in_chunks(step.op, step.dtype))
      return write_chunks(step, count, defined);
    if (step.limit.is_constant(1)) return write_one_place(step, defined);
    loop(step, defined, [&] {
      const std::string mask = step.mask < 0 ? "" : text_.scalars.name(step.mask) + " && ";
      out_.open(str("if (", mask, text_.calls("tc_in_range"), "(",
                    text_.scalars.name(step.other), ", ", step.limit, "))"));
      out_.line(updated(text_.calls, step.op, step.dtype, text_.place(step), text_.scalars.name(step.value)));
      out_.close();
    });
  }

  // All updates go to one place, which stays in a register.
  void write_one_place(const Step& step, const std::vector<bool>& defined) {
    const std::string place =
        str(pointer_name(text_.program.buffers[step.buffer]), "[",
            text_.scalars.index(substitute(step.index, {{indirect(0), 0}})), "]");
    out_.line(str(value_type(step.dtype),
                  " sum = ", from_storage(text_.calls, step.dtype, place), ";"));
    loop(step, defined, [&] {
      const std::string mask = step.mask < 0 ? "" : text_.scalars.name(step.mask) + " && ";
      out_.line(str("if (", mask, text_.calls("tc_in_range"), "(",
                    text_.scalars.name(step.other), ", 1)) sum = ",
                    updated_value(text_.calls, step.op, step.dtype, "sum", text_.scalars.name(step.value)),
                    ";"));
    });
    out_.line(str(place, " = ", exact_storage(text_.calls, step.dtype, "sum"), ";"));
  }

  // A thread has no room for the partial results of a chunk: from the first update of a target on
  // it looks for the others.
  void write_chunks(const Step& step, const Expr& updates, const std::vector<bool>& defined) {
    const std::string count = c_operand(updates);
    const std::string mask = step.mask < 0 ? "" : text_.scalars.name(step.mask) + " && ";
    const std::string other = text_.scalars.name(step.other),
                      value = text_.scalars.name(step.value), type = value_type(step.dtype);
    const std::string place = str(pointer_name(text_.program.buffers[step.buffer]), "[",
                                  text_.scalars.index(step.index), "]");
    Step where = step, what = step;
    where.value = -1;
    what.other = what.mask = -1;
    write_lambda("target", "long long", where, defined,
                 str(mask, text_.calls("tc_in_range"), "(", other, ", ", step.limit, ") ? ",
                     other, " : -1"));
    write_lambda("value", type, what, defined, value);
    out_.open(str("for (long long from = 0; from < ", count, "; from += ", kChunk, ")"));
    out_.line(str("const long long to = from + ", kChunk, " < ", count, " ? from + ", kChunk,
                  " : ", count, ";"));
    out_.open("for (long long e = from; e < to; e++)");
    out_.line("const long long at0 = target(e);");
    out_.line("bool first = at0 >= 0;");
    out_.line(
        "for (long long k = from; from > 0 && first && k < e; k++) first = target(k) != at0;");
    out_.line("if (!first) continue;");
    out_.line(str(type, " part = ",
                  literal_text(text_.calls, identity(step.op, compute_type(step.dtype))), ";"));
    out_.open("for (long long k = e; k < (from > 0 ? to : e + 1); k++)");
    out_.line(str("if (target(k) == at0) part = ",
                  updated_value(text_.calls, step.op, step.dtype, "part", "value(k)"), ";"));
    out_.close();
    out_.line(updated(text_.calls, step.op, step.dtype, place, "part"));
    out_.close();
    out_.close();
  }

  void write_lambda(const char* name, const std::string& type, const Step& step,
                    std::vector<bool> defined, const std::string& result) {
    out_.open(str("auto ", name, " = [&](long long e) -> ", type));
    text_.unpack_inner(step, "e");
    text_.define(text_.needed({&step}), element_scope(kernel_, step.inner), defined);
    out_.line(str("return ", result, ";"));
    out_.close(";");
  }

  // element(e): element e of the row.
  void write_element(const Step& step, DType type, std::vector<bool> defined) {
    out_.open(str("auto element = [&](long long e) -> ", c_type(type)));
    text_.unpack_inner(step, "e");
    text_.define(text_.needed({&step}), element_scope(kernel_, step.inner), defined);
    const DType from = kernel_.scalars[step.value].dtype;
    const std::string cast = compute_type(from) == type ? "" : str("(", c_type(type), ")");
    out_.line(str("return ", cast, text_.scalars.name(step.value), ";"));
    out_.close(";");
  }

  // The tree over function(0) .. function(count - 1), as many levels of chunks as it takes.
  std::string tree(const std::string& op, const std::string& type, const char* function,
                   const Expr& count) {
    int level = 1;
    for (int64_t n = count.bounds().high; n > kChunk; n = ceil_divide(n, kChunk)) level++;
    return str(text_.calls("tc_node"), "<", op, ", ", level, ", ", type, ", decltype(",
               function, ")>::of(", function, ", 0, ", c_text(count), ")");
  }

  void write_reduce(const Step& step, int number, const std::vector<bool>& defined) {
    const DType from = kernel_.scalars[step.value].dtype, type = accumulator(step.op, from);
    const Expr count = inner_count(kernel_, step);
    const std::string reg = str("r", number), name = c_type(type);
    write_element(step, type, defined);
    if (step.op == Op::argmax || step.op == Op::argmin) {
      const char* is_max = step.op == Op::argmax ? "true" : "false";
      out_.line(str(text_.calls("tc_best"), "<", name, "> best = {0, -1};"));  // -1: none yet
      out_.line(str("for (long long e = 0; e < ", c_operand(count), "; e++) best = tc_better<",
                    is_max, ">(best, ", text_.calls("tc_best"), "<", name,
                    ">{element(e), e});"));
      return out_.line(str(reg, " = best.index;"));
    }
    const bool may_be_empty =
        count.bounds().low < 1 && (step.op == Op::sum || step.op == Op::sum_exp);
    if (may_be_empty) out_.line(str(reg, " = 0;"));
    if (may_be_empty) out_.open(str("if (", c_operand(count), " > 0)"));
    if (step.op == Op::sum_exp)
      write_sum_exp(reg, type, count);
    else
      out_.line(str(reg, " = ",
                    tree(cuda_op(text_.calls, step.op, type), name, "element", count), ";"));
    if (may_be_empty) out_.close();
    if (is_float(type) && (step.op == Op::max || step.op == Op::min))  // -0 + 0 = 0
      out_.line(
          str(reg, " = ", reg, " + ", literal_text(text_.calls, Literal::of(type, 0)), ";"));
    if (is_half(step.dtype))
      out_.line(str(reg, " = ", rounded(text_.calls, step.dtype, reg), ";"));
  }

  // The sum of exp(x - m), m the maximum: each chunk's by its own maximum, then by the row's. Of one
  // chunk both are the same, and what the sum is multiplied with is 1.
  void write_sum_exp(const std::string& reg, DType type, const Expr& elements) {
    const std::string count = c_operand(elements);
    const bool is_one = elements.bounds().high <= kChunk;
    const std::string name = c_type(type), sum = cuda_op(text_.calls, Op::sum, type);
    out_.open(str("auto most = [&](long long from, long long to) -> ", name));
    out_.line(str(name, " m = element(from);"));
    out_.line(str("for (long long e = from + 1; e < to; e++) m = ", text_.calls("tc_maximum"),
                  "(m, element(e));"));
    out_.line(str("return ", text_.calls("tc_clamp"), "(m);"));
    out_.close(";");
    out_.line(str("const ", name, " m = most(0, ", count, ");"));
    out_.open(str("auto part = [&](long long c) -> ", name));
    out_.line(str("const long long from = 1024 * c, to = from + 1024 < ", count,
                  " ? from + 1024 : ", count, ";"));
    out_.line(str("const ", name, " chunk_m = most(from, to);"));
    out_.line(str("auto shifted = [&](long long e) -> ", name, " { return ",
                  text_.calls("tc_exp"), "(element(from + e) - chunk_m); };"));
    out_.line(str("const ", name, " s = ", text_.calls("tc_node"), "<", sum, ", 1, ", name,
                  ", decltype(shifted)>::of(shifted, 0, to - from);"));
    out_.line(is_one ? "return s;"
                     : str("return s * ", text_.calls("tc_exp"), "(chunk_m - m);"));
    out_.close(";");
    out_.line(is_one
                  ? str(reg, " = part(0);")
                  : str(reg, " = ", tree(sum, name, "part", ceil_div(elements, kChunk)), ";"));
  }

  CudaText& text_;
  Text& out_;
  const Kernel& kernel_;
  const Expr rows_;
  KernelEntry entry_;
};

}  // namespace

KernelEntry write_cuda_serial(CudaText& text, const std::string& function) {
  return SerialWriter(text, function).write();
}

}  // namespace tiny_compile
