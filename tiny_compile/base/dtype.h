// Element types and PyTorch's promotion rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

namespace tiny_compile {

// X(name, storage type in generated code, the type it is computed in, size in bytes, category)
#define TC_DTYPES(X)                                          \
  X(f32, float, float, 4, Float)                              \
  X(f64, double, double, 8, Float)                            \
  X(f16, tc_f16, float, 2, Float)                             \
  X(bf16, tc_bf16, float, 2, Float)                           \
  X(i8, signed char, signed char, 1, Signed)                  \
  X(u8, unsigned char, unsigned char, 1, Unsigned)            \
  X(i32, int, int, 4, Signed)                                 \
  X(i64, long long, long long, 8, Signed)                     \
  X(u32, unsigned int, unsigned int, 4, Unsigned)             \
  X(u64, unsigned long long, unsigned long long, 8, Unsigned) \
  X(boolean, bool, bool, 1, Bool)

enum class Category { Bool, Unsigned, Signed, Float };

enum class DType : uint8_t {
#define X(name, ...) name,
  TC_DTYPES(X)
#undef X
};

constexpr int kDTypeCount = 0
#define X(...) +1
    TC_DTYPES(X)
#undef X
    ;

// The user's names, as PyTorch spells them.
inline constexpr DType float32 = DType::f32, float64 = DType::f64, float16 = DType::f16,
                       bfloat16 = DType::bf16, int8 = DType::i8, uint8 = DType::u8,
                       int32 = DType::i32, int64 = DType::i64, uint32 = DType::u32,
                       uint64 = DType::u64, boolean = DType::boolean;

const char* name(DType dtype);    // "f32", ..., "bool"
const char* c_type(DType dtype);  // the storage type in generated code: "float", "tc_bf16"
int64_t size_of(DType dtype);     // bytes of an element
Category category(DType dtype);
std::optional<DType> dtype_from(std::string_view name);  // "bf16" -> DType::bf16

inline bool is_float(DType dtype) { return category(dtype) == Category::Float; }
inline bool is_integer(DType dtype) {
  return category(dtype) == Category::Signed || category(dtype) == Category::Unsigned;
}
inline bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// The type a value is held in while it is computed on: f32 for f16 and bf16, itself otherwise.
inline DType compute_type(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

// visit(T{}), T the type that a value of the dtype is computed in: with_type(bf16, visit) is visit(float{}).
template <typename Visit>
auto with_type(DType dtype, Visit visit) {
  switch (dtype) {
#define X(name, type, computed, ...) \
  case DType::name: return visit(static_cast<computed>(0));
    TC_DTYPES(X)
#undef X
  }
  return visit(false);
}

// PyTorch's promotion of two tensors: promote(i64, f16) returns f16, promote(f16, bf16) f32,
// promote(u8, i8) i32 (PyTorch: i16, which we lack). u32/u64 with a signed type: i64.
DType promote(DType lhs, DType rhs);

std::ostream& operator<<(std::ostream& out, DType dtype);

}  // namespace tiny_compile
