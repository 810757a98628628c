// Can a network tell shapes apart that no two pictures show alike? A picture is a function of the
// plane, brightened, shifted, and covered with noise; the label is which function:
//
//   draw_shapes(1, 64)   =>   images f32[64,1,28,28], labels i64[64]
#include "tiny_compile/cli/shapes.h"

#include <cmath>
#include <random>

#include "tiny_compile/compile/compile.h"
#include "tiny_compile/nn/optimiser.h"
#include "tiny_compile/nn/schedule.h"
#include "tiny_compile/trace/nn.h"

namespace tiny_compile {
namespace {

constexpr int64_t kSide = 28, kClasses = 4;

// The engine's bits are the standard's, a distribution's are not.
double uniform(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
}

// Whether the shape, of radius 1 about the origin, holds the point; y grows downwards.
bool holds(int64_t shape, double x, double y) {
  switch (shape) {
    case 0: return x * x + y * y <= 1;
    case 1: return std::fabs(x) <= 0.8 && std::fabs(y) <= 0.8;
    case 2: return y <= 0.7 && y >= -1 && std::fabs(x) <= (y + 1) / 1.7;
    default:
      return std::min(std::fabs(x), std::fabs(y)) <= 0.25 &&
             std::max(std::fabs(x), std::fabs(y)) <= 1;
  }
}

void draw(int64_t shape, std::mt19937_64& random, std::vector<float>& pixels) {
  const double radius = uniform(random, 5, 9), bright = uniform(random, 0.6, 1);
  const double room = static_cast<double>(kSide) / 2 - radius;
  const double cx = kSide / 2.0 + uniform(random, -room, room);
  const double cy = kSide / 2.0 + uniform(random, -room, room);
  for (int64_t row = 0; row < kSide; row++) {
    for (int64_t column = 0; column < kSide; column++) {
      const double x = (static_cast<double>(column) + 0.5 - cx) / radius;
      const double y = (static_cast<double>(row) + 0.5 - cy) / radius;
      const double noise = uniform(random, -0.3, 0.3);
      pixels.push_back(static_cast<float>((holds(shape, x, y) ? bright : 0) + noise));
    }
  }
}

struct Training {
  TrainedShapes trained;
  nn::SgdState<nn::ConvNet> momentum;
  Tensor loss;
};

Training one_step(const Training& now, const Tensor& images, const Tensor& labels,
                  const Tensor& rate) {
  const auto loss = [](const nn::ConvNet& net, const nn::ConvNetStatistics& statistics,
                       const Tensor& x, const Tensor& y) {
    const auto [scores, after] = nn::conv_net_scores(net, statistics, x);
    return std::pair(cross_entropy(scores, y), after);
  };
  const auto& [net, statistics] = now.trained;
  const auto [value, slopes] = value_and_grad(loss)(net, statistics, images, labels);
  const nn::Sgd sgd{.momentum = 0.9};
  const auto [moved, momentum] = sgd.update(net, slopes, now.momentum, rate);
  return {{moved, value.second}, momentum, value.first};
}

}  // namespace

Shapes draw_shapes(uint64_t seed, int64_t count) {
  if (count < 0) fail("draw_shapes: ", count, " pictures; the count must not be negative");
  std::mt19937_64 random(seed);
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  for (int64_t k = 0; k < count; k++) {
    labels.push_back(static_cast<int64_t>(random() % kClasses));
    draw(labels.back(), random, pixels);
  }
  return {from_vector(pixels, {count, 1, kSide, kSide}), from_vector(labels, {count})};
}

TrainedShapes train_on_shapes(const ShapesOptions& options,
                              const std::function<void(int64_t, double)>& watch) {
  manual_seed(options.seed);
  const nn::ConvNet net = nn::make_conv_net(kClasses);
  Training now{{net, nn::make_statistics(net)}, nn::Sgd{.momentum = 0.9}.init(net), zeros({})};
  const auto step = compile(one_step, {.name = "shapes_step"});
  const nn::Rate rate_at = nn::warmup_cosine(options.rate, 10, options.steps);
  for (int64_t k = 0; k < options.steps; k++) {
    const uint64_t seed = (options.seed << 32) + static_cast<uint64_t>(k) + 1;
    const Shapes batch = draw_shapes(seed, options.batch);
    now = step(now, batch.images, batch.labels, full({}, rate_at(k)));
    watch(k + 1, now.loss.item<double>());
  }
  return now.trained;
}

double accuracy_on(const TrainedShapes& trained, const Shapes& shapes) {
  const auto named = [](const TrainedShapes& t, const Tensor& images, const Tensor& labels) {
    const Tensor scores = nn::conv_net_scores(t.net, t.statistics, images).first;
    return mean((argmax(scores, 1) == labels).to(DType::f32));
  };
  const TrainedShapes evaluated = nn::eval(trained);
  return compile(named, {.name = "shapes_accuracy"})(evaluated, shapes.images, shapes.labels)
      .item<double>();
}

}  // namespace tiny_compile
