// The C++ type of a dtype's elements, and one of them as a Literal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tiny_compile/base/dtype.h"
#include "tiny_compile/base/literal.h"
#include "tiny_compile/base/math.h"

namespace tiny_compile {

// The C++ type that holds an element in memory: T{} of dtype_of<T>().
template <typename T>
constexpr DType dtype_of();

template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<prelude::tc_f16>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<prelude::tc_bf16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<long long>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return DType::u32;
}
template <>
constexpr DType dtype_of<uint64_t>() {
  return DType::u64;
}
template <>
constexpr DType dtype_of<unsigned long long>() {
  return DType::u64;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::boolean;
}

// The element that lies there.
inline Literal literal_at(DType dtype, const std::byte* at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, size_of(dtype));
  return {dtype, bits};
}

}  // namespace tiny_compile
