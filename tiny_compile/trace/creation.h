// Tensors from nothing: constants, counters, random numbers. Inside a traced function they are
// nodes of the graph, so that each call draws anew.
#pragma once

#include <initializer_list>
#include <type_traits>

#include "tiny_compile/trace/functions.h"

namespace tiny_compile {

Tensor full(const SizeList& shape, double value, DType dtype = DType::f32,
            Here here = Here::current());
Tensor zeros(const SizeList& shape, DType dtype = DType::f32, Here here = Here::current());
Tensor ones(const SizeList& shape, DType dtype = DType::f32, Here here = Here::current());
Tensor zeros_like(const Operand& x);
Tensor ones_like(const Operand& x);
Tensor full_like(const Operand& x, double value);
Tensor arange(const Size& start, const Size& stop, int64_t step = 1,
              Here here = Here::current());  // i64
Tensor arange(const Size& stop, Here here = Here::current());
Tensor linspace(double first, double last, int64_t count, Here here = Here::current());  // f32
Tensor eye(const Size& size, DType dtype = DType::f32, Here here = Here::current());

// Philox (base/prelude.h), keyed by manual_seed and the number of the draw: the same
// numbers whether compiled or not. rand is uniform in [0, 1) on multiples of 2^-24; randn
// is Box and Muller's.
Tensor rand(const SizeList& shape, DType dtype = DType::f32, Here here = Here::current());
Tensor randn(const SizeList& shape, DType dtype = DType::f32, Here here = Here::current());
Tensor randint(int64_t low, int64_t high, const SizeList& shape,
               Here here = Here::current());  // i64 in [low, high)
Tensor rand_like(const Operand& x);
Tensor randn_like(const Operand& x);

// tensor({1.f, 2.f}), tensor({{1, 2}, {3, 4}}), three levels at most; from_vector (tensor.h) gives any
// shape. float is f32, double f64, an integer i64. Rows of different lengths throw.
template <typename T>
concept PlainNumber = std::is_arithmetic_v<T>;

template <PlainNumber T>
Tensor tensor(std::initializer_list<T> values, Here here = Here::current());
template <PlainNumber T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows,
              Here here = Here::current());
template <PlainNumber T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes,
              Here here = Here::current());

}  // namespace tiny_compile
