// What does x + 1 mean for tensors of other dtypes and shapes? Casts and expands are written
// into the graph, so that every primitive sees operands of one dtype and one shape:
//
//   i64[3] * 0.5   =>   %1 = cast %0 ; %2 = constant {value=0.5}
//                       %3 = expand %2 ; %4 = mul %1, %3
#include "tiny_compile/trace/operators.h"

#include <algorithm>

namespace tiny_compile {
namespace {

DType default_dtype(Category kind) {
  return kind == Category::Float  ? DType::f32
         : kind == Category::Bool ? DType::boolean
                                  : DType::i64;
}

int rank_of_category(DType dtype) {
  return is_float(dtype) ? 2 : dtype == DType::boolean ? 0 : 1;
}

Location place_of(const std::vector<const Operand*>& operands) {
  return operands.empty() ? Location{} : operands[0]->where;
}

// The dtype an op computes in, given its operands' common dtype.
DType suited(Op op, DType dtype) {
  const Domain domain = info(op).domain;
  if (domain == Domain::Float && !is_float(dtype)) return DType::f32;
  if (domain == Domain::Number && dtype == DType::boolean) return DType::i64;
  if (domain == Domain::Integer && dtype == DType::boolean) return DType::i64;
  return dtype;
}

// As in PyTorch bool + is or, bool * is and: the result stays bool. Its - is refused.
Op op_on_bool(Op op, const Location& where) {
  switch (op) {
    case Op::add:
    case Op::maximum: return Op::bitwise_or;
    case Op::mul:
    case Op::minimum: return Op::bitwise_and;
    case Op::sub:
      fail_at(where, "- of bool tensors: use ^ or logical_not, or cast to an integer first");
    case Op::neg: fail_at(where, "- of a bool tensor: use ~ or logical_not");
    default: return op;
  }
}

Tensor constant(const Literal& value, const Location& where) {
  Node node;
  node.op = Op::constant;
  node.type = {value.dtype, {}};
  node.value = value;
  return apply(std::move(node), {}, where);
}

// As if the user had written the tensor at this place.
Operand at_place(const Tensor& tensor, const Location& where) {
  Operand operand(tensor);
  operand.where = where;
  return operand;
}

// lhs = op(lhs, rhs), kept in lhs's dtype and shape.
Tensor& update(Op op, const char* sign, Tensor& lhs, const Operand& rhs) {
  const Location where = current_place(rhs.where);
  const Scope scope(where);
  const Operand old = at_place(lhs, where);
  const Tensor result = pointwise(op, {&old, &rhs});
  const DType dtype = lhs.dtype();
  if (rank_of_category(result.dtype()) > rank_of_category(dtype))
    fail_at(where, str(sign, ": the result is ", result.dtype(), ", which does not fit into ",
                       dtype, "; write x = x ", sign[0], " y for a tensor of another dtype"));
  if (!same_shape(result, lhs.sizes()))
    fail_at(where, str(sign, ": the result's shape is [", join(result.sizes(), ","), "], not [",
                       join(lhs.sizes(), ","), "]; write x = x ", sign[0],
                       " y for a tensor of another shape"));
  lhs = cast_to(result, dtype, where);
  return lhs;
}

}  // namespace

DType result_type(const std::vector<const Operand*>& operands) {
  std::optional<DType> by_priority[3];  // tensors with axes, 0-d tensors, scalars
  for (const Operand* operand : operands) {
    const int priority = operand->is_scalar() ? 2 : operand->tensor.rank() == 0 ? 1 : 0;
    const DType dtype =
        operand->is_scalar() ? default_dtype(operand->kind) : operand->tensor.dtype();
    std::optional<DType>& slot = by_priority[priority];
    slot = slot ? promote(*slot, dtype) : dtype;
  }
  std::optional<DType> result;
  for (const std::optional<DType>& dtype : by_priority) {
    if (!dtype) continue;
    if (!result || rank_of_category(*dtype) > rank_of_category(*result)) result = dtype;
  }
  CHECK(result.has_value(), "an op without operands");
  return *result;
}

Operand::Operand(const Size& value, Here here)
    : kind(Category::Signed), where(location_of(here)) {
  if (value.is_number()) integer = value;
  if (!value.is_number()) size = value;
}

Tensor Operand::captured() const {
  if (is_scalar()) return as_tensor(*this, default_dtype(kind), where);
  if (!tensor.defined())
    fail_at(current_place(where), "this tensor is undefined: assign one to it first");
  return seen(*variable, where);
}

// A size that may be 1 is asked only where it stands beside another one.
SizeList broadcast_shapes(const std::vector<SizeList>& shapes, const Location& where) {
  size_t rank = 0;
  for (const SizeList& shape : shapes) rank = std::max(rank, shape.size());
  SizeList result(rank, 1);
  for (const SizeList& shape : shapes) {
    for (size_t k = 0; k < shape.size(); k++) {
      Size& size = result[rank - shape.size() + k];
      if (shape[k].is_number(1) || same_expression(shape[k], size)) continue;
      if (!size.is_number(1) && shape[k] == size) continue;
      if (!size.is_number(1) && shape[k] != 1 && size != 1) {
        std::vector<std::string> texts;
        for (const SizeList& s : shapes) texts.push_back(str("[", join(s, ","), "]"));
        fail_at(current_place(where),
                str("shapes ", join(texts, " and "), " do not broadcast: sizes ", size, " and ",
                    shape[k], " differ and neither is 1; reshape or expand one of them"));
      }
      if (size == 1) size = shape[k];
    }
  }
  return result;
}

bool same_shape(const Tensor& tensor, const SizeList& shape) {
  return tensor.sizes().exprs() == shape.exprs();
}

Tensor cast_to(const Tensor& tensor, DType dtype, const Location& where) {
  if (tensor.dtype() == dtype) return tensor;
  Node node;
  node.op = Op::cast;
  node.type.dtype = dtype;
  return apply(std::move(node), {tensor}, where);
}

Tensor expand_to(const Tensor& tensor, const SizeList& shape, const Location& where) {
  if (same_shape(tensor, shape)) return tensor;
  Node node;
  node.op = Op::expand;
  node.type = {tensor.dtype(), shape.exprs()};
  return apply(std::move(node), {tensor}, where);
}

// A symbolic size as an i64[]: what counting from it begins with.
Tensor number_of(const Size& size, const Location& where) {
  Node counter, scalar;
  counter.op = Op::iota;
  counter.type = {DType::i64, {1}};
  counter.set(Key::start, {size.expr()});
  scalar.op = Op::reshape;
  scalar.type = {DType::i64, {}};
  return apply(std::move(scalar), {apply(std::move(counter), {}, where)}, where);
}

Tensor as_tensor(const Operand& operand, DType dtype, const Location& where) {
  if (!operand.is_scalar()) return cast_to(operand.captured(), dtype, where);
  if (operand.size) return cast_to(number_of(*operand.size, where), dtype, where);
  return constant(operand.kind == Category::Float ? Literal::of(dtype, operand.real)
                                                  : Literal::of_integer(dtype, operand.integer),
                  where);
}

Tensor as_bool(const Operand& x) {
  if (x.is_scalar()) return as_tensor(x, DType::boolean, x.where);
  const Tensor tensor = x.captured();
  return tensor.dtype() == DType::boolean ? tensor : tensor != Operand(0);
}

Tensor pointwise(Op op, const std::vector<const Operand*>& operands) {
  const Location where = current_place(place_of(operands));
  std::vector<const Operand*> values = operands;
  if (op == Op::where) values.erase(values.begin());
  for (const Operand* operand : operands) {
    if (!operand->is_scalar() && !operand->tensor.defined())
      fail_at(where, str(info(op).name, ": an operand is an undefined tensor"));
  }
  const DType common = result_type(values);
  if (common == DType::boolean) op = op_on_bool(op, where);
  const DType dtype = suited(op, common);
  std::vector<Tensor> tensors;
  std::vector<SizeList> shapes;
  for (const Operand* operand : operands) {
    const bool condition = op == Op::where && operand == operands[0];
    Tensor tensor = as_tensor(*operand, condition ? DType::boolean : dtype, where);
    shapes.push_back(tensor.sizes());
    tensors.push_back(std::move(tensor));
  }
  const SizeList shape = broadcast_shapes(shapes, where);
  for (Tensor& tensor : tensors) tensor = expand_to(tensor, shape, where);
  Node node;
  node.op = op;
  return apply(std::move(node), tensors, where);
}

Tensor operator+(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::add, {&lhs, &rhs});
}
Tensor operator-(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::sub, {&lhs, &rhs});
}
Tensor operator*(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::mul, {&lhs, &rhs});
}
Tensor operator/(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::div, {&lhs, &rhs});
}
Tensor operator%(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::remainder, {&lhs, &rhs});
}
Tensor operator-(const Operand& operand) { return pointwise(Op::neg, {&operand}); }
Tensor operator==(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::eq, {&lhs, &rhs});
}
Tensor operator!=(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::ne, {&lhs, &rhs});
}
Tensor operator<(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::lt, {&lhs, &rhs});
}
Tensor operator<=(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::le, {&lhs, &rhs});
}
Tensor operator>(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::gt, {&lhs, &rhs});
}
Tensor operator>=(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::ge, {&lhs, &rhs});
}
Tensor operator&(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::bitwise_and, {&lhs, &rhs});
}
Tensor operator|(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::bitwise_or, {&lhs, &rhs});
}
Tensor operator^(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::bitwise_xor, {&lhs, &rhs});
}
Tensor operator~(const Operand& operand) { return pointwise(Op::bitwise_not, {&operand}); }
Tensor operator<<(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::shift_left, {&lhs, &rhs});
}
Tensor operator>>(const Operand& lhs, const Operand& rhs) {
  return pointwise(Op::shift_right, {&lhs, &rhs});
}

Tensor operator!(const Tensor& operand) {
  const Location where = operand.defined() ? recorded_at(operand) : Location{};
  const Scope scope(where);
  return ~as_bool(at_place(operand, where));
}
Tensor operator&&(const Tensor& lhs, const Operand& rhs) {
  const Scope scope(rhs.where);
  const Tensor left = as_bool(at_place(lhs, rhs.where));
  return left & as_bool(rhs);
}
Tensor operator||(const Tensor& lhs, const Operand& rhs) {
  const Scope scope(rhs.where);
  const Tensor left = as_bool(at_place(lhs, rhs.where));
  return left | as_bool(rhs);
}
Tensor& operator+=(Tensor& lhs, const Operand& rhs) { return update(Op::add, "+=", lhs, rhs); }
Tensor& operator-=(Tensor& lhs, const Operand& rhs) { return update(Op::sub, "-=", lhs, rhs); }
Tensor& operator*=(Tensor& lhs, const Operand& rhs) { return update(Op::mul, "*=", lhs, rhs); }
Tensor& operator/=(Tensor& lhs, const Operand& rhs) { return update(Op::div, "/=", lhs, rhs); }

}  // namespace tiny_compile
