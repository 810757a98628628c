// What passes over a row keep for the passes behind them.
#include "tiny_compile/loops/kept_values.h"

#include "tests/catch.h"
#include "tiny_compile/loops/sweeps.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;

namespace {

Kernel kernel_of(const std::string& steps) {
  return parse_program(
             "program f on cuda {\n  input a: f32[8,100]\n  input b: f32[8,100]\n"
             "  output y: f32[8,100]\n  output z: f32[8]\n  output w: i64[8]\n"
             "  kernel k rows(i0: 8) {\n" +
             steps + "  }\n  launch k\n  return y, z, w\n}\n")
      .kernels[0];
}

const std::string kRest = "    store z[i0] = r0\n    store w[i0] = i64 0\n";

std::vector<std::vector<int>> kept(const Kernel& kernel, bool may_keep = true) {
  return kept_values(kernel, gathered_sweeps_of(kernel), [&](const auto&) { return may_keep; });
}

Op op_of(const Kernel& kernel, int scalar) { return kernel.scalars[scalar].op; }

}  // namespace

TEST_CASE("one value is kept for several that serve it alone", "[loops][kept]") {
  const Kernel kernel = kernel_of(
      "    $2 = add(load a[i0*100 + j0], load b[i0*100 + j0])\n    r0: f32 = max(j0: 100) $2\n"
      "    store y[i0*100 + j0] for (j0: 100) = sub($2, r0)\n" +
      kRest);
  const auto passes = kept(kernel);
  REQUIRE(passes[0].size() == 1);
  CHECK(op_of(kernel, passes[0][0]) == Op::add);
  CHECK(kept(kernel, false)[0].empty());
}

TEST_CASE("loads that are wanted apart are kept apart", "[loops][kept]") {
  const Kernel kernel = kernel_of(
      "    $0 = load a[i0*100 + j0]\n    $1 = load b[i0*100 + j0]\n"
      "    r0: f32 = max(j0: 100) add($0, $1)\n"
      "    store y[i0*100 + j0] for (j0: 100) = sub(mul($0, r0), $1)\n" +
      kRest);
  CHECK(kept(kernel)[0].size() == 2);
}

TEST_CASE("a later pass keeps what is costly, and is not given what it is made of",
          "[loops][kept]") {
  const Kernel kernel = kernel_of(
      "    $0 = load a[i0*100 + j0]\n    r0: f32 = max(j0: 100) $0\n"
      "    $3 = exp(sub($0, r0))\n    r1: f32 = sum(j0: 100) $3\n"
      "    store y[i0*100 + j0] for (j0: 100) = div($3, r1)\n" +
      kRest);
  const auto passes = kept(kernel);
  REQUIRE(passes.size() >= 3);
  REQUIRE(passes[0].size() == 1);
  CHECK(kernel.scalars[passes[0][0]].kind == ScalarKind::Load);
  REQUIRE(passes[1].size() == 1);
  CHECK(op_of(kernel, passes[1][0]) == Op::exp);
}

TEST_CASE("a quotient is kept for what it is made of where no later pass reads that",
          "[loops][kept]") {
  const auto passes_with = [](const std::string& last, const std::string& type) {
    return kernel_of(
        "    $0 = load a[i0*100 + j0]\n    r0: f32 = max(j0: 100) $0\n"
        "    $3 = exp(sub($0, r0))\n    r1: f32 = sum(j0: 100) $3\n    $5 = " +
        type + "\n    r2: f32 = sum(j0: 100) mul($5, load b[i0*100 + j0])\n" +
        "    store y[i0*100 + j0] for (j0: 100) = " + last + "\n" + kRest);
  };
  const auto of_sum = [](const Kernel& kernel) {  // the pass that makes r2
    std::vector<Op> ops;
    const std::vector<int> all = kept(kernel).at(2);
    for (const int id : all)
      if (kernel.scalars[id].kind == ScalarKind::Apply) ops.push_back(op_of(kernel, id));
    return ops;
  };
  CHECK(of_sum(passes_with("mul(sub($5, r2), $5)", "div($3, r1)")) == std::vector{Op::div});
  CHECK(of_sum(passes_with("mul(sub($5, r2), $3)", "div($3, r1)")).empty());  // exp is there
  CHECK(of_sum(passes_with("mul(sub($5, r2), $5)", "mul($3, r1)")).empty());  // takes little
}

TEST_CASE("a reduction joins an earlier pass over the stores between", "[loops][kept]") {
  const Kernel kernel = kernel_of(
      "    r0: f32 = max(j0: 100) load a[i0*100 + j0]\n    store z[i0] = r0\n"
      "    r2: i64 = argmax(j0: 100) load a[i0*100 + j0]\n    store w[i0] = r2\n"
      "    store y[i0*100 + j0] for (j0: 100) = load b[i0*100 + j0]\n");
  CHECK(sweeps_of(kernel)[0].size() == 1);
  CHECK(gathered_sweeps_of(kernel)[0] == std::vector<int>{0, 2});
}

TEST_CASE("what is stored along long rows joins their reductions", "[loops][kept]") {
  const auto passes_over = [](int64_t count, const std::string& value) {
    const std::string n = std::to_string(count), at = "[i0*" + n + " + j0]";
    const Program program = parse_program(
        "program f on cuda {\n  input a: f32[8," + n + "]\n  output y: f32[8," + n +
        "]\n  output z: f32[8]\n  kernel k rows(i0: 8) {\n    r0: f32 = max(j0: " + n +
        ") load a" + at + "\n    store z[i0] = r0\n    store y" + at + " for (j0: " + n +
        ") = " + value + "(load a" + at + (value == "sub" ? ", r0" : "") +
        ")\n  }\n  launch k\n" + "  return y, z\n}\n");
    return gathered_sweeps_of(program.kernels[0]).size();
  };
  CHECK(passes_over(5000, "exp") == 2);
  CHECK(passes_over(1000, "exp") == 3);  // one chunk: it is held
  CHECK(passes_over(5000, "sub") == 3);  // it waits
}
