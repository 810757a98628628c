// A generated matmul of few columns is dealt out by rows, and no bit depends on how.
#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;

namespace {

int64_t units(int64_t rows, int64_t depth, int64_t columns) {
  const std::vector<Tensor> inputs = {randn({rows, depth}), randn({depth, columns})};
  const auto product = [](std::span<const Tensor> x) {
    return std::vector<Tensor>{matmul(x[0], x[1])};
  };
  const Graph graph = trace(product, inputs, "product").graph;
  return run_pipeline(default_pipeline(), graph, true).source.kernels.at(0).units;
}

}  // namespace

TEST_CASE("rows are shared out where columns are too few for the threads", "[matmul]") {
  CHECK(units(256, 4, 10) == 11);    // of 24 rows
  CHECK(units(256, 4, 1024) == 16);  // of 256, by 64 columns
  CHECK(units(7, 5, 3) == 1);
  CHECK(units(25, 4, 10) == 2);
  CHECK(units(4096, 4, 10) == 16);  // of 264 rows, as many as share packed columns
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
