#include "tiny_compile/trace/operators.h"

#include <sstream>

#include "tests/trace/agree.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// torch.promote_types. Where PyTorch says i16, which we lack, i32; it refuses u32 and u64 with
// signed types, where we take i64.
const char* const kPromotion = R"(
      f32  f64  f16  bf16 i8   u8   i32  i64  u32  u64  bool
f32   f32  f64  f32  f32  f32  f32  f32  f32  f32  f32  f32
f64   f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
f16   f32  f64  f16  f32  f16  f16  f16  f16  f16  f16  f16
bf16  f32  f64  f32  bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16
i8    f32  f64  f16  bf16 i8   i32  i32  i64  i64  i64  i8
u8    f32  f64  f16  bf16 i32  u8   i32  i64  u32  u64  u8
i32   f32  f64  f16  bf16 i32  i32  i32  i64  i64  i64  i32
i64   f32  f64  f16  bf16 i64  i64  i64  i64  i64  i64  i64
u32   f32  f64  f16  bf16 i64  u32  i64  i64  u32  u64  u32
u64   f32  f64  f16  bf16 i64  u64  i64  i64  u64  u64  u64
bool  f32  f64  f16  bf16 i8   u8   i32  i64  u32  u64  bool
)";

struct Pair {
  DType lhs, rhs, result;
};

DType read_dtype(std::istream& in) {
  std::string word;
  in >> word;
  return dtype_from(word).value();
}

std::vector<Pair> promotion_table() {
  std::istringstream in(kPromotion);
  std::vector<DType> columns;
  for (int i = 0; i < kDTypeCount; i++) columns.push_back(read_dtype(in));
  std::vector<Pair> pairs;
  for (int row = 0; row < kDTypeCount; row++) {
    const DType lhs = read_dtype(in);
    for (const DType rhs : columns) pairs.push_back({lhs, rhs, read_dtype(in)});
  }
  return pairs;
}

Tensor some(DType dtype) { return tensor({1, 0, 3}).to(dtype); }

std::string broadcast_error(const Sizes& a, const Sizes& b) {
  return message_of([&] { zeros(a) + zeros(b); });
}

}  // namespace

TEST_CASE("two tensors promote by PyTorch's table", "[operators]") {
  std::vector<Tensor> inputs;
  for (int i = 0; i < kDTypeCount; i++) inputs.push_back(some(static_cast<DType>(i)));
  const std::vector<Pair> pairs = promotion_table();
  const auto sums = agreed(
      [&pairs](std::vector<Tensor> x) {
        std::vector<Tensor> results;
        for (const Pair& pair : pairs)
          results.push_back(x[static_cast<int>(pair.lhs)] + x[static_cast<int>(pair.rhs)]);
        return results;
      },
      inputs);
  for (size_t i = 0; i < pairs.size(); i++) {
    INFO(pairs[i].lhs << " + " << pairs[i].rhs);
    CHECK(sums[i].dtype() == pairs[i].result);
    const double one = pairs[i].lhs == boolean ? 1 : 3, other = pairs[i].rhs == boolean ? 1 : 3;
    const bool both_bool = pairs[i].result == boolean;
    check_near(sums[i], {3}, {both_bool ? 1. : 2., 0., both_bool ? 1. : one + other}, 0);
  }
}

TEST_CASE("comparisons of any two dtypes are bool", "[operators]") {
  for (const Pair& pair : promotion_table()) {
    INFO(pair.lhs << " < " << pair.rhs);
    CHECK((some(pair.lhs) < some(pair.rhs)).dtype() == boolean);
    CHECK((some(pair.lhs) == some(pair.rhs)).to_vector<bool>()[0]);
  }
}

TEST_CASE("a C++ scalar counts only where its kind is higher", "[operators]") {
  const Tensor x = some(int32);
  const auto y = agreed(
      [](Tensor i, Tensor h, Tensor b, Tensor u) {
        return std::vector<Tensor>{i + 1,  i + 1.5, i * true, h + 1.5, 2 * h,     b + 1,
                                   b * .5, u - 1,   u + 1.f,  1.5 - i, i + b * 1, h < 2};
      },
      x, some(float16), some(boolean), some(uint8));
  check_is(y[0], int32, {3}, {2, 1, 4});
  check_is(y[1], float32, {3}, {2.5, 1.5, 4.5});
  check_is(y[2], int32, {3}, {1, 0, 3});
  check_is(y[3], float16, {3}, {2.5, 1.5, 4.5});
  check_is(y[4], float16, {3}, {2, 0, 6});
  check_is(y[5], int64, {3}, {2, 1, 2});
  check_is(y[6], float32, {3}, {.5, 0, .5});
  check_is(y[7], uint8, {3}, {0, 255, 2});
  check_is(y[8], float32, {3}, {2, 1, 4});
  check_is(y[9], float32, {3}, {.5, 1.5, -1.5});
  check_is(y[10], int64, {3}, {2, 0, 4});
  check_is(y[11], boolean, {3}, {1, 1, 0});
}

TEST_CASE("a 0-d tensor counts only where its kind is higher", "[operators]") {
  auto zero_dim = [](DType dtype) { return full({}, 2, dtype); };
  const auto y = agreed(
      [](Tensor f, Tensor i, Tensor f64, Tensor h, Tensor i64) {
        return std::vector<Tensor>{f + f64, i + h,     i + i64, i64 + h,
                                   h + f64, i64 + 1.5, h + 1.5, i64 < f};
      },
      some(float32), some(int32), zero_dim(float64), zero_dim(float16), zero_dim(int64));
  check_is(y[0], float32, {3}, {3, 2, 5});
  check_is(y[1], float16, {3}, {3, 2, 5});
  check_is(y[2], int32, {3}, {3, 2, 5});
  check_is(y[3], float16, {}, {4});
  check_is(y[4], float64, {}, {4});
  check_is(y[5], float32, {}, {3.5});
  check_is(y[6], float16, {}, {3.5});
  check_is(y[7], boolean, {3}, {0, 0, 1});
}

TEST_CASE("integers divide into f32; // and % round down as Python's", "[operators]") {
  const Tensor a = tensor({7, -7, 7, -7}), b = tensor({2, 2, -2, -2});
  const auto y = agreed(
      [](Tensor a, Tensor b) {
        const Tensor x = a.to(float32), z = b.to(float32);
        return std::vector<Tensor>{
            a / b, floor_divide(a, b),       a % b, x % z, floor_divide(x, z),
            a / 2, a.to(int8) / b.to(uint8), 1 / b};
      },
      a, b);
  check_is(y[0], float32, {4}, {3.5, -3.5, -3.5, 3.5});
  check_is(y[1], int64, {4}, {3, -4, -4, 3});
  check_is(y[2], int64, {4}, {1, 1, -1, -1});
  check_is(y[3], float32, {4}, {1, 1, -1, -1});
  check_is(y[4], float32, {4}, {3, -4, -4, 3});
  check_is(y[5], float32, {4}, {3.5, -3.5, 3.5, -3.5});
  CHECK(y[6].dtype() == float32);
  check_is(y[7], float32, {4}, {.5, .5, -.5, -.5});
}

TEST_CASE("bool + is or, * is and, - is refused, as in PyTorch", "[operators]") {
  const Tensor a = tensor({true, true, false, false}), b = tensor({true, false, true, false});
  const auto y = agreed(
      [](Tensor a, Tensor b) {
        return std::vector<Tensor>{a + b,  a * b, a & b, a | b,         a ^ b,        ~a,
                                   a == b, a > b, a / b, maximum(a, b), minimum(a, b)};
      },
      a, b);
  check_is(y[0], boolean, {4}, {1, 1, 1, 0});
  check_is(y[1], boolean, {4}, {1, 0, 0, 0});
  check_is(y[2], boolean, {4}, {1, 0, 0, 0});
  check_is(y[3], boolean, {4}, {1, 1, 1, 0});
  check_is(y[4], boolean, {4}, {0, 1, 1, 0});
  check_is(y[5], boolean, {4}, {0, 0, 1, 1});
  check_is(y[6], boolean, {4}, {1, 0, 0, 1});
  check_is(y[7], boolean, {4}, {0, 1, 0, 0});
  check_is(y[8], float32, {4}, {1, kInfinity, 0, kNan});
  check_is(y[9], boolean, {4}, {1, 1, 1, 0});
  check_is(y[10], boolean, {4}, {1, 0, 0, 0});
  for (const auto& message : {message_of([&] { a - b; }), message_of([&] { -a; })}) {
    INFO(message);
    CHECK_THAT(message, ContainsSubstring("operators_test.cpp:"));
    CHECK_THAT(message, ContainsSubstring("bool"));
  }
}

TEST_CASE("bitwise operators and shifts keep the dtype and refuse floats", "[operators]") {
  const auto y = agreed(
      [](Tensor a, Tensor b) {
        return std::vector<Tensor>{a & b, a | b, a ^ b, ~a, a << 1, a >> 1, a & 4, popcount(b)};
      },
      tensor({12, -1}).to(int32), tensor({10, 7}).to(int32));
  check_is(y[0], int32, {2}, {8, 7});
  check_is(y[1], int32, {2}, {14, -1});
  check_is(y[2], int32, {2}, {6, -8});
  check_is(y[3], int32, {2}, {-13, 0});
  check_is(y[4], int32, {2}, {24, -2});
  check_is(y[5], int32, {2}, {6, -1});
  check_is(y[6], int32, {2}, {4, 4});
  CHECK(y[7].to_vector<int64_t>() == std::vector<int64_t>{2, 3});
  CHECK_THAT(message_of([] { some(float32) & some(float32); }),
             ContainsSubstring("operators_test.cpp:"));
}

TEST_CASE("comparisons treat NaN as unequal to all", "[operators]") {
  const Tensor x = tensor({kNan, 1., kInfinity}), z = tensor({kNan, 1., -kInfinity});
  const auto y = agreed(
      [](Tensor x, Tensor z) {
        return std::vector<Tensor>{x == z, x != z,   x<z, x <= z, x> z,
                                   x >= z, isnan(x), isinf(x)};
      },
      x, z);
  const std::vector<Values> expected = {{0, 1, 0}, {1, 0, 1}, {0, 0, 0}, {0, 1, 0},
                                        {0, 0, 1}, {0, 1, 1}, {1, 0, 0}, {0, 0, 1}};
  for (size_t i = 0; i < expected.size(); i++) check_is(y[i], boolean, {3}, expected[i]);
}

TEST_CASE("reductions have PyTorch's dtypes; the mean of integers is refused", "[operators]") {
  const auto y = agreed(
      [](Tensor i, Tensor u, Tensor b, Tensor h) {
        return std::vector<Tensor>{sum(i),
                                   prod(i),
                                   sum(u),
                                   sum(b),
                                   sum(h),
                                   max(i),
                                   min(u),
                                   argmax(i),
                                   any(h),
                                   all(i),
                                   cumsum(b, 0),
                                   mean(h),
                                   mean(i.to(float64)),
                                   max(b)};
      },
      some(int32), full({3}, 200, uint8), some(boolean), some(bfloat16));
  check_is(y[0], int64, {}, {4});
  check_is(y[1], int64, {}, {0});
  check_is(y[2], int64, {}, {600});
  check_is(y[3], int64, {}, {2});
  check_is(y[4], bfloat16, {}, {4});
  check_is(y[5], int32, {}, {3});
  check_is(y[6], uint8, {}, {200});
  check_is(y[7], int64, {}, {2});
  check_is(y[8], boolean, {}, {1});
  check_is(y[9], boolean, {}, {0});
  check_is(y[10], int64, {3}, {1, 1, 2});
  CHECK(y[11].dtype() == bfloat16);
  CHECK(y[12].dtype() == float64);
  check_is(y[13], boolean, {}, {1});
  for (const DType dtype : {int64, uint8, boolean}) {
    const std::string message = message_of([&] { mean(some(dtype)); });
    INFO(message);
    CHECK_THAT(message, ContainsSubstring("operators_test.cpp:"));
    CHECK_THAT(message, ContainsSubstring("mean") && ContainsSubstring(name(dtype)));
    CHECK(message_of([&] { var(some(dtype)); }) != "no error");
    CHECK(message_of([&] { some(dtype).mean(-1); }) != "no error");
  }
}

TEST_CASE("functions of floats take integers as f32", "[operators]") {
  const auto y = agreed(
      [](Tensor i, Tensor b) {
        return std::vector<Tensor>{
            sqrt(i), exp(b),   floor(i),         abs(-i),        reciprocal(i),
            sign(i), relu(-i), where(b, i, 0.5), where(b, 1, 2), where(b, i, i.to(int8))};
      },
      tensor({4, 9, 1}).to(int32), some(boolean));
  check_is(y[0], float32, {3}, {2, 3, 1});
  CHECK(y[1].dtype() == float32);
  check_is(y[2], int32, {3}, {4, 9, 1});
  check_is(y[3], int32, {3}, {4, 9, 1});
  CHECK(y[4].dtype() == float32);
  check_is(y[5], int32, {3}, {1, 1, 1});
  check_is(y[6], int32, {3}, {0, 0, 0});
  check_is(y[7], float32, {3}, {4, .5, 1});
  check_is(y[8], int64, {3}, {1, 2, 1});
  check_is(y[9], int32, {3}, {4, 9, 1});
}

TEST_CASE("shapes broadcast from the last axis, as in PyTorch", "[operators]") {
  struct Case {
    Sizes a, b, result;
  };
  for (const Case& c : std::vector<Case>{{{3}, {2, 3}, {2, 3}},
                                         {{2, 1}, {3}, {2, 3}},
                                         {{}, {4, 5}, {4, 5}},
                                         {{5, 1, 4, 1}, {3, 1, 1}, {5, 3, 4, 1}},
                                         {{0, 3}, {1, 3}, {0, 3}},
                                         {{1}, {0}, {0}},
                                         {{1, 1}, {1}, {1, 1}}}) {
    CHECK((zeros(c.a) + ones(c.b)).shape() == c.result);
    CHECK((zeros(c.b) + ones(c.a)).shape() == c.result);
    CHECK(broadcast_shapes({c.a, c.b}, {}) == c.result);
  }
  const auto y = agreed(
      [](Tensor a, Tensor b) {
        return std::vector<Tensor>{a + b, b - a, where(a < b, a, b)};
      },
      tensor({1., 2.}).reshape({2, 1}), tensor({10., 1., -1.}));
  check_is(y[0], float64, {2, 3}, {11, 2, 0, 12, 3, 1});
  check_is(y[1], float64, {2, 3}, {9, 0, -2, 8, -1, -3});
  check_is(y[2], float64, {2, 3}, {1, 1, -1, 2, 1, -1});
}

TEST_CASE("shapes that do not broadcast are an error naming both", "[operators]") {
  for (const auto& [a, b] : std::vector<std::pair<Sizes, Sizes>>{
           {{2}, {3}}, {{2, 3}, {2}}, {{0}, {2}}, {{4, 1}, {3, 1}}}) {
    const std::string message = broadcast_error(a, b);
    INFO(message);
    CHECK_THAT(message, ContainsSubstring("operators_test.cpp:"));
    CHECK_THAT(message, ContainsSubstring(str("[", join(a, ","), "]")) &&
                            ContainsSubstring(str("[", join(b, ","), "]")));
  }
}
