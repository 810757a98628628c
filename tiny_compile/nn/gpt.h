// A GPT as a plain struct of tensors: GPT-2's (Radford et al., 2019) pre-norm transformer with
// learned positions and a GELU between. bytes [batch, length] in, scores of the next one out.
//
//   nn::Gpt gpt = nn::make_gpt({.context = 128, .layers = 4, .heads = 4, .width = 128});
//   tc::Tensor scores = nn::gpt_scores(gpt, bytes);          // [batch, length, 256]
//   tc::Tensor loss = nn::gpt_loss(gpt, bytes, next_bytes);  // mean cross entropy, in nats
#pragma once

#include <optional>
#include <vector>

#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile::nn {

struct GptShape {
  int64_t vocabulary = 256, context = 128, layers = 4, heads = 4, width = 128;
  bool tied = true;  // the head is the table of tokens
};

struct GptLinear {
  Tensor weight, bias;  // [out, in], [out]
};

struct GptNorm {
  Tensor weight, bias;  // [width]
};

struct GptBlock {
  GptNorm attention_norm;
  GptLinear attention, attention_out;  // to queries, keys and values at once; back
  GptNorm mlp_norm;
  GptLinear up, down;  // four times as wide between
};

struct Gpt {
  int64_t heads = 1;
  Tensor tokens, positions;  // [vocabulary, width], [context, width]
  std::vector<GptBlock> blocks;
  GptNorm norm;
  std::optional<Tensor> head;  // [vocabulary, width], where it is not `tokens`
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
