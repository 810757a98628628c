// The op table as data: info(Op::add).float_formula is "a + b".
#include "tiny_compile/graph/op.h"

#include "tiny_compile/base/error.h"

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

constexpr ReductionInfo kReductions[] = {
#define X(name, domain, result, pairwise, identity) \
  {Op::name, Domain::domain, ReducedTo::result, Op::pairwise, identity},
    TC_REDUCTIONS(X)
#undef X
};

}  // namespace

const OpInfo& info(Op op) { return kOps[static_cast<int>(op)]; }

const ReductionInfo& reduction_info(Op reduction) {
  for (const ReductionInfo& row : kReductions) {
    if (row.op == reduction) return row;
  }
  CHECK(false, info(reduction).name, " is not in the table of reductions");
  return kReductions[0];
}

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
    case Domain::Bool: return dtype == DType::boolean;
  }
  return false;
}

std::vector<Op> tree_reductions() {
  std::vector<Op> trees;
  for (const ReductionInfo& row : kReductions) {
    const bool takes_floats = accepts(row.domain, DType::f32);
    if (takes_floats && row.result != ReducedTo::Place && row.op != Op::sum_exp)
      trees.push_back(row.op);
  }
  return trees;
}

DType reduction_result(Op op, DType operand) {
  if (!is_reduction(op)) return operand;
  switch (reduction_info(op).result) {
    case ReducedTo::Same: return operand;
    case ReducedTo::Wide:
      return is_float(operand) || operand == DType::u64 ? operand : DType::i64;
    case ReducedTo::Place: return DType::i64;
  }
  return operand;
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
