// Sums of few terms that are computed where they are read.
#include "tiny_compile/loops/short_sums.h"

#include "tests/codegen/cuda_threads.h"
#include "tiny_compile/compile/grad.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;

namespace {

Program fused(const std::string& text, Target target = Target::Cuda) {
  const Program program =
      run_pipeline(until(default_pipeline(), "fuse"), parse_graph(text), true, target).program;
  verify(program);
  return program;
}

// Numbers whose sum depends on the order, zeros of both signs, Inf and NaN.
Tensor odd_numbers(int64_t rows, int64_t columns, DType type) {
  const Tensor x = randn({rows, columns}) * exp(randn({rows, columns}) * 9.0);
  const Tensor zeros = where(arange(columns) % 4 < 2, x * 0.0, x);
  const Tensor ends = where(arange(rows).reshape({rows, 1}) == 3, zeros / 0.0, zeros);
  return ends.to(type);
}

}  // namespace

TEST_CASE("a window's sum is computed where it is read, in the contract's order",
          "[short_sums][window]") {
  const std::string graph = R"(graph f(%0 x: f32[64]) {
    %1: f32[62,3] = window %0 {axis=0, step=1, size=3}
    %2: f32[62] = sum %1 {axes=[1]}
    %3: f32[62] = flip %2 {axes=[0]}
    return %3
  })";
  const std::string text = print(fused(graph));
  INFO(text);
  CHECK(text.find("add(add(load x[-i0 + 61], load x[-i0 + 63]), load x[-i0 + 62])") !=
        std::string::npos);
  CHECK(fused(graph, Target::Cpp).kernels.size() == 2);
}

TEST_CASE("sums of few terms have the contract's bits wherever they are computed",
          "[short_sums][threads]") {
  manual_seed(43);
  for (const DType type : {float32, float64, bfloat16, float16}) {
    for (const int64_t terms : {1, 2, 3, 5, 9, 16}) {
      INFO(c_type(type) << " " << terms);
      const auto f = [terms](In i) {
        const Tensor sums = i[0].reshape({-1, terms}).sum(1);
        return Out{sums.reshape({-1, 7}).flip({0, 1}) * i[1]};
      };
      const Tensor x = odd_numbers(14, 4 * terms, type);
      CHECK(check_bits(f, {x, randn({8, 7}).to(type)}).program.kernels.size() == 1);
    }
  }
}

TEST_CASE("a mean of windows and its gradient read and write each element once",
          "[short_sums][threads][window]") {
  manual_seed(47);
  for (const DType type : {float32, bfloat16}) {
    for (const int64_t step : {1, 2}) {
      const auto f = [step](In i) {
        const auto pooled = [step](const Tensor& x) { return avg_pool2d(x, 3, step, 1); };
        const auto loss = [&](const Tensor& x) { return (pooled(x) * i[1]).sum(); };
        return Out{pooled(i[0]), grad(loss)(i[0])};
      };
      const Staged all = check_bits(
          f, {randn({2, 3, 12, 12}).to(type), randn({2, 3, 12 / step, 12 / step}).to(type)});
      if (type != float32) continue;  // its cotangent has costs of its own: it is rounded twice
      CHECK(all.program.launches.size() == 2);
      CHECK(bytes_moved(all.program) == 2 * 6 * (144 + 144 / (step * step)) * size_of(type));
    }
  }
}

TEST_CASE("sums that many ask for, of many terms or beside a maximum are not written out",
          "[short_sums][window]") {
  const auto kernels = [](const Function& f) {
    const Graph graph = trace(f, std::vector{zeros({4096, 4})}, "f").graph;
    return run_pipeline(until(default_pipeline(), "fuse"), graph, true, Target::Cuda)
        .program.kernels.size();
  };
  const auto windows = [](const Tensor& x) { return x.unfold(0, 3, 1).max(1).flip({0}); };
  CHECK(kernels([](In i) { return Out{i[0].sum(1).flip({0})}; }) == 1);
  CHECK(kernels([](In i) { return Out{i[0].max(1).flip({0})}; }) == 2);
  CHECK(kernels([](In i) { return Out{i[0].reshape({-1, 32}).sum(1).flip({0})}; }) == 2);
  CHECK(kernels([&](In i) { return Out{windows(i[0].sum(1))}; }) == 3);
}
