// How does an image become a class? Twice: patterns are looked for everywhere, and of four
// neighbouring places the best match stays; what is found in the end is weighed for each class:
//
//   [N,1,28,28] => [N,8,14,14] => [N,16,7,7] => [N,784] => [N,classes]
#include "tiny_compile/nn/conv_net.h"

#include "tiny_compile/trace/nn.h"

namespace tiny_compile::nn {
namespace {

constexpr int64_t kSide = 28;

}  // namespace

ConvNet make_conv_net(int64_t classes, int64_t width, Here here) {
  check_size(classes, "classes", "make_conv_net", here);
  check_size(width, "width", "make_conv_net", here);
  const Conv2dOptions same_size{.padding = 1, .bias = false};  // the norm has a bias
  return {make_conv2d(1, width, 3, same_size, here),
          make_conv2d(width, 2 * width, 3, same_size, here),
          make_batch_norm(width, DType::f32, here),
          make_batch_norm(2 * width, DType::f32, here),
          make_linear(2 * width * (kSide / 4) * (kSide / 4), classes, {}, here)};
}

ConvNetStatistics make_statistics(const ConvNet& net) {
  return {make_statistics(net.norm1.weight.size(0)), make_statistics(net.norm2.weight.size(0))};
}

std::pair<Tensor, ConvNetStatistics> conv_net_scores(const ConvNet& net,
                                                     const ConvNetStatistics& statistics,
                                                     const Operand& images) {
  const Scope scope(images.where);
  const MaxPool2d pool;
  const auto [first, after1] = net.norm1(net.conv1(images), statistics.norm1);
  const auto [second, after2] = net.norm2(net.conv2(pool(relu(first))), statistics.norm2);
  return {net.classes(flatten(pool(relu(second)), 1)), {after1, after2}};
}

}  // namespace tiny_compile::nn
