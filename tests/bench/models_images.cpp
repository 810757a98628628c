// Which models look at images? Nets of convolutions with their norms, with and without a row of
// channels of its own, one that goes down and up again, and two that cut an image into patches.
#include "tests/bench/models_rows.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
namespace nn = tc::nn;
using tc::Operand, tc::Tensor;

// A convolution without a bias and the norm behind it, by its batch's own statistics.
struct ConvNorm {
  static constexpr const char* names[] = {"conv", "norm"};
  nn::Conv2d conv;
  nn::BatchNorm norm;
  Tensor operator()(const Operand& x) const {
    return norm(conv(x), nn::make_statistics(norm.weight.shape()[0])).first;
  }
};

ConvNorm make_conv_norm(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1,
                        int64_t groups = 1) {
  return {nn::make_conv2d(
              in, out, kernel,
              {.stride = stride, .padding = kernel / 2, .groups = groups, .bias = false}),
          nn::make_batch_norm(out)};
}

Tensor pooled(const Tensor& x) { return tc::mean(x, {2, 3}); }

// He et al. 2016 ------------------------------------------------------------------------------

struct ResidualBlock {
  static constexpr const char* names[] = {"first", "second", "shortcut"};
  ConvNorm first, second;
  std::optional<ConvNorm> shortcut;
  Tensor operator()(const Tensor& x) const {
    const Tensor y = second(tc::relu(first(x)));
    return tc::relu(y + (shortcut ? (*shortcut)(x) : x));
  }
};

struct ResNet {
  static constexpr const char* names[] = {"stem", "blocks", "head"};
  ConvNorm stem;
  std::vector<ResidualBlock> blocks;
  nn::Linear head;
  Tensor operator()(const Tensor& images) const {
    Tensor x = tc::max_pool2d(tc::relu(stem(images)), 3, 2, 1);
    for (const ResidualBlock& block : blocks) x = block(x);
    return head(pooled(x));
  }
};

Network resnet(bool small) {
  const int64_t width = small ? 4 : 32, side = small ? 16 : 64, batch = small ? 2 : 4;
  ResNet net{make_conv_norm(3, width, 7, 2), {}, nn::make_linear(4 * width, 10)};
  int64_t in = width;
  for (int64_t out : {width, 2 * width, 4 * width}) {
    const int64_t stride = out == in ? 1 : 2;
    ResidualBlock block{make_conv_norm(in, out, 3, stride), make_conv_norm(out, out, 3), {}};
    if (out != in) block.shortcut = make_conv_norm(in, out, 1, stride);
    net.blocks.push_back(block);
    in = out;
  }
  return network_of("residual blocks, strided, batch norm", net, floats({batch, 3, side, side}),
                    classes({batch}, 10));
}

// Sandler et al. 2018 -------------------------------------------------------------------------

struct InvertedBlock {
  static constexpr const char* names[] = {"up", "each", "down"};
  ConvNorm up, each, down;  // `each` has a group of its own for every channel
  Tensor operator()(const Tensor& x) const {
    const Tensor wide = tc::clamp(up(x), 0, 6);
    const Tensor y = down(tc::clamp(each(wide), 0, 6));
    return y.shape() == x.shape() ? x + y : y;
  }
};

struct MobileNet {
  static constexpr const char* names[] = {"stem", "blocks", "last", "head"};
  ConvNorm stem;
  std::vector<InvertedBlock> blocks;
  ConvNorm last;
  nn::Linear head;
  Tensor operator()(const Tensor& images) const {
    Tensor x = tc::clamp(stem(images), 0, 6);
    for (const InvertedBlock& block : blocks) x = block(x);
    return head(pooled(tc::clamp(last(x), 0, 6)));
  }
};

Network mobilenet(bool small) {
  const int64_t width = small ? 4 : 16, side = small ? 16 : 64, batch = small ? 2 : 4;
  MobileNet net{make_conv_norm(3, width, 3, 2), {}, {}, nn::make_linear(8 * width, 10)};
  struct Shape {
    int64_t in, out, stride;
  };
  for (const auto& [in, out, stride] : {Shape{1, 1, 1}, {1, 2, 2}, {2, 2, 1}, {2, 4, 2}}) {
    const int64_t wide = 4 * in * width;
    net.blocks.push_back({make_conv_norm(in * width, wide, 1),
                          make_conv_norm(wide, wide, 3, stride, wide),
                          make_conv_norm(wide, out * width, 1)});
  }
  net.last = make_conv_norm(4 * width, 8 * width, 1);
  return network_of("depthwise separable convolutions, batch norm", net,
                    floats({batch, 3, side, side}), classes({batch}, 10));
}

// Ronneberger et al. 2015 ---------------------------------------------------------------------

// Wu and He 2018: each image's groups of channels by their own mean and variance.
struct GroupNorm {
  static constexpr const char* names[] = {"weight", "bias", "groups"};
  Tensor weight, bias;
  int64_t groups = 1;
  Tensor operator()(const Tensor& x) const {
    const Tensor parts = tc::reshape(x, {x.size(0), groups, -1});
    const Tensor centred = parts - parts.mean({-1}, true);
    const Tensor scale = tc::rsqrt(tc::mean(centred * centred, {-1}, true) + 1e-5);
    const Tensor y = tc::reshape(centred * scale, x.sizes());
    return y * tc::reshape(weight, {-1, 1, 1}) + tc::reshape(bias, {-1, 1, 1});
  }
};

struct SmoothConv {
  static constexpr const char* names[] = {"conv", "norm"};
  nn::Conv2d conv;
  GroupNorm norm;
  Tensor operator()(const Tensor& x) const { return tc::silu(norm(conv(x))); }
};

struct ConvPair {
  static constexpr const char* names[] = {"first", "second"};
  SmoothConv first, second;
  Tensor operator()(const Tensor& x) const { return second(first(x)); }
};

ConvPair make_pair(int64_t in, int64_t out) {
  const auto one = [&](int64_t from) {
    return SmoothConv{nn::make_conv2d(from, out, 3, {.padding = 1}),
                      {tc::ones({out}), tc::zeros({out}), 4}};
  };
  return {one(in), one(out)};
}

// Each pixel becomes four.
Tensor doubled(const Tensor& x) {
  const tc::Size n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
  return tc::reshape(tc::expand(tc::reshape(x, {n, c, h, 1, w, 1}), {n, c, h, 2, w, 2}),
                     {n, c, 2 * h, 2 * w});
}

struct UNet {
  static constexpr const char* names[] = {"down", "bottom", "up", "last"};
  std::vector<ConvPair> down;
  ConvPair bottom;
  std::vector<ConvPair> up;
  nn::Conv2d last;
  Tensor operator()(const Tensor& images) const {
    std::vector<Tensor> skips;
    Tensor x = images;
    for (const ConvPair& pair : down) {
      skips.push_back(pair(x));
      x = tc::max_pool2d(skips.back(), 2);
    }
    x = bottom(x);
    for (const ConvPair& pair : up) {
      x = pair(tc::cat({doubled(x), skips.back()}, 1));
      skips.pop_back();
    }
    return last(x);
  }
};

Network unet(bool small) {
  const int64_t width = small ? 4 : 16, side = small ? 8 : 64, batch = 2;
  const UNet net{{make_pair(3, width), make_pair(width, 2 * width)},
                 make_pair(2 * width, 4 * width),
                 {make_pair(6 * width, 2 * width), make_pair(3 * width, width)},
                 nn::make_conv2d(width, 2, 1)};
  return network_of("down and up with skips, group norm, SiLU", net,
                    floats({batch, 3, side, side}), floats({batch, 2, side, side}));
}

// Dosovitskiy et al. 2021 ---------------------------------------------------------------------

struct Mlp {
  static constexpr const char* names[] = {"up", "down"};
  nn::Linear up, down;
  Tensor operator()(const Tensor& x) const { return down(tc::gelu(up(x))); }
};

Mlp make_mlp(int64_t width, int64_t wide) {
  return {nn::make_linear(width, wide), nn::make_linear(wide, width)};
}

// Patches [N, places, width] by a convolution that steps as far as it reaches.
Tensor patches_of(const nn::Conv2d& embed, const Tensor& images) {
  return tc::transpose(tc::flatten(embed(images), 2), 1, 2);
}

struct VitBlock {
  static constexpr const char* names[] = {"norm1", "attention", "norm2", "mlp"};
  nn::LayerNorm norm1;
  nn::Attention attention;
  nn::LayerNorm norm2;
  Mlp mlp;
};

struct Vit {
  static constexpr const char* names[] = {"token", "places", "embed", "blocks", "norm", "head"};
  Tensor token, places;
  nn::Conv2d embed;
  std::vector<VitBlock> blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  Tensor operator()(const Tensor& images) const {
    const Tensor first = tc::expand(token, {images.size(0), 1, token.size(2)});
    Tensor x = tc::cat({first, patches_of(embed, images)}, 1) + places;
    for (const VitBlock& block : blocks) {
      x = x + block.attention(block.norm1(x));
      x = x + block.mlp(block.norm2(x));
    }
    return head(tc::select(norm(x), 1, 0));
  }
};

Network vit(bool small) {
  const int64_t width = small ? 8 : 128, side = small ? 8 : 32, batch = small ? 2 : 4;
  const int64_t places = (side / 4) * (side / 4);
  Vit net{tc::zeros({1, 1, width}),
          tc::zeros({1, places + 1, width}),
          nn::make_conv2d(3, width, 4, {.stride = 4}),
          {},
          nn::make_layer_norm({width}),
          nn::make_linear(width, 10)};
  for (int layer = 0; layer < (small ? 1 : 3); layer++)
    net.blocks.push_back({nn::make_layer_norm({width}),
                          nn::make_attention(width, small ? 2 : 4),
                          nn::make_layer_norm({width}), make_mlp(width, 4 * width)});
  return network_of("patches, attention, a class token", net, floats({batch, 3, side, side}),
                    classes({batch}, 10));
}

// Tolstikhin et al. 2021 ----------------------------------------------------------------------

struct MixerBlock {
  static constexpr const char* names[] = {"norm1", "places", "norm2", "channels"};
  nn::LayerNorm norm1;
  Mlp places;
  nn::LayerNorm norm2;
  Mlp channels;
  Tensor operator()(const Tensor& x) const {
    const Tensor transposed = tc::transpose(norm1(x), 1, 2);
    const Tensor y = x + tc::transpose(places(transposed), 1, 2);
    return y + channels(norm2(y));
  }
};

struct Mixer {
  static constexpr const char* names[] = {"embed", "blocks", "norm", "head"};
  nn::Conv2d embed;
  std::vector<MixerBlock> blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  Tensor operator()(const Tensor& images) const {
    Tensor x = patches_of(embed, images);
    for (const MixerBlock& block : blocks) x = block(x);
    return head(norm(x).mean({1}));
  }
};

Network mixer(bool small) {
  const int64_t width = small ? 8 : 128, side = small ? 8 : 32, batch = small ? 2 : 4;
  const int64_t places = (side / 4) * (side / 4);
  Mixer net{nn::make_conv2d(3, width, 4, {.stride = 4}),
            {},
            nn::make_layer_norm({width}),
            nn::make_linear(width, 10)};
  for (int layer = 0; layer < (small ? 1 : 4); layer++)
    net.blocks.push_back({nn::make_layer_norm({width}), make_mlp(places, 2 * places),
                          nn::make_layer_norm({width}), make_mlp(width, 4 * width)});
  return network_of("MLPs over places and over channels in turns", net,
                    floats({batch, 3, side, side}), classes({batch}, 10));
}

}  // namespace

std::vector<std::pair<std::string, NetworkMaker>> image_networks() {
  return {{"resnet", resnet},
          {"mobilenet", mobilenet},
          {"unet", unet},
          {"vit", vit},
          {"mixer", mixer}};
}

}  // namespace bench
