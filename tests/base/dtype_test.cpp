#include "tiny_compile/base/dtype.h"

#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"

using namespace tiny_compile;

namespace {

std::vector<DType> all_dtypes() {
  std::vector<DType> result;
  for (int i = 0; i < kDTypeCount; i++) result.push_back(static_cast<DType>(i));
  return result;
}

}  // namespace

TEST_CASE("a dtype is found by its name", "[dtype]") {
  std::set<std::string> names;
  for (const DType dtype : all_dtypes()) {
    CHECK(dtype_from(name(dtype)) == dtype);
    names.insert(name(dtype));
    CHECK(str(dtype) == name(dtype));
  }
  CHECK(names.size() == kDTypeCount);
  CHECK(std::string(name(boolean)) == "bool");
  CHECK(std::string(name(bfloat16)) == "bf16");
  for (const char* wrong : {"", "boolean", "F32", "f3", "f322", "i16"})
    CHECK(dtype_from(wrong) == std::nullopt);
}

TEST_CASE("sizes and categories are those of the storage type", "[dtype]") {
  CHECK(size_of(float32) == 4);
  CHECK(size_of(float64) == 8);
  CHECK(size_of(float16) == 2);
  CHECK(size_of(bfloat16) == 2);
  CHECK(size_of(int8) == 1);
  CHECK(size_of(uint64) == 8);
  CHECK(size_of(boolean) == 1);
  CHECK(category(uint8) == Category::Unsigned);
  CHECK(category(int64) == Category::Signed);
  CHECK(category(bfloat16) == Category::Float);
  CHECK(is_integer(uint32));
  CHECK_FALSE(is_integer(boolean));
  CHECK_FALSE(is_float(boolean));
  CHECK(is_half(float16));
  CHECK_FALSE(is_half(float32));
  CHECK(compute_type(bfloat16) == float32);
  CHECK(compute_type(float64) == float64);
  CHECK(compute_type(int8) == int8);
}

// torch.promote_types, from its documentation; i16, which we lack, becomes i32, and PyTorch
// refuses u32 and u64 with signed types, where we take i64.
TEST_CASE("promotion is PyTorch's", "[dtype]") {
  struct Row {
    DType lhs, rhs, result;
  };
  const Row rows[] = {
      {int64, float16, float16},    {int64, bfloat16, bfloat16}, {uint64, float32, float32},
      {float16, bfloat16, float32}, {float16, float32, float32}, {bfloat16, float64, float64},
      {float32, float64, float64},  {boolean, uint8, uint8},     {boolean, int8, int8},
      {boolean, float16, float16},  {uint8, int8, int32},        {uint8, int32, int32},
      {uint8, int64, int64},        {int8, int32, int32},        {int32, int64, int64},
      {uint8, uint32, uint32},      {uint32, uint64, uint64},    {uint32, int32, int64},
      {uint32, int8, int64},        {uint64, int64, int64},
  };
  for (const Row& row : rows) {
    INFO(row.lhs << " with " << row.rhs);
    CHECK(promote(row.lhs, row.rhs) == row.result);
  }
}

TEST_CASE("promotion is symmetric, idempotent and never lowers the category", "[dtype]") {
  for (const DType a : all_dtypes()) {
    CHECK(promote(a, a) == a);
    for (const DType b : all_dtypes()) {
      INFO(a << " with " << b);
      const DType both = promote(a, b);
      CHECK(both == promote(b, a));
      CHECK(promote(both, a) == both);
      CHECK(category(both) >= category(a));
      CHECK((is_float(a) || is_float(b)) == is_float(both));
    }
  }
}
