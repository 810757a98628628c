// Kernels that do the same to other buffers have equal keys, and nothing else has.
#include "tiny_compile/loops/kernel_key.h"

#include "tests/catch.h"

using namespace tiny_compile;

namespace {

// Two kernels; the second's parts are chosen by the test.
Program two(const std::string& buffers, const std::string& second) {
  return parse_program("program p {\n  input x: f32[8]\n  input i: i64[8]\n  temp a: f32[8]\n" +
                       buffers +
                       "  kernel exp_1 rows(i0: 8) {\n    store a[i0] = exp(load x[i0])\n  }\n"
                       "  kernel b rows(i0: 8) {\n" +
                       second + "  }\n  launch exp_1\n  launch b\n  return y\n}\n");
}

KernelKey key(const Program& program, size_t kernel) {
  return key_of(lone_kernel(program, program.kernels[kernel]));
}

bool same(const Program& program) { return key(program, 0) == key(program, 1); }

bool fails(const std::string& step) {
  return can_fail(two("  output y: i64[8]\n", "    " + step + "\n").kernels[1]);
}

}  // namespace

TEST_CASE("names, roles, numbers and places of buffers do not count", "[kernel_key]") {
  const char* exp = "    store y[i0] = exp(load a[i0])\n";
  Program program = two("  output y: f32[8]\n", exp);
  REQUIRE(same(program));
  program.kernels[0].where = {{"mlp.cpp", 12}};
  program.buffers[2].place = 64;
  REQUIRE(same(program));
  REQUIRE(same(two("  output y: f32[2,4]\n", exp)));  // its index is flat
  const LoneKernel lone = lone_kernel(program, program.kernels[1]);
  REQUIRE(lone.buffers == std::vector<int>{2, 3});
  REQUIRE(lone.kernel().steps[0].buffer == 1);
  REQUIRE(lone.program.buffers[0].name == "a");
}

TEST_CASE("what a kernel does and how it is run count", "[kernel_key]") {
  const char* exp = "    store y[i0] = exp(load a[i0])\n";
  REQUIRE_FALSE(same(two("  output y: f32[8]\n", "    store y[i0] = tanh(load a[i0])\n")));
  REQUIRE_FALSE(same(two("  output y: f32[8]\n", "    store y[i0] = exp(load a[7 - i0])\n")));
  Program program = two("  output y: f32[8]\n", exp);
  program.buffers[3].size = 16;
  REQUIRE_FALSE(same(program));
  program = two("  output y: f32[8]\n", exp);
  program.kernels[1].schedule = Schedule{.grain = 4};
  REQUIRE_FALSE(same(program));
  program = two("  output y: f32[8]\n", exp);
  program.buffers[2].align = 4;
  REQUIRE_FALSE(same(program));
  program = two("  output y: f32[8]\n", "    store y[i0] = mul(load a[i0], f32 2)\n");
  Program other = two("  output y: f32[8]\n", "    store y[i0] = mul(load a[i0], f32 3)\n");
  REQUIRE_FALSE(key(program, 1) == key(other, 1));
}

TEST_CASE("one buffer read twice is not two buffers", "[kernel_key]") {
  const Program once =
      two("  output y: f32[8]\n", "    store y[i0] = add(load a[i0], load a[7 - i0])\n");
  const Program twice =
      two("  output y: f32[8]\n", "    store y[i0] = add(load a[i0], load x[7 - i0])\n");
  REQUIRE_FALSE(key(once, 1) == key(twice, 1));
}

TEST_CASE("a kernel can fail where data chooses a place, or integers are divided",
          "[kernel_key]") {
  REQUIRE_FALSE(fails("store y[i0] = add(load i[i0], i64 1)"));
  REQUIRE(fails("store y[i0] = floor_divide(load i[i0], i64 3)"));
  REQUIRE(fails("store y[i0] = remainder(load i[i0], load i[0])"));
  REQUIRE(fails("store y[i0] = load i[at0; at0 = load i[i0] < 8]"));
  REQUIRE_FALSE(fails("store y[i0] = cast<i64>(remainder(load x[i0], load x[0]))"));
}

TEST_CASE("kernels in which data chooses places are named with their lines", "[kernel_key]") {
  const std::string text =
      "program f {\n  input x: f32[8]\n  input i: i64[8]\n  output y: f32[8]\n  output z: "
      "f32[8]\n  kernel gather_1 rows(i0: 8) {  # mlp.cpp:14\n    store y[i0] = load x[at0; "
      "at0 = "
      "load i[i0] < 8]\n  }\n  kernel exp_2 rows(i0: 8) {\n    store z[i0] = exp(load y[i0])\n "
      " "
      "}\n  launch gather_1\n  launch exp_2\n  return y, z\n}";
  Program program = parse_program(text);
  CHECK(kernels_with_chosen_places(program) == "kernel gather_1 (mlp.cpp:14)");
  program.kernels[0].where.clear();
  program.kernels.push_back(program.kernels[0]);
  CHECK(kernels_with_chosen_places(program) == "kernel gather_1 or kernel gather_1");
  program.kernels = {program.kernels[1]};
  CHECK(kernels_with_chosen_places(program) == "");
}
