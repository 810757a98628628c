// How is a chunk reduced that lies in the registers of several lanes, and a row of chunks?
//
//   sum of a row of 4096   a warp's chunk   tc_tree<tc_sum_float, 32, 4>(t_0)
//                          the row          r0 = tc_fold<tc_sum_float, 4>(part_0)
//   sum_exp, against a     its maximum      m_0 = tc_clamp(tc_tree<tc_max_float, 32, 1>(top_0))
//   chunk's own maximum    a warp's chunk   t_0[j] = tc_exp(t_0[j] - m_0), and their sum
//                          the row          r0 = tc_fold_exp<..., 4>(part_0, most_0)
//
// The arrays t_0 are a thread's values in the order in which Spread lays them.
#include "tiny_compile/codegen/cuda_row_tree.h"

#include "tiny_compile/codegen/cuda_helpers.h"

namespace tiny_compile {

void declare_elements(CudaText& text, const Spread& s, const Tree& tree) {
  text.out.line(str(c_type(tree.type), " t_", tree.number, "[", s.values(), "];"));
  if (s.count % s.size == 0) return;
  const Op op = tree.is_sum_exp() ? Op::max : tree.step->op;
  text.out.line("#pragma unroll");
  text.out.line(str("for (int j = 0; j < ", s.values(), "; j++) t_", tree.number,
                    "[j] = ", literal_text(text.calls, identity(op, tree.type)), ";"));
}

std::string tree_of(CudaText& text, const RowShape& shape, const Spread& s, Op op, DType type,
                    const std::string& array) {
  const bool any_order = !is_float(type) || op == Op::max || op == Op::min;
  const int vector = any_order ? 1 : s.vector;
  return str(text.calls("tc_tree"), "<", cuda_op(text.calls, op, type), ", ", shape.lanes, ", ",
             vector, ">(", array, ")");
}

std::string write_exponentials(CudaText& text, const RowShape& shape, const Spread& s,
                               const Tree& tree) {
  Text& out = text.out;
  const std::string &n = tree.number, name = c_type(tree.type),
                    values = std::to_string(s.values());
  out.line(str(name, " top_", n, "[", values, "];"));
  out.line("#pragma unroll");
  out.line(str("for (int j = 0; j < ", values, "; j++) top_", n, "[j] = t_", n, "[j];"));
  const std::string largest = tree_of(text, shape, s, Op::max, tree.type, "top_" + n);
  out.line(str("const ", name, " largest_", n, " = ", largest, ", m_", n, " = ",
               text.calls("tc_clamp"), "(largest_", n, ");"));
  const std::string sum = tree_of(text, shape, s, tree.step->op, tree.type, "t_" + n);
  const auto write_all = [&](const std::string& function) {
    out.line("#pragma unroll");
    out.line(str("for (int j = 0; j < ", values, "; j++) t_", n, "[j] = ", function, "(t_", n,
                 "[j] - m_", n, ");"));
  };
  if (!text.hastens_exp || tree.type != DType::f32) {
    write_all(text.calls("tc_exp"));
    return sum;
  }
  // The sum belongs to each branch, so that not all of its terms wait for the other's.
  out.line(str(name, " sum_", n, ";"));
  out.open(str("if (largest_", n, " - m_", n, " < 43.0f)"));
  write_all(text.calls("tc_exp_below"));
  out.line(str("sum_", n, " = ", sum, ";"));
  out.close(" else {");
  out.indent();
  write_all(text.calls("tc_exp"));
  out.line(str("sum_", n, " = ", sum, ";"));
  out.close();
  return "sum_" + n;
}

void fold_chunks(CudaText& text, const Spread& s, const Tree& tree) {
  const std::string part = "part_" + tree.number, reg = "r" + tree.number,
                    op = cuda_op(text.calls, tree.step->op, tree.type);
  if (s.chunks == 1) return text.out.line(str(reg, " = ", part, "[0];"));
  text.out.line(tree.is_sum_exp() ? str(reg, " = ", text.calls("tc_fold_exp"), "<", op, ", ",
                                        cuda_op(text.calls, Op::max, tree.type), ", ", s.chunks,
                                        ">(", part, ", most_", tree.number, ");")
                                  : str(reg, " = ", text.calls("tc_fold"), "<", op, ", ",
                                        s.chunks, ">(", part, ");"));
}

void finish_reduction(CudaText& text, const Step& step, const std::string& reg, DType type) {
  if (is_float(type) && (step.op == Op::max || step.op == Op::min))
    text.out.line(
        str(reg, " = ", reg, " + ", literal_text(text.calls, Literal::of(type, 0)), ";"));
  if (is_half(step.dtype))
    text.out.line(str(reg, " = ", rounded(text.calls, step.dtype, reg), ";"));
}

}  // namespace tiny_compile
