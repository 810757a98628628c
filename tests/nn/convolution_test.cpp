// Layers of images: hand-worked values, gradients, running statistics, and the small network.
#include "tiny_compile/nn/convolution.h"

#include "tests/nn/gradients.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

using Values = std::vector<double>;

template <typename Layer>
Tensor cubes(const Layer& layer, const Tensor& x) {
  const Tensor y = layer(x);
  return (y * y * y).sum();
}

template <typename Layer>
Tensor cubes_of_input(const Tensor& x, const Layer& layer) {
  return cubes(layer, x);
}

Tensor batch_loss(const nn::BatchNorm& norm, const Tensor& x, const nn::BatchStatistics& s) {
  const Tensor y = norm(x, s).first;
  return (y * y * y).sum() + (y * x).sum();
}

Tensor counted(const Sizes& shape) {
  return arange(element_count(shape)).to(DType::f64).reshape(SizeList(shape));
}

}  // namespace

TEST_CASE("a convolution of hand-worked windows", "[nn]") {
  const Tensor image = counted({1, 1, 3, 3});  // 0 1 2 / 3 4 5 / 6 7 8
  const nn::Conv2d layer{from_vector<double>({1, 0, 0, 2}, {1, 1, 2, 2}),
                         from_vector<double>({10})};
  CHECK(layer(image).to_vector<double>() == Values{18, 21, 27, 30});
  nn::Conv2d strided = layer;
  strided.stride = 2, strided.padding = 1;
  CHECK(strided(image).to_vector<double>() == Values{10, 14, 22, 30});
}

TEST_CASE("pools of hand-worked windows", "[nn]") {
  const Tensor image = counted({1, 1, 4, 4});
  CHECK(nn::MaxPool2d{2}(image).to_vector<double>() == Values{5, 7, 13, 15});
  CHECK(nn::MaxPool2d{3, 1}(image).to_vector<double>() == Values{10, 11, 14, 15});
  CHECK(nn::AvgPool2d{2}(image).to_vector<double>() == Values{2.5, 4.5, 10.5, 12.5});
  CHECK(nn::AvgPool2d{2, 2, 1}(image).to_vector<double>() ==
        Values{0, 0.75, 0.75, 3, 7.5, 4.5, 3, 6.75, 3.75});
}

TEST_CASE("a batch norm's outputs and running statistics, by hand", "[nn]") {
  const Tensor x = from_vector<double>({1, 10, 3, 10, 2, 16}, {3, 2});
  nn::BatchNorm norm{from_vector<double>({1, 2}), from_vector<double>({0, 1}), 0};
  const nn::BatchStatistics before{from_vector<double>({5, 0}), from_vector<double>({3, 1})};
  const auto [y, after] = norm(x, before);  // means 2 and 12, variances 2/3 and 8
  const Values found = y.to_vector<double>();
  const double d = std::sqrt(1.5), e = 2 / std::sqrt(8.0);
  const Values wanted = {-d, 1 - 2 * e, d, 1 - 2 * e, 0, 1 + 4 * e};
  for (size_t i = 0; i < 6; i++) CHECK(found[i] == Catch::Approx(wanted[i]).margin(1e-14));
  CHECK(after.mean[0].item<double>() == Catch::Approx(0.9 * 5 + 0.1 * 2));
  CHECK(after.mean[1].item<double>() == Catch::Approx(1.2));
  CHECK(after.variance[0].item<double>() == Catch::Approx(0.9 * 3 + 0.1 * 1));
  CHECK(after.variance[1].item<double>() == Catch::Approx(0.9 + 0.1 * 12));
  norm = nn::eval(norm);
  const auto [evaluated, same] = norm(x, before);
  CHECK(evaluated[0][0].item<double>() == Catch::Approx(-4 / std::sqrt(3.0)));
  CHECK(evaluated[0][1].item<double>() == Catch::Approx(21));
  CHECK(same_bits(same.mean, before.mean));
  CHECK(same_bits(same.variance, before.variance));
}

TEST_CASE("a batch norm of bf16 keeps statistics of f32", "[nn]") {
  manual_seed(1);
  const nn::BatchNorm norm = nn::make_batch_norm(3);
  const Tensor x = randn({8, 3, 5, 5}) + 100;
  const auto [y, after] = nn::to(norm, DType::bf16)(x.to(DType::bf16), nn::make_statistics(3));
  const auto [exact, wanted] = norm(x.to(DType::bf16).to(DType::f32), nn::make_statistics(3));
  CHECK(y.dtype() == DType::bf16);
  CHECK(after.variance.dtype() == DType::f32);
  CHECK(same_bits(after.variance, wanted.variance));
  CHECK((y.to(DType::f32) - exact).norm().item<double>() < 0.01 * exact.norm().item<double>());
}

TEST_CASE("image layers' gradients are central differences", "[nn]") {
  manual_seed(2);
  const Tensor x = randn({2, 2, 4, 5}, DType::f64);
  nn::Conv2dOptions options{.dtype = DType::f64};
  check_gradients(cubes<nn::Conv2d>, nn::make_conv2d(2, 3, 3, options), 1e-6, x);
  options.stride = 2, options.padding = 1, options.groups = 2;
  const nn::Conv2d grouped = nn::make_conv2d(2, 4, 3, options);
  check_gradients(cubes<nn::Conv2d>, grouped, 1e-6, x);
  check_gradients(cubes_of_input<nn::Conv2d>, x, 1e-6, grouped);
  check_gradients(cubes_of_input<nn::MaxPool2d>, x, 1e-6, nn::MaxPool2d{3, 2, 1});
  check_gradients(cubes_of_input<nn::AvgPool2d>, x, 1e-6, nn::AvgPool2d{3, 2, 1});
  const nn::BatchNorm norm{randn({2}, DType::f64), randn({2}, DType::f64)};
  const nn::BatchStatistics statistics{randn({2}, DType::f64), rand({2}, DType::f64) + 0.5};
  const auto by_input = [](const Tensor& in, const nn::BatchNorm& n,
                           const nn::BatchStatistics& s) { return batch_loss(n, in, s); };
  for (const nn::BatchNorm& each : {norm, nn::eval(norm)}) {
    check_gradients(batch_loss, each, 1e-6, x, statistics);
    check_gradients(by_input, x, 1e-5, each, statistics);
  }
}

TEST_CASE("gradients reach what windows cover, whatever their steps", "[nn]") {
  manual_seed(5);
  const Tensor x = randn({2, 4, 7, 6}, DType::f64);
  const nn::Conv2dOptions cases[] = {
      {.stride = 2},                               // the last row and column in no window
      {.padding = 4},                              // more than a window reaches
      {.stride = 3, .padding = 2, .dilation = 2},  // windows with gaps, more than a stride long
      {.stride = 4, .padding = 1, .groups = 2},    // elements between windows
      {.stride = 2, .padding = 1, .groups = 4},    // each channel alone
      {.stride = 5, .padding = 3, .dilation = 3},  // some windows of padding alone
  };
  for (nn::Conv2dOptions options : cases) {
    options.dtype = DType::f64;
    INFO("stride " << options.stride << " padding " << options.padding << " dilation "
                   << options.dilation << " groups " << options.groups);
    for (int64_t kernel : {1, 2, 3}) {
      const nn::Conv2d conv = nn::make_conv2d(4, 4, kernel, options);
      check_gradients(cubes<nn::Conv2d>, conv, 1e-6, x);
      check_gradients(cubes_of_input<nn::Conv2d>, x, 1e-6, conv);
    }
  }
  for (const nn::MaxPool2d& pool :
       {nn::MaxPool2d{2}, nn::MaxPool2d{3, 1, 1}, nn::MaxPool2d{2, 3}, nn::MaxPool2d{5, 2, 2}})
    check_gradients(cubes_of_input<nn::MaxPool2d>, x, 1e-6, pool);
}

TEST_CASE("a tie in a pool gives its gradient to the first", "[nn]") {
  const auto loss = [](const Tensor& x) { return nn::MaxPool2d{2}(x).sum(); };
  CHECK(grad(loss)(ones({1, 1, 2, 4}, DType::f64)).to_vector<double>() ==
        Values{1, 0, 1, 0, 0, 0, 0, 0});
}

TEST_CASE("image layers that cannot be say so at the caller's line", "[nn]") {
  CHECK_THROWS_WITH(nn::make_conv2d(3, 4, 0),
                    ContainsSubstring("convolution_test.cpp") &&
                        ContainsSubstring("kernel must be at least 1"));
  CHECK_THROWS_WITH(nn::make_conv2d(3, 4, 3, {.groups = 2}), ContainsSubstring("2 groups"));
  CHECK_THROWS_WITH(nn::make_conv2d(3, 4, 3, {.padding = -1}), ContainsSubstring("padding"));
  CHECK_THROWS_WITH(nn::make_conv2d(3, 4, 3)(ones({1, 2, 5, 5})),
                    ContainsSubstring("convolution_test.cpp"));
  CHECK_THROWS_WITH(nn::MaxPool2d{5}(ones({1, 1, 4, 4})),
                    ContainsSubstring("convolution_test.cpp"));
  const nn::BatchNorm norm = nn::make_batch_norm(3);
  const nn::BatchStatistics statistics = nn::make_statistics(3);
  CHECK_THROWS_WITH(
      norm(ones({1, 3}), statistics),
      ContainsSubstring("convolution_test.cpp") && ContainsSubstring("two values a channel"));
  CHECK_THROWS_WITH(norm(ones({0, 3, 2, 2}), statistics), ContainsSubstring("two values"));
  CHECK_THROWS_WITH(norm(ones({3}), statistics), ContainsSubstring("[N, C, ..]"));
  CHECK_NOTHROW(nn::eval(norm)(ones({1, 3}), statistics));
}

TEST_CASE("the small network's shapes, names and gradients", "[nn]") {
  manual_seed(3);
  const nn::ConvNet net = nn::make_conv_net(4, 2);
  const nn::ConvNetStatistics start = nn::make_statistics(net);
  const Tensor images = randn({3, 1, 28, 28}), labels = from_vector<int64_t>({0, 3, 1});
  const auto [scores, after] = nn::conv_net_scores(net, start, images);
  CHECK(scores.shape() == Sizes{3, 4});
  CHECK(!same_bits(after.norm2.mean, start.norm2.mean));
  const auto [in_eval, unchanged] = nn::conv_net_scores(nn::eval(net), after, images);
  CHECK(same_bits(unchanged.norm1.variance, after.norm1.variance));
  CHECK(nn::conv_net_scores(nn::eval(net), after, images[1].unsqueeze(0)).first.shape() ==
        Sizes{1, 4});
  CHECK(nn::named_tensors(net)[0].first == "conv1.weight");
  CHECK(nn::named_tensors(after).back().first == "norm2.running_var");
  const auto loss = [&](const nn::ConvNet& n, const nn::ConvNetStatistics& s, const Tensor& x) {
    const auto [found, next] = nn::conv_net_scores(n, s, x);
    return std::pair(cross_entropy(found, labels), next);
  };
  const auto [value, slopes] = value_and_grad(loss)(net, start, images);
  CHECK(same_bits(value.second.norm1.mean, after.norm1.mean));
  const double h = 0.01;
  const nn::ConvNet up = moved(nn::to(net, DType::f64), 0, 5, h),
                    down = moved(nn::to(net, DType::f64), 0, 5, -h);
  const auto statistics = nn::to(start, DType::f64);
  const Tensor wide = images.to(DType::f64);
  const double slope = (loss(up, statistics, wide).first.item<double>() -
                        loss(down, statistics, wide).first.item<double>()) /
                       (2 * h);
  CHECK(slopes.conv1.weight.to_vector<double>()[5] ==
        Catch::Approx(slope).epsilon(0.05).margin(1e-3));
}
