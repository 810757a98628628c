// The C++ type of a dtype's elements, and one of them as a Literal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tiny_compile/base/dtype.h"
#include "tiny_compile/base/literal.h"
#include "tiny_compile/base/math.h"

namespace tiny_compile {

// The dtype whose elements this C++ type holds in memory.
template <typename T>
constexpr DType dtype_of() {
  using prelude::tc_bf16, prelude::tc_f16;
#define X(name, type, ...)               \
  if constexpr (std::is_same_v<T, type>) \
    return DType::name;                  \
  else
  TC_DTYPES(X)
#undef X
  if constexpr (std::is_same_v<T, int64_t>)  // another type than long long
    return DType::i64;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return DType::u64;
  else
    static_assert(sizeof(T) == 0, "no dtype has elements of this C++ type");
}

// The element that lies there.
inline Literal literal_at(DType dtype, const std::byte* at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, size_of(dtype));
  return {dtype, bits};
}

}  // namespace tiny_compile
