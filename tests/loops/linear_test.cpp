// Twice the ops, twice the IR and the source, not more: counts, for no clock is asked here.
#include "tests/catch.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/nn.h"
#include "tiny_compile/trace/tracer.h"

using namespace tiny_compile;

namespace {

using In = std::span<const Tensor>;
using Out = std::vector<Tensor>;

struct Counts {
  int64_t ops = 0, scalars = 0, steps = 0, source = 0;
};

Counts size_of_result(const TensorFunction& function, const std::vector<Tensor>& inputs) {
  const Graph graph = trace(function, inputs, "f").graph;
  const Staged staged = run_pipeline(default_pipeline(), graph, false);
  Counts size{graph.size(), 0, 0, static_cast<int64_t>(staged.source.text.size())};
  for (const Kernel& kernel : staged.program.kernels) {
    size.scalars += static_cast<int64_t>(kernel.scalars.size());
    size.steps += static_cast<int64_t>(kernel.steps.size());
  }
  return size;
}

// `make(n)` is a function of about n blocks.
void require_linear(const std::function<TensorFunction(int)>& make, int blocks,
                    const std::vector<Tensor>& inputs) {
  const Counts once = size_of_result(make(blocks), inputs),
               twice = size_of_result(make(2 * blocks), inputs);
  INFO(twice.ops << " ops, " << twice.scalars << " scalars, " << twice.source << " bytes");
  REQUIRE(twice.ops > once.ops * 19 / 10);
  REQUIRE(twice.scalars <= 3 * twice.ops);
  REQUIRE(twice.scalars <= once.scalars * 21 / 10);
  REQUIRE(twice.steps <= once.steps * 21 / 10 + 2);
  REQUIRE(twice.source <= once.source * 21 / 10);
}

}  // namespace

TEST_CASE("x*x + x a thousand times is one kernel of 2001 scalars in 100 kB", "[linear]") {
  const TensorFunction function = [](In in) {
    Tensor x = in[0];
    for (int k = 0; k < 1000; k++) x = x * x + x;
    return Out{x};
  };
  const Counts size = size_of_result(function, {randn({64, 64})});
  REQUIRE(size.ops == 2001);
  REQUIRE(size.scalars == 2001);  // an op a scalar, and the load
  REQUIRE(size.steps == 1);
  REQUIRE(size.source < 200 * 1000);
}

TEST_CASE("ten thousand ops in a row become kernels that a compiler takes", "[linear]") {
  const TensorFunction function = [](In in) {
    Tensor x = in[0];
    for (int k = 0; k < 5000; k++) x = x * in[0] - in[0];
    return Out{x};
  };
  const std::vector<Tensor> inputs = {randn({7})};
  const Graph graph = trace(function, inputs, "f").graph;
  const Program program = run_pipeline(default_pipeline(), graph, false).program;
  REQUIRE(program.kernels.size() == 5);
  for (const Kernel& kernel : program.kernels) REQUIRE(kernel.scalars.size() <= 2048);
  REQUIRE(same_bits(interpret(program, inputs)[0], interpret(graph, inputs)[0]));
}

TEST_CASE("a thousand normalisations do not repeat each other", "[linear]") {
  require_linear(
      [](int blocks) {
        return [=](In in) {
          Tensor x = in[0];
          for (int k = 0; k < blocks; k++) x = softmax(x + 1.0, 1);
          return Out{x};
        };
      },
      250, {randn({16, 32})});
  require_linear(
      [](int blocks) {
        return [=](In in) {
          Tensor x = in[0];
          for (int k = 0; k < blocks; k++) x = x / (x.sum(1, true) + 1.0);
          return Out{x};
        };
      },
      250, {randn({16, 32})});
}

TEST_CASE("diamonds do not double what they share", "[linear]") {
  require_linear(
      [](int blocks) {
        return [=](In in) {
          Tensor x = in[0];
          for (int k = 0; k < blocks; k++) x = (exp(x) + tanh(x)) * x;
          return Out{x};
        };
      },
      500, {randn({16, 32})});
  require_linear(
      [](int blocks) {
        return [=](In in) {
          Tensor x = in[0];
          for (int k = 0; k < blocks; k++) x = x + x.sum(1, true) * x.max({0}, true);
          return Out{x};
        };
      },
      200, {randn({16, 32})});
}

TEST_CASE("one input read by a thousand kernels, and a thousand values added up", "[linear]") {
  require_linear(
      [](int blocks) {
        return [=](In in) {
          Out out;
          for (int k = 0; k < blocks; k++) out.push_back((in[0] * double(k + 2)).sum(k % 2));
          return out;
        };
      },
      500, {randn({16, 32})});
  require_linear(
      [](int blocks) {
        return [=](In in) {
          Out leaves;
          for (int k = 0; k < blocks; k++) leaves.push_back(exp(in[0] * double(k + 2)));
          Tensor sum = leaves.back();
          for (size_t k = leaves.size() - 1; k-- > 0;) sum = sum + leaves[k];
          return Out{sum};
        };
      },
      400, {randn({16, 32})});
}

TEST_CASE("layers of a network, transposes and 200 separate outputs", "[linear]") {
  require_linear(
      [](int blocks) {
        return [=](In in) {
          Tensor x = in[0];
          for (int k = 0; k < blocks; k++) x = x + gelu(matmul(layer_norm(x, {32}), in[1].t()));
          return Out{x};
        };
      },
      100, {randn({32, 32}), randn({32, 32})});
  require_linear(
      [](int blocks) {
        return [=](In in) {
          Tensor x = in[0];
          for (int k = 0; k < blocks; k++)
            x = exp(x.reshape(k % 2 ? Sizes{16, 32} : Sizes{8, 64})).t();
          return Out{x};
        };
      },
      400, {randn({16, 32})});
}

TEST_CASE("reshapes that do not nest do not make an index explode", "[linear]") {
  require_linear(
      [](int blocks) {
        return [=](In in) {
          Tensor x = in[0];
          for (int k = 0; k < blocks; k++)
            x = x.reshape(k % 2 ? Sizes{35, 33, 13} : Sizes{39, 55, 7}).permute({2, 0, 1});
          return Out{exp(x)};
        };
      },
      20, {randn({15015})});
}
