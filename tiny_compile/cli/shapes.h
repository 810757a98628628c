// Learning to tell discs, squares, triangles and crosses, which are drawn by code.
#pragma once

#include <cstdint>
#include <functional>

#include "tiny_compile/nn/conv_net.h"

namespace tiny_compile {

// Pictures [count, 1, 28, 28] of f32, about 0 and 1, and what they show, i64: which of kShapeNames.
struct Shapes {
  Tensor images, labels;
};
inline constexpr const char* kShapeNames[] = {"disc", "square", "triangle", "cross"};

// Of random place, size, brightness and noise; the same ones for a seed. Throws tc::Error for a
// count below 0.
Shapes draw_shapes(uint64_t seed, int64_t count);

struct ShapesOptions {
  int64_t steps = 200, batch = 64;
  double rate = 0.015;  // the highest: it rises for ten steps, then falls as half a cosine
  uint64_t seed = 1;
};

struct TrainedShapes {
  nn::ConvNet net;
  nn::ConvNetStatistics statistics;
};

// Trains a new network on pictures that are seen once each, by SGD with momentum, a step one compiled
// function. Calls watch(step, loss) after each.
TrainedShapes train_on_shapes(const ShapesOptions& options,
                              const std::function<void(int64_t, double)>& watch);

// The share of pictures that are named as what they are.
double accuracy_on(const TrainedShapes& trained, const Shapes& shapes);

}  // namespace tiny_compile
