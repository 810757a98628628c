// What networks are made of, written in primitives: derivatives and fusion come for free.
#pragma once

#include "tiny_compile/trace/functions.h"

namespace tiny_compile {

enum class Reduction { Mean, Sum, None };

Tensor finite_max(const Operand& x, const Axes& axes);  // clamped to finite, an axis of 1
Tensor logsumexp(const Operand& x, const Axes& axes,
                 bool keepdim = false);              // m + log(sum_exp(x))
Tensor softmax(const Operand& x, int64_t axis);      // exp(x - m) / sum(exp(x - m))
Tensor log_softmax(const Operand& x, int64_t axis);  // (x - m) - log(sum_exp(x))
Tensor layer_norm(const Operand& x, const SizeList& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);
Tensor rms_norm(const Operand& x, const SizeList& normalized_shape, const Tensor& weight = {},
                double eps = 1e-6);
// Of axis 1, with given statistics (inference).
Tensor batch_norm(const Operand& x, const Tensor& mean, const Tensor& variance,
                  const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
Tensor linear(const Operand& x, const Operand& weight,
              const Tensor& bias = {});  // x [.., in], weight [out, in]
Tensor mse_loss(const Operand& x, const Operand& target, Reduction reduction = Reduction::Mean);
// x: log-probabilities [N, C]; target [N] of class numbers; rows whose target is ignore_index
// count for nothing.
Tensor nll_loss(const Operand& x, const Operand& target, Reduction reduction = Reduction::Mean,
                int64_t ignore_index = -100);
Tensor cross_entropy(const Operand& logits, const Operand& target,
                     Reduction reduction = Reduction::Mean, int64_t ignore_index = -100);
Tensor dropout(const Operand& x, double p = 0.5, bool training = true);
// q [.., L, E], k [.., S, E], v [.., S, Ev]; mask: bool (true takes part) or added
// to the scores; dropout of the weights.
Tensor scaled_dot_product_attention(const Operand& q, const Operand& k, const Operand& v,
                                    const Tensor& mask = {}, bool is_causal = false,
                                    std::optional<double> scale = {}, double dropout_p = 0);

}  // namespace tiny_compile
