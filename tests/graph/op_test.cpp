#include "tiny_compile/graph/op.h"

#include <algorithm>

#include "tests/catch.h"
#include "tiny_compile/graph/op_reference.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("every op is found by its name") {
  for (int i = 0; i < kOpCount; i++) {
    const Op op = static_cast<Op>(i);
    CHECK(op_from(info(op).name) == op);
  }
  CHECK(op_from("addd") == std::nullopt);
  CHECK(op_from("") == std::nullopt);
}

TEST_CASE("domains accept the dtypes they are named after") {
  CHECK(accepts(Domain::Number, DType::u8));
  CHECK_FALSE(accepts(Domain::Number, DType::boolean));
  CHECK(accepts(Domain::Float, DType::bf16));
  CHECK_FALSE(accepts(Domain::Float, DType::i64));
  CHECK_FALSE(accepts(Domain::Integer, DType::boolean));
  CHECK(accepts(Domain::Bits, DType::boolean));
  CHECK_FALSE(accepts(Domain::Bits, DType::f32));
}

TEST_CASE("reductions return PyTorch's dtypes") {
  CHECK(reduction_result(Op::sum, DType::i32) == DType::i64);
  CHECK(reduction_result(Op::prod, DType::boolean) == DType::i64);
  CHECK(reduction_result(Op::sum, DType::f16) == DType::f16);
  CHECK(reduction_result(Op::argmax, DType::f32) == DType::i64);
  CHECK(reduction_result(Op::any, DType::boolean) == DType::boolean);
  CHECK(reduction_result(Op::max, DType::u8) == DType::u8);
}

TEST_CASE("integers and floats have formulas of their own") {
  CHECK(std::string(formula(Op::add, DType::f32)) == "a + b");
  CHECK(std::string(formula(Op::add, DType::i32)) == "tc_add(a, b)");
  CHECK(std::string(formula(Op::gelu, DType::bf16)) == "tc_gelu_half(a)");
  CHECK(std::string(formula(Op::silu, DType::f16)) == "tc_silu_half(a)");
  CHECK(std::string(formula(Op::silu, DType::f32)) == "tc_silu(a)");
}

TEST_CASE("the op reference has a line for every op, all with a meaning") {
  const std::string reference = op_reference();
  CHECK(std::count(reference.begin(), reference.end(), '\n') == kOpCount + 2);
  for (int i = 0; i < kOpCount; i++) {
    const Op op = static_cast<Op>(i);
    CAPTURE(info(op).name);
    CHECK_THAT(reference, ContainsSubstring("| " + std::string(info(op).name) + " "));
    CHECK(op_meaning(op).size() > 1);  // "0" is the formula of an op that has none
  }
}

TEST_CASE("the op reference is a table: its lines are of one width") {
  const std::string reference = op_reference();
  const size_t width = reference.find('\n') + 1;
  CHECK(reference.size() == width * (kOpCount + 2));
}
