// How do scalars read where CUDA C has a shorter way than C++, or a faster one?
//
//   x != x                    =>  tc_is_nan(x)
//   div(x, $3), many by $3    =>  tc_divided(x, by_load_3), by what it takes to divide by $3, computed once
#include "tiny_compile/codegen/cuda_scalar.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/base/math.h"

namespace tiny_compile {
namespace {

using Form = Evaluation::Form;

// x != x, x == x
bool asks_for_nan(const Kernel& kernel, const Scalar& scalar) {
  return (scalar.op == Op::ne || scalar.op == Op::eq) &&
         scalar.operands[0] == scalar.operands[1] &&
         is_float(kernel.scalars[scalar.operands[0]].dtype);
}

// "tc_exp", where the formula is "tc_exp(a)".
std::string function_of(const Kernel& kernel, const Scalar& scalar) {
  const std::string text = formula(scalar.op, kernel.scalars[scalar.operands[0]].dtype);
  return text.ends_with("(a)") ? text.substr(0, text.size() - 3) : "";
}

// Whether it is a function of one f32 that takes many instructions.
bool is_call(const Kernel& kernel, const Scalar& scalar) {
  return is_costly(scalar) && scalar.operands.size() == 1 &&
         compute_type(kernel.scalars[scalar.operands[0]].dtype) == DType::f32 &&
         !function_of(kernel, scalar).empty();
}

// A number of which the prelude knows that tc_quotient divides by it.
bool is_usual(const Scalar& divisor) {
  return divisor.kind == ScalarKind::Constant &&
         prelude::tc_divide_by(static_cast<float>(divisor.value.as_double())).most > 0;
}

bool is_known(const Evaluation& how, int divisor) {
  return std::count(how.divisors.begin(), how.divisors.end(), divisor) > 0;
}

bool is_index(const Scalar& scalar) {
  return scalar.kind == ScalarKind::Index && scalar.dtype == DType::i64 &&
         scalar.operands.empty();
}

// An index or a small constant; else "".
std::string as_int(const CudaText& text, const Scalar& scalar) {
  if (is_index(scalar)) return text.scalars.index(scalar.index);
  const bool is_small = scalar.kind == ScalarKind::Constant &&
                        std::abs(scalar.value.as_double()) < static_cast<double>(kMostInt);
  return is_small ? str(scalar.value.as_integer()) : std::string();
}

// A comparison of an index with another, with a constant or, if it is eq, with data, done with
// ints; else "".
std::string compared(CudaText& text, const Scalar& scalar) {
  const std::vector<Scalar>& all = text.kernel.scalars;
  int a = scalar.operands[0], b = scalar.operands[1];
  if (text.integer != "int" || (!is_index(all[a]) && !is_index(all[b]))) return "";
  const std::string lhs = as_int(text, all[a]), rhs = as_int(text, all[b]);
  if (!lhs.empty() && !rhs.empty())
    return fill_formula(text.calls, formula(scalar.op, DType::i64), {lhs, rhs});
  if (!is_index(all[a])) std::swap(a, b);
  if (scalar.op != Op::eq || all[a].index.bounds().low < 0) return "";
  return str(as_int(text, all[a]), " == ", text.calls("tc_narrow"), "(", text.scalars.name(b),
             ")");
}

// By a divisor that is a variable, or a usual number; else "".
std::string divided(CudaText& text, const Scalar& scalar, const Evaluation& how) {
  const int divisor = scalar.operands[1];
  const bool has_fast_form = compute_type(scalar.dtype) == DType::f32 &&
                             (is_known(how, divisor) || is_usual(text.kernel.scalars[divisor]));
  if (!has_fast_form) return "";
  const std::string a = text.scalars.name(scalar.operands[0]), b = text.scalars.name(divisor);
  if (how.form == Form::Slow) return str(text.calls("tc_divided"), "_slowly(", a, ", ", b, ")");
  const std::string by =
      is_known(how, divisor) ? "by_" + b : str(text.calls("tc_divide_by"), "(", b, ")");
  return str(text.calls("tc_divided"), "(", a, ", ", by,
             how.form == Form::Fast ? ", exact)" : ")");
}

// Where it is known to be right, or a flag says so; else "".
std::string fast_exp(CudaText& text, const Scalar& scalar, const Evaluation& how) {
  const bool is_fast = how.form == Form::Fast || how.form == Form::Decided;
  if (scalar.dtype != DType::f32 || !is_fast) return "";
  return str(text.calls("tc_exp_below"), "(", text.scalars.name(scalar.operands[0]),
             how.form == Form::Decided ? ")" : ", exact)");
}

// How an op's value reads where that is not what the op table says; "" where it is.
std::string instead(CudaText& text, const Scalar& scalar, const Evaluation& how) {
  const auto operand = [&] { return text.scalars.name(scalar.operands[0]); };
  if (asks_for_nan(text.kernel, scalar))
    return str(scalar.op == Op::eq ? "!" : "", text.calls("tc_is_nan"), "(", operand(), ")");
  if (info(scalar.op).result == Result::Bool) return compared(text, scalar);
  if (how.form == Form::Slow && is_call(text.kernel, scalar))
    return str(text.calls("tc_slowly"), "<", text.calls(function_of(text.kernel, scalar)), ">(",
               operand(), ")");
  if (scalar.op == Op::exp) return fast_exp(text, scalar, how);
  return scalar.op == Op::div ? divided(text, scalar, how) : "";
}

}  // namespace

std::string cuda_value(CudaText& text, int id, const Evaluation& how) {
  const Scalar& scalar = text.kernel.scalars[id];
  if (scalar.kind != ScalarKind::Apply) return text.scalars.value(id);
  const std::string own = instead(text, scalar, how);
  return own.empty() ? text.scalars.value(id) : rounded(text.calls, scalar.dtype, own);
}

void declare_divisor(CudaText& text, int scalar) {
  const std::string b = text.scalars.name(scalar);
  text.out.line(
      str("const tc_divisor by_", b, " = ", text.calls("tc_divide_by"), "(", b, ");"));
}

}  // namespace tiny_compile
