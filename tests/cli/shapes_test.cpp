// Drawn shapes, and a network that learns to name them.
#include "tiny_compile/cli/shapes.h"

#include "tests/catch.h"
#include "tests/runtime/scratch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;

TEST_CASE("shapes are the seed's, of every class, bright inside and dark outside", "[shapes]") {
  const Shapes shapes = draw_shapes(3, 400);
  CHECK(shapes.images.shape() == Sizes{400, 1, 28, 28});
  CHECK(same_bits(draw_shapes(3, 400).images, shapes.images));
  CHECK(!same_bits(draw_shapes(4, 400).images, shapes.images));
  std::vector<int> count(4);
  for (const int64_t label : shapes.labels.to_vector<int64_t>())
    count[static_cast<size_t>(label)]++;
  for (const int of_class : count) CHECK(of_class > 60);
  const double mean = shapes.images.mean().item<double>();
  CHECK((mean > 0.08 && mean < 0.3));
  CHECK(shapes.images.max().item<double>() <= 1.3);
  CHECK(shapes.images.min().item<double>() >= -0.3);
  CHECK(draw_shapes(1, 0).images.numel() == 0);
  CHECK_THROWS_AS(draw_shapes(1, -1), Error);
}

TEST_CASE("a convolutional network learns shapes it has not seen", "[shapes]") {
  const Scratch cache;
  const Setting setting("TC_CACHE_DIR", cache.path("cache"));
  std::vector<double> losses;
  const auto watch = [&](int64_t, double loss) { losses.push_back(loss); };
  const TrainedShapes trained = train_on_shapes({.steps = 60}, watch);
  REQUIRE(losses.size() == 60);
  const auto mean_of = [&](size_t first, size_t last) {
    double sum = 0;
    for (size_t k = first; k < last; k++) sum += losses[k];
    return sum / static_cast<double>(last - first);
  };
  CHECK(losses[0] > 1.0);
  CHECK(mean_of(50, 60) < 0.5 * mean_of(0, 5));
  CHECK(accuracy_on(trained, draw_shapes(0, 300)) > 0.7);
}
