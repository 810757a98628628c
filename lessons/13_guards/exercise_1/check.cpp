#include "lessons/tools/check.h"
#include "exercise.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::key_of;

namespace {

std::string told_apart(const Signature& one, const Signature& other) {
  return key_of(one) != key_of(other) ? "" : "one key for both: '" + key_of(one) + "'";
}

std::string taken_as_one(const Signature& one, const Signature& other) {
  const std::string a = key_of(one), b = key_of(other);
  return a == b ? "" : "two keys, '" + a + "' and '" + b + "'";
}

}  // namespace

TEST_CASE("other values of the same kind have the same key") {
  EXPECT(taken_as_one({{randn({4, 8})}, {}}, {{randn({4, 8})}, {}}));
  EXPECT(taken_as_one({{ones({5}), zeros({})}, {7}}, {{zeros({5}), ones({})}, {7}}));
}

TEST_CASE("where a tensor lies does not matter") {
  const Tensor rows = randn({8, 5});
  EXPECT(taken_as_one({{rows.slice(0, 0, 4)}, {}}, {{rows.slice(0, 4, 8)}, {}}));
}

TEST_CASE("dtypes of one size are told apart") {
  EXPECT(told_apart({{zeros({4})}, {}}, {{zeros({4}, int32)}, {}}));
  EXPECT(told_apart({{zeros({4}, float16)}, {}}, {{zeros({4}, bfloat16)}, {}}));
}

TEST_CASE("shapes of one size are told apart") {
  EXPECT(told_apart({{zeros({2, 6})}, {}}, {{zeros({3, 4})}, {}}));
  EXPECT(told_apart({{zeros({1})}, {}}, {{zeros({})}, {}}));
}

TEST_CASE("sizes do not run into each other") {
  EXPECT(told_apart({{zeros({1, 23})}, {}}, {{zeros({12, 3})}, {}}));
  EXPECT(told_apart({{zeros({1}), zeros({2, 3})}, {}}, {{zeros({1, 2}), zeros({3})}, {}}));
}

TEST_CASE("strides are told apart") {
  EXPECT(told_apart({{zeros({4, 4})}, {}}, {{zeros({4, 4}).t()}, {}}));
  EXPECT(told_apart({{zeros({4})}, {}}, {{zeros({1}).expand({4})}, {}}));
}

TEST_CASE("the number of tensors is told apart") {
  EXPECT(told_apart({{zeros({4})}, {}}, {{zeros({4}), zeros({4})}, {}}));
  EXPECT(told_apart({{zeros({4}), zeros({3})}, {}}, {{zeros({3}), zeros({4})}, {}}));
}

TEST_CASE("extra numbers are told apart") {
  EXPECT(told_apart({{zeros({4})}, {2}}, {{zeros({4})}, {3}}));
  EXPECT(told_apart({{zeros({4})}, {1, 23}}, {{zeros({4})}, {12, 3}}));
  EXPECT(told_apart({{zeros({4})}, {}}, {{zeros({4})}, {0}}));
}

TEST_CASE("extra numbers are told apart by all of their bits") {
  const uint64_t large = uint64_t{1} << 60;
  EXPECT(told_apart({{}, {large}}, {{}, {large + 1}}));
  EXPECT(told_apart({{}, {0}}, {{}, {uint64_t{1} << 63}}));  // of 0.0 and -0.0
}
