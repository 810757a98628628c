// Does every operand have a dtype that its op takes?
//
//   r0: i64 = any(j0: 4) load x[..]     with x: i64   =>   "any of i64"
//   where($0, ..) with $0: i64                        =>   "the condition of $3 is i64, not bool"
#include "tiny_compile/loops/typing.h"

#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/sorted_words.h"

namespace tiny_compile {
namespace {

DType dtype_of(const Kernel& kernel, int scalar) { return kernel.scalars[scalar].dtype; }

std::string of_apply(const Kernel& kernel, int id) {
  const Scalar& s = kernel.scalars[id];
  if (!is_pointwise(s.op) || static_cast<int>(s.operands.size()) != info(s.op).arity)
    return str("$", id, ": ", info(s.op).name, " with ", s.operands.size(), " operands");
  const DType dtype = dtype_of(kernel, s.operands.back());
  const bool chooses = info(s.op).domain == Domain::Where;
  if (chooses && dtype_of(kernel, s.operands[0]) != DType::boolean)
    return str("the condition of $", id, " is ", dtype_of(kernel, s.operands[0]), ", not bool");
  for (size_t k = chooses ? 1 : 0; k < s.operands.size(); k++) {
    if (dtype_of(kernel, s.operands[k]) != dtype)
      return str("$", id, ": operands of two dtypes");
  }
  if (!accepts(info(s.op).domain, dtype))
    return str("$", id, ": ", info(s.op).name, " of ", dtype);
  const DType result = info(s.op).result == Result::Bool   ? DType::boolean
                       : info(s.op).result == Result::Cast ? s.dtype
                                                           : dtype;
  if (s.op == Op::bitcast && size_of(s.dtype) != size_of(dtype))
    return str("$", id, ": bitcast of ", dtype, " to ", s.dtype, ", of another size");
  return s.dtype == result ? "" : str("$", id, " is ", s.dtype, ", not ", result);
}

std::string of_load(const Program& program, const Kernel& kernel, int id) {
  const Scalar& s = kernel.scalars[id];
  if (s.kind == ScalarKind::Load && s.dtype != program.buffers[s.buffer].type.dtype)
    return str("$", id, " is ", s.dtype, " but its buffer is not");
  if (s.kind == ScalarKind::Index && s.dtype != DType::i64) return str("$", id, " is no i64");
  for (int operand : s.operands) {
    if (dtype_of(kernel, operand) != DType::i64)
      return str("the place of $", id, " is chosen by ", dtype_of(kernel, operand),
                 ", not by an i64");
  }
  return s.mask >= 0 && s.value.dtype != s.dtype
             ? str("$", id, " is ", s.dtype, ", but ", s.value.dtype,
                   " where its mask is false")
             : "";
}

// A half's reduction may keep what it accumulates in: f32.
bool may_give(DType dtype, DType result) {
  return dtype == result || dtype == compute_type(result);
}

std::string of_register(const Kernel& kernel, const Step& step) {
  const DType dtype = dtype_of(kernel, step.value);
  if (step.kind == StepKind::Dot) {
    if (dtype_of(kernel, step.rhs) != dtype) return "multiplies two dtypes";
    if (dtype == DType::boolean) return "multiplies bools";
    return may_give(step.dtype, dtype) ? "" : str("gives ", step.dtype, ", not ", dtype);
  }
  if (has_running_results(step.op)) return "";  // a total: see why_wrong_scan
  if (!is_reduction(step.op)) return str(info(step.op).name, " is no reduction");
  if (!accepts(reduction_info(step.op).domain, dtype))
    return str(info(step.op).name, " of ", dtype);
  const DType result = reduction_result(step.op, dtype);
  return may_give(step.dtype, result) ? "" : str("gives ", step.dtype, ", not ", result);
}

}  // namespace

std::string why_ill_typed(const Program& program, const Kernel& kernel, int id) {
  const Scalar& s = kernel.scalars[id];
  if (s.mask >= 0 && dtype_of(kernel, s.mask) != DType::boolean)
    return str("the mask of $", id, " is no bool");
  switch (s.kind) {
    case ScalarKind::Constant:
      return s.value.dtype == s.dtype ? "" : str("$", id, " is a constant of another dtype");
    case ScalarKind::Load:
    case ScalarKind::Index: return of_load(program, kernel, id);
    case ScalarKind::Register:
      return s.dtype == kernel.steps[s.step].dtype
                 ? ""
                 : str("$", id, " reads a register of another dtype");
    case ScalarKind::Philox:
      for (int operand : s.operands) {
        if (dtype_of(kernel, operand) != DType::u64)
          return str("the key of $", id, " is ", dtype_of(kernel, operand), ", not u64");
      }
      return s.operands.size() == 2 && s.dtype == DType::u32
                 ? ""
                 : str("$", id, ": philox gives a u32 for a seed and a counter");
    case ScalarKind::Element: return "an element of an array, which tile programs alone have";
    case ScalarKind::Votes: return "votes of lanes, which tile programs alone have";
    case ScalarKind::Apply: break;
  }
  return of_apply(kernel, id);
}

std::string why_ill_typed(const Program& program, const Kernel& kernel, const Step& step) {
  if (makes_register(step)) return of_register(kernel, step);
  const DType dtype = dtype_of(kernel, step.value),
              buffer = program.buffers[step.buffer].type.dtype;
  const bool places =
      step.kind == StepKind::Sort || (step.kind == StepKind::Scan && gives_places(step));
  const bool are_words = step.kind == StepKind::Sort && buffer != DType::i64;
  const DType stored = are_words ? dtype_of_words(kernel, step) : places ? DType::i64 : dtype;
  if (stored != buffer) return "stores another dtype than its buffer's";
  const bool adds = step.kind == StepKind::Scatter && step.op != Op::scatter;
  if (adds && dtype == DType::boolean) return "adds bools";
  if (step.kind == StepKind::Scatter && dtype_of(kernel, step.rhs) != DType::i64)
    return str("scatters to places chosen by ", dtype_of(kernel, step.rhs), ", not by an i64");
  if (step.mask >= 0 && dtype_of(kernel, step.mask) != DType::boolean)
    return "has a mask that is no bool";
  return "";
}

bool stays_in_dtype(Op op) {
  switch (op) {
    case Op::where:
    case Op::neg:
    case Op::abs:
    case Op::sign:
    case Op::minimum:
    case Op::maximum:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round: return true;
    default: return false;
  }
}

}  // namespace tiny_compile
