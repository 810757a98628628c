// A GPT as a plain struct of tensors: GPT-2's (Radford et al., 2019) pre-norm transformer with
// learned positions and a GELU between. bytes [batch, length] in, scores of the next one out.
//
//   nn::Gpt gpt = nn::make_gpt({.context = 128, .layers = 4, .heads = 4, .width = 128});
//   tc::Tensor scores = nn::gpt_scores(gpt, bytes);          // [batch, length, 256]
//   tc::Tensor loss = nn::gpt_loss(gpt, bytes, next_bytes);  // mean cross entropy, in nats
#pragma once

#include <optional>
#include <vector>

#include "tiny_compile/nn/layers.h"

namespace tiny_compile::nn {

struct GptShape {
  int64_t vocabulary = 256, context = 128, layers = 4, heads = 4, width = 128;
  bool tied = true;  // the head is the table of tokens
};

struct GptBlock {
  static constexpr const char* names[] = {"norm1", "attention", "attention_out",
                                          "norm2", "up",        "down"};
  LayerNorm norm1;
  Linear attention, attention_out;  // to queries, keys and values at once; back
  LayerNorm norm2;
  Linear up, down;  // four times as wide between
};

struct Gpt {
  static constexpr const char* names[] = {"tokens", "positions", "blocks",
                                          "norm",   "head",      "heads"};
  Embedding tokens, positions;  // [vocabulary, width], [context, width]
  std::vector<GptBlock> blocks;
  LayerNorm norm;
  std::optional<Tensor> head;  // [vocabulary, width], where it is not the table of tokens
  int64_t heads = 1;
};

// GPT-2's initial weights: normal with a deviation of 0.02, of what adds to the residual stream
// 0.02 / sqrt(2 * layers); biases 0, norms 1. Draws from manual_seed's stream. Throws tc::Error
// for a size below 1 and a width that the heads do not divide.
Gpt make_gpt(const GptShape& shape);

// index: integers [batch, length], at most `context` of them a row. Scores [batch, length,
// vocabulary].
Tensor gpt_scores(const Gpt& gpt, const Tensor& index);

// Mean cross entropy of the scores against `target` [batch, length], in nats.
Tensor gpt_loss(const Gpt& gpt, const Tensor& index, const Tensor& target);

}  // namespace tiny_compile::nn
