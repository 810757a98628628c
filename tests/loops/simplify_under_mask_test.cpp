// What a mask says about the index under it.
#include "tiny_compile/loops/simplify_under_mask.h"

#include "tests/catch.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;

namespace {

using Out = std::vector<Tensor>;
using In = std::span<const Tensor>;

// Rotary positions: the halves of each row are multiplied by cosines and sines.
Out rope(In i) {
  const int64_t width = i[0].size(3);
  const Tensor a = slice(i[0], 3, 0, width / 2), b = slice(i[0], 3, width / 2, width);
  return {concat({a * i[1] - b * i[2], b * i[1] + a * i[2]}, 3)};
}

std::vector<Tensor> rope_inputs(int64_t positions, int64_t half, DType dtype) {
  return {randn({2, 3, positions, 2 * half}).to(dtype), randn({positions, half}).to(dtype),
          randn({positions, half}).to(dtype)};
}

Program fused(const Graph& graph, Target target = Target::Cpp) {
  const Program program =
      run_pipeline(until(default_pipeline(), "fuse"), graph, true, target).program;
  verify(program);
  CHECK(parse_program(print(program)) == program);
  return program;
}

bool divides(const Program& program) {
  const std::string text = print(program);
  INFO(text);
  return text.find('/') != std::string::npos || text.find('%') != std::string::npos;
}

// Rows i0: 8, i1: 128, and masks over them.
struct Masks {
  Kernel kernel;
  ScalarTable table{kernel};
  const Expr i0 = Expr::index("i0", 8), i1 = Expr::index("i1", 128);

  int mask(Op op, const Expr& lhs, const Expr& rhs) {
    return table.apply(op, DType::boolean, {table.index(lhs), table.index(rhs)});
  }
  int both(int lhs, int rhs) {
    return table.apply(Op::bitwise_and, DType::boolean, {lhs, rhs});
  }
  Expr under(int mask, const Expr& index) { return simplify_under_mask(kernel, mask, index); }
};

}  // namespace

TEST_CASE("a mask says how many points it leaves", "[narrow]") {
  Masks m;
  m.kernel.axes = {{"i0", 8}, {"i1", 128}};
  const int part = m.both(m.mask(Op::ge, m.i1 - 3, 61), m.mask(Op::lt, m.i1, 100));
  CHECK(points_under(m.kernel, -1, {0, 1}) == 8 * 128);
  CHECK(points_under(m.kernel, part, {0, 1}) == 8 * 36);
  CHECK(points_under(m.kernel, part, {0}) == 8);
  CHECK(points_under(m.kernel, m.both(part, m.mask(Op::lt, m.i1, 64)), {0, 1}) == 0);
  CHECK(points_under(m.kernel, m.mask(Op::lt, m.i0 + m.i1, 7), {0, 1}) == 8 * 128);
}

TEST_CASE("comparisons with constants narrow an axis, and what they do not say stays",
          "[narrow]") {
  Masks m;
  const Expr &i0 = m.i0, &i1 = m.i1;
  const int low = m.mask(Op::lt, i1, 64), high = m.mask(Op::ge, i1, 64);
  CHECK(m.under(low, mod(i1, 64)) == i1);
  CHECK(m.under(low, floor_div(i0 * 64 + i1, 64)) == i0);
  CHECK(m.under(high, mod(i1 + 64, 128)) == i1 - 64);
  CHECK(m.under(high, mod(i1, 64)) == i1 - 64);
  CHECK(m.under(high, mod(i0 * 64 + i1 + 448, 512)) == i0 * 64 + i1 - 64);
  CHECK(m.under(m.mask(Op::lt, i1 - 8, 56), mod(i1, 64)) == i1);
  const int middle = m.both(m.mask(Op::ge, i1, 32), m.both(low, m.mask(Op::lt, i0, 4)));
  CHECK(m.under(middle, floor_div(i1, 32) * 100 + floor_div(i0, 4)) == 100);

  const Expr whole = mod(i1, 64);
  CHECK(m.under(-1, whole) == whole);
  CHECK(m.under(m.mask(Op::lt, i1, 65), whole) == whole);
  CHECK(m.under(m.mask(Op::ge, i1, 63), whole) == whole);
  CHECK(m.under(m.mask(Op::lt, i0, 4), whole) == whole);
  CHECK(m.under(m.mask(Op::lt, i1, 0), whole) == whole);  // nowhere
  CHECK(m.under(m.mask(Op::lt, i1, i0), whole) == whole);
  CHECK(m.under(m.mask(Op::lt, i1 * 2, 64), whole) == whole);
  CHECK(m.under(m.mask(Op::eq, i1, 5), whole) == whole);
  CHECK(m.under(m.table.apply(Op::bitwise_or, DType::boolean, {low, high}), whole) == whole);
  CHECK(m.under(m.mask(Op::lt, i1 + 5, INT64_MIN), whole) == whole);
  Scalar chosen;  // i1 + at0, where data says what at0 is
  chosen.kind = ScalarKind::Index;
  chosen.dtype = DType::i64;
  chosen.index = Expr::index(indirect(0), 128);
  chosen.operands = {m.table.index(i0)};
  chosen.limits = {128};
  const int by_data = m.table.apply(Op::lt, DType::boolean,
                                    {m.table.add(chosen), m.table.constant({DType::i64, 64})});
  CHECK(m.under(by_data, mod(Expr::index(indirect(0), 128), 64)).size() > 1);
}

TEST_CASE("where the mask is true, a narrowed index is the index", "[narrow]") {
  Masks m;
  for (int64_t from : {0, 1, 7, 31, 64, 127}) {
    for (int64_t end : {1, 8, 33, 64, 100, 128}) {
      const int mask = m.both(m.mask(Op::ge, m.i1, from), m.mask(Op::lt, m.i1, end));
      for (const Expr& index :
           {mod(m.i1 + 128 - from, 128) + m.i0 * 128, floor_div(m.i0 * 33 + m.i1, 7) * 5,
            mod(floor_div(m.i1 - from, 8), 3) + mod(m.i1 - from, 8) * m.i0,
            min(m.i1, 63) + mod(m.i1 * 3, 96)}) {
        const Expr shorter = m.under(mask, index);
        INFO(index << " => " << shorter << " in [" << from << ", " << end << ")");
        for (int64_t i0 = 0; i0 < 8; i0++) {
          for (int64_t i1 = from; i1 < end; i1++)
            REQUIRE(evaluate(shorter, {{"i0", i0}, {"i1", i1}}) ==
                    evaluate(index, {{"i0", i0}, {"i1", i1}}));
        }
      }
    }
  }
}

TEST_CASE("the halves of a concat are read without a division", "[narrow]") {
  manual_seed(21);
  for (int64_t half : {64, 7, 1}) {
    for (DType dtype : {bfloat16, float32}) {
      const std::vector<Tensor> inputs = rope_inputs(5, half, dtype);
      const Graph graph = trace(rope, inputs, "rope").graph;
      const Tensor wanted = interpret(graph, inputs)[0];
      for (Target target : {Target::Cpp, Target::Cuda}) {
        const Program program = fused(graph, target);
        CHECK(program.kernels.size() == 1);
        CHECK(!divides(program));
        CHECK(same_bits(interpret(program, inputs)[0], wanted));
      }
      CHECK(same_bits(compile(rope)(inputs)[0], wanted));
    }
  }
}

TEST_CASE("three parts, a concat of concats, and a padded roll", "[narrow]") {
  manual_seed(22);
  const auto three = [](In i) {
    return Out{concat({-i[0], i[1] * 2.0, i[2].slice(1, 1, 4) + 1.0}, 1)};
  };
  const auto nested = [](In i) {
    const Tensor inner = concat({-i[0], i[1]}, 1);
    return Out{concat({inner.slice(1, 3, 8) * 2.0, inner, exp(i[2])}, 1)};
  };
  const auto rolled = [](In i) {
    const Tensor x = -i[0];
    return Out{pad(concat({x.slice(1, 2, 4), x.slice(1, 0, 2)}, 1) * 2.0, {1, 2}) + 1.0};
  };
  const std::vector<Tensor> inputs = {randn({33, 4}), randn({33, 7}), randn({33, 5})};
  const auto check = [&](const std::function<Out(In)>& function, bool no_division) {
    const Graph graph = trace(function, inputs, "f").graph;
    const Program program = fused(graph);
    CHECK(divides(program) != no_division);
    const Tensor wanted = interpret(graph, inputs)[0];
    CHECK(same_bits(interpret(program, inputs)[0], wanted));
    CHECK(same_bits(compile(function)(inputs)[0], wanted));
  };
  check(three, true);
  check(nested, true);
  check(rolled, true);
}

TEST_CASE("values that no load guards are computed as before: none divides by zero",
          "[narrow]") {
  const auto hundredths = [](In i) {
    const Tensor n = 100 / (arange(64) + 1);
    return Out{concat({n, n, i[0]}, 0)};
  };
  const std::vector<Tensor> inputs = {arange(9)};
  const Graph graph = trace(hundredths, inputs, "f").graph;
  CHECK(same_bits(interpret(fused(graph), inputs)[0], interpret(graph, inputs)[0]));
  CHECK(same_bits(compile(hundredths)(inputs)[0], interpret(graph, inputs)[0]));
}

TEST_CASE("a comparison that the loops decide is always or never true", "[narrow]") {
  Masks m;
  const auto said = [&](Op op, const Expr& lhs, int64_t rhs) {
    const int id = m.mask(op, lhs, rhs);
    const auto condition = comparison(m.kernel, m.kernel.scalars[id]);
    REQUIRE(condition);
    CHECK_FALSE((condition->always() && condition->never()));
    return condition->always() ? 1 : condition->never() ? -1 : 0;
  };
  const Expr one = floor_div(m.i1, 1 << 20);  // always 0
  CHECK(said(Op::eq, one, 0) == 1);
  CHECK(said(Op::eq, one, 1) == -1);
  CHECK(said(Op::ne, one, 0) == -1);
  CHECK(said(Op::ne, m.i1 + 1, 0) == 1);
  CHECK(said(Op::eq, m.i1, 3) == 0);
  CHECK(said(Op::ne, m.i1, 3) == 0);
  CHECK(said(Op::lt, m.i1, 0) == -1);
  CHECK(said(Op::ge, m.i1, 0) == 1);
  CHECK(said(Op::ge, m.i1, 1) == 0);
}
