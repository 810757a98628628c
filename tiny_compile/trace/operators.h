// x + y, 2 * x, x < 0: operators over tensors and C++ scalars, with PyTorch's
// promotion and broadcasting.
#pragma once

#include <initializer_list>
#include <vector>

#include "tiny_compile/tensor/tensor.h"
#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {

// A tensor or a C++ scalar. Implicit, so that its default argument is the user's own line.
struct Operand {
  Operand(const Tensor& t, Here here = Here::current())
      : tensor(t), variable(&t), where(location_of(here)) {}  // NOLINT
  Operand(double value, Here here = Here::current())
      : real(value), kind(Category::Float), where(location_of(here)) {}  // NOLINT
  Operand(float value, Here here = Here::current())
      : Operand(static_cast<double>(value), here) {}  // NOLINT
  Operand(int64_t value, Here here = Here::current())
      : integer(value), kind(Category::Signed), where(location_of(here)) {}  // NOLINT
  Operand(int value, Here here = Here::current())
      : Operand(static_cast<int64_t>(value), here) {}  // NOLINT
  Operand(bool value, Here here = Here::current())
      : integer(value), kind(Category::Bool), where(location_of(here)) {}  // NOLINT

  Operand(const Size& value, Here here = Here::current());  // a symbolic one stays so

  bool is_scalar() const { return !variable; }
  Tensor captured() const;  // as a tensor of the trace; a scalar has no axes

  Tensor tensor;
  const Tensor* variable = nullptr;  // null for a scalar
  double real = 0;
  int64_t integer = 0;
  Category kind = Category::Float;  // of a scalar
  std::optional<Size> size;         // of a scalar that is a symbolic size
  Location where;
};

// PyTorch's result_type: tensors with axes first; 0-d tensors and then scalars count only where
// their category (bool < integer < float) is higher. A float scalar over integers gives f32, an
// integer scalar over bool i64.
DType result_type(const std::vector<const Operand*>& operands);

// The shape that PyTorch's broadcasting gives; throws tc::Error at `where` for
// sizes that differ.
SizeList broadcast_shapes(const std::vector<SizeList>& shapes, const Location& where);

// The operand as a tensor of this dtype and shape: constants, casts and expands as needed.
Tensor as_tensor(const Operand& operand, DType dtype, const Location& where);
Tensor expand_to(const Tensor& tensor, const SizeList& shape, const Location& where);
bool same_shape(const Tensor& tensor, const SizeList& shape);  // without asking for numbers
Tensor cast_to(const Tensor& tensor, DType dtype, const Location& where);
Tensor as_bool(const Operand& x);  // x != 0

// A pointwise op on operands brought to one dtype and shape. The dtype must suit the op:
// integers are promoted to f32 for ops on floats, bool to i64 where numbers are needed; bool +
// bool is or, bool * bool is and, as in PyTorch.
Tensor pointwise(Op op, const std::vector<const Operand*>& operands);

Tensor operator+(const Operand& lhs, const Operand& rhs);
Tensor operator-(const Operand& lhs, const Operand& rhs);
Tensor operator*(const Operand& lhs, const Operand& rhs);
Tensor operator/(const Operand& lhs, const Operand& rhs);  // true division
Tensor operator%(const Operand& lhs, const Operand& rhs);  // remainder, the divisor's sign
Tensor operator-(const Operand& operand);
Tensor operator==(const Operand& lhs, const Operand& rhs);
Tensor operator!=(const Operand& lhs, const Operand& rhs);
Tensor operator<(const Operand& lhs, const Operand& rhs);
Tensor operator<=(const Operand& lhs, const Operand& rhs);
Tensor operator>(const Operand& lhs, const Operand& rhs);
Tensor operator>=(const Operand& lhs, const Operand& rhs);
Tensor operator&(const Operand& lhs, const Operand& rhs);
Tensor operator|(const Operand& lhs, const Operand& rhs);
Tensor operator^(const Operand& lhs, const Operand& rhs);
Tensor operator~(const Operand& operand);
Tensor operator<<(const Operand& lhs, const Operand& rhs);
Tensor operator>>(const Operand& lhs, const Operand& rhs);

// Logic of every element, both sides always computed. The first operand of && and || is a tensor, as
// an int or a bool would not be told from C++'s own.
Tensor operator!(const Tensor& operand);
Tensor operator&&(const Tensor& lhs, const Operand& rhs);
Tensor operator||(const Tensor& lhs, const Operand& rhs);

// x += y: x names the sum from now on; other handles of the old tensor keep it. As in PyTorch x keeps
// its dtype and shape: a y that does not fit in is an error.
Tensor& operator+=(Tensor& lhs, const Operand& rhs);
Tensor& operator-=(Tensor& lhs, const Operand& rhs);
Tensor& operator*=(Tensor& lhs, const Operand& rhs);
Tensor& operator/=(Tensor& lhs, const Operand& rhs);

}  // namespace tiny_compile
