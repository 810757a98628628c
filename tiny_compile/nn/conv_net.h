// A small convolutional network for grey images of 28 x 28.
#pragma once

#include "tiny_compile/nn/convolution.h"

namespace tiny_compile::nn {

struct ConvNet {
  static constexpr const char* names[] = {"conv1", "conv2", "norm1", "norm2", "classes"};
  Conv2d conv1, conv2;
  BatchNorm norm1, norm2;
  Linear classes;
};

struct ConvNetStatistics {
  static constexpr const char* names[] = {"norm1", "norm2"};
  BatchStatistics norm1, norm2;
};

// Two convolutions, of `width` and 2 * width channels. Throws tc::Error at `here` for a size below 1.
ConvNet make_conv_net(int64_t classes, int64_t width = 8, Here here = Here::current());
ConvNetStatistics make_statistics(const ConvNet& net);

// Images [N, 1, 28, 28] to scores [N, classes], and the statistics afterwards.
std::pair<Tensor, ConvNetStatistics> conv_net_scores(const ConvNet& net,
                                                     const ConvNetStatistics& statistics,
                                                     const Operand& images);

}  // namespace tiny_compile::nn
