// The op table as data: info(Op::add).float_formula is "a + b".
#include "tiny_compile/graph/op.h"

namespace tiny_compile {
namespace {

constexpr OpInfo kOps[] = {
#define X(name, arity, domain, result, cost, on_floats, on_integers) \
  {#name,          arity,      OpClass::Pointwise, Domain::domain,   \
   Result::result, Cost::cost, #on_floats,         #on_integers},
    TC_POINTWISE_OPS(X)
#undef X
#define X(name, arity, op_class) \
  {#name, arity, OpClass::op_class, Domain::Any, Result::Same, Cost::Cheap, "0", "0"},
        TC_OTHER_OPS(X)
#undef X
};

}  // namespace

const OpInfo& info(Op op) { return kOps[static_cast<int>(op)]; }

std::optional<Op> op_from(std::string_view name) {
  for (int i = 0; i < kOpCount; i++) {
    if (name == kOps[i].name) return static_cast<Op>(i);
  }
  return std::nullopt;
}

bool accepts(Domain domain, DType dtype) {
  switch (domain) {
    case Domain::Any:
    case Domain::Where: return true;
    case Domain::Number: return dtype != DType::boolean;
    case Domain::Float: return is_float(dtype);
    case Domain::Integer: return is_integer(dtype);
    case Domain::Bits: return !is_float(dtype);
  }
  return false;
}

DType reduction_result(Op op, DType operand) {
  switch (op) {
    case Op::sum:
    case Op::prod: return is_float(operand) || operand == DType::u64 ? operand : DType::i64;
    case Op::argmax:
    case Op::argmin: return DType::i64;
    case Op::any:
    case Op::all: return DType::boolean;
    default: return operand;
  }
}

DType scan_result(Op op, DType operand) {
  return op == Op::cummax || op == Op::cummin ? DType::i64 : operand;
}

std::optional<Op> combiner(Op op) {
  switch (op) {
    case Op::cumsum:
    case Op::scatter_add: return Op::add;
    case Op::cumprod:
    case Op::scatter_prod: return Op::mul;
    case Op::logcumsumexp: return Op::logaddexp;
    case Op::maximum:
    case Op::scatter_max: return Op::maximum;
    case Op::minimum:
    case Op::scatter_min: return Op::minimum;
    default: return std::nullopt;
  }
}

const char* formula(Op op, DType operand) {
#define X(name, function) \
  if (op == Op::name && is_half(operand)) return #function "(a)";
  TC_HALF_FORMULAS(X)
#undef X
  return is_float(operand) ? info(op).float_formula : info(op).integer_formula;
}

}  // namespace tiny_compile
