// The loss whose logits are never whole.
#include "tests/trace/agree.h"
#include "tiny_compile/compile/pipeline.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

using Out = std::vector<Tensor>;
using In = std::span<const Tensor>;

Tensor classes_of(int64_t rows, int64_t classes) { return arange(rows) * 3 % classes; }

Tensor plain(const Out& p, const Tensor& target, int64_t ignored = -100) {
  return cross_entropy(linear(p[0], p[1]), target, Reduction::Mean, ignored);
}

Out both(const std::function<Tensor(const Out&)>& loss, const Out& p) {
  auto [value, gradient] = value_and_grad(loss)(p);
  gradient.push_back(value);
  return gradient;
}

void check_close(const Out& got, const Out& wanted, double tolerance) {
  REQUIRE(got.size() == wanted.size());
  for (size_t k = 0; k < got.size(); k++)
    check_near(got[k], wanted[k].shape(), wanted[k].to_vector<double>(), tolerance);
}

int64_t arena(const std::function<Tensor(In)>& loss, const Out& inputs) {
  const auto step = [&](In x) {
    const auto of = [&](const Out& p) { return loss(Out{p[0], p[1], x[2]}); };
    return both(of, Out{x[0], x[1]});
  };
  const Graph graph = trace(step, inputs, "f").graph;
  return run_pipeline(default_pipeline(), graph, true, Target::Cuda).program.arena_bytes;
}

}  // namespace

TEST_CASE("losses in chunks are the losses, and their gradients", "[linear_cross_entropy]") {
  manual_seed(3);
  for (const int64_t rows : {1, 3, 7, 8}) {
    const Out p = {randn({rows, 5}, DType::f64), randn({11, 5}, DType::f64)};
    const Tensor target = classes_of(rows, 11);
    for (const int64_t ignored : {-100, 3}) {
      CAPTURE(rows, ignored);
      if (rows == 1 && ignored == 0) continue;
      const auto chunked = [&](const Out& q) {
        return linear_cross_entropy(q[0], q[1], target, ignored, 3);
      };
      const auto whole = [&](const Out& q) { return plain(q, target, ignored); };
      check_close({chunked(p)}, {whole(p)}, 1e-14);
      check_close(both(chunked, p), both(whole, p), 1e-14);
    }
  }
}

TEST_CASE("losses in chunks, compiled, have the bits of one op after another",
          "[linear_cross_entropy]") {
  const Tensor target = classes_of(37, 50);
  const auto step = [](const Tensor& x, const Tensor& w, const Tensor& places) {
    return both(
        [&](const Out& q) { return linear_cross_entropy(q[0], q[1], places, -100, 10); },
        {x, w});
  };
  for (const DType dtype : {DType::f32, DType::bf16})
    agreed(step, randn({37, 16}, dtype), randn({50, 16}, dtype), target);
}

TEST_CASE("the gradient of the gradient counts every chunk", "[linear_cross_entropy]") {
  const Out p = {randn({7, 3}, DType::f64), randn({4, 3}, DType::f64)};
  const Tensor target = classes_of(7, 4);
  const auto steepness = [&](const std::function<Tensor(const Out&)>& loss) {
    return [=](const Out& q) {
      const Out slope = grad(loss)(q);
      return (slope[0] * slope[0]).sum() + (slope[1] * slope[1]).sum();
    };
  };
  const auto chunked = [&](const Out& q) {
    return linear_cross_entropy(q[0], q[1], target, -100, 2);
  };
  check_close(grad(steepness(chunked))(p),
              grad(steepness([&](const Out& q) { return plain(q, target); }))(p), 1e-13);
}

TEST_CASE("a chunk's logits are all that is in memory", "[linear_cross_entropy]") {
  const Out inputs = {randn({256, 16}), randn({5000, 16}), classes_of(256, 5000)};
  const int64_t logits = 256 * 5000 * 4, weights = 5000 * 16 * 4;
  const int64_t whole = arena([](In x) { return plain({x[0], x[1]}, x[2]); }, inputs);
  const int64_t chunked =
      arena([](In x) { return linear_cross_entropy(x[0], x[1], x[2], -100, 32); }, inputs);
  CHECK(whole >= logits);
  CHECK(chunked <= 3 * logits / 8 + 3 * weights);
}

TEST_CASE("a loss in chunks says what it wants", "[linear_cross_entropy]") {
  const Tensor x = randn({4, 3}), w = randn({5, 3}), target = classes_of(4, 5);
  const auto message = [&](const auto& function) { return message_of(function); };
  CHECK_THAT(message([&] { linear_cross_entropy(x, w.t(), target); }),
             ContainsSubstring("not f32[4,3], f32[3,5] and i64[4]"));
  CHECK_THAT(message([&] { linear_cross_entropy(x, w, x.select(1, 0)); }),
             ContainsSubstring("and f32[4]"));
  CHECK_THAT(message([&] { linear_cross_entropy(x, w, target, -100, 0); }),
             ContainsSubstring("chunks of 0 rows"));
  CHECK_THAT(message([&] { linear_cross_entropy(x.slice(0, 0, 0), w, target.slice(0, 0, 0)); }),
             ContainsSubstring("no rows"));
}
