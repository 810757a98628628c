// A generated matmul is dealt out by columns and rows, and no bit depends on how.
#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/loops/dot_axes.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;

namespace {

KernelEntry entry(int64_t rows, int64_t depth, int64_t columns, DType dtype = DType::f32) {
  const std::vector<Tensor> inputs = {randn({rows, depth}).to(dtype),
                                      randn({depth, columns}).to(dtype)};
  const auto product = [](std::span<const Tensor> x) {
    return std::vector<Tensor>{matmul(x[0], x[1])};
  };
  const Graph graph = trace(product, inputs, "product").graph;
  return run_pipeline(default_pipeline(), graph, true).source.kernels.at(0);
}

}  // namespace

TEST_CASE("there are some 64 units of a product that is worth so many threads", "[matmul]") {
  CHECK(entry(7, 5, 3).units == 1);
  const int64_t units = entry(1024, 512, 1024).units.constant();
  CHECK(units >= 64);
  CHECK(units <= 256);
  CHECK(entry(8, 4608, 512).units.constant() >= 16);  // few rows: by columns
  CHECK(entry(4096, 512, 10).units.constant() >= 16);
}

TEST_CASE("a product that is not worth two threads has one", "[matmul]") {
  const auto threads = [](const KernelEntry& kernel) {
    return kernel.units.constant() / kernel.grain.constant();
  };
  CHECK(threads(entry(48, 16, 64)) <= 1);
  CHECK(threads(entry(1, 48, 64)) <= 1);
  CHECK(threads(entry(512, 256, 512)) >= 16);
}

TEST_CASE("of two operands, the one along whose axis results lie becomes the vectors' lanes",
          "[matmul]") {
  const auto function = [](std::span<const Tensor> x) {
    return std::vector<Tensor>{matmul(x[0], x[1])};
  };
  const std::vector<Tensor> few = {randn({1001, 300}), randn({300, 2})};
  const Graph graph = trace(function, few, "product").graph;
  const Staged staged = run_pipeline(default_pipeline(), graph, true);
  const DotAxes axes = dot_axes(staged.program.kernels.at(0));
  REQUIRE(axes.columns.size() == 1);  // 2 lanes would leave 14 idle
  CHECK(staged.program.kernels[0].axes[axes.columns[0]].extent.is_constant(1001));
}

TEST_CASE("columns are packed anew for other columns, another batch, the next call",
          "[matmul]") {
  const tests::Scratch scratch;
  const tests::Setting cache("TC_CACHE_DIR", scratch.path("cache"));
  const auto function = [](Tensor x, Tensor y) { return matmul(x, y); };
  const auto compiled = compile(function, {.backend = "cpp"});
  const auto interpreted = compile(function, {.backend = "interpreter"});
  for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (int time = 0; time < 3; time++) {
      const Tensor x = randn({3, 50, 65}).to(dtype), y = randn({3, 65, 131}).to(dtype);
      INFO(dtype << ", time " << time);
      CHECK(same_bits(interpreted(x, y), compiled(x, y)));
      const Tensor z = randn({3, 131, 65}).to(dtype).transpose(1, 2);
      CHECK(same_bits(interpreted(x, z), compiled(x, z)));
      const Tensor few = randn({3, 65, 20}).to(dtype);  // the same number in each batch
      CHECK(same_bits(interpreted(x, few), compiled(x, few)));
      CHECK(same_bits(interpreted(x[0], few[0]), compiled(x[0], few[0])));
      const Tensor tall = randn({2, 4300, 9}).to(dtype), wide = randn({2, 9, 70}).to(dtype);
      CHECK(same_bits(interpreted(tall, wide), compiled(tall, wide)));
    }
  }
}

TEST_CASE("however rows are shared out, the bits are the interpreter's", "[matmul]") {
  const tests::Scratch scratch;
  const tests::Setting cache("TC_CACHE_DIR", scratch.path("cache"));
  const auto function = [](Tensor x, Tensor y) { return relu(matmul(x, y)); };
  for (int64_t rows : {23, 24, 25, 49, 191, 193, 265}) {
    for (DType dtype : {DType::f32, DType::bf16}) {
      const Tensor x = randn({rows, 37}).to(dtype), y = randn({37, 10}).to(dtype);
      INFO(rows << " rows of " << dtype);
      CHECK(same_bits(compile(function, {.backend = "interpreter"})(x, y),
                      compile(function, {.backend = "cpp"})(x, y)));
    }
  }
}
