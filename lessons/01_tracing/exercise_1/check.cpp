#include "lessons/tools/check.h"
#include "exercise.h"

#include <cmath>

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

double by_hand(double prediction, double target, double delta) {
  const double distance = std::abs(prediction - target);
  if (distance <= delta) return distance * distance / 2;
  return delta * (distance - delta / 2);
}

bool is_near(double got, double want) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::abs(got - want) <= 1e-5 * (1 + std::abs(want));
}

std::string wrong_values(const std::vector<float>& x, const std::vector<float>& y,
                         double delta) {
  const std::vector<float> got =
      exercise::huber_loss(from_vector(x), from_vector(y), delta).to_vector<float>();
  for (size_t i = 0; i < x.size(); i++) {
    const double want = by_hand(x[i], y[i], delta);
    if (i >= got.size() || !is_near(got[i], want))
      return str("the loss of ", x[i], " against ", y[i], " with delta ", delta, " should be ",
                 want, ", and is ", i < got.size() ? str(got[i]) : "missing");
  }
  return "";
}

}  // namespace

TEST_CASE("small distances are squared, large ones are not") {
  manual_seed(1);
  const std::vector<float> x = (randn({257}) * 3).to_vector<float>(),
                           y = randn({257}).to_vector<float>();
  for (double delta : {0.25, 1.0, 2.0}) EXPECT(wrong_values(x, y, delta));
}

TEST_CASE("at delta itself both formulas agree") {
  EXPECT(wrong_values({1, -1, 0, 3}, {0, 0, 0, 1}, 1.0));
}

TEST_CASE("NaN stays NaN and infinity stays infinity") {
  const float nan = std::nanf(""), inf = INFINITY;
  EXPECT(wrong_values({nan, 0, inf, -inf, nan}, {0, nan, 0, 1, inf}, 1.0));
}

TEST_CASE("it can be traced") {
  auto loss = compile([](Tensor x, Tensor y) { return exercise::huber_loss(x, y, 1.5); },
                      {.backend = "interpreter"});
  manual_seed(2);
  const Tensor x = randn({33, 5}) * 2, y = randn({33, 5});
  CHECK(same_bits(loss(x, y), exercise::huber_loss(x, y, 1.5)));
}

TEST_CASE("shapes broadcast and a number is a target") {
  manual_seed(3);
  const Tensor x = randn({7, 1}), y = randn({5});
  const Tensor wide = exercise::huber_loss(x, y, 1.0), zero = exercise::huber_loss(x, 0, 1.0);
  REQUIRE(wide.shape() == Sizes{7, 5});
  CHECK(is_near(wide.element({6, 2}).as_double(),
                by_hand(x.element({6, 0}).as_double(), y.element({2}).as_double(), 1)));
  REQUIRE(zero.shape() == Sizes{7, 1});
  CHECK(
      is_near(zero.element({3, 0}).as_double(), by_hand(x.element({3, 0}).as_double(), 0, 1)));
}

TEST_CASE("every node belongs to the line of the caller") {
  auto loss = compile([](Tensor x, Tensor y) { return exercise::huber_loss(x, y, 1.5); });
  const int line = __LINE__ - 1;
  const Graph graph = loss.specialization(randn({3}), randn({3})).traced.graph;
  for (int id = 0; id < graph.size(); id++) {
    if (graph[id].op == Op::input) continue;
    INFO(print(graph, id));
    CHECK(graph[id].where.line == line);
  }
  score("nodes", graph.size(), 18);
}
