// Loads under a guard in the generated CUDA: packs where all their elements have the same guard,
// one by one where not, and the interpreter's bits in either case.
#include "tests/codegen/cuda_threads.h"
#include "tiny_compile/runtime/nvrtc.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;

namespace {

Out rope(In i) {
  const int64_t width = i[0].size(3);
  const Tensor a = slice(i[0], 3, 0, width / 2), b = slice(i[0], 3, width / 2, width);
  return {concat({a * i[1] - b * i[2], b * i[1] + a * i[2]}, 3)};
}

Out look_up(In i) { return {embedding(i[0], i[1])}; }

// The usual stages for an input that starts anywhere, as it may on a GPU.
Pipeline with_unaligned(int number) {
  return insert_after(default_pipeline(), "lower", {"shift", [=](const Program& program) {
                                                      Program result = program;
                                                      result.buffers[number].align = 2;
                                                      return result;
                                                    }});
}

// The same numbers one element behind a multiple of 16 bytes.
Tensor shifted(const Tensor& x) {
  const Tensor all = concat({x.reshape({-1}).slice(0, 0, 1), x.reshape({-1})}, 0);
  return all.slice(0, 1, all.size(0)).reshape(x.shape());
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at++) found++;
  return found;
}

// Packs that are filled with something before they are read.
int guarded_packs(const std::string& text) {
  int found = 0;
  for (size_t at = 0; (at = text.find("  pack", at)) != std::string::npos; at++) {
    const size_t digits = text.find_first_not_of("0123456789", at + 6);
    found += text.compare(digits, 6, "[v] = ") == 0;
  }
  return found;
}
int single_loads(const std::string& text) { return count(text, " ? in_"); }

void check_compiles(const std::string& text) {
  if (why_no_nvrtc().empty()) CHECK(compile_cuda(text, "sm_90").size() > 4);
}

}  // namespace

TEST_CASE("halves of a row are packs, each under its guard", "[codegen][threads]") {
  manual_seed(31);
  const auto inputs = [](int64_t positions, int64_t half, DType dtype) {
    return std::vector{randn({2, 3, positions, 2 * half}).to(dtype),
                       randn({positions, half}).to(dtype), randn({positions, half}).to(dtype)};
  };
  const std::string text = check(rope, inputs(33, 64, bfloat16), "pointwise");
  CHECK(count(text, "  if (e < 64) {") == 4);
  CHECK(count(text, "  if (63 < e) {") == 4);
  CHECK(guarded_packs(text) == 8);
  CHECK(single_loads(text) == 0);
  check_compiles(text);
  const std::string wide = check(rope, inputs(33, 32, float32), "pointwise");
  CHECK(guarded_packs(wide) == 8);
  check_compiles(wide);

  // A pack of two is of both halves: one that begins at an even place is read, and filled once more.
  const std::string of_seven = check(rope, inputs(285, 7, bfloat16), "pointwise");
  CHECK(guarded_packs(of_seven) == 2 * 2);
  CHECK(single_loads(of_seven) == 6);
  const std::string of_one = check(rope, inputs(2000, 1, bfloat16), "pointwise");
  CHECK(guarded_packs(of_one) == 0);
  CHECK(single_loads(of_one) == 8);
  std::vector<Tensor> unaligned = inputs(33, 64, bfloat16);
  unaligned[1] = shifted(unaligned[1]);
  const std::string mixed = check(rope, unaligned, "pointwise", with_unaligned(1));
  CHECK(guarded_packs(mixed) == 6);
  CHECK(single_loads(mixed) == 2);
}

TEST_CASE("a guard that differs within a pack is asked of each element", "[codegen][threads]") {
  manual_seed(32);
  const Function joined = [](In i) { return Out{concat({-i[0], i[1] * 2.0, i[2]}, 1)}; };
  const auto parts = [](int64_t a, int64_t b, int64_t c) {
    return std::vector{randn({600, a}), randn({600, b}), randn({600, c})};
  };
  const std::string even = check(joined, parts(8, 12, 4), "pointwise");
  CHECK(guarded_packs(even) == 3);
  CHECK(even.find("if (7 < e) {\n      if (e < 20) {") != std::string::npos);
  CHECK(guarded_packs(check(joined, parts(4, 6, 2), "pointwise")) == 1);
  CHECK(guarded_packs(check(joined, parts(3, 6, 3), "pointwise")) == 0);
  CHECK(guarded_packs(check(joined, parts(5, 7, 3), "pointwise")) == 0);

  const auto padded = [](double value) {
    return [=](In i) { return Out{pad(i[0], {4, 8, 1, 2}, value)}; };
  };
  const std::vector<Tensor> x = {randn({300, 20})};
  CHECK(guarded_packs(check(padded(0), x, "pointwise")) == 1);
  CHECK(guarded_packs(check(padded(-0.0), x, "pointwise")) == 1);
  CHECK(guarded_packs(check(padded(-HUGE_VAL), x, "pointwise")) == 1);
}

TEST_CASE("a guard of whole rows, and of one long row that ends within a pack",
          "[codegen][threads]") {
  manual_seed(33);
  const auto along = [](int64_t axis) {
    return [=](In i) { return Out{concat({i[0] + 1.0, -i[1]}, axis)}; };
  };
  const std::string rows = check(along(0), {randn({37, 128}), randn({41, 128})}, "pointwise");
  CHECK(guarded_packs(rows) == 2);
  CHECK(rows.find("if (i0 < 37) {") != std::string::npos);
  const std::string line = check(along(0), {randn({4104}), randn({5001})}, "pointwise");
  CHECK(line.find("if (first < 4104) {") != std::string::npos);
  CHECK(line.find("if (4103 < first) {") != std::string::npos);
  CHECK(line.find("tc_read_left<4>(") != std::string::npos);
  CHECK(guarded_packs(check(along(0), {randn({4105}), randn({5000})}, "pointwise")) == 0);
  const Function costly = [](In i) { return Out{gelu(concat({i[0], i[1]}, 1))}; };
  const std::string slabs = check(
      costly, {randn({8200, 512}).to(bfloat16), randn({8200, 512}).to(bfloat16)}, "pointwise");
  CHECK(slabs.find("turn < 2") != std::string::npos);
  CHECK(guarded_packs(slabs) == 2);
}

TEST_CASE("rows chosen by data are read in packs", "[codegen][threads]") {
  manual_seed(34);
  const Tensor index = randint(0, 50, {100});
  for (DType dtype : {bfloat16, float32, float64}) {
    const std::string text = check(look_up, {index, randn({50, 96}).to(dtype)}, "pointwise");
    CHECK(count(text, "  const bool fits_0_50 = tc_is_place(load_0, 50, wrong);\n") == 1);
    CHECK(count(text, "tc_is_place(load_") == 1);
    CHECK(count(text, "if (fits_0_50) tc_read") == 1);
    check_compiles(text);
  }
  const Tensor table = randn({50, 96});
  CHECK(guarded_packs(
            check(look_up, {index, shifted(table)}, "pointwise", with_unaligned(1))) == 0);
  CHECK(guarded_packs(check(look_up, {index, randn({50, 97})}, "pointwise")) == 0);
  const Function normal = [](In i) { return Out{softmax(embedding(i[0], i[1]), 1)}; };
  check(normal, {index, table}, "layouts");
  const Function both = [](In i) {
    return Out{concat({embedding(i[0], i[1]) * 2.0, embedding(i[0], i[2])}, 1)};
  };
  check(both, {index, table, randn({50, 32})}, "pointwise");
}

TEST_CASE("rows out of range are zeros, and nothing is read for them", "[codegen][threads]") {
  manual_seed(35);
  const int64_t far = int64_t{1} << 45;
  const Tensor known = randint(0, 50, {100}),
               wrong = where(known < 20, known, where(known < 30, -far, far));
  const Tensor table = randn({50, 96}).to(bfloat16);
  const std::vector<Tensor> inputs = {wrong, table};
  const Graph graph = trace(Function(look_up), inputs, "f").graph;
  const Staged all = run_pipeline(default_pipeline(), graph, true, Target::Cuda);
  CHECK(guarded_packs(all.source.text) == 1);
  const Tensor wanted = where((known < 20).unsqueeze(1), embedding(known, table), 0.0);
  CHECK(same_bits(run(all.program, all.source, inputs, false)[0], wanted.to(bfloat16)));
}

TEST_CASE("costly work of a concat's part is done under its mask", "[codegen][threads][join]") {
  manual_seed(37);
  const auto joined = [](int64_t axis) {
    return [axis](In i) { return Out{concat({i[1], tanh(i[0]), exp(i[1])}, axis)}; };
  };
  for (int64_t axis : {0, 1}) {
    const std::string whole =
        check(joined(axis), {randn({256, 64}), randn({256, 64})}, "pointwise");
    CHECK(count(whole, "_tanh(load_") == 1);
    CHECK(count(whole, "    if (bitwise_and_") + count(whole, "    if (lt_") +
              count(whole, "    if (ge_") ==
          2);
    CHECK(count(whole, "float early") == 0);
    check_compiles(whole);
  }
  const std::string odd = check(joined(0), {randn({301, 67}), randn({301, 67})}, "pointwise");
  CHECK(count(odd, "float early") == 3);  // all loads before the first branch
  CHECK(odd.rfind("[v] = load_") < odd.find("tc_tanh(load_"));
  check_compiles(odd);
  const std::string transposed = check(
      [](In i) {
        return Out{concat({tanh(i[0].t()), i[1]}, 0)};
      },
      {randn({96, 64}), randn({64, 96})}, "pointwise");
  CHECK(count(transposed, "if (lt_") == 1);
}

TEST_CASE("no branch where data decides, or for what others need too",
          "[codegen][threads][join]") {
  manual_seed(41);
  const auto branches = [](const Function& f) {
    return count(check(f, {randn({256, 64}), randn({256, 64})}, "pointwise"), "    if (");
  };
  CHECK(branches([](In i) { return Out{where(i[0] > 0, tanh(i[0]), i[1])}; }) == 0);
  CHECK(branches([](In i) {
          const Tensor t = tanh(i[0]);
          return Out{where(arange(64) < 32, t, i[1]), t};
        }) == 0);
  CHECK(branches([](In i) { return Out{where(arange(64) < 32, i[0] + 1, i[1])}; }) == 0);
  CHECK(branches([](In i) { return Out{pad(tanh(i[0]), {0, 3})}; }) == 0);
}
