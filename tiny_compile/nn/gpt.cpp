// What is a GPT? A table look-up, then blocks that each add two things to a stream of vectors,
// one for each token: what attention gathered from the tokens before, and what a small network
// made of the token alone.
//
//   x = tokens[index] + positions
//   x = x + out(attention(norm(x)))  }  each block
//   x = x + down(gelu(up(norm(x))))  }
//   scores = norm(x) @ head.T
#include "tiny_compile/nn/gpt.h"

#include <cmath>

#include "tiny_compile/base/error.h"
#include "tiny_compile/nn/initialisers.h"
#include "tiny_compile/trace/nn.h"

namespace tiny_compile::nn {
namespace {

constexpr double kDeviation = 0.02;

Linear small_linear(int64_t in, int64_t out, double deviation) {
  return {normal({out, in}, 0, deviation), zeros({out})};
}

GptBlock make_block(const GptShape& shape) {
  const int64_t width = shape.width;
  const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(shape.layers));
  GptBlock block;
  block.norm1 = make_layer_norm({width});
  block.attention = small_linear(width, 3 * width, kDeviation);
  block.attention_out = small_linear(width, width, residual);
  block.norm2 = make_layer_norm({width});
  block.up = small_linear(width, 4 * width, kDeviation);
  block.down = small_linear(4 * width, width, residual);
  return block;
}

// x [batch, length, width]; queries, keys and values [batch, heads, length, width / heads].
Tensor attention(const GptBlock& block, const Tensor& x, int64_t heads) {
  const Size batch = x.size(0), length = x.size(1), width = x.size(2);
  const Tensor all = reshape(block.attention(x), {batch, length, 3, heads, -1});
  const Tensor parts = permute(all, {2, 0, 3, 1, 4});
  const Tensor q = parts[0], k = parts[1], v = parts[2];
  const Tensor gathered = scaled_dot_product_attention(q, k, v, {}, true);
  const Tensor merged = reshape(permute(gathered, {0, 2, 1, 3}), {batch, length, width});
  return block.attention_out(merged);
}

}  // namespace

Gpt make_gpt(const GptShape& shape) {
  for (const int64_t size :
       {shape.vocabulary, shape.context, shape.layers, shape.heads, shape.width}) {
    if (size < 1) fail("make_gpt: every size must be at least 1, not ", size);
  }
  if (shape.width % shape.heads != 0)
    fail("make_gpt: a width of ", shape.width, " does not divide into ", shape.heads, " heads");
  Gpt gpt;
  gpt.heads = shape.heads;
  gpt.tokens.weight = normal({shape.vocabulary, shape.width}, 0, kDeviation);
  gpt.positions.weight = normal({shape.context, shape.width}, 0, kDeviation);
  for (int64_t k = 0; k < shape.layers; k++) gpt.blocks.push_back(make_block(shape));
  gpt.norm = make_layer_norm({shape.width});
  if (!shape.tied) gpt.head = normal({shape.vocabulary, shape.width}, 0, kDeviation);
  return gpt;
}

Tensor gpt_scores(const Gpt& gpt, const Tensor& index) {
  if (index.rank() != 2)
    fail("gpt_scores: the tokens are [batch, length], not of ", index.rank(), " axes");
  const Tensor places = slice(gpt.positions.weight, 0, 0, index.size(1));
  if (!(places.size(0) == index.size(1)))
    fail("gpt_scores: ", index.size(1), " tokens are more than the context of ",
         gpt.positions.weight.size(0));
  Tensor x = gpt.tokens(index);
  x = x + places;
  for (const GptBlock& block : gpt.blocks) {
    const Tensor gathered = attention(block, block.norm1(x), gpt.heads);
    x = x + gathered;
    const Tensor between = gelu(block.up(block.norm2(x)));
    x = x + block.down(between);
  }
  return linear(gpt.norm(x), gpt.head ? *gpt.head : gpt.tokens.weight);
}

Tensor gpt_loss(const Gpt& gpt, const Tensor& index, const Tensor& target) {
  const Tensor scores = gpt_scores(gpt, index);
  return cross_entropy(flatten(scores, 0, 1), flatten(target));
}

}  // namespace tiny_compile::nn
