// One row of TC_DTYPES answers every question about an element type.
#include "tiny_compile/base/dtype.h"

#include <algorithm>

namespace tiny_compile {
namespace {

struct Row {
  const char* name;
  const char* c_type;
  int64_t size;
  Category category;
};

constexpr Row kRows[] = {
#define X(name, type, computed, size, category) {#name, #type, size, Category::category},
    TC_DTYPES(X)
#undef X
};

const Row& row(DType dtype) { return kRows[static_cast<int>(dtype)]; }

}  // namespace

const char* name(DType dtype) { return dtype == DType::boolean ? "bool" : row(dtype).name; }
const char* c_type(DType dtype) { return row(dtype).c_type; }
int64_t size_of(DType dtype) { return row(dtype).size; }
Category category(DType dtype) { return row(dtype).category; }

std::optional<DType> dtype_from(std::string_view text) {
  for (int i = 0; i < kDTypeCount; i++) {
    if (text == name(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  return std::nullopt;
}

DType promote(DType lhs, DType rhs) {
  if (lhs == rhs) return lhs;
  if (category(lhs) > category(rhs)) std::swap(lhs, rhs);  // rhs has the higher category
  if (category(lhs) == category(rhs)) {
    if (is_half(lhs) && is_half(rhs)) return DType::f32;  // neither holds the other
    return size_of(lhs) > size_of(rhs) ? lhs : rhs;
  }
  if (category(rhs) != Category::Signed || category(lhs) == Category::Bool) return rhs;
  if (size_of(lhs) >= 4) return DType::i64;    // u32 or u64 with a signed type
  return size_of(rhs) > 1 ? rhs : DType::i32;  // u8 with i8
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

}  // namespace tiny_compile
