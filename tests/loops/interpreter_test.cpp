// What a Program means, step by step, and what running it counts.
#include "tiny_compile/loops/interpreter.h"

#include "tests/catch.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

using Floats = std::vector<float>;

std::vector<Tensor> run(const std::string& program, const std::vector<Tensor>& inputs) {
  return interpret(parse_program("program f {\n" + program + "}"), inputs);
}

}  // namespace

TEST_CASE("steps of a row run in order and share its registers", "[loops]") {
  const auto out = run(R"(
    input x: f32[2,3]
    output y: f32[2,3]
    kernel k rows(i0: 2) {
      r0: f32 = max(j0: 3) load x[i0*3 + j0]
      r1: f32 = sum(j0: 3) sub(load x[i0*3 + j0], r0)
      store y[i0*3 + j0] for (j0: 3) = mul(load x[i0*3 + j0], r1)
    }
    launch k
    return y
  )",
                       {from_vector<float>({1, 2, 3, 4, 4, 4}, Sizes{2, 3})});
  REQUIRE(out[0].to_vector<float>() == Floats{-3, -6, -9, 0, 0, 0});
}

TEST_CASE("a half's reduction into an f32 register is not rounded to the half", "[loops]") {
  for (const char* two : {"sum(j0: 2) load x[j0]", "dot(j0: 2) load x[j0], load w[j0]"}) {
    const auto out =
        run(str("\n    input x: f16[2]\n    input w: f16[2]\n    output y: f32[1]\n",
                "    output z: f16[1]\n    kernel k rows(i0: 1) {\n      r0: f32 = ", two,
                "\n      r1: f16 = ", two,
                "\n      store y[i0] = r0\n      store z[i0] = r1\n    }\n    launch k\n",
                "    return y, z\n  "),
            {from_vector<float>({2048, 1}).to(DType::f16),
             from_vector<float>({1, 1}).to(DType::f16)});
    CHECK(out[0].to_vector<float>() == Floats{2049});
    CHECK(out[1].to_vector<float>() == Floats{2048});
  }
}

TEST_CASE("a masked load does not happen, an indirect one goes where data says", "[loops]") {
  const auto out = run(R"(
    input x: f32[3]
    input k: i64[4]
    output y: f32[4]
    output z: f32[4]
    kernel k rows(i0: 4) {
      store y[i0] = load x[i0] if lt(index[i0], i64 3) else 7.0
      store z[i0] = load x[at0; at0 = load k[i0] < 3]
    }
    launch k
    return y, z
  )",
                       {from_vector<float>({1, 2, 3}), from_vector<int64_t>({2, 0, 0, 1})});
  REQUIRE(out[0].to_vector<float>() == Floats{1, 2, 3, 7});
  REQUIRE(out[1].to_vector<float>() == Floats{3, 1, 1, 2});
}

TEST_CASE("scans and scatters work through a row in order", "[loops]") {
  const auto out = run(R"(
    input x: f32[4]
    input k: i64[4]
    output y: f32[4]
    output z: f32[2]
    kernel k rows() {
      scan y[j0] for (j0: 4) = cumsum load x[j0]
      store z[j1] for (j1: 2) = f32 0.0
      scatter z[at0; at0 = load k[j0] < 2] for (j0: 4) = scatter_add load x[j0]
    }
    launch k
    return y, z
  )",
                       {from_vector<float>({1, 2, 3, 4}), from_vector<int64_t>({0, 1, 1, 0})});
  REQUIRE(out[0].to_vector<float>() == Floats{1, 3, 6, 10});
  REQUIRE(out[1].to_vector<float>() == Floats{5, 5});
}

TEST_CASE("an index chosen by data that leaves its limit is an error", "[loops]") {
  REQUIRE_THROWS_WITH(run(R"(
    input x: f32[3]
    input k: i64[1]
    output z: f32[1]
    kernel k rows() {
      store z[0] = load x[at0; at0 = load k[0] < 3]
    }
    launch k
    return z
  )",
                          {from_vector<float>({1, 2, 3}), from_vector<int64_t>({3})}),
                      ContainsSubstring("index"));
}

TEST_CASE("an access outside its buffer is caught, not made", "[loops]") {
  Program program = parse_program(R"(program f {
    input x: f32[3]
    output y: f32[3]
    kernel k rows(i0: 3) {
      store y[i0] = load x[i0]
    }
    launch k
    return y
  })");
  program.kernels[0].scalars[0].index = program.kernels[0].axes[0].symbol() + 1;
  REQUIRE_THROWS_WITH(interpret(program, std::vector<Tensor>{from_vector<float>({1, 2, 3})}),
                      ContainsSubstring("element 3 of 3"));
}

TEST_CASE("what no kernel wrote shows as NaN", "[loops]") {
  Program program = parse_program(R"(program f {
    input x: f32[1]
    output y: f32[2]
    kernel k rows(i0: 2) {
      store y[i0] = load x[0]
    }
    launch k
    return y
  })");
  program.kernels[0].axes[0].extent = 1;  // what verify would refuse
  const auto out = interpret(program, std::vector<Tensor>{from_vector<float>({1})});
  const Floats values = out[0].to_vector<float>();
  REQUIRE(values[0] == 1);
  REQUIRE(values[1] != values[1]);
}

TEST_CASE("inputs must be as the program wants them", "[loops]") {
  const std::string text = R"(
    input x: f32[3]
    output y: f32[3]
    kernel k rows(i0: 3) {
      store y[i0] = load x[i0]
    }
    launch k
    return y
  )";
  REQUIRE_THROWS_WITH(run(text, {}), ContainsSubstring("more inputs than the 0 given"));
  REQUIRE_THROWS_WITH(run(text, {from_vector<float>({1, 2})}), ContainsSubstring("input x is"));
  REQUIRE_THROWS_WITH(run(text, {from_vector<int64_t>({1, 2, 3})}),
                      ContainsSubstring("input x is f32[3]"));
}

TEST_CASE("distinct elements are counted once, read and written apart", "[loops]") {
  const Program program = parse_program(R"(program f {
    input x: f32[8,4]
    input b: f32[4]
    output y: f32[8,2]
    kernel k rows(i0: 8, i1: 2) {
      store y[i0*2 + i1] = add(load x[i0*4 + i1], load b[i1])
    }
    launch k
    return y
  })");
  const std::vector<Tensor> inputs = {empty_tensor(DType::f32, {8, 4}),
                                      empty_tensor(DType::f32, {4})};
  REQUIRE(bytes_touched(program, inputs) == std::vector<int64_t>{4 * (16 + 2 + 16)});
  REQUIRE(bytes_moved(program) == 4 * (16 + 2 + 16));
}
