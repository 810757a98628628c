// How does a kernel of CUDA begin, and how do its scalars read where C++ has a shorter way?
//
//   x != x                    =>  tc_is_nan(x)
//   div(x, $3), many by $3    =>  tc_divided(x, by_load_3), by what it takes to divide by $3, computed once
#include "tiny_compile/codegen/cuda_text.h"

#include <algorithm>

#include "tiny_compile/base/math.h"
#include "tiny_compile/codegen/cuda_guard.h"
#include "tiny_compile/codegen/cuda_memory_helpers.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/in_place.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostInt = int64_t{1} << 30;  // indices below: ints, sums of two as well

// Every number that the text computes with fits an int.
bool fits_int(const Program& program, const Kernel& kernel) {
  auto fits = [](const Expr& e) { return largest_part(e) < kMostInt; };
  bool all = fits(row_count(kernel));
  for (const Scalar& scalar : kernel.scalars) {
    all = all && fits(scalar.index);
    if (scalar.kind == ScalarKind::Load) all = all && fits(program.buffers[scalar.buffer].size);
  }
  for (const Step& step : kernel.steps) {
    all = all && fits(step.index) && fits(inner_count(kernel, step));
    if (!makes_register(step)) all = all && fits(program.buffers[step.buffer].size);
  }
  return all;
}

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
  return is_costly(scalar) && scalar.kind == ScalarKind::Apply && scalar.operands.size() == 1 &&
         compute_type(kernel.scalars[scalar.operands[0]].dtype) == DType::f32 &&
         !function_of(kernel, scalar).empty();
}

// A number of which the prelude knows that tc_quotient divides by it.
bool is_usual(const Scalar& divisor) {
  return divisor.kind == ScalarKind::Constant &&
         prelude::tc_divide_by(static_cast<float>(divisor.value.as_double())).most > 0;
}

}  // namespace

CudaText::CudaText(const Program& p, const Kernel& k, Starts starts)
    : KernelText(p, k, true), starts_(starts) {
  if (fits_int(p, k)) integer = "int";
  scalars.instead = [this](int id) {
    const Scalar& scalar = kernel.scalars[id];
    if (asks_for_nan(kernel, scalar))
      return str(scalar.op == Op::eq ? "!" : "", calls("tc_is_nan"), "(",
                 scalars.name(scalar.operands[0]), ")");
    if (info(scalar.op).result == Result::Bool) return compared(scalar);
    if (form == Form::Slow && is_call(kernel, scalar))
      return str(calls("tc_slowly"), "<", calls(function_of(kernel, scalar)), ">(",
                 scalars.name(scalar.operands[0]), ")");
    if (!has_fast_form(scalar)) return std::string();
    const std::string a = scalars.name(scalar.operands[0]);
    if (scalar.op == Op::exp) {
      if (form != Form::Fast) return std::string();
      return str(calls("tc_exp_below"), "(", a, knows_highest ? ")" : ", exact)");
    }
    const std::string b = scalars.name(scalar.operands[1]);
    if (form == Form::Slow) return str(calls("tc_divided"), "_slowly(", a, ", ", b, ")");
    const std::string by = divisors_.count(scalar.operands[1]) > 0
                               ? "by_" + b
                               : str(calls("tc_divide_by"), "(", b, ")");
    return str(calls("tc_divided"), "(", a, ", ", by, form == Form::Fast ? ", exact)" : ")");
  };
  check_places_once(*this);
}

std::string CudaText::compared(const Scalar& scalar) {
  const auto is_index = [&](int id) {
    const Scalar& s = kernel.scalars[id];
    return s.kind == ScalarKind::Index && s.dtype == DType::i64 && s.operands.empty();
  };
  const auto as_int = [&](int id) {
    const Scalar& s = kernel.scalars[id];
    if (is_index(id)) return scalars.index(s.index);
    const bool small = s.kind == ScalarKind::Constant &&
                       std::abs(s.value.as_double()) < static_cast<double>(kMostInt);
    return small ? str(s.value.as_integer()) : std::string();
  };
  int a = scalar.operands[0], b = scalar.operands[1];
  if (integer != "int" || (!is_index(a) && !is_index(b))) return "";
  if (!as_int(a).empty() && !as_int(b).empty())
    return fill_formula(calls, formula(scalar.op, DType::i64), {as_int(a), as_int(b)});
  if (!is_index(a)) std::swap(a, b);
  if (scalar.op != Op::eq || kernel.scalars[a].index.bounds().low < 0) return "";
  return str(as_int(a), " == ", calls("tc_narrow"), "(", scalars.name(b), ")");
}

KernelEntry CudaText::begin(const std::string& function, const Expr& grid, int block,
                            int cluster, int resident) {
  KernelEntry entry;
  entry.function = function;
  entry.grid = grid;
  entry.block = block;
  const std::vector<bool> read = buffers_read(program, kernel),
                          written = buffers_written(program, kernel);
  std::vector<std::string> parameters;
  if (starts_ != Starts::Kernel)  // hides CUDA's own
    parameters.push_back(str("const ", calls("tc_block"), " blockIdx"));
  if (is_counted()) parameters.push_back(str("const ", integer, " points"));
  entry.buffers = buffers_by_use(kernel);
  for (int b : entry.buffers)
    parameters.push_back(str(pointer_type(b), written[b] && read[b] ? " " : " __restrict__ ",
                             pointer_name(program.buffers[b])));
  for (const Expr& size : sizes) parameters.push_back(str("const ", integer, " ", size));
  entry.sizes = sizes;
  const std::string residents = resident ? str(", ", resident) : "";
  const std::string clusters =
      cluster == 1 ? "" : str("__cluster_dims__(", cluster, ", 1, 1) ");
  attributes = str(clusters, "__launch_bounds__(", block, residents, ") ");
  const std::string head = starts_ == Starts::Kernel
                               ? str("extern \"C\" __global__ void ", attributes, function)
                               : "static __device__ void " + block_function(function);
  out.open(str(head, "(", join(parameters, ", "), ")"));
  return entry;
}

std::string CudaText::pointer_type(int buffer) {
  return str(buffers_written(program, kernel)[buffer] ? "" : "const ",
             storage_type(calls, program.buffers[buffer].type.dtype), "*");
}

void CudaText::declare_divisor(int scalar) {
  const std::string b = scalars.name(scalar);
  divisors_.insert(scalar);
  out.line(str("const tc_divisor by_", b, " = ", calls("tc_divide_by"), "(", b, ");"));
}

bool CudaText::has_fast_form(const Scalar& scalar) const {
  if (scalar.op == Op::exp) return hastens_exp && scalar.dtype == DType::f32;
  if (scalar.op != Op::div || compute_type(scalar.dtype) != DType::f32) return false;
  return divisors_.count(scalar.operands[1]) > 0 ||
         is_usual(kernel.scalars[scalar.operands[1]]);
}

}  // namespace tiny_compile
